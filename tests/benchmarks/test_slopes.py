"""How cost grows: power laws give back their powers."""

import pytest

from benchmarks.bench.measure import Timing
from benchmarks.bench.results import POLICY, SCAN, Measured
from benchmarks.bench.slopes import growth, slope


def cell(policy, n_items, n_features, k, *, policy_seconds, scan):
    timings = {POLICY: Timing(policy_seconds, 10), SCAN: Timing(scan, 10)}
    return Measured(policy, n_items, n_features, k, timings, 10, "2026-01-01")


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0, 2.5])
def test_a_power_law_gives_back_its_power(power):
    assert slope({size: 3e-6 * size**power for size in (16, 3000, 10**6)}) == pytest.approx(power)


def test_fewer_than_three_sizes_have_no_slope():
    assert slope({16: 1.0, 256: 2.0}) is None
    assert slope({}) is None


def test_each_size_is_varied_while_the_others_stay():
    cells = [
        cell("a", n, d, k, policy_seconds=n**0.1 * d**2 * k**0.5, scan=n * d * k**0.25)
        for n, d, k in [
            *((n, d, 4) for n in (16, 256, 3000, 100_000) for d in (10, 20, 40)),
            *((3000, 20, k) for k in (1, 2)),
        ]
    ]  # fmt: skip
    # What a small catalog takes is no part of how the cost grows with large ones.
    cells[:3] = [cell("a", 16, d, 4, policy_seconds=1.0, scan=1.0) for d in (10, 20, 40)]
    found = {(one.size, one.where): one for one in growth(cells, 20, 4)}
    assert set(found) == {
        ("L", "d = 20, K = 4"), ("d", "L = 3,000, K = 4"), ("d", "L = 100,000, K = 4"),
        ("K", "L = 3,000, d = 20"),
    }  # fmt: skip
    expected = {"L": (0.1, 1.0), "d": (2.0, 1.0), "K": (0.5, 0.25)}
    for (size, _), one in found.items():
        assert (one.exponent, one.scan_exponent) == pytest.approx(expected[size])
    assert found["L", "d = 20, K = 4"].sizes == (256, 3000, 100_000)


@pytest.mark.parametrize("sizes", [(16, 256, 3000), (16, 32, 64)])
def test_small_catalogs_make_no_slope_in_any_size(sizes):
    cells = [cell("a", n, 20, 4, policy_seconds=n**0.3, scan=n) for n in sizes]
    cells += [cell("a", 64, d, 4, policy_seconds=d, scan=d) for d in (10, 40, 64)]
    assert growth(cells, 20, 4) == []
