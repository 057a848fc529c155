"""Tokens, slates and settings as bytes: what is stored comes back, and decides what is drawn."""

import base64
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firstclick.online.baseline import Choice, Chosen
from firstclick.online.explore import Explored
from firstclick.serve.log.drawn import (
    MOST_BYTES,
    TOO_MANY_CANDIDATES,
    TOO_MANY_FEATURES,
    Assigned,
    Drawn,
    pack_rows,
    read_drawn,
    unpack_rows,
)
from firstclick.serve.log.events import full_payload, says_the_same
from firstclick.serve.log.token import KeyRing, Token, new_nonce
from firstclick.serve.store.store import TokenKey
from firstclick.wire.errors import Unknown
from firstclick.wire.limits import LONGEST_TOKEN

# Tokens: what was signed comes back, and nothing else does

NOW_MS = int(time.time() * 1000)
OLD, NEW = TokenKey(3, b"o" * 32, 0.0), TokenKey(7, b"n" * 32, 0.0)


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


# What a slate was drawn from

N_ROWS = 70_000
rows_of_a_catalog = st.lists(st.integers(0, N_ROWS - 1), unique=True, max_size=40).map(
    lambda rows: np.array(sorted(rows), np.int64)
)
sets = st.none() | rows_of_a_catalog | st.text(min_size=1, max_size=64)
everything = st.builds(
    Drawn,
    seq=st.integers(1, 2**40),
    mark=st.binary(min_size=4, max_size=4),
    build=st.none() | st.integers(0, 300),
    k=st.none() | st.integers(1, 255),
    candidates=sets,
    exclude=sets,
    pinned=st.lists(st.tuples(st.integers(0, 254), st.integers(0, N_ROWS - 1)), max_size=5).map(tuple),
    at_most=st.none() | st.integers(0, 255) | st.dictionaries(st.text(max_size=9), st.integers(0, 9)),
    features=st.none() | st.lists(st.floats(-9, 9), max_size=30).map(np.array),
    explore=st.none()
    | st.builds(
        Explored, st.floats(0.01, 1), st.booleans(), st.lists(st.integers(1, 2**31), max_size=9).map(tuple)
    ),
    not_evaluable=st.just(""),
    chosen=st.none() | st.builds(Chosen, st.sampled_from(Choice), st.floats(0, 1), st.integers(0, 255)),
    assigned=st.none()
    | st.builds(
        Assigned, st.integers(0, 2**32 - 1), st.integers(0, 999), st.integers(0, 9),
        st.none() | st.integers(0, 9999),
    ),
    arm_fields=st.none() | st.binary(max_size=300),
)  # fmt: skip


def comparable(drawn):
    """Comparable: arrays as lists."""
    return tuple(part.tolist() if isinstance(part, np.ndarray) else part for part in drawn)


@given(everything)
def test_packed_fields_are_read_back(drawn):
    fields, why = drawn.packed(N_ROWS)
    assert why == ""
    read = read_drawn(fields)
    assert read is not None
    assert comparable(read) == comparable(drawn)


@settings(max_examples=30)
@given(rows_of_a_catalog, st.integers(0, 2**30))
def test_rows_are_stored_as_the_smaller_of_them_and_all_others(rows, start):
    assert unpack_rows(pack_rows(rows + start, N_ROWS + start)).tolist() == (rows + start).tolist()
    others = np.setdiff1d(np.arange(N_ROWS), rows)
    assert unpack_rows(pack_rows(others, N_ROWS)).tolist() == others.tolist()
    assert len(pack_rows(others, N_ROWS)) == len(pack_rows(rows, N_ROWS))


def test_a_thousand_candidates_have_room_and_more_are_reported():
    draw = np.random.default_rng(1)
    for n_rows, n in ((1_500, 1_000), (20_000, 1_500), (1_000_000, 1_200)):
        rows = np.sort(draw.choice(n_rows, n, replace=False))
        assert Drawn(9, b"mark", candidates=rows).packed(n_rows)[1] == ""
    assert len(pack_rows(np.arange(300_000), 1_000_000)) < MOST_BYTES, "neighbours take little room"
    rows = np.sort(draw.choice(1_000_000, 1_500, replace=False))
    for drawn, reason in (
        (Drawn(9, b"mark", 2, candidates=rows), TOO_MANY_CANDIDATES),
        (Drawn(9, b"mark", 2, exclude=rows), TOO_MANY_CANDIDATES),
        (Drawn(9, b"mark", 2, candidates=rows[:9], features=draw.random(300)), TOO_MANY_FEATURES),
    ):
        fields, why = drawn.packed(1_000_000)
        assert why == reason
        assert read_drawn(fields) == Drawn(9, b"mark", 2, not_evaluable=reason)
        assert len(fields) < 20
        # Pins are kept, because they are the reason of their positions.
        fields, _ = drawn._replace(pinned=((1, 7),)).packed(1_000_000)
        assert read_drawn(fields) == Drawn(9, b"mark", 2, pinned=((1, 7),), not_evaluable=reason)


def test_fields_that_are_cut_off_are_rejected():
    fields, _ = Drawn(9, b"mark", k=2).packed(5)
    assert read_drawn(fields) == Drawn(9, b"mark", k=2)
    assert read_drawn(b"") is None
    for cut in (1, 2, 5, len(fields) - 2, len(fields) - 1):
        with pytest.raises((ValueError, LookupError)):
            read_drawn(fields[:cut])


def test_the_bytes_stay_as_they_are():
    """They are in the logs of others."""
    request = {
        "k": 2, "candidates": np.array([1, 4]), "exclude": "some", "pinned": ((0, 3),), "at_most": 1,
        "features": np.array([0.5]),
    }  # fmt: skip
    drawn = Drawn(300, b"mark", 1, **request, explore=Explored(0.5, True, (6, 5)))
    assert drawn.packed(6)[0].hex() == (
        "0107ac02026d61726b" "0a0e01000000000000e03f0600000002" "020102" "0305090600" "0103"
        "0604736f6d65" "07050003000000" "080101" "090900000000000000e03f"
    )  # fmt: skip


SHOWN = np.array([3, 0, 70_000], "<u4").tobytes()
KEYS = KeyRing([TokenKey(3, b"o" * 32, 0.0)], tuple)


def test_same_feedback_with_another_source_is_a_duplicate():
    """A request that two processes answered, before and after a click, may show the same items."""
    fields, others = (Drawn(seq, b"mark").packed(5)[0] for seq in (9, 8))
    one = full_payload([1], 5, SHOWN, fields=fields)
    assert says_the_same(one, full_payload([1], 6, SHOWN, fields=others))
    assert says_the_same(one, full_payload([1], 7, SHOWN))
    assert not says_the_same(one, full_payload([0], 5, SHOWN, fields=fields))
    assert not says_the_same(one, full_payload([1], 5, SHOWN[:8], fields=fields))
    assert not says_the_same(one, b"")


def test_length_of_a_token_and_an_event():
    rows = np.arange(6, dtype="<u4").tobytes()
    fields, _ = Drawn(123_456, b"mark", 0).packed(1_500)
    token = Token(1, 10**12, bytes(16), rows, fields=fields)
    assert len(KEYS.sign(token)) == 118
    assert len(full_payload([1], 10**12, rows, fields=fields)) == 53
