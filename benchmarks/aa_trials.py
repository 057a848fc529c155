"""How often does a trial alarm although both arms are the same, and how many pages does a real uplift take?

    python -m benchmarks.aa_trials [--trials 2000] [--only A/A]

Simulated trials of fixed lists. Users return: numbers of pages are heavy-tailed, and each user has a click
rate of his own. Intervals are looked at after every page, and an alarm is an interval that ever excludes the
true difference (0 in an A/A trial); the ratio excludes 1 at the same pages, and the order of the arms does
not matter. The kernel has the functions of `firstclick.trials.sequence`, compiled;
tests/trials/test_simulated_trials.py compares it with a `Tally` that is looked at after every page.
"""

import argparse
import math
import time
from dataclasses import dataclass, replace

import numba
import numpy as np

from firstclick.streams import stream
from firstclick.trials.assignment import N_BUCKETS, owners
from firstclick.trials.checks import FALSE_ALARMS
from firstclick.trials.sequence import (
    MIN_BUCKETS,
    MIN_BUCKETS_OF_PERIOD,
    effective_clicks,
    multiplier,
    rate_variance,
)

ALPHA = 0.05
Z = 1.959964
# The square of the smallest multiplier of ALPHA: what is below needs no logarithm.
SURE = 9.0

_multiplier = numba.njit(multiplier)
_variance = numba.njit(rate_variance)
_clicking = numba.njit(effective_clicks)


@dataclass(frozen=True)
class World:
    """Users with heavy-tailed activity and click rates of their own (beta with this mean and concentration).

    `shares` are of arm 1, before and after page `change`. `rising`: arm 1 learns, its rate goes from 0.5 to
    1.5 times the other's. `drift`: all rates are multiplied by it after the change.
    """

    users: int = 20_000
    activity: str = "lognormal 1.5"
    rate: float = 0.15
    concentration: float = 4.0
    shares: tuple[float, float] = (0.5, 0.5)
    pages: int = 20_000
    change: int = 0
    drift: float = 1.0
    uplift: float = 1.0
    rising: bool = False
    frequent_click_less: bool = False

    def drawn(self, generator):
        """Cumulative activity, rate and bucket of each user."""
        kind, parameter = self.activity.split()
        if kind == "lognormal":
            activity = np.exp(float(parameter) * generator.standard_normal(self.users))
        else:
            activity = 1 + generator.pareto(float(parameter), self.users)
        a = self.rate * self.concentration
        rates = generator.beta(a, self.concentration - a, self.users)
        if self.frequent_click_less:
            rates[np.argsort(activity)] = np.sort(rates)[::-1]
        return np.cumsum(activity), rates, generator.integers(0, N_BUCKETS, self.users)

    def arms(self):
        """The arm of each bucket, before and after the change."""
        before = owners([1 - self.shares[0], self.shares[0]])
        return before, owners([1 - self.shares[1], self.shares[1]], before)


@numba.njit
def _add(sums, arm, p, c, y):
    sums[arm, 0] += 1
    sums[arm, 1] += y
    sums[arm, 2] += 2 * p + 1
    sums[arm, 3] += c + y * (p + 1)
    sums[arm, 4] += y * (2 * c + 1)


@numba.njit
def _variances(sums):
    total = 0.0
    for a in range(2):
        total += _variance(sums[a, 0], sums[a, 1], sums[a, 2], sums[a, 3], sums[a, 4])
    return total


@numba.njit
def _clicking_buckets(sums):
    return _clicking(
        sums[0, 0], sums[0, 1], sums[0, 2], sums[0, 3], sums[0, 4],
        sums[1, 0], sums[1, 1], sums[1, 2], sums[1, 3], sums[1, 4],
    )  # fmt: skip


@numba.njit
def _effective(sums):
    return min(sums[0, 0] ** 2 / max(sums[0, 2], 1.0), sums[1, 0] ** 2 / max(sums[1, 2], 1.0))


@numba.njit
def play(
    rng, n, activity, rates, buckets, before, after, change, drift, uplift, rising, mean, share, checkpoints
):
    """One trial. Returns the numbers of pages after which, for the first time (0: never), the truth was
    outside the interval over buckets [0], the same interval by page [1], and a 1.96 interval by page [2];
    there was an interval over buckets [3]; the check of shares alarmed [4]. Then the difference by its
    standard error at the checkpoints. By page, periods are pooled."""
    p, c = np.zeros(N_BUCKETS), np.zeros(N_BUCKETS)
    sums = np.zeros((2, 5))
    # Of the first period, once it is over: n times each bucket's part of the error, and of the pages.
    error, part = np.zeros(N_BUCKETS), np.zeros((2, N_BUCKETS))
    error_squared, part_squared = 0.0, np.zeros(2)
    first_sums, first_n = np.zeros((2, 5)), 0.0
    crossed_c, crossed_p, crossed_part = np.zeros(2), np.zeros(2), np.zeros(2)
    factors, first_factors = np.zeros(2), np.zeros(2)
    found = np.zeros(5, dtype=np.int64)
    scores = np.full(checkpoints.size, np.nan)
    at = 0
    for t in range(n):
        if change > 0 and t == change:
            first_sums, first_n = sums.copy(), sums[0, 0] + sums[1, 0]
            first_factors = factors.copy()
            for b in range(N_BUCKETS):
                a = before[b]
                sign = 1.0 if a == 1 else -1.0
                root = math.sqrt(sums[a, 0] ** 2 - sums[a, 2])
                error[b] = first_n * sign * (c[b] - sums[a, 1] / sums[a, 0] * p[b]) / root
                part[a, b] = first_n * p[b] / sums[a, 0]
                error_squared += error[b] ** 2
                part_squared[a] += part[a, b] ** 2
            p[:] = 0
            c[:] = 0
            sums[:] = 0
            factors[:] = 0
        owner = after if change > 0 and t >= change else before
        user = np.searchsorted(activity, rng.random() * activity[-1])
        b = buckets[user]
        a = owner[b]
        factor = drift if change > 0 and t >= change else 1.0
        if a == 1:
            factor *= 1.5 - math.exp(-t / (0.1 * n)) if rising else uplift
        y = 1.0 if rng.random() < rates[user] * factor else 0.0
        _add(sums, a, p[b], c[b], y)
        crossed_p[a] += error[b]
        crossed_c[a] += error[b] * y
        crossed_part[a] += part[a, b]
        factors[a] += factor
        p[b] += 1
        c[b] += y

        # By page, pooled: what one should not do.
        pages0, pages1 = sums[0, 0] + first_sums[0, 0], sums[1, 0] + first_sums[1, 0]
        clicks0, clicks1 = sums[0, 1] + first_sums[0, 1], sums[1, 1] + first_sums[1, 1]
        if min(clicks0, clicks1) >= MIN_BUCKETS:
            r0, r1 = clicks0 / pages0, clicks1 / pages1
            true = mean * (
                (factors[1] + first_factors[1]) / pages1 - (factors[0] + first_factors[0]) / pages0
            )
            square = (r1 - r0 - true) ** 2 if change == 0 else (r1 - r0) ** 2
            v = r0 * (1 - r0) / pages0 + r1 * (1 - r1) / pages1
            if found[2] == 0 and square > Z * Z * v:
                found[2] = t + 1
            if found[1] == 0 and square > SURE * v:
                harmonic = 1 / (1 / pages0 + 1 / pages1)
                if square > _multiplier(harmonic**2 * v, ALPHA) ** 2 * v:
                    found[1] = t + 1

        if change == 0:
            spread = sums[1, 2] * (1 - share) ** 2 + sums[0, 2] * share**2
            squares = sums[0, 2] + sums[1, 2]
            spread = max(spread, share * (1 - share) * squares)
            if found[4] == 0 and min(share, 1 - share) * (t + 1) ** 2 / squares >= MIN_BUCKETS:
                excess = abs(sums[1, 0] - share * (t + 1))
                if excess > math.sqrt(spread) * _multiplier(spread, FALSE_ALARMS):
                    found[4] = t + 1

        # Over buckets, by period.
        second = _effective(sums) >= MIN_BUCKETS_OF_PERIOD
        first = first_n > 0 and _effective(first_sums) >= MIN_BUCKETS_OF_PERIOD
        if not second and not first:
            continue
        n1, n2 = (first_n if first else 0.0), (sums[0, 0] + sums[1, 0] if second else 0.0)
        difference, true, inverse, v, effective = 0.0, 0.0, 0.0, 0.0, 1e300
        for k in range(2):
            one = first_sums if k == 0 else sums
            n_k = n1 if k == 0 else n2
            if n_k > 0:
                f = first_factors if k == 0 else factors
                difference += n_k * (one[1, 1] / one[1, 0] - one[0, 1] / one[0, 0])
                true += n_k * mean * (f[1] / one[1, 0] - f[0] / one[0, 0])
                inverse += n_k**2 * (1 / one[0, 0] + 1 / one[1, 0])
        total = n1 + n2
        for a in range(2):
            inner = part_squared[a] if first else 0.0
            if second:
                inner += n2 * n2 * sums[a, 2] / sums[a, 0] ** 2
                inner += 2 * n2 * crossed_part[a] / sums[a, 0] if first else 0.0
            effective = min(effective, total * total / inner)
        if first:
            v += error_squared
        if second:
            v += n2 * n2 * _variances(sums)
            if first:
                for a in range(2):
                    sign = 1.0 if a == 1 else -1.0
                    root = math.sqrt(sums[a, 0] ** 2 - sums[a, 2])
                    v += 2 * n2 * sign * (crossed_c[a] - sums[a, 1] / sums[a, 0] * crossed_p[a]) / root
        both = sums + first_sums if first and second else (first_sums if first else sums)
        effective = min(effective, _clicking_buckets(both))
        difference, true, v, inverse = difference / total, true / total, v / total**2, inverse / total**2
        if at < checkpoints.size and t + 1 == checkpoints[at]:
            scores[at] = difference / math.sqrt(v) if v > 0 else 0.0
            at += 1
        if effective < MIN_BUCKETS or v <= 0:
            continue
        if found[3] == 0:
            found[3] = t + 1
        # With an uplift we ask when 0 is excluded; else whether the truth ever is.
        square = difference**2 if uplift != 1.0 else (difference - true) ** 2
        if found[0] == 0 and square > SURE * v and square > _multiplier(v / inverse**2, ALPHA) ** 2 * v:
            found[0] = t + 1
    return found, scores


NONE = np.zeros(0, dtype=np.int64)


def trial(world, seed, checkpoints=NONE):
    """One trial of a world."""
    generator = stream(seed, "trial of two arms")
    activity, rates, buckets = world.drawn(generator)
    before, after = world.arms()
    return play(
        generator, world.pages, activity, rates, buckets, before, after, world.change, world.drift,
        world.uplift, world.rising, world.rate, world.shares[0], checkpoints,
    )  # fmt: skip


AA = {
    "20,000 users, 50 : 50": World(),
    "2,000 users, 50 : 50": World(users=2_000),
    "500 users, 50 : 50": World(users=500, activity="lognormal 1"),
    "20,000 users, frequent ones click less": World(frequent_click_less=True),
    "20,000 users, 10 : 90": World(shares=(0.9, 0.9), pages=50_000),
    "2,000 users, 10 : 90": World(users=2_000, shares=(0.9, 0.9)),
    "5,000 users, Pareto 1.5, rate 5%": World(users=5_000, activity="pareto 1.5", rate=0.05),
    "5,000 users, Pareto 1.1": World(users=5_000, activity="pareto 1.1"),
    "100,000 users, rate 2%, 10 : 90": World(
        users=100_000, activity="lognormal 1", rate=0.02, shares=(0.9, 0.9), pages=50_000
    ),
}
LEARNING = {
    "rate rises from 0.5 to 1.5 times, 50 : 50": World(rising=True, concentration=20),
    "rate rises from 0.5 to 1.5 times, 10 : 90": World(rising=True, concentration=20, shares=(0.9, 0.9)),
}
PERIODS = {
    "10 : 90, then 50 : 50": World(shares=(0.9, 0.5), change=10_000),
    "10 : 90, then 50 : 50, rates double": World(shares=(0.9, 0.5), change=10_000, drift=2, rate=0.1),
    "the same, 2,000 users": World(users=2_000, shares=(0.9, 0.5), change=10_000, drift=2, rate=0.1),
    "50 : 50, then 10 : 90 after 2,000 pages": World(shares=(0.5, 0.9), change=2_000),
}
POWER = {
    "100,000 users, rate 15%, 50 : 50": World(
        users=100_000, activity="lognormal 1", concentration=10, pages=100_000, uplift=1.1
    ),
    "100,000 users, rate 15%, 10 : 90": World(
        users=100_000, activity="lognormal 1", concentration=10, pages=300_000, shares=(0.9, 0.9), uplift=1.1
    ),
    "20,000 users, rate 15%, 50 : 50": World(
        users=20_000, activity="lognormal 1", concentration=10, pages=200_000, uplift=1.1
    ),
}


def alarms(worlds, n_trials):
    """A table of false alarms."""
    print("| trials | pages | over buckets | by page | by page, 1.96 | check of shares | first interval |")
    print("|---|---|---|---|---|---|---|")
    for name, world in worlds.items():
        found = np.array([trial(world, seed)[0] for seed in range(n_trials)])
        ever = [f"{100 * np.mean(found[:, at] > 0):.1f}%" for at in (0, 1, 2)]
        shares = "" if world.change else f"{100 * np.mean(found[:, 4] > 0):.2f}%"
        started = found[:, 3][found[:, 3] > 0]
        when = f"page {int(np.median(started)):,}" if len(started) else "never"
        some = "" if len(started) == n_trials else f" (in {100 * len(started) / n_trials:.0f}% of trials)"
        cells = " | ".join([f"**{ever[0]}**", *ever[1:], shares, when + some])
        print(f"| {name} | {world.pages:,} | {cells} |", flush=True)


def power(worlds, n_trials):
    """Pages that find an uplift of 10% with a power of 80 and 90%."""
    print(
        "| uplift 10% | fixed size, 80% power | whenever, 80% | fixed, 90% | whenever, 90% | whenever, mean |"
    )
    print("|---|---|---|---|---|---|")
    for name, world in worlds.items():
        checkpoints = np.unique(np.geomspace(1_000, world.pages, 120).astype(np.int64))
        runs = [trial(world, seed, checkpoints) for seed in range(n_trials)]
        scores = np.array([one[1] for one in runs])
        when = np.array([one[0][0] if one[0][0] else 10**9 for one in runs])
        cells = []
        for wanted in (0.8, 0.9):
            reached = np.mean(scores > Z, axis=0) >= wanted
            fixed = int(checkpoints[reached.argmax()]) if reached.any() else 0
            ours = int(np.quantile(when, wanted, method="higher"))
            cells += [f"{fixed:,}" if fixed else "more", f"{ours:,}" if ours < 10**9 else "more"]
        stopped = float(np.minimum(when, world.pages).mean())
        print(f"| {name} | {' | '.join(cells)} | {stopped:,.0f} |", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=2_000)
    parser.add_argument("--only", default="", help="A/A, learning, periods or power")
    given = parser.parse_args()
    started = time.perf_counter()
    trial(replace(World(), users=100, pages=100), 0)  # Compile.
    for title, worlds in {"A/A": AA, "learning": LEARNING, "periods": PERIODS, "power": POWER}.items():
        if given.only in ("", title):
            n_trials = given.trials if title != "power" else max(given.trials // 5, 1)
            print(f"\n{title}: {n_trials:,} trials each\n")
            (power if title == "power" else alarms)(worlds, n_trials)
    print(f"\n{time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
