"""Two checks of a trial: are the shares as planned, and is feedback reported equally often in all arms?

If one fails, a difference between the arms may come from who was counted, not from what was shown. Both may
be looked at any time: over all looks together a check alarms wrongly in at most one of 1,000 trials.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from firstclick.rounding import percent
from firstclick.trials.assignment import N_BUCKETS, quotas
from firstclick.trials.sequence import MIN_BUCKETS, multiplier
from firstclick.trials.tally import PAGES, PP, Period, Tally

FALSE_ALARMS = 0.001


@dataclass(frozen=True)
class Check:
    """A check of the trial's data. `fine` is null if there are too few pages to tell."""

    name: str
    fine: bool | None
    sentence: str


def check_shares(tally: Tally, names: Sequence[str]) -> Check:
    """Whether each arm has its share of the pages. A bucket is assigned once and brings all its pages, so
    the test is over buckets: users who return, however often, do not make it alarm."""
    pages = [sum(one.sums[PAGES]) + sum(one.single[PAGES]) for one in tally.periods]
    total = sum(pages)
    worst, alarms, enough = "", False, total > 0
    far = -1.0
    for arm in range(tally.n_arms):
        if arm == 1 and tally.n_arms == 2:
            break  # It mirrors the other.
        planned = [quotas(one.shares)[arm] / N_BUCKETS for one in tally.periods]
        excess, variance, counted = 0.0, 0.0, 0.0
        by_bucket, planned_by_bucket = np.zeros(N_BUCKETS), np.zeros(N_BUCKETS)
        for one, share in zip(tally.periods, planned, strict=True):
            by_bucket += one.pages * ((one.owner == arm) - share)
            planned_by_bucket += one.pages * math.sqrt(share * (1 - share))
            single = sum(one.single[PAGES])
            excess += one.single[PAGES][arm] - share * single
            variance += single * share * (1 - share)
            counted += min(share, 1 - share) * _effective(one)
        excess += float(by_bucket.sum())
        # As found or as planned: an arm of few buckets that got no frequent user has too small a variance.
        variance += max(float(by_bucket @ by_bucket), float(planned_by_bucket @ planned_by_bucket))
        # An arm that has, or had, all buckets cannot be short of any.
        if variance == 0:
            continue
        enough = enough and counted >= MIN_BUCKETS
        distance = abs(excess) / math.sqrt(variance)
        if distance > multiplier(variance, FALSE_ALARMS / max(tally.n_arms - 1, 1)):
            alarms = True
        if distance > far and total:
            far = distance
            seen = tally.pages[arm] / total
            plan = sum(share * n for share, n in zip(planned, pages, strict=True)) / total
            worst = f"{names[arm]} has {percent(seen)} of the pages, planned are {percent(plan)}"
    if not enough:
        return Check("shares", None, "Too few pages to tell whether the shares are as planned.")
    if alarms:
        return Check(
            "shares",
            False,
            f"The shares are not as planned: {worst}. Pages of one arm get lost or are counted twice, or its "
            "users come more often; do not trust the difference before you know why.",
        )
    return Check("shares", True, f"The shares are as planned: {worst}.")


def _effective(period: Period) -> float:
    """Effective buckets of a period, all arms together; a page without a unit counts as one."""
    squares = sum(period.sums[PP])
    return (sum(period.sums[PAGES]) ** 2 / squares if squares else 0.0) + sum(period.single[PAGES])


def check_feedback(
    tally: Tally,
    names: Sequence[str],
    recommended: Sequence[int],
    reported: Sequence[int] | None = None,
    against: int = 0,
) -> Check:
    """Whether the same part of the recommended pages is reported in each arm. Some users may never report
    (they block scripts, say), so the variance is that of users who report all their pages or none."""
    reported = tally.pages if reported is None else reported
    if min(recommended[against], reported[against]) < 100:
        return Check("feedback", None, "Too few pages to tell whether feedback is reported equally often.")
    rates = [min(one / all_, 1.0) if all_ else 0.0 for one, all_ in zip(reported, recommended, strict=True)]
    alarms = []
    for arm in range(tally.n_arms):
        if arm == against or min(recommended[arm], reported[arm]) < 100:
            continue
        variance = sum(
            rates[at] * (1 - rates[at]) * _pages_of_a_unit(tally, at) / recommended[at]
            for at in (arm, against)
        )
        harmonic = 1 / (1 / recommended[arm] + 1 / recommended[against])
        gap = abs(rates[arm] - rates[against])
        if variance > 0 and gap > math.sqrt(variance) * multiplier(
            harmonic**2 * variance, FALSE_ALARMS / (tally.n_arms - 1)
        ):
            alarms.append(arm)
    told = ", ".join(f"{name} {percent(rate)}" for name, rate in zip(names, rates, strict=True))
    if alarms:
        return Check(
            "feedback",
            False,
            f"Feedback is not reported equally often ({told}). Clicks per reported page do not compare; find "
            "out which pages are not reported.",
        )
    return Check("feedback", True, f"Feedback is reported equally often ({told}).")


def _pages_of_a_unit(tally: Tally, arm: int) -> float:
    """How many pages the unit of a page has, on average over pages. If buckets hold Poisson numbers of units,
    it is the variance of a bucket's pages by their mean."""
    variance, mean, pages = 0.0, 0.0, 0.0
    for one in tally.periods:
        n, total = int((one.owner == arm).sum()), one.sums[PAGES][arm]
        if n and total:
            variance += one.sums[PP][arm] - total * total / n
            mean += total
        pages += one.single[PAGES][arm]
    clustered = max(variance / mean, 1.0) * mean if mean else 0.0
    return (clustered + pages) / (mean + pages) if mean + pages else 1.0
