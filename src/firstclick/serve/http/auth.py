"""Who may do what: API keys, their roles, and the rule for servers that have none."""

import hashlib
import hmac
import ipaddress
import secrets
from collections.abc import Sequence
from enum import IntEnum

from firstclick.serve.http.errors import Misdirected
from firstclick.serve.store.store import ApiKey
from firstclick.wire.errors import Forbidden, Unauthorised

PREFIX = "fc_"
KEY_BYTES = 32
# Hosts that were found to be loopback, so that they are not taken apart for each request.
MOST_HOSTS = 64


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


class Gate:
    """Lets requests in. A server without keys is open to its own machine, and to nobody else."""

    def __init__(self, *, bound_to_loopback: bool) -> None:
        self._may_be_open = bound_to_loopback
        self._own_hosts: set[bytes] = set()

    def check_host(self, host: bytes | None) -> None:
        """A page of a stranger whose name points here (DNS rebinding) sends that name."""
        if host is None or host not in self._own_hosts:
            name = "" if host is None else host.decode("latin-1")
            if not is_loopback(host_of(name)):
                raise Misdirected(
                    "without API keys this server answers at localhost, 127.0.0.1 and [::1] only, got "
                    f"Host {name[:100]!r}; make a key with 'firstclick keys'"
                )
            if host is not None and len(self._own_hosts) < MOST_HOSTS:
                self._own_hosts.add(host)

    def key_of(self, authorization: bytes | None, keys: Sequence[ApiKey]) -> ApiKey | None:
        """The stored key that was sent, or None. All are compared, so that time tells nothing."""
        if authorization is None or authorization[:7].lower() != b"bearer ":
            return None
        sent = hashlib.sha256(authorization[7:].strip()).digest()
        found = None
        for key in keys:
            if hmac.compare_digest(key.hash, sent):
                found = key
        return found

    def check_role(self, needed: Role, key: ApiKey | None, sent: bool, keys: Sequence[ApiKey]) -> None:
        """Unauthorised without a good key, Forbidden with one that may not do this."""
        if needed is Role.OPEN or (not keys and self._may_be_open):
            return
        role = needed.name.lower()
        if key is None:
            found = "the key that was sent is not known, or was revoked" if sent else "no key was sent"
            raise Unauthorised(
                f"this needs an API key with the role {role!r}, and {found}; "
                "send it as 'Authorization: Bearer fc_...'"
            )
        if ROLES.get(key.role, Role.OPEN) < needed:
            raise Forbidden(f"this needs an API key with the role {role!r}; this key's role is {key.role!r}")
