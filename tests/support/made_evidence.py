"""Evidence made by hand, for the tests of claims and verdicts."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from firstclick.studies.paper.claims import GROUPS, SIGMAS, WIDTHS
from firstclick.studies.paper.evidence import Case, Evidence

UCB1, LIN_TS, LIN_UCB, RANKED = "cascade-ucb1", "cascade-lin-ts", "cascade-lin-ucb", "ranked-lin-ts"

# Eleven runs whose mean is 0 and whose standard deviation is 1; the same users are hard for every policy.
SPREAD = np.array([0.5, -1.5, 0.25, 1.25, -0.75, -0.5, 0.75, -1.0, 1.5, -0.25, 0.125])
SPREAD = (SPREAD - SPREAD.mean()) / SPREAD.std(ddof=1)
OTHER = np.roll(SPREAD, 3)


@dataclass(frozen=True)
class Made:
    """A mean regret per case, with noise that cases share and noise of their own."""

    regrets: Mapping[Case, float]
    best: Mapping[int, float] = field(default_factory=lambda: {4: 0.8, 8: 0.9, 12: 0.95})
    noise: float = 0.01
    n_runs: int = 11
    at_first: float = 0.3  # share of the regret within the first tenth of the steps
    synthetic: bool = False
    steps: int = 100_000
    facts: Mapping[str, int] = field(default_factory=dict)
    group_sizes: Mapping[str, int] = field(default_factory=dict)
    group: str = ""
    stuck: Mapping[Case, float] = field(default_factory=dict)  # how much more its first run loses

    def evidence(self):
        made = Evidence(self.synthetic, self.steps, self.facts, self.group_sizes, self.group)
        for case, mean in self.regrets.items():
            own = np.roll(OTHER, len(str(case)))
            regret = mean * (1 + self.noise * (SPREAD + own))
            regret[0] += self.stuck.get(case, 0.0)
            made.regret[case] = regret[: self.n_runs]
            made.early_regret[case] = self.at_first * made.regret[case]
            made.best[case] = np.full(self.n_runs, self.best[case.k] * self.steps)
            made.reward[case] = made.best[case] - made.regret[case]
        return made


def as_the_paper_says(dataset):
    """Evidence on which every testable sentence about a data set holds."""
    regrets = {}
    ranked = {"yelp": (1.4, 2.0, 2.75), "million-song": (0.9, 1.2, 1.0), "movielens": (1.3, 1.5, 1.1)}
    for size, ucb1, times in zip((16, 256, "all"), (1.9, 15.0, 150.0), ranked[dataset], strict=True):
        regrets |= {Case(UCB1, size): 700 * ucb1, Case(LIN_TS, size): 700.0, Case(RANKED, size): 700 * times}
    by_rank = {"yelp": (0.5, 1.9), "million-song": (0.8, 1.3), "movielens": (1.3, 1.2)}[dataset]
    for rank, times in zip((10, 20, 40), (by_rank[0], 1.0, by_rank[1]), strict=True):
        regrets |= {Case(rank=rank): 700 * times, Case(rank=rank, group=True): 500 * times}
    regrets |= {Case(k=8): 900.0, Case(k=12): 1_000.0}
    regrets |= {Case(f"{policy}:sigma={sigma:g}"): 800 for policy in (LIN_TS, LIN_UCB) for sigma in SIGMAS}
    regrets |= {Case(f"{LIN_UCB}:c={c:g}"): 800 for c in WIDTHS} | {Case(LIN_UCB): 800}
    facts = {
        "yelp": {
            "businesses": 77_900, "restaurants": 11_200, "reviews": 2_200_500, "users": 552_000,
            "kept items": 3_000, "kept users": 20_000,
        },
        "million-song": {"tracks": 1_000_000, "kept items": 10_000, "kept users": 400_000},
        "movielens": {"ratings": 1_000_209, "movies": 3_706, "users": 6_040},
    }  # fmt: skip
    sizes = {"American": 500, "Mexican": 400, "Adventure": 283}
    return Made(regrets, facts=facts[dataset], group_sizes=sizes, group=GROUPS[dataset][0])


DATASETS = ("yelp", "million-song", "movielens")
PAPER = {dataset: as_the_paper_says(dataset) for dataset in DATASETS}
