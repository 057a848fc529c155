"""How much one caller may ask: requests a second, in memory that does not grow with the callers."""

import ipaddress
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable

from firstclick.wire.errors import Overloaded

MOST_CALLERS = 10_000


class RateLimit:
    """A bucket for each caller, filled at `per_second`, of which each request takes one.

    A bucket holds a second's worth. When there are too many callers, the one that was silent longest is
    forgotten.
    """

    def __init__(self, per_second: float, clock: Callable[[], float] = time.monotonic) -> None:
        self.per_second = per_second
        self._room = max(1.0, per_second)
        self._clock = clock
        self._buckets: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._buckets)

    def take(self, caller: Hashable) -> None:
        """Count one request, or Overloaded."""
        now = self._clock()
        held, since = self._buckets.pop(caller, (self._room, now))
        held = min(self._room, held + (now - since) * self.per_second)
        enough = held >= 1.0
        self._buckets[caller] = (held - 1.0 if enough else held), now
        if len(self._buckets) > MOST_CALLERS:
            self._buckets.popitem(last=False)
        if not enough:
            raise Overloaded(
                f"more than {self.per_second:g} requests a second came from this key or address; "
                "send the same again after a while",
                retry_after=(1.0 - held) / self.per_second,
            )


def caller_of(address: str | None) -> str:
    """Whom an address belongs to: of version 6, everyone has a whole network of 2^64."""
    if address is None or ":" not in address:
        return address or "?"
    try:
        return str(ipaddress.ip_network((address.partition("%")[0], 64), strict=False))
    except ValueError:
        return address
