"""Intervals for the clicks per page of two arms that are valid whenever you look.

**Estimate.** The rate of an arm is its clicks by its pages. Pages of one user are not independent, so the
variance is taken over buckets, all users of a bucket together: with p pages and c clicks in a bucket and
the arm's rate r, the error of the rate is the sum of (c - r p) / P over the arm's buckets, P = its pages
(delta method), and its variance the sum of squares. Periods with different shares are never pooled: each
has its own rates, and the difference is the mean of the periods' differences, weighted by their pages. A
bucket that was there in several periods counts once, with the sum of its errors.

**Whenever you look.** Let N = 1 / (1/P + 1/P0), the harmonic pages, and V = N^2 times the variance of the
difference. S = N (difference - its true mean) is a sum over pages with variance V. If S were a Brownian
motion at time V, the probability that it ever leaves |S| < sqrt((V + m) log((V + m) / (m a^2))) would be a
(normal mixture: Robbins 1970, Howard et al. 2021; with estimated variances, Waudby-Smith et al. 2021). The
constant m = `MIXTURE` is fixed in advance: it says where the interval is tightest.

**Users that return make it wider than needed.** A user who clicks more than others does
so at the next page too: S(t) - S(s) is positively correlated with S(s). Hence Cov(S(s), S(t)) >= V(s), and
corr(S(s), S(t)) >= sqrt(V(s) / V(t)), which is the correlation of the Brownian motion at these times. Of two
Gaussian processes with the same variances the one with larger correlations exceeds a boundary more rarely
(Slepian's inequality; for two sides, at most twice one side). `python -m benchmarks.aa_trials` measures it.

**Not before.** All of this rests on the central limit theorem. An interval is given once each arm has
`MIN_BUCKETS` effective buckets, by pages and by clicks. Effective are P^2 by the sum of p^2: as many as
there are buckets with equally many pages, and few if a handful has most of them. For clicks likewise, at the
better arm's rate, so that an arm without any click is found out too.
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from firstclick.trials.tally import CC, CLICKS, CP, PAGES, PP, Period, Sums, Tally

MIN_BUCKETS = 15.0
# In clicks, as V is. The interval is tightest at about eight times as many.
MIXTURE = 100.0
# With fewer effective buckets in one of its arms, a period is left out.
MIN_BUCKETS_OF_PERIOD = 10.0


def multiplier(time: float, alpha: float) -> float:
    """How many standard errors the interval reaches to each side at intrinsic time V = `time`.

    >>> round(multiplier(800.0, 0.05), 2)
    3.04
    """
    ratio = time / MIXTURE
    return math.sqrt((1.0 + 1.0 / ratio) * math.log((1.0 + ratio) / (alpha * alpha)))


def rate_variance(pages: float, clicks: float, pp: float, cp: float, cc: float) -> float:
    """The variance of an arm's rate, from the sums over its buckets (of p, c, p p, c p, c c). It contains the
    factor m / (m - 1) for m effective buckets: one degree of freedom goes into the rate itself."""
    rate = clicks / pages
    squares = cc - 2.0 * rate * cp + rate * rate * pp
    return max(squares, 0.0) / (pages * pages - pp)


@dataclass(frozen=True)
class Interval:
    """A difference and its bounds."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class RatioInterval:
    """A ratio and its bounds. Null: no limit, because the rate below the line may be 0."""

    value: float | None
    low: float
    high: float | None


@dataclass(frozen=True)
class Estimate:
    """The rates of an arm and of the one it is compared with, and how sure they are.

    `pages` are those of both arms, `buckets` the effective buckets of the arm that has fewer.
    """

    rate: float
    rate_against: float
    variance: float
    variance_against: float
    covariance: float
    harmonic_pages: float
    pages: int
    buckets: float

    @property
    def enough(self) -> bool:
        """Whether the central limit theorem may be relied on, so that there is an interval."""
        return self.buckets >= MIN_BUCKETS and self.error > 0

    @property
    def error(self) -> float:
        """The standard error of the difference."""
        return math.sqrt(max(self.variance + self.variance_against - 2 * self.covariance, 0.0))

    @property
    def time(self) -> float:
        """The intrinsic time V."""
        return (self.harmonic_pages * self.error) ** 2

    def difference(self, errors: float) -> Interval:
        """rate - rate_against, and so many standard errors to each side."""
        value = self.rate - self.rate_against
        return Interval(value, value - errors * self.error, value + errors * self.error)

    def ratio(self, errors: float) -> RatioInterval:
        """rate / rate_against by Fieller's method: q is inside if 0 is inside the interval of
        rate - q rate_against. So it excludes 1 if and only if the difference excludes 0."""
        # Inside are all q with a q^2 - 2 b q + c <= 0.
        a = self.rate_against**2 - errors**2 * self.variance_against
        b = self.rate * self.rate_against - errors**2 * self.covariance
        c = self.rate**2 - errors**2 * self.variance
        root = math.sqrt(max(b * b - a * c, 0.0))
        return RatioInterval(
            self.rate / self.rate_against if self.rate_against > 0 else None,
            c / (b + root) if c > 0 and b + root > 0 else 0.0,
            (b + root) / a if a > 0 else None,
        )


def reach(found: Estimate, alpha: float) -> float:
    """How many standard errors the interval of an estimate reaches to each side."""
    return multiplier(found.time, alpha)


def level_of_each(confidence: float, n_arms: int) -> float:
    """The probability that one interval is ever wrong, if all of them together are right with `confidence`:
    each other arm is compared with one, and the level is split between them (Bonferroni)."""
    return (1.0 - confidence) / (n_arms - 1)


def decided_by_units(tally: Tally) -> bool:
    """Whether the pages with a unit decide, or those without: whichever are more."""
    with_unit = sum(sum(one.sums[PAGES]) for one in tally.periods)
    return with_unit >= sum(sum(one.single[PAGES]) for one in tally.periods)


def is_worse(tally: Tally, arm: int, against: int = 0) -> bool:
    """Whether the whole interval of the difference is below 0, as `stop_if_worse` asks. Cheap after every
    page while the shares have not changed (some 10 us); later some 100 us for each period."""
    found = estimate(tally, arm, against, units=decided_by_units(tally))
    if found is None or not found.enough:
        return False
    return found.difference(reach(found, level_of_each(0.95, tally.n_arms))).high < 0


def estimate(tally: Tally, arm: int, against: int, units: bool = True) -> Estimate | None:
    """What all pages with a unit (or all without) say of two arms; None while one of them has too few.

    >>> tally = Tally([0.5, 0.5])
    >>> for bucket in range(10_000):
    ...     tally.add(bucket // 5_000, bucket, clicked=bucket % 5 == 0 or bucket > 9_500)
    >>> found = estimate(tally, 1, 0)
    >>> round(found.rate, 4), round(found.rate_against, 4), round(found.error, 4)
    (0.28, 0.2, 0.0085)
    """
    counted = [(one, one.sums if units else one.single) for one in tally.periods]
    counted = [(one, sums) for one, sums in counted if _enough_in_period(sums, arm, against)]
    if not counted:
        return None
    if len(counted) == 1:
        return estimate_of_sums(counted[0][1], arm, against)
    sums = [one for _, one in counted]
    # Pages of all arms: the weights of the periods do not depend on which two arms are compared.
    weights = np.array([sum(one[PAGES]) for one in sums], dtype=np.float64)
    weights /= weights.sum()
    rates, buckets, errors, variances, inverse = [], [], [], [], 0.0
    for at in (arm, against):
        pages = np.array([one[PAGES][at] for one in sums], dtype=np.float64)
        rates.append(float(weights @ (np.array([one[CLICKS][at] for one in sums]) / pages)))
        inverse += float((weights**2 / pages).sum())
        if units:
            shared, error = _by_bucket([one for one, _ in counted], weights, at)
            errors.append(error)
            variances.append(float(error @ error))
            buckets.append(1.0 / float(shared @ shared))
        else:
            variances.append(float(weights**2 @ [rate_variance(*_column(one, at)) for one in sums]))
            buckets.append(1.0 / float((weights**2 / pages).sum()))
    mine, theirs = (_added(sums, at) for at in (arm, against))
    return Estimate(
        rates[0], rates[1], variances[0], variances[1], float(errors[0] @ errors[1]) if units else 0.0,
        1.0 / inverse, int(mine[PAGES] + theirs[PAGES]), min(*buckets, effective_clicks(*mine, *theirs)),
    )  # fmt: skip


def estimate_of_sums(sums: Sums, arm: int, against: int) -> Estimate | None:
    """The same for pages with the same shares. It needs the sums alone, so it is cheap after every page."""
    if not _enough_in_period(sums, arm, against):
        return None
    mine, theirs = _column(sums, arm), _column(sums, against)
    rates = mine[CLICKS] / mine[PAGES], theirs[CLICKS] / theirs[PAGES]
    return Estimate(
        rates[0], rates[1], rate_variance(*mine), rate_variance(*theirs), 0.0,
        1.0 / (1.0 / mine[PAGES] + 1.0 / theirs[PAGES]),
        int(mine[PAGES] + theirs[PAGES]),
        min(_effective(mine), _effective(theirs), effective_clicks(*mine, *theirs)),
    )  # fmt: skip


Column = tuple[float, float, float, float, float]


def effective_clicks(
    pages: float, clicks: float, pp: float, cp: float, cc: float,
    pages2: float, clicks2: float, pp2: float, cp2: float, cc2: float,
) -> float:  # fmt: skip
    """The effective buckets by clicks that an arm would have at the better arm's rate, the smaller arm."""
    if clicks * pages2 >= clicks2 * pages:
        return min(pages, pages2) / pages * clicks * clicks / cc if cc > 0 else 0.0
    return min(pages, pages2) / pages2 * clicks2 * clicks2 / cc2


def _added(sums: list[Sums], arm: int) -> Column:
    pages, clicks, pp, cp, cc = (sum(one[row][arm] for one in sums) for row in range(5))
    return float(pages), float(clicks), float(pp), float(cp), float(cc)


def _column(sums: Sums, arm: int) -> Column:
    return (
        float(sums[PAGES][arm]), float(sums[CLICKS][arm]), float(sums[PP][arm]), float(sums[CP][arm]),
        float(sums[CC][arm]),
    )  # fmt: skip


def _effective(column: Column) -> float:
    return column[PAGES] ** 2 / column[PP] if column[PP] else 0.0


def _enough_in_period(sums: Sums, arm: int, against: int) -> bool:
    return min(_effective(_column(sums, at)) for at in (arm, against)) >= MIN_BUCKETS_OF_PERIOD


def _by_bucket(
    periods: list[Period], weights: NDArray[np.float64], arm: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Each bucket's part of the arm's weighted pages, and of the error of its weighted rate."""
    shared, error = np.zeros(len(periods[0].owner)), np.zeros(len(periods[0].owner))
    for period, weight in zip(periods, weights, strict=True):
        pages, clicks, pp, _, _ = _column(period.sums, arm)
        mine = period.owner == arm
        shared[mine] += weight / pages * period.pages[mine]
        residual = period.clicks[mine] - clicks / pages * period.pages[mine]
        # The factor of rate_variance, so that one period gives what its sums give.
        error[mine] += weight / math.sqrt(pages * pages - pp) * residual
    return shared, error
