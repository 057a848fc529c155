"""The floor: how often a policy may show its slates so that, with confidence, the clicks never fall far below
those of a list that is shown otherwise, the baseline.

Page t shows the policy's slate with probability q_t, its *share*, and else the baseline. p_t is the click
probability of the policy's slate and r that of the baseline, which is taken to be constant. The promise, for
all n at once, is

    sum q_t p_t + sum (1 - q_t) r >= (1 - max_loss) n r,   that is,   sum q_t - max_loss n <= sum q_t p_t / r

and holds as long as the left side is at most L / H. L is a lower bound of sum q_t p_t, from clicks on the
policy's slates; H is an upper bound of r, from pages that showed the baseline. Nothing that a policy holds
for true enters. What the left side leaves free is the *room*, in pages of the baseline without a click.

Both bounds are confidence sequences: they hold at all times at once. Let S be a sum of clicks, each of
probability m_t given what was before. Each exp(l S - sum log(1 + m_t (e^l - 1))) is a martingale. With l > 0
and the mean m of the m_t it is at least exp(l S - n log(1 + m (e^l - 1))), because the logarithm is concave.
A weighted mean of these over some l exceeds 1/delta at any time with probability delta at most (Ville), and m
is bounded from below by where it does. The upper bound of r is the same with clicks and no clicks exchanged.
L never falls, because the sum does not. H follows the evidence. Where it rises after much was shown, the room
is below 0 for a while, and the share below max_loss.
"""

from math import exp, expm1, inf, log, log1p

import numpy as np
from numpy.typing import NDArray

from firstclick.kernels.compiling import kernel, shared_kernel

# Places of a floor. "Shared" pages are those that could show the policy's slate: their share is above 0.
PAGES, SHARES, SHARED, POLICY_PAGES, POLICY_CLICKS, BASE_PAGES, BASE_CLICKS, LEAST, MOST, EVIDENCE = range(10)

# The l of the mixture. The best one is about sqrt(2 log(1/delta) / variance of S): these serve variances from
# 1 to a million. More weight is on the large ones, which are those of the first pages.
_LAMBDAS = tuple(4.0 * 2.0**-j for j in range(12))
_FACTORS = tuple(expm1(each) for each in _LAMBDAS)
_SHARE_OUT = sum(1.0 / (j + 2.0) for j in range(12))
_LOG_WEIGHTS = tuple(-log((j + 2.0) * _SHARE_OUT) for j in range(12))
_N = len(_LAMBDAS)


def blank_floor(confidence: float) -> NDArray[np.float64]:
    """A floor before its first page. Each of the two bounds may fail with half of 1 - confidence."""
    floor = np.zeros(EVIDENCE + 1)
    floor[MOST] = 1.0
    floor[EVIDENCE] = log(2.0 / (1.0 - confidence))
    return floor


@kernel
def room(floor, max_loss):  # type: ignore[no-untyped-def]
    """How many pages may show the policy's slate beyond a share of `max_loss` and get no click at all."""
    return max_loss * floor[PAGES] - floor[SHARES] + floor[LEAST] / floor[MOST]


@shared_kernel
def allowed_share(floor, max_loss, out, replicas):  # type: ignore[no-untyped-def]
    """The largest share of the next page.

    `out` is the part of the room that slates not yet answered may take: the sum of share - max_loss over
    them, where positive. `replicas` share the room in equal parts.
    """
    left = room(floor, max_loss)
    if left < 0.0:  # Overspent, by replicas that did not see one another, or max_loss was made smaller.
        return max(max_loss + left, 0.0)
    return min(max_loss + max(left / replicas - out, 0.0), 1.0)


@shared_kernel
def observe_page(floor, share, by_policy, clicked):  # type: ignore[no-untyped-def]
    """Add a page that was reported: its share, whether it showed the policy's slate, and whether a click
    came."""
    floor[PAGES] += 1.0
    floor[SHARES] += share
    if share > 0.0:
        floor[SHARED] += 1.0
    if by_policy:
        floor[POLICY_PAGES] += 1.0
        if clicked:
            floor[POLICY_CLICKS] += 1.0
            # Only a click raises the bound.
            floor[LEAST] = raised(floor[SHARED], floor[POLICY_CLICKS], floor[EVIDENCE], floor[LEAST])
    else:
        n = floor[BASE_PAGES] = floor[BASE_PAGES] + 1.0
        if clicked:
            floor[BASE_CLICKS] += 1.0
        # The bound of now, not the smallest so far: pages of the first hour that nobody saw, or a rate that
        # rose since, must not count for ever.
        start = (1.0 - floor[MOST]) * n
        floor[MOST] = 1.0 - bound_from(n, n - floor[BASE_CLICKS], floor[EVIDENCE], start) / n


@shared_kernel
def rate_bounds(floor):  # type: ignore[no-untyped-def]
    """A lower and an upper bound of the baseline's click rate, by the evidence of now."""
    n = floor[BASE_PAGES]
    if n == 0.0:
        return 0.0, 1.0
    return raised(n, floor[BASE_CLICKS], floor[EVIDENCE], 0.0) / n, floor[MOST]


@shared_kernel
def raised(n, total, evidence, least):  # type: ignore[no-untyped-def]
    """The lower bound of the sum of n probabilities of which `total` came true; or `least`, if it is larger.

    `evidence` is log(1/delta). The logarithm of the mixture is convex in the bound and falls: Newton's steps
    from below never pass the root.
    """
    while True:
        step = _newton_step(n, total, evidence, least)
        # Also where rounding leaves no room for a step.
        if not step > 1e-12 * (least + step):
            return least
        least += step


@kernel
def bound_from(n, total, evidence, start):  # type: ignore[no-untyped-def]
    """The lower bound of the sum of n probabilities of which `total` came true, wherever it lies: one step
    from above the root leads below it."""
    step = _newton_step(n, total, evidence, start)
    return raised(n, total, evidence, max(start + step, 0.0) if step < 0.0 else start)


@kernel
def _newton_step(n, total, evidence, least):  # type: ignore[no-untyped-def]
    """From this bound towards the one at which the mixture is as large as the evidence."""
    largest = -inf
    for j in range(_N):
        term = _LOG_WEIGHTS[j] + _LAMBDAS[j] * total - n * log1p(least * _FACTORS[j] / n)
        largest = max(largest, term)
    height, slope = 0.0, 0.0
    for j in range(_N):
        within = 1.0 + least * _FACTORS[j] / n
        term = exp(_LOG_WEIGHTS[j] + _LAMBDAS[j] * total - n * log(within) - largest)
        height += term
        slope += term * _FACTORS[j] / within
    return (largest + log(height) - evidence) * height / slope
