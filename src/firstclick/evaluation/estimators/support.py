"""Whether the log can answer at all: what its weights rest on, and whether its propensities are true."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from firstclick.evaluation.estimators.logging_plan import logging_that_answers
from firstclick.evaluation.estimators.pareto import pareto_k, tail_size
from firstclick.evaluation.estimators.weighted_slates import Table, WeightedSlates
from firstclick.logs.ranked_log import NO_ITEM

OK, CAUTION, CANNOT_SAY = "ok", "caution", "cannot say"

# Our choices, each with its reason.
# A mean of 20 terms is far from normal, whatever they are; one of 100 is near enough for clicks.
TOO_FEW, FEW = 20.0, 100.0
# Above 1/2 the variance is infinite; above 0.7 a sample tells little of the mean (Vehtari et al. 2024).
HEAVY, TOO_HEAVY = 0.5, 0.7
# Where weights are bounded, as by exploration, k can be large although no few slates decide. So it refuses
# only if the largest 1 % of the weights above 0 carry as much as in a Pareto law of that k: 0.01^(1 - 0.7).
TOP = 0.01
TOP_CARRIES = TOP ** (1 - TOO_HEAVY)
# The mean weight is 1 if propensities are true and the logger may show all that the target shows. Beyond so
# many standard errors it is not; within 10 % Monte Carlo may be why. False alarms: one in some thousands a
# position. The standard error comes of the same skewed weights, so they are more than the 1 in 16,000 of a
# normal mean: for a fixed list 1 in 3,000 with 60 effective slates, 1 in 12,000 with 1,000 (exact Poisson).
DOUBTFUL_ERRORS, DOUBTFUL_BY = 4.0, 0.1
# Positions that carry less than this share of the clicks cannot change the answer much.
MINOR_SHARE = 0.05
# Slates left out, for want of a propensity or of an outcome, may differ from the others.
LEFT_OUT = 0.05
# An interval of the difference that reaches further than this share of the clicks shown.
WIDE = 0.5
TAIL_KEPT = 20_000
# The lowest number of an item: one that a target shows and the log does not know.
UNKNOWN = -2


@dataclass(frozen=True)
class PrefixSupport:
    """What the weights of the first `position` items say."""

    position: int
    effective_slates: float  # (sum of weights)^2 / sum of squares
    mean_weight: float
    mean_weight_error: float
    largest_weight: float
    pareto_k: float | None  # None: too few weights above 0, or the largest are all equal
    top_share: float  # of all weight, carried by the largest 1 % of the weights above 0
    clicks: float  # clicks a page at this position, as logged
    seen: float | None = None  # share of requests whose first items of the target the log has ever shown


@dataclass(frozen=True)
class Support:
    """Three words, why, and what would help."""

    verdict: str
    reasons: tuple[str, ...]
    advice: str  # the logging that would answer; empty unless the verdict is "cannot say"
    slates: int
    missing: int  # slates without propensities, left out
    unreported: int  # slates whose outcome nobody reported, left out
    positions: tuple[PrefixSupport, ...]
    items_doubted: int  # items shown more often than their propensities allow


class SupportSums:
    """Sums over the slates of a log, a batch at a time."""

    def __init__(self, k: int, *, by_place: bool = False) -> None:
        self.by_place = by_place  # whether weights are those of single positions, or of all down to each
        self.n, self.missing = 0, 0
        self.certain = 0  # slates that the logger could not but show
        self.weights, self.squares, self.largest = np.zeros(k), np.zeros(k), np.zeros(k)
        self.clicks, self.positive = np.zeros(k), np.zeros(k, dtype=np.int64)
        self.tails: list[Table] = [np.empty(0) for _ in range(k)]
        self.by_item = np.zeros((3, 0))  # times shown first, sums of 1 / propensity and of its square

    def add(self, slates: WeightedSlates, weights: Table) -> None:
        """Slates with known propensities, and the weights of each position."""
        self.n += slates.n
        if not slates.n:
            return
        logged = slates.logged if slates.logged is not None else slates.logged_places
        assert logged is not None
        self.certain += int(np.count_nonzero((logged >= 1 - 1e-9).all(axis=1)))
        self.weights += weights.sum(axis=0)
        self.squares += (weights**2).sum(axis=0)
        self.largest = np.maximum(self.largest, weights.max(axis=0))
        self.clicks += slates.clicks.sum(axis=0)
        self.positive += np.count_nonzero(weights > 0, axis=0)
        for position, tail in enumerate(self.tails):
            joined = np.concatenate([tail, weights[:, position]])
            if len(joined) > TAIL_KEPT:
                joined = np.partition(joined, len(joined) - TAIL_KEPT)[-TAIL_KEPT:]
            self.tails[position] = joined
        if slates.items is not None:
            told = ~np.isnan(logged[:, 0])
            self._add_items(slates.items[told, 0], logged[told, 0])

    def _add_items(self, items: NDArray[np.int32], logged: Table) -> None:
        size = max(int(items.max(initial=-1)) + 1, self.by_item.shape[1])
        inverse = 1.0 / logged
        more = [np.bincount(items, one, size) for one in (np.ones(len(items)), inverse, inverse**2)]
        grown = np.zeros((3, size))
        grown[:, : self.by_item.shape[1]] = self.by_item
        self.by_item = grown + more

    def positions(self, seen: Sequence[float] | None) -> tuple[PrefixSupport, ...]:
        """What the weights of each position say."""
        found = []
        for at, tail in enumerate(self.tails):
            mean = self.weights[at] / self.n
            variance = max(self.squares[at] / self.n - mean**2, 0.0)
            positive = int(self.positive[at])
            enough = positive <= TAIL_KEPT or tail_size(positive) < TAIL_KEPT
            k = pareto_k(tail, positive) if enough else None
            found.append(
                PrefixSupport(
                    at + 1,
                    float(self.weights[at] ** 2 / self.squares[at]) if self.squares[at] > 0 else 0.0,
                    float(mean),
                    math.sqrt(variance / self.n),
                    float(self.largest[at]),
                    k if k is not None and math.isfinite(k) else None,
                    self._top_share(at),
                    float(self.clicks[at] / self.n),
                    None if seen is None else float(seen[at]),
                )
            )
        return tuple(found)

    def _top_share(self, at: int) -> float:
        size = min(math.ceil(TOP * int(self.positive[at])), len(self.tails[at]))
        if not size:
            return 0.0
        largest = np.partition(self.tails[at], len(self.tails[at]) - size)[-size:]
        return float(largest.sum() / self.weights[at])

    def items_doubted(self) -> int:
        """How many items stand first more often than their propensities allow. An item that every request
        allows has a mean of [shown first] / propensity of 1; others have less, never more."""
        shown, inverse, squares = self.by_item
        tested = (inverse**2 >= FEW * squares) & (shown > 0)
        if not tested.any():
            return 0
        mean = inverse / self.n
        error = np.sqrt(np.maximum(squares / self.n - mean**2, 0.0) / self.n)
        reach = -float(ndtri(1e-4 / int(tested.sum())))
        return int(np.count_nonzero(tested & (mean - 1 > np.maximum(reach * error, DOUBTFUL_BY))))


def judge(
    sums: SupportSums,
    *,
    missing: int = 0,
    unreported: int = 0,
    seen: Sequence[float] | None = None,
    half_width: float = 0.0,
    candidates: int | None = None,
    explore: float = 0.1,
) -> Support:
    """The verdict. `missing` slates had no propensity, and `unreported` ones no outcome: neither are in the
    sums. `half_width` is that of the difference's interval; `candidates` how many items a slate is chosen
    from; `explore` the share of slates that the advice may ask for."""
    positions = sums.positions(seen) if sums.n else ()
    refusals, cautions = _findings(sums, positions, half_width)
    doubted = sums.items_doubted() if sums.n else 0
    if doubted:
        refusals.append(
            f"{doubted} items stand in first place more often than their propensities allow: "
            "the propensities are not those of the policy that logged."
        )
    missing += sums.missing
    for n, what in ((missing, "have no propensity"), (unreported, "have no reported outcome")):
        share = n / (sums.n + missing + unreported) if n else 0.0
        if share > LEFT_OUT:
            cautions.append(
                f"{share:.0%} of the slates {what} and are left out; they may differ from the others."
            )
    verdict = CANNOT_SAY if refusals else CAUTION if cautions else OK
    advice = ""
    if refusals:
        rates = [one.clicks for one in positions] or [0.1]
        advice = logging_that_answers(rates, candidates, explore, FEW)
        if sums.n >= TOO_FEW and sums.clicks.sum() == 0:
            advice = "Check that clicks are recorded, and that their column is the one that was read."
    least = min((one.effective_slates for one in positions), default=0.0)
    reasons = (*refusals, *cautions) or (f"Each position rests on {least:,.0f} effective slates or more.",)
    return Support(verdict, reasons, advice, sums.n, missing, unreported, positions, doubted)


def _findings(
    sums: SupportSums, positions: tuple[PrefixSupport, ...], half_width: float
) -> tuple[list[str], list[str]]:
    refusals: list[str] = []
    cautions: list[str] = []
    if sums.n < TOO_FEW:
        return [
            f"The log has {sums.n} slates that can be used; {TOO_FEW:.0f} are too few for any interval."
        ], []
    # Clicks are at most 1 a position here; with other values "every position" cannot be told.
    if sums.clicks.sum() == 0:
        return ["No slate was clicked: nothing tells one policy from another."], []
    if (sums.clicks == sums.n).all():
        return ["Every position of every slate was clicked: that is no page, or no record of clicks."], []
    same = all(one.mean_weight == 1.0 and one.mean_weight_error == 0.0 for one in positions)
    if sums.certain == sums.n and not same:
        refusals.append(
            "The logger was certain of every slate, so the log never shows what else would have happened. "
            "Only a model-based answer is possible."
        )
    shown = sum(one.clicks for one in positions)
    for one in positions:
        # Positions further down fail where one above has failed: said once.
        if refusals:
            break
        minor = (
            shown > 0 and sum(below.clicks for below in positions[one.position - 1 :]) < MINOR_SHARE * shown
        )
        where = cautions if minor else refusals
        name = "the first item" if one.position == 1 else f"the first {one.position} items"
        if sums.by_place:
            name = f"the item at position {one.position}"
        off = abs(one.mean_weight - 1)
        if one.largest_weight == 0:
            where.append(f"The log never shows {name} of the target.")
        elif one.effective_slates < TOO_FEW:
            where.append(
                f"For {name} of the target the log is worth {one.effective_slates:.1f} slates: too few."
            )
        elif off > DOUBTFUL_ERRORS * one.mean_weight_error and off > 1e-9:
            words = (
                f"The weights of {name} have the mean {one.mean_weight:.3f} ± {one.mean_weight_error:.3f} "
                "where true propensities give 1: "
            ) + (
                "the propensities are not those of the policy that logged."
                if one.mean_weight > 1
                else "the propensities are not true, or the logger hardly ever shows what the target shows."
            )
            (where if off > DOUBTFUL_BY else cautions).append(words)
        elif one.pareto_k is not None and one.pareto_k > TOO_HEAVY and one.top_share > TOP_CARRIES:
            where.append(
                f"The weights of {name} have a tail (Pareto k {one.pareto_k:.2f}) that is too heavy for "
                f"a mean to settle: 1 % of the slates carry {one.top_share:.0%} of it."
            )
        elif one.effective_slates < FEW:
            cautions.append(
                f"For {name} of the target the log is worth only {one.effective_slates:.0f} slates."
            )
        elif one.pareto_k is not None and one.pareto_k > HEAVY:
            cautions.append(f"The weights of {name} have a heavy tail (Pareto k {one.pareto_k:.2f}).")
    if shown > 0 and half_width > WIDE * shown:
        cautions.append(
            f"The interval of the difference reaches {half_width:.3g} to each side; "
            f"pages had {shown:.3g} clicks on average."
        )
    return refusals, cautions


def prefixes_seen(shown: NDArray[np.int32], wanted: NDArray[np.int32]) -> NDArray[np.bool_]:
    """Whether some slate of `shown` begins as each slate of `wanted` does, n x K. What has ended in `wanted`
    is seen as far as it goes."""
    found = np.ones(wanted.shape, np.bool_)
    # A prefix is the number of the prefix before it among those wanted, and its last item.
    before, before_wanted = (np.zeros(len(one), np.int64) for one in (shown, wanted))
    for position in range(wanted.shape[1]):
        last, last_wanted = (one[:, position].astype(np.int64) - UNKNOWN for one in (shown, wanted))
        prefixes, numbers = np.unique((before_wanted << 32) + last_wanted, return_inverse=True)
        asked = (before << 32) + last
        at = np.minimum(np.searchsorted(prefixes, asked), len(prefixes) - 1)
        same = prefixes[at] == asked
        seen = np.zeros(len(prefixes), np.bool_)
        seen[at[same]] = True
        ended = wanted[:, position] == NO_ITEM
        found[:, position] = np.where(ended, found[:, position - 1] if position else True, seen[numbers])
        shown, before, before_wanted = shown[same], at[same], numbers
    return found
