"""The token that goes out with a slate and comes back with the click.

It says which rows of which model were shown, and when, and is signed: so a recommendation writes nothing,
any process that has the key can take the feedback, and there is nothing to look up that could be lost. It is
not secret: who has it can read the row numbers. Its nonce is what counts feedback once.
"""

import base64
import binascii
import hashlib
import hmac
import os
import struct
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from firstclick.serve.log.events import FLOAT_SIZE, NONCE_SIZE, ROW_SIZE
from firstclick.serve.log.tuning import Clock
from firstclick.validation.quoting import quoted
from firstclick.wire.errors import Expired, Malformed, Unknown
from firstclick.wire.limits import LONGEST_TOKEN

# Another version is refused.
VERSION = 1
# Version, key, model, when it was issued (ms since the epoch), nonce, number of rows.
HEAD = struct.Struct("<BIIQ16sB")
# What follows the rows: how many numbers the context has, and the features of a row; then these numbers, and
# fields that contain what the slate was drawn from.
TAIL = struct.Struct("<HH")
MAC_SIZE = 16

# Clocks of several machines differ a little; a token from further ahead tells of a wrong clock.
AHEAD = 300.0

SECRET_SIZE = 32


class TokenKey(NamedTuple):
    """What tokens are signed with; the newest signs, older ones are still believed."""

    id: int
    secret: bytes
    created: float


class Token(NamedTuple):
    """What a token says: the rows are 32-bit numbers, little-endian; the context and the features of each
    row, if the request brought them, 64-bit floats."""

    model: int
    issued_ms: int
    nonce: bytes
    rows: bytes
    context: bytes = b""
    features: bytes = b""
    fields: bytes = b""  # what the slate was drawn from, see `drawn`

    @property
    def size(self) -> int:
        return len(self.rows) // ROW_SIZE

    def row_numbers(self) -> tuple[int, ...]:
        """The rows as numbers."""
        return struct.unpack(f"<{self.size}I", self.rows)


def new_nonce(issued_ms: int, number: int | None = None) -> bytes:
    """A nonce that nobody else will draw. It begins with the time: an index of them grows at its end.

    It ends with the number that decided the slate, if that was drawn before.
    """
    if number is None:
        return issued_ms.to_bytes(6, "big") + os.urandom(NONCE_SIZE - 6)
    return issued_ms.to_bytes(6, "big") + os.urandom(NONCE_SIZE - 14) + number.to_bytes(8, "little")


def number_in(nonce: bytes) -> int:
    """The number that decides the slate of this nonce: 63 bits, for kernels know a sign."""
    return int.from_bytes(nonce[8:], "little") & (2**63 - 1)


def nonce_of_request(request_id: str) -> bytes:
    """The nonce of a request that has a name: however often it is asked, feedback is counted once."""
    if not isinstance(request_id, str):
        raise Malformed(f"must be a text, got {quoted(request_id)}", "request_id")
    return hashlib.blake2b(request_id.encode("utf-8", "surrogatepass"), digest_size=NONCE_SIZE).digest()


def nonce_of_correction(nonce: bytes) -> bytes:
    """The nonce of the one event that may correct the feedback of this one."""
    return hashlib.blake2b(nonce, digest_size=NONCE_SIZE, person=b"correction").digest()


class KeyRing:
    """The keys of a store. The newest signs; a key that is not known yet is looked for in the store."""

    def __init__(
        self, keys: Sequence[TokenKey], reload: Callable[[], Sequence[TokenKey]], clock: Clock = time
    ) -> None:
        self._reload = reload
        self._clock = clock
        self._looked = 0.0
        self._take(keys)

    def _take(self, keys: Sequence[TokenKey]) -> None:
        # The two states of SHA-256 that HMAC starts from are made once: half of the work of signing.
        self._macs = {key.id: hmac.new(key.secret, digestmod="sha256") for key in keys}
        self._secrets = {key.id: key.secret for key in keys}
        self.newest = max(self._macs)

    def follow(self, keys: Sequence[TokenKey]) -> None:
        """Take the keys that the store has now; who goes on signing with an old one is soon not believed."""
        # Not by their ids alone: a store that was set back gives an id again, to another key.
        if keys and {key.id: key.secret for key in keys} != self._secrets:
            self._take(keys)

    def sign(self, token: Token) -> str:
        """The token as text; Malformed if it would be too long."""
        key = self.newest
        n_columns = len(token.features) // (FLOAT_SIZE * token.size) if token.features else 0
        head = HEAD.pack(VERSION, key, token.model, token.issued_ms, token.nonce, token.size) + token.rows
        tail = TAIL.pack(len(token.context) // FLOAT_SIZE, n_columns) + token.context + token.features
        content = head + tail + token.fields
        text = base64.urlsafe_b64encode(content + self._mac(key, content)).rstrip(b"=").decode()
        if len(text) > LONGEST_TOKEN:
            raise Malformed(
                f"of {token.size} items make a token of {len(text)} characters, and {LONGEST_TOKEN} is the "
                "most; ask for fewer items by k, or put features into the catalog",
                "features",
            )
        return text

    def _mac(self, key: int, content: bytes) -> bytes:
        mac = self._macs[key].copy()
        mac.update(content)
        return mac.digest()[:MAC_SIZE]

    def read(self, text: str, model: int, *, days: float) -> Token:
        """What the token says; Unknown when it was not signed here for this model, Expired when it is old."""
        content, mac = _parts(text)
        version, key, of_model, issued_ms, nonce, size = HEAD.unpack_from(content)
        if version != VERSION:
            raise _unknown(f"it has version {version}, and this server reads version {VERSION}")
        end = HEAD.size + size * ROW_SIZE
        context, features, fields = _after_rows(content, end, size)
        if key not in self._macs:
            self._look_for(key)
        if not hmac.compare_digest(mac, self._mac(key, content)):
            raise _unknown("its signature is wrong: it was changed, or signed elsewhere")
        if of_model != model:
            raise _unknown("it is another model's")
        age = self._clock.time() - issued_ms / 1000
        if age > days * 86_400:
            raise Expired(
                f"is of a slate from {age / 86_400:.3g} days ago, and feedback is accepted for {days:g} "
                "days; drop it",
                "token",
            )
        if age < -AHEAD:
            raise Unknown(
                f"is {-age:.0f} s ahead of this server's clock; set the clocks of the servers right", "token"
            )
        return Token(of_model, issued_ms, nonce, content[HEAD.size : end], context, features, fields)

    def _look_for(self, key: int) -> None:
        """Another process may have made a key since; strangers' tokens must not make us ask all the time."""
        now = self._clock.monotonic()
        if key > self.newest and now - self._looked >= 1.0:
            self._looked = now
            self.follow(self._reload())
        if key not in self._macs:
            raise _unknown("its key is not known here, or is no longer believed")


def _parts(text: str) -> tuple[bytes, bytes]:
    """Content and signature of a token that is at least long enough."""
    if len(text) > LONGEST_TOKEN:
        raise _unknown(f"it has {len(text)} characters, and no token has more than {LONGEST_TOKEN}")
    try:
        # Only the one way of writing it that `sign` has: two texts for one token would be two of them.
        raw = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        if base64.urlsafe_b64encode(raw).rstrip(b"=") != text.encode("ascii"):
            raise ValueError
    except (ValueError, binascii.Error):
        raise _unknown("it is not in base64url") from None
    if len(raw) < HEAD.size + MAC_SIZE:
        raise _unknown("it is cut off, or not one of ours")
    return raw[:-MAC_SIZE], raw[-MAC_SIZE:]


def _after_rows(content: bytes, at: int, size: int) -> tuple[bytes, bytes, bytes]:
    """Return context, features and fields."""
    floats = at + TAIL.size
    if len(content) >= floats:
        n_context, n_columns = TAIL.unpack_from(content, at)
        middle = floats + FLOAT_SIZE * n_context
        end = middle + FLOAT_SIZE * size * n_columns
        if len(content) >= end:
            return content[floats:middle], content[middle:end], content[end:]
    raise _unknown("it is cut off, or not one of ours")


def _unknown(why: str) -> Unknown:
    return Unknown(f"is unknown: {why}; send back the token that recommend gave, unchanged", "token")
