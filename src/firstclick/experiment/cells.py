"""The cells of an experiment: one run of one learner in one setting, the unit that is kept."""

import hashlib
import json
import re
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from firstclick.errors import InvalidInput
from firstclick.experiment.dataset import Dataset
from firstclick.experiment.declaration import ALL, Experiment, Training
from firstclick.protocol import Policy
from firstclick.simulate.loop import log_spaced
from firstclick.simulate.results import installed_versions

FORMAT = "firstclick cell 1"


@dataclass(frozen=True)
class Setting:
    """Where learners meet: all that is the same for the policies of one comparison."""

    dataset: str
    group: str
    n_items: int
    rank: int
    k: int
    steps: int
    seed: int
    training: Training


@dataclass(frozen=True)
class Cell:
    """One run of one policy in one setting."""

    setting: Setting
    policy: Policy
    run: int

    def describe(self, data_digest: str) -> dict[str, Any]:
        """All that the result's bits depend on: what a kept result must agree with to be used."""
        return {
            "format": FORMAT,
            "data": data_digest,
            **asdict(self.setting),
            "policy": self.policy.label,
            "run": self.run,
            "versions": installed_versions(),
        }

    def file_name(self, data_digest: str) -> str:
        """A name that people can read and that no two cells share."""
        description = json.dumps(self.describe(data_digest), sort_keys=True)
        place = self.setting
        words = (
            f"{place.dataset} {place.group} {place.n_items} items rank {place.rank} k {place.k} "
            f"{self.policy.label} run {self.run}"
        )
        readable = re.sub(r"[^a-z0-9.]+", "-", words.lower())
        return f"{readable}-{hashlib.sha256(description.encode()).hexdigest()[:12]}.json"


def recorded_steps(steps: int) -> NDArray[np.int64]:
    """Where curves are recorded: evenly on a log scale, evenly on a linear one, and at each power of ten."""
    powers = 10 ** np.arange(len(str(steps)))
    even = np.rint(np.linspace(0, steps, 51)[1:]).astype(np.int64)
    every = np.union1d(np.union1d(log_spaced(steps, 60), even), powers)
    return every[(every >= 1) & (every <= steps)]


def settings_of(experiment: Experiment, dataset: Dataset) -> list[Setting]:
    """The settings of an experiment on one data set, if the data is large enough for all of them."""
    group = experiment.group.get(dataset.name.removeprefix("synthetic-"), "")
    available = len(dataset.items_of(group))
    where = f"{dataset.title}, group {group!r}" if group else dataset.title
    found = []
    for rank in experiment.rank:
        for items in experiment.items:
            for k in experiment.k:
                n_items = available if items == ALL else int(items)
                _check(experiment, dataset, where, available, n_items, rank, k)
                setting = Setting(
                    dataset.source.label, group, n_items, rank, k, experiment.steps, experiment.seed,
                    experiment.training,
                )  # fmt: skip
                if setting not in found:
                    found.append(setting)
    return found


def _check(
    experiment: Experiment, dataset: Dataset, where: str, available: int, n_items: int, rank: int, k: int
) -> None:
    def refuse(what: str) -> None:
        raise InvalidInput(f"experiment {experiment.name}: {what}")

    if n_items > available:
        refuse(f"items is {n_items}, but {where} has {available}")
    if k > n_items:
        refuse(f"k is {k}, but only {n_items} items compete in {where}")
    if not any(policy.needs_features for policy in (*experiment.policies, *experiment.extras)):
        return
    half = dataset.matrix.shape[0] // 2
    columns = n_items if experiment.training.cut_first else available
    if rank > min(half, columns):
        refuse(
            f"rank is {rank}, but half of the users of {where} are {half}, and its items {columns}: "
            "an SVD has no higher rank than the smaller of them"
        )


def plan(experiments: Iterable[Experiment], datasets: Sequence[Dataset], *, extras: bool) -> list[Cell]:
    """Every cell of the experiments, each once, in an order in which neighbours share splits and features."""
    cells: dict[Cell, None] = {}
    experiments = list(experiments)
    for dataset in datasets:
        mine = [one for one in experiments if dataset.source in one.data]
        for experiment in mine:
            for setting in settings_of(experiment, dataset):
                for policy in policies_of(experiment, extras=extras):
                    for run in range(experiment.runs):
                        cells[Cell(setting, policy, run)] = None
    order = {dataset.source.label: number for number, dataset in enumerate(datasets)}

    def place(cell: Cell) -> tuple[Any, ...]:
        setting = cell.setting
        return order[setting.dataset], cell.run, setting.group, setting.rank, setting.n_items, setting.k

    return sorted(cells, key=place)


def policies_of(experiment: Experiment, *, extras: bool) -> tuple[Policy, ...]:
    """The policies that are played."""
    return (*experiment.policies, *(experiment.extras if extras else ()))


def resized(experiment: Experiment, **changes: Any) -> Experiment:
    """The experiment with other steps, runs or seed, where they are given."""
    return replace(experiment, **{name: value for name, value in changes.items() if value is not None})
