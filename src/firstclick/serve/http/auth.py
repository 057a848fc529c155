"""Who may do what, and how much: API keys and their roles, servers that have none, and the rate limit."""

import hashlib
import hmac
import ipaddress
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from enum import IntEnum
from functools import lru_cache

from firstclick.serve.http.errors import Misdirected
from firstclick.serve.store.store import ApiKey
from firstclick.wire.errors import Forbidden, Overloaded, Unauthorised

PREFIX = "fc_"
KEY_BYTES = 32
# Callers whose requests are counted: memory does not grow with them.
MOST_CALLERS = 10_000


class Role(IntEnum):
    """Each may do what those before it may. OPEN needs no key."""

    OPEN = 0
    READ = 1
    WRITE = 2
    ADMIN = 3


ROLES = {role.name.lower(): role for role in Role if role is not Role.OPEN}


def new_key() -> tuple[str, bytes]:
    """A key, and the SHA-256 by which it is known later."""
    text = PREFIX + secrets.token_urlsafe(KEY_BYTES)
    return text, hashlib.sha256(text.encode()).digest()


def is_loopback(host: str) -> bool:
    """Whether this is a name or an address of the machine itself."""
    if host.rstrip(".").lower() == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host.strip("[]"))
    except ValueError:
        return False
    return address.is_loopback


def host_of(header: str) -> str:
    """The host in a Host header, without its port."""
    if header.startswith("["):
        return header.partition("]")[0] + "]"
    return header.rpartition(":")[0] if header.count(":") == 1 else header


@lru_cache(64)  # not taken apart for each request
def check_host(host: bytes) -> None:
    """A page of a stranger whose name points here (DNS rebinding) sends that name."""
    name = host.decode("latin-1")
    if not is_loopback(host_of(name)):
        raise Misdirected(
            "without API keys this server answers at localhost, 127.0.0.1 and [::1] only, got "
            f"Host {name[:100]!r}; make a key with 'firstclick keys'"
        )


def key_of(authorization: bytes, keys: Sequence[ApiKey]) -> ApiKey | None:
    """The stored key that was sent, or None. All are compared, so that time tells nothing."""
    if authorization[:7].lower() != b"bearer ":
        return None
    sent = hashlib.sha256(authorization[7:].strip()).digest()
    found = None
    for key in keys:
        if hmac.compare_digest(key.hash, sent):
            found = key
    return found


def check_role(needed: Role, key: ApiKey | None, *, sent: bool) -> None:
    """Unauthorised without a good key, Forbidden with one that may not do this."""
    role = needed.name.lower()
    if key is None:
        found = "the key that was sent is not known, or was revoked" if sent else "no key was sent"
        raise Unauthorised(
            f"this needs an API key with the role {role!r}, and {found}; "
            "send it as 'Authorization: Bearer fc_...'"
        )
    if ROLES.get(key.role, Role.OPEN) < needed:
        raise Forbidden(f"this needs an API key with the role {role!r}; this key's role is {key.role!r}")


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
