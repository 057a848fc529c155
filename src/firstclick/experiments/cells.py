"""The cells of an experiment: one run of one policy in one setting, the unit that is kept."""

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from firstclick.errors import InvalidInput
from firstclick.experiments.dataset import Dataset
from firstclick.experiments.file import ALL, Experiment, Training
from firstclick.experiments.loop import log_spaced
from firstclick.policies.base import Policy
from firstclick.source_code import code_hash, installed_versions

FORMAT = "firstclick cell 1"

# File systems take names of 255 bytes; the hash tells cells apart.
LONGEST_NAME = 160


@dataclass(frozen=True)
class Setting:
    """What all policies of one comparison share.

    Attributes:
        dataset: The source of the data.
        group: The group of items that was kept; empty for all.
        n_items: The number of items.
        rank: The number of features; None without features.
        k: The length of a slate.
        steps: Slates per run.
        seed: The seed of everything random.
        training: How users are split and features learned.
    """

    dataset: str
    group: str
    n_items: int
    rank: int | None  # no features
    k: int
    steps: int
    seed: int
    training: Training = field(default_factory=Training)  # of worlds that have their features: nothing


@dataclass(frozen=True)
class Cell:
    """One run of one policy in one setting: the unit of work that is stored.

    Attributes:
        setting: What it shares with other policies.
        policy: The policy.
        run: The run, from 0.
        data: A hash of the data.
    """

    setting: Setting
    policy: Policy
    run: int
    data: str = ""  # a hash of what its world is made of, or its description

    def describe(self) -> dict[str, Any]:
        """Everything that the result depends on. A stored result is used only if this matches."""
        return {
            "format": FORMAT,
            "data": self.data,
            **asdict(self.setting),
            "policy": self.policy.label,
            "run": self.run,
            "versions": installed_versions(),
            "code": code_hash("firstclick.experiments.conduct", type(self.policy)),
        }

    def file_name(self) -> str:
        """A readable file name that no other cell has."""
        description = json.dumps(self.describe(), sort_keys=True)
        place = self.setting
        words = (
            f"{place.dataset} {place.group} {place.n_items} items rank {place.rank} k {place.k} "
            f"{self.policy.label} run {self.run}"
        )
        readable = re.sub(r"[^a-z0-9.]+", "-", words.lower())[:LONGEST_NAME]
        return f"{readable}-{hashlib.sha256(description.encode()).hexdigest()[:12]}.json"


def recorded_steps(steps: int) -> NDArray[np.int64]:
    """Where curves are recorded: evenly on a log scale, evenly on a linear one, and at each power of ten."""
    powers = 10 ** np.arange(len(str(steps)))
    even = steps * np.arange(1, 51) // 50  # a tenth, a half and the like are among them
    every = np.union1d(np.union1d(log_spaced(steps, 60), even), powers)
    return every[(every >= 1) & (every <= steps)]


def settings_of(experiment: Experiment, dataset: Dataset) -> list[Setting]:
    """The settings of an experiment on one data set, if the data is large enough for all of them."""
    group = experiment.group.get(dataset.source.name, "")
    users, available = dataset.matrix.shape[0], len(dataset.items_of(group))
    where = f"{dataset.title}, group {group!r}" if group else dataset.title
    # Without a policy that looks at them there are no features, and no rank that could be too high.
    features = any(policy.needs_features or policy.takes_features for policy in experiment.policies)

    def setting(rank: int | None, items: int | str, k: int) -> Setting:
        n_items = available if items == ALL else int(items)
        columns = n_items if experiment.training.cut_first else available
        fault = ""
        if users < 2:
            fault = f"{where} has 1 user, and two are needed: half of them teach features, the others click"
        elif n_items > available:
            fault = f"items is {n_items}, but {where} has {available}"
        elif k > n_items:
            fault = f"k is {k}, but only {n_items} items compete in {where}"
        elif rank is not None and rank > min(users // 2, columns):
            fault = (
                f"rank is {rank}, but half of the users of {where} are {users // 2}, and its items "
                f"{columns}: an SVD has no higher rank than the smaller of them"
            )
        if fault:
            raise InvalidInput(f"experiment {experiment.name}: {fault}")
        return Setting(
            dataset.source.label, group, n_items, rank, k, experiment.steps, experiment.seed,
            experiment.training,
        )  # fmt: skip

    choices = product(experiment.rank if features else (None,), experiment.items, experiment.k)
    return list(dict.fromkeys(setting(*choice) for choice in choices))


def plan(experiments: Sequence[Experiment], datasets: Sequence[Dataset]) -> list[Cell]:
    """All cells of the experiments, each once. Neighbours in the list share splits and features.

    Args:
        experiments: What to play.
        datasets: The data, loaded.

    Raises:
        InvalidInput: The data is too small for an experiment.
    """
    order = {dataset.source.label: number for number, dataset in enumerate(datasets)}
    cells = dict.fromkeys(
        Cell(setting, policy, run, dataset.digest)
        for experiment, dataset in product(experiments, datasets)
        if dataset.source in experiment.data
        for setting in settings_of(experiment, dataset)
        for policy in experiment.policies
        for run in range(experiment.runs)
    )

    def place(cell: Cell) -> tuple[Any, ...]:
        at = cell.setting
        return order[at.dataset], cell.run, at.group, at.rank or 0, at.n_items, at.k

    return sorted(cells, key=place)
