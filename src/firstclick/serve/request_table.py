"""What was answered to requests with an id, so that a request that is sent again gets the same slate."""

import threading
import time
from collections import OrderedDict
from typing import NamedTuple

from firstclick.serve.log.tuning import Clock
from firstclick.wire.errors import Conflict
from firstclick.wire.feedback import ServedSlate

# Seconds for which an answer is kept, and how many are at most: about 20 MB, unless tokens are very long.
KEPT_SECONDS = 3600.0
MOST_KEPT = 20_000


class KnownRequest(NamedTuple):
    """What was asked, and what was answered until when."""

    asked: bytes
    slate: ServedSlate
    until: float


class RequestTable:
    """The last answers of this process, by model and nonce. Safe for use by several threads."""

    def __init__(self, clock: Clock = time) -> None:
        self._clock = clock
        self._known: OrderedDict[tuple[int, bytes], KnownRequest] = OrderedDict()
        self._lock = threading.Lock()

    def find(self, model: int, nonce: bytes) -> KnownRequest | None:
        """What was answered to the request with this nonce, if that is still kept."""
        with self._lock:
            found = self._known.get((model, nonce))
            return found if found is not None and found.until > self._clock.monotonic() else None

    def keep(self, model: int, nonce: bytes, asked: bytes, slate: ServedSlate) -> ServedSlate:
        """Keep an answer; what counts, which is that of another thread if that was first."""
        now = self._clock.monotonic()
        with self._lock:
            there = self._known.get((model, nonce))
            if there is not None and there.until > now:
                if there.asked != asked:
                    raise other_request()
                return there.slate
            self._known[model, nonce] = KnownRequest(asked, slate, now + KEPT_SECONDS)
            self._known.move_to_end((model, nonce))
            # The first ones were kept first.
            while len(self._known) > MOST_KEPT or next(iter(self._known.values())).until <= now:
                self._known.popitem(last=False)
            return slate

    def forget(self, model: int, nonce: bytes) -> None:
        """The next such request is answered anew."""
        with self._lock:
            self._known.pop((model, nonce), None)

    def forget_model(self, model: int) -> None:
        """Keep nothing of a model that was deleted."""
        with self._lock:
            for key in [key for key in self._known if key[0] == model]:
                del self._known[key]


def other_request() -> Conflict:
    """The refusal of an id that another request has."""
    return Conflict("belongs to another request already; send the same request, or a new id", "request_id")
