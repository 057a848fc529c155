"""The floor's kernel against direct formulas, and its bounds against the truth."""

from math import comb, exp, log

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firstclick.kernels.floor import (
    BASE_CLICKS,
    BASE_PAGES,
    EVIDENCE,
    LEAST,
    MOST,
    PAGES,
    POLICY_CLICKS,
    SHARED,
    SHARES,
    allowed_share,
    blank_floor,
    observe_page,
    raised,
    rate_bounds,
)  # fmt: skip

LAMBDAS = [4, 2, 1, 1 / 2, 1 / 4, 1 / 8, 1 / 16, 1 / 32, 1 / 64, 1 / 128, 1 / 256, 1 / 512]
WEIGHTS = np.array([1 / (j + 2) for j in range(12)]) / sum(1 / (j + 2) for j in range(12))
DELTA = 0.025


def lower_mean(n, total, delta=DELTA):
    """The smallest mean that the mixture does not exclude, found by halving."""
    low, high = 0.0, total / n
    for _ in range(200):
        middle = (low + high) / 2
        terms = [
            log(w) + lam * total - n * log(1 + middle * (exp(lam) - 1))
            for lam, w in zip(LAMBDAS, WEIGHTS, strict=True)
        ]
        if max(terms) + log(sum(exp(term - max(terms)) for term in terms)) >= log(1 / delta):
            low = middle
        else:
            high = middle
    return low


class SlowFloor:
    """By definition: all pages are kept, and every bound of every moment."""

    def __init__(self):
        self.pages = []
        self.least, self.most = [0.0], [1.0]

    def observe(self, share, by_policy, clicked):
        self.pages.append((share, by_policy, clicked))
        shared = [page for page in self.pages if page[0] > 0]
        if shared:
            won = sum(by and click for _, by, click in shared)
            self.least.append(len(shared) * lower_mean(len(shared), won))
        base = [click for _, by, click in self.pages if not by]
        if base:
            self.most.append(1 - lower_mean(len(base), len(base) - sum(base)))

    def share(self, max_loss):
        spent = sum(share for share, _, _ in self.pages)
        room = max_loss * len(self.pages) - spent + max(self.least) / self.most[-1]
        return min(1.0, max(max_loss + room, 0.0))


@settings(deadline=None, max_examples=30)
@given(
    st.lists(st.tuples(st.sampled_from([0.0, 0.05, 0.4, 1.0]), st.booleans(), st.booleans()), max_size=40),
    st.sampled_from([0.01, 0.05, 0.5]),
)
def test_the_kernel_equals_the_definition(pages, max_loss):
    floor, slow = blank_floor(0.95), SlowFloor()
    for share, by_policy, clicked in pages:
        by_policy = by_policy and share > 0
        observe_page(floor, share, by_policy, clicked)
        slow.observe(share, by_policy, clicked)
        assert floor[LEAST] == pytest.approx(max(slow.least), rel=1e-9, abs=1e-12)
        assert floor[MOST] == pytest.approx(slow.most[-1], rel=1e-9)
        assert allowed_share(floor, max_loss, 0.0, 1.0) == pytest.approx(slow.share(max_loss), abs=1e-9)
    shares, by_policy, clicks = np.array(slow.pages).reshape(-1, 3).T
    assert [floor[name] for name in (PAGES, SHARED)] == [len(pages), sum(shares > 0)]
    assert floor[SHARES] == pytest.approx(sum(shares))
    assert floor[POLICY_CLICKS] == sum(by_policy * clicks)
    assert floor[BASE_PAGES] == sum(1 - by_policy)
    assert floor[BASE_CLICKS] == sum((1 - by_policy) * clicks)
    if floor[BASE_PAGES]:
        low = lower_mean(int(floor[BASE_PAGES]), int(floor[BASE_CLICKS]))
        assert rate_bounds(floor) == pytest.approx((low, slow.most[-1]))
    assert blank_floor(0.9)[EVIDENCE] == pytest.approx(log(20))


@pytest.mark.parametrize(
    ("n", "total", "at_least"),
    [(20, 10, 0.33), (100, 15, 0.36), (500, 25, 0.45), (10_000, 50, 0.58), (10**7, 50_000, 0.98),
     (20, 20, 0.7), (10**7, 9 * 10**6, 0.999)],
)  # fmt: skip
def test_bounds_are_tight_from_20_pages_to_10_million(n, total, at_least):
    """`at_least`: the bound as a part of what came true."""
    bound = raised(float(n), float(total), log(1 / DELTA), 0.0)
    assert bound == pytest.approx(n * lower_mean(n, total), rel=1e-9)
    assert bound / total > at_least


def test_the_mixture_is_a_martingale():
    """The expectation of the mixture over all outcomes is 1: a bound that is wrong by a factor is seen."""
    n, m = 30, 0.2
    expected = 0.0
    for s in range(n + 1):
        mixture = sum(
            w * exp(lam * s) / (1 + m * (exp(lam) - 1)) ** n for lam, w in zip(LAMBDAS, WEIGHTS, strict=True)
        )
        expected += comb(n, s) * m**s * (1 - m) ** (n - s) * mixture
    assert expected == pytest.approx(1)


RUNS, STEPS = 300, 1000


@pytest.mark.parametrize("rate", [0.02, 0.15, 0.8])
def test_both_bounds_hold_at_all_times_as_often_as_stated(rate):
    """The policy's slates get better and worse, and the share follows the floor. Each bound may fail in 2.5 %
    of runs: more than 21 of 300 is chance once in 10,000 choices of the seed."""
    rng = np.random.default_rng(3)
    low_failed = high_failed = broken = 0
    for _ in range(RUNS):
        floor, expected, spent = blank_floor(0.95), 0.0, 0.0
        coins, luck = rng.random((2, STEPS))
        swing = rng.random() * 6
        low = high = promise = True
        for t in range(STEPS):
            share = allowed_share(floor, 0.1, 0.0, 1.0)
            p = min(rate * (1 + 0.7 * np.sin(swing + t / 200)), 1.0)
            by_policy = coins[t] < share
            observe_page(floor, share, by_policy, luck[t] < (p if by_policy else rate))
            expected += share * p
            spent += share
            low &= floor[LEAST] <= expected
            high &= floor[MOST] >= rate
            promise &= expected + (0.1 * (t + 1) - spent) * rate >= -1e-9
        low_failed += not low
        high_failed += not high
        broken += not promise
    assert max(low_failed, high_failed) <= 21
    assert broken <= 28  # 5 %: by chance once in 1,000
    # Not because nothing was tried.
    assert floor[SHARES] > 0.1 * STEPS + 1


def test_pages_that_nobody_saw_at_first_do_not_switch_the_floor_off():
    """Probes, bots, a tracker that does not work yet: 50 pages of the list without a click. Kept for ever,
    the bound of then would let a policy half as good as the list take over."""
    rng, floor, kept = np.random.default_rng(7), blank_floor(0.95), 0.0
    for _ in range(50):
        observe_page(floor, 0.05, False, False)
    for _ in range(5000):
        share = allowed_share(floor, 0.05, 0.0, 1.0)
        by_policy = bool(rng.random() < share)
        observe_page(floor, share, by_policy, bool(rng.random() < (0.15 if by_policy else 0.3)))
        kept += share * 0.5 + (1 - share)
    assert kept / 5000 > 0.94
