"""What the claims of the paper look at: the comparisons of one data set."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from firstclick.errors import InvalidInput
from firstclick.experiments import Comparison
from firstclick.experiments.file import ALL
from firstclick.studies.paper.experiments import Mode


@dataclass(frozen=True, eq=False)
class Measured:
    """The evidence of one data set: `claims.Evidence` as the comparisons give it."""

    comparisons: Sequence[Comparison]
    mode: Mode

    @property
    def synthetic(self) -> bool:
        return self.comparisons[0].dataset.source.synthetic

    @property
    def steps(self) -> int:
        return self.comparisons[0].setting.steps

    @property
    def facts(self) -> Mapping[str, int]:
        dataset = self.comparisons[0].dataset
        users, items = dataset.matrix.shape
        return {**dataset.interactions.facts, "kept users": users, "kept items": items}

    @property
    def group_sizes(self) -> Mapping[str, int]:
        groups = self.comparisons[0].dataset.interactions.groups()
        return {group: len(items) for group, items in groups.items()}

    @property
    def group(self) -> str:
        return next((one.setting.group for one in self.comparisons if one.setting.group), "")

    def runs(
        self, policy: str, *, items: int | str = 256, rank: int = 20, k: int = 4, group: bool = False,
        measure: str = "expected_regret", step: int | None = None,
    ) -> NDArray[np.float64] | None:  # fmt: skip
        label = self.mode.replaced.get(policy, policy)
        for comparison in self._at(items, rank, k, group):
            for result in comparison.results.results:
                if result.policy == label:
                    at = -1 if step is None else _place_of(step, comparison.results.step)
                    return np.asarray(getattr(result, measure)[:, at])
        return None

    def optimal(
        self, *, items: int | str = 256, rank: int = 20, k: int = 4, group: bool = False
    ) -> NDArray[np.float64] | None:
        for comparison in self._at(items, rank, k, group):
            return comparison.optimal_rewards
        return None

    def _at(self, items: int | str, rank: int, k: int, group: bool) -> list[Comparison]:
        return [
            one
            for one in self.comparisons
            if (one.setting.rank, one.setting.k, bool(one.setting.group)) == (rank, k, group)
            and one.setting.n_items == (one.dataset.matrix.shape[1] if items == ALL else items)
        ]


def _place_of(step: int, recorded: NDArray[np.int64]) -> int:
    place = int(np.searchsorted(recorded, step))
    if place == len(recorded) or recorded[place] != step:
        near = ", ".join(str(one) for one in recorded[max(place - 1, 0) : place + 1])
        raise InvalidInput(f"step {step} must be one of those recorded; nearest: {near}")
    return place
