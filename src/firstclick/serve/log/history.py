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
    """An event as far as it is compared. `link` is None where whoever appended it did not know it: versions
    before 2026-12 wrote none."""

    seq: int
    nonce: bytes
    received: float
    link: bytes | None

    def same(self, other: "Mark | None") -> bool:
        """Whether both are one event of one history; None is an event that is not there."""
        if other is None or self.seq != other.seq:
            return False
        if self.link is not None and other.link is not None:
            return self.link == other.link
        return (self.nonce, self.received) == (other.nonce, other.received)


def link_of(event: Event | NewEvent, previous: bytes | None) -> bytes | None:
    """The link of an event that comes after one with link `previous`."""
    if previous is None:
        return None
    content = previous + _HEAD.pack(event.kind, event.received) + event.nonce + event.payload
    return blake2b(content, digest_size=LINK_SIZE).digest()


def links_of(events: Iterable[Event], previous: bytes | None) -> list[bytes | None]:
    """The link of each event, of which the first comes after one with link `previous`."""
    links = []
    for event in events:
        previous = link_of(event, previous)
        links.append(previous)
    return links
