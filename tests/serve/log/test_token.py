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
NOW_MS, DAY_MS = int(time.time() * 1000), 86_400_000


def ring(*keys):
    return KeyRing(keys, lambda: keys)


def token(rows, *, model=5, issued_ms=NOW_MS):
    return Token(model, issued_ms, new_nonce(issued_ms), b"".join(row.to_bytes(4, "little") for row in rows))


def read(text, *keys):
    return ring(*keys or [OLD]).read(text, 5, days=1)


def raw(text):
    return bytearray(base64.urlsafe_b64decode(text + "=" * (-len(text) % 4)))


def encoded(content):
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


@given(rows=st.lists(st.integers(0, 2**32 - 1), max_size=255), model=st.integers(0, 2**32 - 1))
def test_signed_token_is_read_back(rows, model):
    given = token(rows, model=model)
    text = ring(OLD, NEW).sign(given)
    assert len(text) <= LONGEST_TOKEN
    assert ring(OLD, NEW).read(text, model, days=1) == given


def test_newest_key_signs_and_older_keys_are_accepted():
    older, newer = ring(OLD).sign(token([1, 2])), ring(OLD, NEW).sign(token([1, 2]))
    assert read(older, OLD, NEW).size == read(newer, NEW).size == 2
    with pytest.raises(Unknown, match="no longer"):
        read(older, NEW)


def test_keys_of_other_processes_are_loaded_but_not_for_every_token():
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


@pytest.mark.parametrize(
    ("how", "error", "part"),
    [
        ({"model": 6}, Unknown, "another model"),
        ({"issued_ms": NOW_MS - 2 * DAY_MS}, Expired, "1 days"),
        ({"issued_ms": NOW_MS + DAY_MS}, Unknown, "clock"),
    ],
)
def test_tokens_of_other_models_and_other_times(how, error, part):
    with pytest.raises(error, match=part):
        read(ring(OLD).sign(token([1], **how)))


def test_a_token_is_read_for_a_day_and_if_clocks_differ_by_minutes():
    for issued_ms in (NOW_MS - DAY_MS // 2, NOW_MS + 60_000):
        assert read(ring(OLD).sign(token([1], issued_ms=issued_ms))).size == 1


@settings(max_examples=300)
@given(position=st.integers(0, 10_000), bit=st.integers(0, 7))
def test_one_changed_bit_is_unknown(position, bit):
    changed = raw(ring(OLD).sign(token([1, 2, 3])))
    changed[position % len(changed)] ^= 1 << bit
    with pytest.raises(Unknown):
        read(encoded(changed))


def test_other_versions_and_spellings_are_unknown():
    text = ring(OLD).sign(token([1, 2, 3, 4]))
    version = raw(text)
    version[0] = 2
    for other, part in (
        (encoded(version), "version 2"),
        (text + "=", "token"),
        (text + "\n", "token"),
        (" " + text, "token"),
        (text[:-1] + chr(ord(text[-1]) ^ 1), "token"),
        ("A" * 50_000, "characters"),
    ):
        with pytest.raises(Unknown, match=part):
            read(other)


@given(text=st.text(max_size=200) | st.binary(max_size=200).map(encoded))
def test_any_other_text_is_unknown(text):
    with pytest.raises(Unknown, match=r"^token is unknown: "):
        read(text)


def test_a_request_id_has_one_nonce():
    assert nonce_of_request("page 1") == nonce_of_request("page 1") != nonce_of_request("page 2")
    assert new_nonce(NOW_MS) != new_nonce(NOW_MS)
