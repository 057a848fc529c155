"""How a claim is decided: by a count, or by comparisons of paired runs. `judge.METHOD` explains the tests.

"Holds" is an intersection-union test; "does not hold" has Bonferroni's correction.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from firstclick.rounding import rounded, whole
from firstclick.studies.paper.evidence import Case, Evidence
from firstclick.studies.paper.statistics import (
    CHANCE,
    Interval,
    Runs,
    fewest_runs,
    mean_interval,
    ratio_interval,
    sign_chance,
)

HOLDS, FAILS, UNTESTABLE = "holds", "does not hold", "not testable with this data"

# The mean of runs says little if the largest is so many times the median: both are shown beside it.
UNEVEN = 3


@dataclass(frozen=True)
class Finding:
    """A verdict, the measured figures for people and for programs, and the reason of the verdict."""

    verdict: str
    measured: tuple[str, ...]
    figures: dict[str, Any]
    reason: str


class Criterion(NamedTuple):
    """The experiment that decides ('data' for counts), the rule in words, and the rule as a function."""

    experiment: str
    rule: str
    find: Callable[[Evidence], Finding]


@dataclass(frozen=True)
class Word:
    """A word of the paper is true if a ratio or a difference is strictly between two limits."""

    phrase: str
    of: str
    low: float
    high: float
    reason: str
    is_ratio: bool = True
    in_orders: bool = False  # whether the ratio is told in orders of magnitude too

    @property
    def limits(self) -> str:
        """'between 1.5 and 2.5', 'above 100' or 'below 1'."""
        if math.isinf(self.high):
            return f"above {self.low:g}"
        if math.isinf(self.low):
            return f"below {self.high:g}"
        return f"between {self.low:.3g} and {self.high:.3g}"

    @property
    def meaning(self) -> str:
        """The phrase and its limits, in a sentence without a full stop."""
        return f"“{self.phrase}” is taken as: {self.of} is {self.limits}"


def counted(fact: str, printed: str, low: int, high: int | None = None) -> Criterion:
    """The source counted what rounds to the printed number, low to below high; without high, exactly low."""
    end = low + 1 if high is None else high
    meaning, yes, no = f"what rounds to it, {whole(low)} to {whole(end)}", "rounds to", "does not round to"
    if high is None:
        meaning, yes, no = f"{whole(low)}, as this is chosen", "is", "is not"

    def find(evidence: Evidence) -> Finding:
        if fact not in evidence.facts:
            return Finding(UNTESTABLE, (), {}, f"the source did not count {fact}")
        count = evidence.facts[fact]
        agrees = low <= count < end
        return Finding(
            HOLDS if agrees else FAILS,
            (f"{fact}: {whole(count)}",),
            {"fact": fact, "count": int(count), "limits": [low, end], "printed": printed},
            f"{whole(count)} {yes if agrees else no} {printed}",
        )

    return Criterion("data", f"“{printed}” is taken as: {meaning}. A count needs no test.", find)


def largest_group(group: str, parts: Sequence[str]) -> Criterion:
    """No other group has as many items. The group's own parts do not count as others."""

    def find(evidence: Evidence) -> Finding:
        sizes = evidence.group_sizes
        others = [(size, name) for name, size in sizes.items() if name != group and name not in parts]
        if group not in sizes or not others:
            return Finding(UNTESTABLE, (), {}, f"the source has no group {group} beside others")
        next_size, next_name = max(others)
        largest = sizes[group] > next_size
        return Finding(
            HOLDS if largest else FAILS,
            (f"{group}: {whole(sizes[group])} items", f"{next_name}: {whole(next_size)} items"),
            {"items": {group: int(sizes[group]), next_name: int(next_size)}},
            f"{group if largest else next_name} is the largest group of the kept items",
        )

    rule = f"“largest” is taken as: {group} ({' or '.join(parts)}) has more of the kept items than any other "
    return Criterion("data", rule + "group. A count needs no test.", find)


def untestable(experiment: str, reason: str) -> Criterion:
    """Nothing that is played or counted decides, for this reason."""
    rule, finding = "No rule: nothing here speaks for it or against it.", Finding(UNTESTABLE, (), {}, reason)
    return Criterion(experiment, rule, lambda evidence: finding)


def compared(
    experiment: str,
    word: Word,
    pairs: Mapping[str, Sequence[Case]],
    sides: Callable[..., tuple[Runs, Runs]],
    note: str = "",
) -> Criterion:
    """The word is true of every pair, given by its name and its cases.

    `sides(evidence, *cases)` are the two sums of each run that are divided or subtracted, or a KeyError.
    """
    several = len(pairs) > 1
    throughout, each = (", in every comparison", " of each") if several else ("", "")
    interval = f"{'Fieller’s' if word.is_ratio else 'Student’s'} {_confidence(CHANCE)} interval"
    rule = f"{word.meaning}{throughout}. Decided by {interval} and the sign test{each}. {note}".rstrip()

    def find(evidence: Evidence) -> Finding:
        played, outside, doubts = [], [], []
        for name, cases in pairs.items():
            try:
                pair = Pair(word, name, *sides(evidence, *cases))
            except KeyError as missing:
                doubts.append(f"{experiment} was not played: there is no {missing.args[0]}")
                continue
            played.append(pair.described())
            if doubt := pair.doubt(CHANCE / len(pairs)):
                doubts.append(doubt)
            elif not pair.is_inside():
                outside.append(name)
        verdict, reason = HOLDS, f"{word.limits} in every comparison" if several else word.limits
        if outside:
            verdict, reason = FAILS, f"not {word.limits}" + (f": {'; '.join(outside)}" if several else "")
        elif doubts:
            verdict, reason = UNTESTABLE, "; ".join(dict.fromkeys(doubts))
        texts = tuple(text for text, _ in played)
        return Finding(verdict, texts, {"parts": [figures for _, figures in played]}, reason)

    return Criterion(experiment, rule, find)


@dataclass(frozen=True, eq=False)
class Pair:
    """Two sums of the same runs. Their ratio or their difference must be as the word says."""

    word: Word
    name: str
    first: Runs
    second: Runs

    def interval(self, chance: float = CHANCE) -> Interval | None:
        """What the runs say about the ratio or the difference; None for one run, or if no ratio exists."""
        if len(self.first) < 2:
            return None
        if self.word.is_ratio:
            return ratio_interval(self.first, self.second, chance)
        return mean_interval(self.first - self.second, chance)

    def is_inside(self) -> bool:
        """Whether the interval is between the limits of the word."""
        interval = self.interval()
        return interval is not None and self.word.low < interval.low and interval.high < self.word.high

    def runs_beyond(self) -> tuple[int, int]:
        """How many runs are not above the lower limit, and how many not below the upper one."""
        # Like Fieller's interval, and without a division: a denominator may be zero in a run.
        low, high, ones = self.word.low, self.word.high, np.ones(len(self.first))
        value, unit = (self.first, self.second) if self.word.is_ratio else (self.first - self.second, ones)
        return (
            int(np.count_nonzero(value <= low * unit)) if math.isfinite(low) else 0,
            int(np.count_nonzero(value >= high * unit)) if math.isfinite(high) else 0,
        )

    def doubt(self, chance_outside: float) -> str:
        """Why the runs do not prove that the pair is inside its limits or outside; '' if they do."""
        name, runs, low, high = self.name, len(self.first), self.word.low, self.word.high
        interval, inside = self.interval(), self.is_inside()
        wider = interval if inside else self.interval(chance_outside)
        if runs < 2 or (interval is not None and runs < fewest_runs(CHANCE / 2)):
            return _too_few(runs, CHANCE)
        if interval is None or wider is None:
            return (
                f"no ratio can be formed with {runs} runs: {name} divides by {_mean(self.second)}, which is "
                "not above zero by more than chance"
            )
        below, above = self.runs_beyond()
        chance, limits, agreeing = CHANCE, self.word.limits, runs - max(below, above)
        if not inside:
            for ends, level in ((interval, CHANCE), (wider, chance_outside)):
                if not (ends.high <= low or high <= ends.low):
                    crossed = [f"{one:.3g}" for one in (low, high) if ends.low <= one <= ends.high]
                    return (
                        f"undecided with {runs} runs: the {_confidence(level)} interval {_ends(ends)} of "
                        f"{name} crosses the limit {' and '.join(crossed)}; more runs would tell"
                    )
            if runs < fewest_runs(chance_outside / 2):
                return _too_few(runs, chance_outside)
            chance, limits = chance_outside, f"not {self.word.limits}"
            agreeing = below if interval.high <= low else above
        if sign_chance(agreeing, runs) <= chance / 2:
            return ""
        return (
            f"undecided with {runs} runs: {name} is {limits} by its interval, but only in {agreeing} of the "
            "runs, too few for the sign test; the runs are too uneven"
        )

    def described(self) -> tuple[str, dict[str, Any]]:
        """The pair in words and in numbers: means, interval, and the largest of very uneven runs."""
        word = self.word
        text = f"{self.name}: {_mean(self.first)} {'/' if word.is_ratio else '−'} {_mean(self.second)}"
        figures: dict[str, Any] = {
            "name": self.name,
            "kind": "ratio" if word.is_ratio else "difference",
            "means": [float(np.mean(self.first)), float(np.mean(self.second))],
            "runs": len(self.first),
            "confidence": 1 - CHANCE,
            # JSON has no infinity: a side without a limit is null.
            "limits": [limit if math.isfinite(limit) else None for limit in (word.low, word.high)],
        }
        interval = self.interval()
        if interval is None:
            return text, figures
        text += f" = {_cut(interval.estimate, interval)} ({_ends(interval)})"
        figures |= {"estimate": interval.estimate, "low": interval.low, "high": interval.high}
        figures["runs_inside"] = len(self.first) - max(self.runs_beyond())
        if word.in_orders and interval.estimate > 0:
            figures["orders_of_magnitude"] = math.log10(interval.estimate)
            text += f", {figures['orders_of_magnitude']:.1f} orders of magnitude"
        for side in (self.first, self.second):
            mean, median, largest = float(np.mean(side)), float(np.median(side)), float(np.max(side))
            if largest > UNEVEN * median > 0:
                figures.setdefault("uneven", []).append({"mean": mean, "median": median, "largest": largest})
                text += f"; {_mean(side)} is a mean of uneven runs: median {rounded(median)[0]}, "
                text += f"largest {rounded(largest)[0]}"
        return text, figures


def _too_few(runs: int, chance: float) -> str:
    deciding = "a single run decides" if runs == 1 else f"{runs} runs decide"
    return f"{deciding} nothing: play at least {fewest_runs(chance / 2)}"


def _mean(side: Runs) -> str:
    return rounded(float(np.mean(side)))[0]


def _ends(interval: Interval) -> str:
    return f"{_cut(interval.low, interval)} to {_cut(interval.high, interval)}"


def _cut(value: float, interval: Interval) -> str:
    return rounded(value, (interval.high - interval.low) / 2)[0]


def _confidence(chance: float) -> str:
    return f"{100 * (1 - chance):.3g}%"
