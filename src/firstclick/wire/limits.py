"""The largest values that a service takes."""

from firstclick.catalog.features import MOST_FEATURES as MOST_FEATURES
from firstclick.validation.duration import LONGEST_WAIT as LONGEST_WAIT

LONGEST_ID = 256
LONGEST_NAME = 1000
LARGEST_ID = 2**53
MOST_CONTEXT = 256
# Places of a slate.
MOST_ROWS = 255
# Entries in one batch of feedback.
MOST_ENTRIES = 1000
# Characters of a token: room for the largest slate with the largest context, in base64, for features of some
# rows, and for what the slate was drawn from.
LONGEST_TOKEN = 12_288
# Bytes of a batch: room for the longest tokens, with all their clicks, and some white space.
LARGEST_BATCH = MOST_ENTRIES * (LONGEST_TOKEN + 2_000)
MOST_ITEMS_LISTED = 1000
# Named lists of items in a model.
MOST_LISTS = 1000
