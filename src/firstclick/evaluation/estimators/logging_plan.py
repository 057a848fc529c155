"""The logging that would answer: how many slates, of which share is drawn uniformly.

With a share e of slates drawn uniformly among L items, a list's first k items are shown with a probability of
at least e / (L)_k, (L)_k = L (L - 1) ... (L - k + 1). So the squared weight of a fixed list's prefix has a
mean of at most the inverse, n slates are worth at least n e / (L)_k effective ones, and the variance of RIPS
is at most the sum over k of (clicks at k) (L)_k / e, if a page has at most one click.

These are the clicks on the list asked about, which nobody knows yet. The clicks on what was shown stand in
for them. So the number of slates is a first plan: a list with more clicks than those has a wider interval.
"""

import math
from collections.abc import Sequence

# Beyond this many slates we ask for something else than uniform slates.
MOST = 10_000_000
# An interval that reaches so much of the clicks shown to each side.
PRECISION = 0.1
Z = 1.96


def slates_needed(rates: Sequence[float], candidates: int, explore: float, effective: float) -> int:
    """How many slates give a fixed list `effective` slates for all its places, and an interval that reaches
    PRECISION times the clicks shown. `rates` are the clicks a page at each position.

    >>> slates_needed([0.3, 0.1], candidates=5, explore=0.1, effective=100)
    84035
    """
    lists, needed, spread = 1.0, 0.0, 0.0
    for position, rate in enumerate(rates):
        lists *= max(candidates - position, 1)
        needed = max(needed, effective * lists / explore)
        spread += rate * lists / explore
    half_width = PRECISION * sum(rates)
    precise = Z**2 * spread / half_width**2 if half_width > 0 else 0.0
    return math.ceil(max(needed, precise) - 1e-6)


def logging_that_answers(
    rates: Sequence[float], candidates: int | None, explore: float, effective: float
) -> str:
    """A sentence such as "85,000 slates with explore=0.1 would answer for any fixed list."."""
    clicks = sum(rates)
    own = max(effective, Z**2 / (PRECISION**2 * clicks) if clicks > 0 else 0.0) / explore
    trial = (
        f"show the policy itself on {explore:.0%} of {_rounded_up(own)} slates (a trial), "
        "with the propensities in the log"
    )
    if candidates is None:
        return f"To answer, {trial}; or log a share of uniform slates, such as explore={explore:g}."
    needed = slates_needed(rates, candidates, explore, effective)
    if needed > MOST:
        return (
            f"Uniform slates would not do: {len(rates)} places and {candidates} items would take more than "
            f"{MOST:,} slates with explore={explore:g}. Rather {trial}."
        )
    return f"{_rounded_up(needed)} slates with explore={explore:g} would answer for any fixed list."


def _rounded_up(number: float) -> str:
    """Two digits, up."""
    unit = 10 ** max(math.floor(math.log10(max(number, 1))) - 1, 0)
    return f"{math.ceil(number / unit - 1e-9) * unit:,}"
