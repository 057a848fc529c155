"""What the words of Zong et al. 2016 were taken to mean: the one place, written before the runs it judges.

The paper defines none of them. The limits follow from how it uses its words; where that says nothing, the
reason says that the limit is ours. A reader who means something else finds the measured figure and its
interval beside every verdict.
"""

import math
from dataclasses import dataclass

# Whatever rounds to two.
_TWO = (1.5, 2.5)
_UNITS = {"k": 10**3, "M": 10**6}


@dataclass(frozen=True)
class Word:
    """A word holds if the thing it speaks of is strictly between two limits, for the reason given."""

    phrase: str
    of: str
    low: float
    high: float
    reason: str
    is_ratio: bool = True

    @property
    def limits(self) -> str:
        """'between 1.5 and 2.5', 'above 100' or 'below 1'."""
        if math.isinf(self.high):
            return f"above {self.low:g}"
        if math.isinf(self.low):
            return f"below {self.high:g}"
        return f"between {self.low:.3g} and {self.high:.3g}"

    @property
    def meaning(self) -> str:
        """The phrase and its limits, in a sentence without a full stop."""
        return f"“{self.phrase}” is taken as: {self.of} is {self.limits}"


_REGRETS = "the ratio of the mean regrets"

SIMILAR = Word(
    "similar",
    _REGRETS,
    1 / _TWO[1],
    _TWO[1],
    "section 4.4 calls methods similar of which one has about two times the regret of another, and tells "
    "almost three times apart from that; the limit is where these two meet, in both directions",
)
ABOUT_TWO_TIMES = Word(
    "about two times larger",
    _REGRETS,
    *_TWO,
    "it rounds to two; “times larger” is read as “times as large”",
)
ROUGHLY_DOUBLES = Word("roughly doubles", _REGRETS, *_TWO, "it rounds to two")
ROUGHLY_HALVES = Word(
    "roughly halves", _REGRETS, 1 / _TWO[1], 1 / _TWO[0], "the reverse of “roughly doubles”"
)
ALMOST_THREE_TIMES = Word(
    "almost three times larger", _REGRETS, _TWO[1], 3.0, "it rounds to three and has not reached it"
)
ORDERS_OF_MAGNITUDE = Word(
    "orders of magnitude larger",
    _REGRETS,
    100.0,
    math.inf,
    "the plural is taken at its word: two orders, ten times ten",
)
PERFORMS_WELL = Word(
    "performs well",
    "the mean regret, as a share of the best slate’s clicks in all steps,",
    -math.inf,
    0.1,
    "the paper gives no measure, so this one is ours: over the whole run, learning included, less than a "
    "tenth of the clicks that can be had is lost",
)
# The first one in so many of the steps is where a learner starts. Its last step has to be recorded.
LEARNING_PARTS = 10
CAN_LEARN = Word(
    "can learn",
    f"the mean regret per step after the first 1/{LEARNING_PARTS} of the steps, over that within it,",
    -math.inf,
    1.0,
    "a learner gets better: it loses fewer clicks per step later than at the start",
)


def _order(phrase: str, of: str) -> Word:
    return Word(
        phrase,
        of,
        0.0,
        math.inf,
        "an order without a word on how far apart: any difference that chance does not explain",
        is_ratio=False,
    )


LOWER = _order("lower", "the other mean regret less this one")
IMPROVES = _order("improves", "the mean regret before less the one after")
LOWEST = _order("lowest", "each other mean regret less this one")
INCREASES = _order("increases", "the mean at each setting less that at the setting before")
GAP_INCREASES = _order(
    "the gap increases", "the mean difference between two regrets less that difference with fewer items"
)
INCREASES_FASTER = _order("increases faster", "the growth of the one mean less the growth of the other")

WORDS = (
    SIMILAR,
    ABOUT_TWO_TIMES,
    ALMOST_THREE_TIMES,
    ORDERS_OF_MAGNITUDE,
    ROUGHLY_DOUBLES,
    ROUGHLY_HALVES,
    PERFORMS_WELL,
    CAN_LEARN,
    LOWER,
    IMPROVES,
    LOWEST,
    INCREASES,
    GAP_INCREASES,
    INCREASES_FASTER,
)

# The group of items that experiment 3 is about, the paper's word first and then other names for it: the
# authors' code takes one of the two American categories, and genre files differ in what they call rock.
GROUPS = {
    "yelp": ("American", "American (New)"),
    "million-song": ("Rock", "Pop_Rock"),
    "movielens": ("Adventure",),
}

# A mean says little about runs of which the largest is so many times the median: both are shown beside it.
UNEVEN = 3

# "A wide range of sigma^2": four orders of magnitude, two on either side of the paper's own setting.
SIGMAS = (0.1, 0.3, 1.0, 3.0, 10.0)
# The paper never plays CascadeLinUCB, and its theorem's c is for worlds in which its assumptions hold.
WIDTHS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)


def number_of(printed: str) -> int:
    """The number printed as '78k', '2.2M' or '550k'."""
    return round(float(printed[:-1]) * _UNITS[printed[-1]])


def rounds_to(printed: str) -> tuple[int, int]:
    """The numbers that round to one printed as '78k', '2.2M' or '550k'.

    Its zeros at the end are taken for rounding, as there is no other way to write 550 thousand: half a
    unit of the last other digit, either way.
    """
    digits, unit = printed[:-1], _UNITS[printed[-1]]
    zeros = len(digits) - len(digits.rstrip("0")) if "." not in digits else 0
    place = 10.0**zeros if "." not in digits else 10.0 ** -len(digits.split(".")[1])
    value = number_of(printed)
    return round(value - place * unit / 2), round(value + place * unit / 2)
