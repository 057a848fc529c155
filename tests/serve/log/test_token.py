"""Tokens: what was signed comes back, and nothing else does."""

import base64
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firstclick.serve.log.token import KeyRing, Token, new_nonce, nonce_of_request
from firstclick.serve.store.store import TokenKey
from firstclick.wire.errors import Expired, Unknown
from firstclick.wire.limits import LONGEST_TOKEN

OLD, NEW = TokenKey(3, b"o" * 32, 0.0), TokenKey(7, b"n" * 32, 0.0)
NOW_MS = int(time.time() * 1000)


def ring(*keys):
    return KeyRing(keys, lambda: keys)


def token(rows, *, model=5, issued_ms=None):
    issued = int(time.time() * 1000) if issued_ms is None else issued_ms
    return Token(model, issued, new_nonce(issued), b"".join(row.to_bytes(4, "little") for row in rows))


@given(rows=st.lists(st.integers(0, 2**32 - 1), max_size=255), model=st.integers(0, 2**32 - 1))
def test_what_was_signed_comes_back(rows, model):
    given = token(rows, model=model)
    text = ring(OLD, NEW).sign(given)
    assert len(text) <= LONGEST_TOKEN
    assert ring(OLD, NEW).read(text, model, days=1) == given


def test_the_newest_key_signs_and_older_ones_are_believed():
    signed_then = ring(OLD).sign(token([1, 2]))
    assert ring(OLD, NEW).read(signed_then, 5, days=1).size == 2
    signed_now = ring(OLD, NEW).sign(token([1, 2]))
    assert ring(NEW).read(signed_now, 5, days=1).size == 2
    with pytest.raises(Unknown, match="no longer believed"):
        ring(NEW).read(signed_then, 5, days=1)


def test_a_key_that_another_process_made_is_looked_for_but_not_at_every_strangers_token():
    asked = []

    def reload():
        asked.append(1)
        return OLD, NEW

    here = KeyRing([OLD], reload)
    assert here.read(ring(OLD, NEW).sign(token([1])), 5, days=1).size == 1
    stranger = KeyRing([TokenKey(99, b"s" * 32, 0.0)], lambda: ())
    for _ in range(20):
        with pytest.raises(Unknown):
            here.read(stranger.sign(token([1])), 5, days=1)
    assert len(asked) <= 2


def test_another_models_token_is_unknown():
    with pytest.raises(Unknown, match="another model's"):
        ring(OLD).read(ring(OLD).sign(token([1], model=6)), 5, days=1)


def test_time():
    day = 86_400_000
    fresh = ring(OLD).sign(token([1], issued_ms=NOW_MS - day // 2))
    assert ring(OLD).read(fresh, 5, days=1).size == 1
    with pytest.raises(Expired, match="taken for 1 days"):
        ring(OLD).read(ring(OLD).sign(token([1], issued_ms=NOW_MS - 2 * day)), 5, days=1)
    # Clocks may differ by some minutes, not by a day.
    assert ring(OLD).read(ring(OLD).sign(token([1], issued_ms=NOW_MS + 60_000)), 5, days=1).size == 1
    with pytest.raises(Unknown, match="ahead of this server's clock"):
        ring(OLD).read(ring(OLD).sign(token([1], issued_ms=NOW_MS + day)), 5, days=1)


@settings(max_examples=300)
@given(position=st.integers(0, 10_000), bit=st.integers(0, 7))
def test_one_changed_bit_is_noticed(position, bit):
    text = ring(OLD).sign(token([1, 2, 3]))
    raw = bytearray(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))
    raw[position % len(raw)] ^= 1 << bit
    with pytest.raises(Unknown):
        ring(OLD).read(base64.urlsafe_b64encode(raw).rstrip(b"=").decode(), 5, days=1)


def test_a_token_of_another_version_is_unknown():
    raw = bytearray(base64.urlsafe_b64decode(ring(OLD).sign(token([1])) + "=="))
    raw[0] = 2
    with pytest.raises(Unknown, match="has version 2, and this server reads version 1"):
        ring(OLD).read(base64.urlsafe_b64encode(raw).rstrip(b"=").decode(), 5, days=1)


@given(
    text=st.one_of(
        st.text(max_size=200), st.binary(max_size=200).map(lambda b: base64.urlsafe_b64encode(b).decode())
    )
)
def test_anything_else_is_unknown_in_one_sentence(text):
    with pytest.raises(Unknown, match=r"^token is unknown: "):
        ring(OLD).read(text, 5, days=1)


def test_a_token_has_one_spelling_only():
    text = ring(OLD).sign(token([1, 2, 3, 4]))
    for other in (text + "=", text + "\n", " " + text, text[:-1] + chr(ord(text[-1]) ^ 1)):
        with pytest.raises(Unknown):
            ring(OLD).read(other, 5, days=1)
    with pytest.raises(Unknown, match="characters"):
        ring(OLD).read("A" * 50_000, 5, days=1)


def test_a_request_id_has_one_nonce():
    assert nonce_of_request("page 1") == nonce_of_request("page 1") != nonce_of_request("page 2")
    assert new_nonce(NOW_MS) != new_nonce(NOW_MS)
