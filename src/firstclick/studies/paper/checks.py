"""What a sentence of the paper is checked against, what a check finds, and the checks that only count."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from firstclick.report.claims import FAILS, HOLDS, UNTESTABLE, Verdict
from firstclick.report.rounding import whole
from firstclick.studies.paper.statistics import Runs
from firstclick.studies.paper.thresholds import number_of, rounds_to

# What a claim names as its experiment if the source's own counts decide.
DATA = "data"

UCB1 = "cascade-ucb1"
LIN_TS = "cascade-lin-ts"
LIN_UCB = "cascade-lin-ucb"
RANKED = "ranked-lin-ts"


class Evidence(Protocol):
    """What was measured on one data set."""

    @property
    def synthetic(self) -> bool:
        """Whether the data is made up."""

    @property
    def steps(self) -> int:
        """How many steps each run has."""

    @property
    def facts(self) -> Mapping[str, int]:
        """What the source counted, by name; 'kept users' and 'kept items' are those of the matrix."""

    @property
    def group_sizes(self) -> Mapping[str, int]:
        """The number of kept items in each group."""

    @property
    def group(self) -> str:
        """The group of items that experiment 3 was played on; '' if it was not."""

    def runs(
        self,
        policy: str,
        *,
        items: int | str = 256,
        rank: int = 20,
        k: int = 4,
        group: bool = False,
        measure: str = "expected_regret",
        step: int | None = None,
    ) -> NDArray[np.float64] | None:
        """One sum per run over the first `step` steps, or over all; None if this was not played.

        `items` is a number or "all". Run i of every policy and setting meets the same users. A step
        that was not recorded is InvalidInput.
        """

    def optimal(
        self, *, items: int | str = 256, rank: int = 20, k: int = 4, group: bool = False
    ) -> NDArray[np.float64] | None:
        """The click probability of the greedy best slate, one per run; None if this was not played."""


@dataclass(frozen=True)
class Finding:
    """A verdict, the measured figures for people and for programs, and why the verdict is what it is."""

    verdict: Verdict
    measured: tuple[str, ...]
    figures: dict[str, Any]
    reason: str


@dataclass(frozen=True)
class Rule:
    """Which experiment decides, the rule in words, and the same rule as a function of the evidence."""

    experiment: str
    text: str
    check: Callable[[Evidence], Finding]


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper in our words, where it stands, and how it is tested."""

    id: str
    sentence: str
    decided_by: Rule
    section: str
    dataset: str

    @property
    def experiment(self) -> str:
        """What must be played for it: 'experiment 1', 'sweep of sigma' or, for counts, 'data'."""
        return self.decided_by.experiment

    @property
    def rule(self) -> str:
        """What its words were taken to mean, and what decides."""
        return self.decided_by.text

    @property
    def check(self) -> Callable[[Evidence], Finding]:
        """The finding that evidence on its data set leads to."""
        return self.decided_by.check


class NotPlayed(Exception):
    """The evidence has no runs of this kind."""


@dataclass(frozen=True)
class Cell:
    """One learner in one setting; what is not said is the setting that all experiments share."""

    policy: str = LIN_TS
    items: int | str = 256
    rank: int = 20
    k: int = 4
    group: bool = False

    def __str__(self) -> str:
        said = [self.policy]
        said += [f"{self.items} items"] if self.items != Cell.items else []
        said += [f"{self.rank} features"] if self.rank != Cell.rank else []
        said += [f"{self.k} shown"] if self.k != Cell.k else []
        said += ["in the group"] if self.group else []
        return ", ".join(said)

    def _setting(self) -> dict[str, Any]:
        return {"items": self.items, "rank": self.rank, "k": self.k, "group": self.group}

    def sums(self, evidence: Evidence, measure: str = "expected_regret", step: int | None = None) -> Runs:
        """One sum per run, or NotPlayed."""
        runs = evidence.runs(self.policy, **self._setting(), measure=measure, step=step)
        if runs is None:
            raise NotPlayed(str(self))
        return runs

    def best(self, evidence: Evidence) -> Runs:
        """The clicks that the best slate would get in all steps, one per run, or NotPlayed."""
        optimal = evidence.optimal(**self._setting())
        if optimal is None:
            raise NotPlayed(str(self))
        return optimal * evidence.steps


def counted(fact: str, printed: str, *, exactly: bool = False) -> Rule:
    """A rule that the source counted what rounds to the printed number, or exactly that number."""
    number = number_of(printed)
    low, high = (number, number + 1) if exactly else rounds_to(printed)

    def check(evidence: Evidence) -> Finding:
        if fact not in evidence.facts:
            return Finding(UNTESTABLE, (), {}, f"the source did not count {fact}")
        count = evidence.facts[fact]
        agrees = low <= count < high
        return Finding(
            verdict=HOLDS if agrees else FAILS,
            measured=(f"{fact}: {whole(count)}",),
            figures={"fact": fact, "count": int(count), "limits": [low, high], "printed": printed},
            reason=f"{whole(count)} {said[agrees]} {printed}",
        )

    said = {True: "is", False: "is not"} if exactly else {True: "rounds to", False: "does not round to"}
    taken = (
        f"{whole(number)}, as this is chosen"
        if exactly
        else f"what rounds to it, {whole(low)} to {whole(high)}"
    )
    return Rule(DATA, f"“{printed}” is taken as: {taken}. A count needs no test.", check)


def largest_group(group: str, parts: Sequence[str]) -> Rule:
    """A rule that no other group has as many items; the group's own parts do not count as others."""

    def check(evidence: Evidence) -> Finding:
        sizes = evidence.group_sizes
        others = {name: size for name, size in sizes.items() if name != group and name not in parts}
        if group not in sizes or not others:
            return Finding(UNTESTABLE, (), {}, f"the source has no group {group} beside others")
        next_size, next_name = max((size, name) for name, size in others.items())
        largest = sizes[group] > next_size
        return Finding(
            verdict=HOLDS if largest else FAILS,
            measured=(f"{group}: {whole(sizes[group])} items", f"{next_name}: {whole(next_size)} items"),
            figures={"items": {group: int(sizes[group]), next_name: int(next_size)}},
            reason=f"{group if largest else next_name} is the largest group of the kept items",
        )

    made_of = f" ({' or '.join(parts)})" if parts else ""
    text = f"“largest” is taken as: {group}{made_of} has more of the kept items than any other group. "
    text += "A count needs no test."
    return Rule(DATA, text, check)


def untestable(experiment: str, reason: str) -> Rule:
    """No rule: the reason says what would be needed."""
    finding = Finding(UNTESTABLE, (), {}, reason)
    return Rule(experiment, "No rule: nothing here speaks for it or against it.", lambda evidence: finding)
