"""The kernels that lay out lists as rows, beside loops over Python lists."""

import math
from itertools import pairwise

import numpy as np
import pytest

from firstclick.kernels.slate_reading import (
    EMPTY,
    N_CHANCES,
    NO_CHANCE,
    NULL_ITEM,
    OUTSIDE,
    RISING,
    TWICE,
    fill_table,
    lay_out_chances,
    lay_out_slates,
    look_up,
    mark_clicks,
)

K, ITEMS, N = 5, 7, 400


def lists(draw, low, high, longest):
    return [draw.integers(low, high, draw.integers(0, longest + 1)).tolist() for _ in range(N)]


def starts_of(rows):
    return np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)


def flat(rows, kind):
    return np.array([one for row in rows for one in row], kind)


def test_hashes_get_their_codes_and_others_none():
    draw = np.random.default_rng(1)
    # Many share their lowest bits: the search goes on to the next slots, and around the end.
    hashes = (draw.permutation(500)[:40].astype(np.uint64) << np.uint64(7)) | np.uint64(63)
    keys, codes = np.zeros(64, np.uint64), np.full(64, -1, np.int32)
    fill_table(hashes, keys, codes)
    asked = np.concatenate([hashes, hashes[:5] + np.uint64(1), np.zeros(1, np.uint64)])
    found = np.empty(len(asked), np.int32)
    look_up(asked, keys, codes, found)
    assert found.tolist() == [*range(40), *[-1] * 6]


@pytest.mark.parametrize("seed", range(3))
def test_slates_and_clicks_are_those_of_a_loop(seed):
    draw = np.random.default_rng(seed)
    slates, clicked = lists(draw, -1, ITEMS, K), lists(draw, -2, K + 1, 2)
    items, clicks = np.full((N, K), -1, np.int32), np.zeros((N, K), np.uint8)
    problems = np.zeros(N, np.uint8)
    lengths = np.array([len(slate) for slate in slates])
    lay_out_slates(starts_of(slates), flat(slates, np.int32), np.full(ITEMS, -1), 10, items, problems)
    mark_clicks(starts_of(clicked), flat(clicked, np.int64), lengths, clicks, problems)
    for row, (slate, positions) in enumerate(zip(slates, clicked, strict=True)):
        known = [item for item in slate if item >= 0]
        inside = [place for place in positions if 0 <= place < len(slate)]
        assert problems[row] == (
            EMPTY * (not slate)
            | NULL_ITEM * (-1 in slate)
            | TWICE * (len(set(known)) < len(known))
            | OUTSIDE * (len(inside) < len(positions))
        )
        assert items[row].tolist() == slate + [-1] * (K - len(slate))
        assert np.flatnonzero(clicks[row]).tolist() == sorted(set(inside))


@pytest.mark.parametrize("prefixes", [True, False])
def test_chances_are_those_of_a_loop(prefixes):
    draw = np.random.default_rng(5)
    lengths = draw.integers(1, K + 1, N)
    values = [0.0, 0.1, 0.2, 0.5, 1.0, 1.5, -0.1, math.nan]
    weights = [0.02, 0.25, 0.2, 0.25, 0.2, 0.02, 0.02, 0.04]
    widths = np.where(draw.random(N) < 0.1, draw.integers(0, K + 1, N), lengths)
    given = [draw.choice(values, width, p=weights).tolist() for width in widths]
    given[::2] = [sorted(row, key=lambda one: -one if one == one else 0) for row in given[::2]]
    chances, problems = np.full((N, K), np.nan), np.zeros(N, np.uint8)
    lay_out_chances(starts_of(given), flat(given, np.float64), lengths, prefixes, chances, problems)
    seen = set()
    for row, (one, length) in enumerate(zip(given, lengths, strict=True)):
        problem = 0
        if one and len(one) != length:
            problem = N_CHANCES
        elif one:
            problem |= NO_CHANCE * any(not (0 < chance <= 1) for chance in one if chance == chance)
            problem |= RISING * (prefixes and any(later > earlier for earlier, later in pairwise(one)))
        seen.add(problem)
        assert problems[row] == problem
        expected = [math.nan] * K if problem or not one else one + [one[-1]] * (K - len(one))
        assert np.array_equal(chances[row], expected, equal_nan=True)
    assert seen >= {0, N_CHANCES, NO_CHANCE} | ({RISING} if prefixes else set())
