"""What was measured on one data set, as plain numbers: all that the claims of the paper look at."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from firstclick.experiments import Comparison
from firstclick.experiments.file import ALL
from firstclick.studies.paper.experiments import Mode
from firstclick.studies.paper.statistics import Runs

# The first of so many equal parts of a run is where a policy starts to learn.
LEARNING_PARTS = 10


@dataclass(frozen=True)
class Case:
    """One policy in one setting. What is not given is the setting that all experiments share."""

    policy: str = "cascade-lin-ts"
    items: int | str = 256
    rank: int | None = 20
    k: int = 4
    group: bool = False

    def __str__(self) -> str:
        words = [self.policy]
        words += [f"{self.items} items"] if self.items != Case.items else []
        words += [f"{self.rank} features"] if self.rank != Case.rank else []
        words += [f"{self.k} shown"] if self.k != Case.k else []
        words += ["in the group"] if self.group else []
        return ", ".join(words)


@dataclass(frozen=True, eq=False)
class Evidence:
    """The counts of a data set and the sums of its runs. Run i of every case meets the same users."""

    synthetic: bool
    steps: int  # of each run
    facts: Mapping[str, int]  # what the source counted; 'kept users' and 'kept items' are of the matrix
    group_sizes: Mapping[str, int]  # kept items in each group
    group: str  # the group of experiment 3, '' if it was not played
    # One sum per run. A case that was not played is missing.
    regret: dict[Case, Runs] = field(default_factory=dict)  # expected
    early_regret: dict[Case, Runs] = field(default_factory=dict)  # in the first tenth of the steps
    reward: dict[Case, Runs] = field(default_factory=dict)  # clicks
    best: dict[Case, Runs] = field(default_factory=dict)  # clicks that the greedy best slate would get


def evidence_of(comparisons: Sequence[Comparison], mode: Mode) -> Evidence:
    """The evidence in the comparisons of one data set. Policies go by their names in the paper's mode."""
    dataset, steps = comparisons[0].dataset, comparisons[0].setting.steps
    users, items = dataset.matrix.shape
    evidence = Evidence(
        synthetic=dataset.source.synthetic,
        steps=steps,
        facts={**dataset.interactions.facts, "kept users": users, "kept items": items},
        group_sizes={group: len(members) for group, members in dataset.interactions.groups().items()},
        group=next((one.setting.group for one in comparisons if one.setting.group), ""),
    )
    names = {played: name for name, played in mode.replaced.items()}
    for comparison in comparisons:
        setting, recorded = comparison.setting, comparison.results.step
        for result in comparison.results.results:
            policy = names.get(result.policy, result.policy)
            sizes: list[int | str] = [setting.n_items, *([ALL] if setting.n_items == items else [])]
            for size in sizes:
                case = Case(policy, size, setting.rank, setting.k, bool(setting.group))
                if case in evidence.regret:
                    continue
                evidence.regret[case] = result.expected_regret[:, -1]
                evidence.reward[case] = result.reward[:, -1]
                evidence.best[case] = comparison.optimal_rewards * steps
                if steps >= LEARNING_PARTS:
                    (early,) = np.flatnonzero(recorded == steps // LEARNING_PARTS)
                    evidence.early_regret[case] = result.expected_regret[:, early]
    return evidence
