"""Who may do what, and how much: API keys and their roles, servers that have none, and the rate limit."""

import hashlib
import hmac
import ipaddress
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping, Sequence, Set
from enum import Enum
from functools import lru_cache

from firstclick.serve.http.errors import Misdirected
from firstclick.serve.model.new_events import check_name
from firstclick.serve.store.store import ApiKey
from firstclick.validation.quoting import quoted
from firstclick.wire.errors import Forbidden, Malformed, Overloaded, Unauthorised

PREFIX = "fc_"
KEY_BYTES = 32
# What a page may say of the slate it wants. With candidates, exclude or pinned a visitor could have any item
# shown, and click it; by request_id they could ask for the slates of others; by an absurd context they could
# spoil what a policy knows of all users.
PAGE_FIELDS = ("k", "unit")
# What a proxy adds to a request. By these headers it gives itself away, if it adds any.
OF_PROXIES = frozenset({b"x-forwarded-for", b"forwarded", b"x-real-ip", b"via"})
# Callers whose requests are counted: memory does not grow with them.
MOST_CALLERS = 10_000


class Role(Enum):
    """What a key is for. None includes another: a route names all the roles that may use it."""

    PAGE = "page"  # in a web page, where every visitor can read it
    READ = "read"
    WRITE = "write"
    ADMIN = "admin"


BY_NAME = {role.value: role for role in Role}
Roles = frozenset[Role]
# Who may use a route. A page's key must not read what a reader's can, and a reader's must not show slates.
OPEN: Roles = frozenset()  # needs no key
PAGES: Roles = frozenset({Role.PAGE, Role.WRITE, Role.ADMIN})
READERS: Roles = frozenset({Role.READ, Role.WRITE, Role.ADMIN})
WRITERS: Roles = frozenset({Role.WRITE, Role.ADMIN})
ADMINS: Roles = frozenset({Role.ADMIN})


def in_words(roles: Roles) -> str:
    """ "'write' or 'admin'": always in the same order."""
    return " or ".join(repr(role.value) for role in Role if role in roles)


def new_key() -> tuple[str, bytes]:
    """A key, and the SHA-256 by which it is known later."""
    text = PREFIX + secrets.token_urlsafe(KEY_BYTES)
    return text, hashlib.sha256(text.encode()).digest()


def check_model_of_key(role: str, model: str | None, argument: str) -> None:
    """Malformed if a key of this role cannot be for this model alone."""
    if model is None:
        return
    if role != Role.PAGE.value:
        raise Malformed(f"is for keys with the role 'page', got {role!r}", argument)
    check_name(model, "model")


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


def check_no_proxy(headers: Mapping[bytes, bytes]) -> None:
    """A proxy on this machine lets in whoever reaches it, under our own name."""
    if found := OF_PROXIES & headers.keys():
        raise Misdirected(
            "without API keys this server answers this machine only, and the header "
            f"{min(found).decode()} says that a proxy passes requests on; make a key with 'firstclick keys "
            "create NAME --role admin'"
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


def check_role(allowed: Roles, key: ApiKey | None, *, sent: bool) -> None:
    """Unauthorised without a good key, Forbidden with one that may not do this."""
    if key is None:
        found = "the key that was sent is not known, or was revoked" if sent else "no key was sent"
        raise Unauthorised(
            f"this needs an API key with the role {in_words(allowed)}, and {found}; "
            "send it as 'Authorization: Bearer fc_...'"
        )
    # An unknown role may do nothing.
    if BY_NAME.get(key.role) not in allowed:
        raise Forbidden(
            f"this needs an API key with the role {in_words(allowed)}; this key's role is {key.role!r}"
        )


def is_page_key(key: ApiKey | None) -> bool:
    """Whether this key stands in a web page."""
    return key is not None and key.role == Role.PAGE.value


def check_page(origin: bytes | None, host: bytes, allowed: Set[bytes]) -> None:
    """Forbidden unless the browser says that the page is of an allowed origin, or of this machine.

    Browsers send Origin with every POST. Whoever is no browser can make one up: this keeps other people's
    pages away, and nobody else.
    """
    own = origin is not None and origin.partition(b"://")[2] == host
    # Not of any name that points here: a stranger's page may have made its own name do so.
    if origin in allowed or (own and is_loopback(host_of(host.decode("latin-1")))):
        return
    got = "none" if origin is None else repr(origin[:100].decode("latin-1"))
    raise Forbidden(
        f"a key with the role 'page' is for pages of allowed origins, got Origin {got}; start the server "
        "with --allow-origin https://your.shop, or call it from your own server with the role 'write'"
    )


def check_model(key: ApiKey | None, model: str) -> None:
    """Forbidden if the key is for another model, whether there is such a model or not."""
    if key is not None and key.model not in (None, model):
        raise Forbidden(f"this key is for the model {key.model!r} only, got {quoted(model)}")


def check_page_request(given: Mapping[str, object], defaults: Mapping[str, object]) -> None:
    """Forbidden if a page asks for more than a slate: what it says, any visitor can say."""
    for name, value in given.items():
        if name not in PAGE_FIELDS and value != defaults[name]:
            raise Forbidden(
                f"a key with the role 'page' may send {', '.join(PAGE_FIELDS)} only, got {name!r}; call from "
                "your own server with the role 'write'"
            )


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
    """Whom an address belongs to, with or without a port: of version 6, everyone has a whole network of 2^64.

    Whatever is no address is one caller: nobody gets a bucket of their own by making up words.
    """
    text = host_of((address or "").strip()).strip("[]").partition("%")[0]
    try:
        found = ipaddress.ip_address(text)
    except ValueError:
        return "?"
    if found.version == 4:
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.ip_network((found, 64), strict=False))
