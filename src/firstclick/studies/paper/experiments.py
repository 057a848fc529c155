"""The experiments of Zong et al. 2016 as this folder's TOML files declare them, in one of two readings."""

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Any

from firstclick.data.sources import Source, make_source
from firstclick.experiments.file import Experiment, Training, experiment_of, training_of
from firstclick.parameters import check_name
from firstclick.policies.base import Policy
from firstclick.registry import make_policy

EXPERIMENTS = ("1", "2", "3", "4", "sigma", "c")
DATASETS = ("yelp", "million-song", "movielens")
MODES = ("paper", "authors")
# Where policies are compared: the experiment that others may join.
BESIDE = "1"
SYNTHETIC = "synthetic-"


@dataclass(frozen=True)
class Mode:
    """One reading of the experiments: how features are learned, and what is taken in the place of what."""

    name: str
    training: Training
    replaced: Mapping[str, str]  # policies, by their labels
    sources: Mapping[str, str]
    group: Mapping[str, str]

    def policy(self, policy: Policy) -> Policy:
        return make_policy(self.replaced[policy.label]) if policy.label in self.replaced else policy

    def source(self, name: str) -> Source:
        return make_source(self.sources.get(name, name))


def mode_named(name: str) -> Mode:
    """The mode of this name in modes.toml."""
    content = _read("modes.toml")[check_name("mode", name, MODES)]
    return Mode(
        name=name,
        training=training_of(content),
        replaced=content.get("policies", {}),
        sources=content.get("data", {}),
        group=content.get("group", {}),
    )


def experiments_of(
    names: Sequence[str],
    mode: Mode,
    sources: Sequence[Source],
    *,
    groups: Mapping[str, str] | None = None,
    **changes: Any,
) -> list[Experiment]:
    """The experiments of these names, in the mode's reading, on these sources.

    `groups`, by data set of the paper, come before those of the declarations; `changes` are other steps,
    runs or seed.
    """
    found = []
    for name in names:
        declared = experiment_of(
            _read(f"experiment-{check_name('experiment', name, EXPERIMENTS)}.toml"), name=name, beside=Path()
        )
        group = {**declared.group, **mode.group, **(groups or {})} if declared.group else {}
        found.append(
            replace(
                declared,
                data=tuple(sources),
                policies=tuple(mode.policy(policy) for policy in declared.policies),
                extras=tuple(mode.policy(policy) for policy in declared.extras),
                group={source.name: group[dataset_name(source)] for source in sources} if group else {},
                training=mode.training,
                **changes,
            )
        )
    return found


def dataset_name(source: Source) -> str:
    """The data set of the paper that a source is, or stands in for."""
    return source.name.removeprefix(SYNTHETIC)


def _read(name: str) -> dict[str, Any]:
    return tomllib.loads(files("firstclick.studies.paper").joinpath(name).read_text(encoding="utf-8"))
