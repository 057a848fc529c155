"""Comparisons of learners and settings over paired runs, and the verdict that several of them give.

A comparison is inside the limits of its word if the interval of the runs is, outside if the interval is,
and in doubt if the interval crosses a limit. The intervals trust that runs are about normal; a sign test,
which does not, has to agree, or else the comparison is in doubt. A claim of several parts holds if all are
inside: for a false "holds" some false part must have passed its own test, so their number needs no
correction (an intersection-union test). It does not hold if one is outside: one of many is outside by chance
more easily, so there the chance of an error is divided by their number (Bonferroni).
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from firstclick.report.claims import FAILS, HOLDS, UNTESTABLE
from firstclick.report.rounding import rounded
from firstclick.studies.paper.checks import Cell, Evidence, Finding, NotPlayed, Rule
from firstclick.studies.paper.statistics import (
    CHANCE,
    Interval,
    Runs,
    fewest_runs,
    mean_interval,
    ratio_interval,
    sign_chance,
)
from firstclick.studies.paper.thresholds import (
    CAN_LEARN,
    GAP_INCREASES,
    INCREASES,
    INCREASES_FASTER,
    LEARNING_PARTS,
    ORDERS_OF_MAGNITUDE,
    PERFORMS_WELL,
    UNEVEN,
    Word,
)


@dataclass(frozen=True)
class Part:
    """A comparison of two sides, paired by run: their ratio or difference must be as the word says."""

    name: str
    word: Word
    sides: Callable[[Evidence], tuple[Runs, Runs]]

    def interval(self, first: Runs, second: Runs, chance: float) -> Interval | None:
        """What the runs say about the ratio or the difference; None where no ratio can be formed."""
        if self.word.is_ratio:
            return ratio_interval(first, second, chance)
        return mean_interval(first - second, chance)

    def is_inside(self, interval: Interval) -> bool:
        """Whether all of the interval is between the limits of the word."""
        return self.word.low < interval.low and interval.high < self.word.high

    def is_outside(self, interval: Interval) -> bool:
        """Whether all of the interval is beyond a limit of the word."""
        return interval.high <= self.word.low or self.word.high <= interval.low

    def runs_inside(self, first: Runs, second: Runs) -> int:
        """How many runs are on the inner side of the limit that more of them are beyond."""
        return len(first) - max(self._runs_beyond(first, second))

    def runs_outside(self, first: Runs, second: Runs, interval: Interval) -> int:
        """How many runs are beyond the limit that the interval is beyond."""
        below, above = self._runs_beyond(first, second)
        return below if interval.high <= self.word.low else above

    def _runs_beyond(self, first: Runs, second: Runs) -> tuple[int, int]:
        # Like Fieller's interval, and without a division: a denominator may be zero in a run.
        unit = second if self.word.is_ratio else np.ones(len(second))
        value = first if self.word.is_ratio else first - second
        low, high = self.word.low, self.word.high
        return (
            int(np.count_nonzero(value <= low * unit)) if math.isfinite(low) else 0,
            int(np.count_nonzero(value >= high * unit)) if math.isfinite(high) else 0,
        )


def ratio(word: Word, numerator: Cell, denominator: Cell) -> Part:
    """The first regret is to the second as the word says."""
    return Part(
        _named(numerator, "/", denominator),
        word,
        lambda evidence: (numerator.sums(evidence), denominator.sums(evidence)),
    )


def more(word: Word, larger: Cell, smaller: Cell, measure: str = "expected_regret") -> Part:
    """The first cell has more of the measure than the second, in the sense of the word."""
    return Part(
        _named(larger, "−", smaller),
        word,
        lambda evidence: (larger.sums(evidence, measure), smaller.sums(evidence, measure)),
    )


def _named(first: Cell, sign: str, second: Cell) -> str:
    """Both cells, and what they share only once."""
    shared = replace(first, policy=second.policy) == second
    return f"{first.policy if shared else first} {sign} {second}"


def rising(cells: Sequence[Cell], measure: str = "expected_regret") -> tuple[Part, ...]:
    """Each cell has more of the measure than the one before."""
    return tuple(more(INCREASES, later, earlier, measure) for earlier, later in pairwise(cells))


def wider_gap(policy: str, other: str, few: int | str, many: int | str) -> Part:
    """The first policy's regret above the second's is larger with many items than with few."""

    def gap(evidence: Evidence, items: int | str) -> Runs:
        return Cell(policy, items).sums(evidence) - Cell(other, items).sums(evidence)

    return Part(
        f"({policy} − {other}), {many} items − {few} items",
        GAP_INCREASES,
        lambda evidence: (gap(evidence, many), gap(evidence, few)),
    )


def best_outgrows(experiment: str, cells: Sequence[Cell]) -> Rule:
    """A rule that from each cell to the next the best slate's clicks grow by more than the learner's."""
    parts = [
        replace(
            part,
            name=f"(best slate’s clicks − expected clicks), {later.k} shown − {earlier.k} shown",
            word=INCREASES_FASTER,
        )
        for part, (earlier, later) in zip(rising(cells), pairwise(cells), strict=True)
    ]
    note = "The best slate’s reward less the expected reward is the expected regret: this is the test of the "
    note += "row on regret, said in terms of reward."
    return every(experiment, *parts, note=note)


def performs_well(cell: Cell) -> Part:
    """The cell loses as small a share of the best slate's clicks as the word says."""
    return Part(
        f"{cell}: regret / best clicks",
        PERFORMS_WELL,
        lambda evidence: (cell.sums(evidence), cell.best(evidence)),
    )


def learns(cell: Cell) -> Part:
    """The cell's regret per step is lower later than in the first part of the steps."""

    def sides(evidence: Evidence) -> tuple[Runs, Runs]:
        start = evidence.steps // LEARNING_PARTS
        if start == 0:
            raise NotPlayed(f"run of {LEARNING_PARTS} steps")
        first, whole_run = cell.sums(evidence, step=start), cell.sums(evidence)
        return (whole_run - first) / (evidence.steps - start), first / start

    return Part(f"{cell}: regret per step, later / at first", CAN_LEARN, sides)


def every(experiment: str, *parts: Part, note: str = "") -> Rule:
    """A rule that all the parts, which share a word, must meet."""
    word = parts[0].word
    throughout, each = (", in every comparison", " of each") if len(parts) > 1 else ("", "")
    interval = f"{'Fieller’s' if word.is_ratio else 'Student’s'} {_confidence(CHANCE)} interval"
    text = f"{word.meaning}{throughout}. Decided by {interval} and the sign test{each}. {note}".rstrip()
    return Rule(experiment, text, lambda evidence: _decide(experiment, parts, evidence))


@dataclass(frozen=True)
class _Reading:
    """What the runs say about one part: outside its limits, in doubt for a reason, or else inside."""

    name: str
    text: str = ""
    figures: dict[str, Any] | None = None
    outside: bool = False
    doubt: str = ""


def _decide(experiment: str, parts: Sequence[Part], evidence: Evidence) -> Finding:
    """One part outside its limits refutes the claim, whatever the others say; all inside prove it."""
    readings = [_read(experiment, part, evidence, CHANCE / len(parts)) for part in parts]
    outside = [reading.name for reading in readings if reading.outside]
    doubts = list(dict.fromkeys(reading.doubt for reading in readings if reading.doubt))
    limits = parts[0].word.limits
    verdict, reason = HOLDS, f"{limits} in every comparison" if len(parts) > 1 else limits
    if outside:
        verdict, reason = FAILS, f"not {limits}" + (f": {'; '.join(outside)}" if len(parts) > 1 else "")
    elif doubts:
        verdict, reason = UNTESTABLE, "; ".join(doubts)
    return Finding(
        verdict=verdict,
        measured=tuple(reading.text for reading in readings if reading.text),
        figures={"parts": [reading.figures for reading in readings if reading.figures]},
        reason=reason,
    )


def _read(experiment: str, part: Part, evidence: Evidence, chance_outside: float) -> _Reading:
    try:
        first, second = part.sides(evidence)
    except NotPlayed as missing:
        return _Reading(part.name, doubt=f"{experiment} was not played: there is no {missing}")
    means, runs = (float(np.mean(first)), float(np.mean(second))), len(first)
    sign = "/" if part.word.is_ratio else "−"
    text = f"{part.name}: {rounded(means[0])[0]} {sign} {rounded(means[1])[0]}"
    reading = _Reading(part.name, text, _figures(part, means, runs))
    if runs < 2:
        return replace(reading, doubt=_too_few(runs, CHANCE))

    interval = part.interval(first, second, CHANCE)
    if interval is None:
        return replace(reading, doubt=_no_ratio(part, means, runs))
    reading = _with_interval(reading, part, interval, first, second)
    if runs < fewest_runs(CHANCE / 2):
        return replace(reading, doubt=_too_few(runs, CHANCE))
    if part.is_inside(interval):
        agreeing = part.runs_inside(first, second)
        disagrees = sign_chance(agreeing, runs) > CHANCE / 2
        return replace(reading, doubt=_uneven(part, part.word.limits, agreeing, runs) if disagrees else "")

    wider = part.interval(first, second, chance_outside)
    if wider is None:
        return replace(reading, doubt=_no_ratio(part, means, runs))
    if not part.is_outside(interval):
        return replace(reading, doubt=_undecided(part, interval, CHANCE, runs))
    if not part.is_outside(wider):
        return replace(reading, doubt=_undecided(part, wider, chance_outside, runs))
    if runs < fewest_runs(chance_outside / 2):
        return replace(reading, doubt=_too_few(runs, chance_outside))
    agreeing = part.runs_outside(first, second, wider)
    if sign_chance(agreeing, runs) > chance_outside / 2:
        return replace(reading, doubt=_uneven(part, f"not {part.word.limits}", agreeing, runs))
    return replace(reading, outside=True)


def _with_interval(reading: _Reading, part: Part, interval: Interval, first: Runs, second: Runs) -> _Reading:
    """The reading with the estimate, its interval, and the largest of very uneven runs."""
    text = f"{reading.text} = {_cut(interval.estimate, interval)} ({_ends(interval)})"
    figures = {
        **(reading.figures or {}),
        "estimate": interval.estimate,
        "low": interval.low,
        "high": interval.high,
        "runs_inside": part.runs_inside(first, second),
    }
    if part.word is ORDERS_OF_MAGNITUDE and interval.estimate > 0:
        figures["orders_of_magnitude"] = math.log10(interval.estimate)
        text += f", {figures['orders_of_magnitude']:.1f} orders of magnitude"
    for side in (first, second):
        mean, median, largest = (float(value) for value in (np.mean(side), np.median(side), np.max(side)))
        if largest > UNEVEN * median > 0:
            figures.setdefault("uneven", []).append({"mean": mean, "median": median, "largest": largest})
            text += f"; {rounded(mean)[0]} is a mean of uneven runs: median {rounded(median)[0]}, "
            text += f"largest {rounded(largest)[0]}"
    return replace(reading, text=text, figures=figures)


def _too_few(runs: int, chance: float) -> str:
    return (
        f"{'a single run decides' if runs == 1 else f'{runs} runs decide'} nothing: "
        f"play at least {fewest_runs(chance / 2)}"
    )


def _uneven(part: Part, limits: str, agreeing: int, runs: int) -> str:
    return (
        f"undecided with {runs} runs: {part.name} is {limits} by its interval, but only in {agreeing} of the "
        "runs, too few for the sign test; the runs are too uneven"
    )


def _undecided(part: Part, interval: Interval, chance: float, runs: int) -> str:
    limits = (part.word.low, part.word.high)
    crossed = " and ".join(f"{limit:.3g}" for limit in limits if interval.low <= limit <= interval.high)
    return (
        f"undecided with {runs} runs: the {_confidence(chance)} interval {_ends(interval)} of {part.name} "
        f"crosses the limit {crossed}; more runs would tell"
    )


def _figures(part: Part, means: tuple[float, float], runs: int) -> dict[str, Any]:
    return {
        "name": part.name,
        "kind": "ratio" if part.word.is_ratio else "difference",
        "means": list(means),
        "runs": runs,
        "confidence": 1 - CHANCE,
        # JSON has no infinity: a side without a limit is null.
        "limits": [limit if math.isfinite(limit) else None for limit in (part.word.low, part.word.high)],
    }


def _no_ratio(part: Part, means: tuple[float, float], runs: int) -> str:
    return (
        f"no ratio can be formed with {runs} runs: {part.name} divides by {rounded(means[1])[0]}, "
        "which is not above zero by more than chance"
    )


def _ends(interval: Interval) -> str:
    return f"{_cut(interval.low, interval)} to {_cut(interval.high, interval)}"


def _cut(value: float, interval: Interval) -> str:
    return rounded(value, (interval.high - interval.low) / 2)[0]


def _confidence(chance: float) -> str:
    return f"{100 * (1 - chance):.3g}%"
