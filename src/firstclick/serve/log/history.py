"""Which history a log has: a chain of hashes, one link for each event.

Two databases can hold different events under the same numbers: a standby that was promoted without its last
commits, a backup that was restored under a running server. The last event alone does not tell them apart,
because a client that sends its feedback again puts the same event, with the same nonce, into the other
history too. A link is a hash of the event and of the link before it: equal links have equal logs behind them.
"""

import struct
from collections.abc import Iterable
from hashlib import blake2b
from typing import NamedTuple

from firstclick.serve.log.events import Event, NewEvent

LINK_SIZE = 8
# What the first event of a log is linked to.
START = b""
# Kind and when it was received; the nonce and the payload follow.
_HEAD = struct.Struct("<Bd")


class Mark(NamedTuple):
    """An event as far as it is compared."""

    seq: int
    nonce: bytes
    received: float
    link: bytes

    def same(self, other: "Mark | None") -> bool:
        """Whether both are one event of one history; None is an event that is not there."""
        return other is not None and (self.seq, self.link) == (other.seq, other.link)


def link_of(event: Event | NewEvent, previous: bytes) -> bytes:
    """The link of an event that comes after one with link `previous`."""
    content = previous + _HEAD.pack(event.kind, event.received) + event.nonce + event.payload
    return blake2b(content, digest_size=LINK_SIZE).digest()


def links_of(events: Iterable[Event], previous: bytes) -> list[bytes]:
    """The link of each event, of which the first comes after one with link `previous`."""
    links = []
    for event in events:
        previous = link_of(event, previous)
        links.append(previous)
    return links
