"""Who sees which arm: stable buckets, exact shares, few moves."""

import time

import numpy as np
import pytest

from firstclick.trials.assignment import N_BUCKETS, arm_of_draw, bucket_of, check_arms, owners, quotas
from tests.support.refusals import check_refused

KEY = bytes(range(32))


def test_unit_has_the_bucket_it_always_had():
    # Written down once: a stored trial relies on them for ever.
    units = ["user-7", "user-8", 7, "7", "ß€", "x" * 256, -3]
    assert [bucket_of(unit, KEY) for unit in units] == [8341, 1680, 8918, 8918, 7158, 1759, 5896]
    assert bucket_of("user-7", bytes(32)) != bucket_of("user-7", bytes(31) + b"\x01")


def test_buckets_are_uniform_and_depend_on_the_key():
    here = np.array([bucket_of(unit, KEY) for unit in range(20_000)])
    there = np.array([bucket_of(unit, KEY[::-1]) for unit in range(20_000)])
    assert (here == there).mean() < 0.001
    by_tenth = np.bincount(here // 1_000, minlength=10)
    assert abs(by_tenth - 2_000).max() < 5 * 2_000**0.5


def test_wrong_units_are_refused_at_once():
    started = time.perf_counter()
    for unit in ("", "x" * 257, True, 1.5, None, "\ud800", "x" * 10_000_000, 1 << 80_000_000):
        check_refused(lambda unit=unit: bucket_of(unit, KEY), "unit")
    assert time.perf_counter() - started < 0.5
    check_refused(lambda: bucket_of("user-7", bytes(8)), "key")


@pytest.mark.parametrize(
    ("shares", "given"),
    [
        ([0.9, 0.1], [9_000, 1_000]),
        ([0.3, 0.3, 0.4], [3_000, 3_000, 4_000]),
        ([1 / 3, 1 / 3, 1 / 3], [3_334, 3_333, 3_333]),
        ([1 / 7] * 7, [1_429, 1_429, 1_429, 1_429, 1_428, 1_428, 1_428]),
        ([0.0, 1.0], [0, 10_000]),
        ([0.00015, 0.99985], [2, 9_998]),
    ],
)
def test_each_arm_gets_its_share_of_the_buckets(shares, given):
    assert quotas(shares) == given
    assert np.bincount(owners(shares), minlength=len(shares)).tolist() == given


@pytest.mark.parametrize(
    "shares",
    [
        [0.9, 0.2], [1.5, -0.5], [0.99999, 0.00001], [0.5, float("nan")], [True, 0.0], ["0.5", 0.5], [1.0],
    ],
)  # fmt: skip
def test_wrong_shares_are_refused(shares):
    check_refused(lambda: check_arms(["a", "b"], shares), "shares")


@pytest.mark.parametrize(
    "names", [["a", "a"], ["a", " b"], ["a", ""], ["a", 65 * "b"], ["a", "b\n"], ["a", 7], ["a"], "abcdefghi"]
)
def test_wrong_arms_are_refused(names):
    check_refused(lambda: check_arms(names, [1 / len(names)] * len(names)), "arms")


@pytest.mark.parametrize("seed", range(20))
def test_change_of_shares_moves_the_fewest_buckets(seed):
    generator = np.random.default_rng(seed)
    n_arms = int(generator.integers(2, 9))
    owner = owners(_shares(generator, n_arms))
    for _ in range(5):
        shares = _shares(generator, n_arms)
        held = np.bincount(owner, minlength=n_arms)
        wanted = np.array(quotas(shares))
        after = owners(shares, owner)
        moved = after != owner
        assert np.bincount(after, minlength=n_arms).tolist() == wanted.tolist()
        # An arm that grows keeps all it has; whatever shrinks gives only what it must.
        assert moved.sum() == np.maximum(held - wanted, 0).sum()
        assert not moved[np.isin(owner, np.flatnonzero(wanted >= held))].any()
        assert (owners(shares, owner) == after).all()
        owner = after


def _shares(generator, n_arms):
    shares = generator.dirichlet(np.ones(n_arms))
    shares[generator.random(n_arms) < 0.2] = 0
    shares[0] += 0.01
    shares[shares < 0.0001] = 0
    return (shares / shares.sum()).tolist()


def test_arm_may_go_to_zero_but_not_away():
    owner = owners([0.5, 0.3, 0.2])
    assert set(owners([0.7, 0.3, 0.0], owner)) == {0, 1}
    check_refused(lambda: owners([0.7, 0.3], owner), "shares")


def test_requests_without_a_unit_get_arms_by_share():
    owner = owners([0.5, 0.5], owners([0.9, 0.1]))
    draws = (np.arange(N_BUCKETS) + 0.5) / N_BUCKETS
    assert sum(arm_of_draw(draw, owner) for draw in draws) == 5_000
    assert arm_of_draw(0.0, owner) == owner[0]
    assert arm_of_draw(float(np.nextafter(1.0, 0)), owner) == owner[-1]
