"""An experiment as a TOML file declares it: policies x settings, on one data set or several.

`firstclick run --help` has an example.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from firstclick.data.scenario import PICKS
from firstclick.data.sources import Source, make_source
from firstclick.errors import FirstclickError, InvalidInput, UnknownName
from firstclick.files.reading import as_path, read_toml
from firstclick.parameters import check_distinct, check_name
from firstclick.policies.base import Policy
from firstclick.registry import make_policy
from firstclick.validation.quoting import quoted
from firstclick.validation.whole_number import seed_number, whole_number

ALL = "all"


@dataclass(frozen=True)
class Training:
    """How users are split and features learned: options of `FeedbackScenario`.

    Attributes:
        pick: Which items to keep: `"popular"`, `"random"` or `"source"`. `"source"` keeps the most attractive
            items if the source has no ranking.
        scaled: Features are rows of V Sigma; `False`: of V.
        intercept: Add a constant feature.
        one_split: All runs share one split.
        with_replacement: Draw training users with replacement.
        cut_first: Compute the SVD from the kept items only.
    """

    pick: str = "popular"
    scaled: bool = True
    intercept: bool = False
    one_split: bool = False
    with_replacement: bool = False
    cut_first: bool = False


@dataclass(frozen=True)
class Experiment:
    """An experiment: every policy in every combination of `items`, `rank` and `k`, on every data set.

    Policies and sources may be given as text.

    Attributes:
        name: A short name.
        title: A title for the report.
        data: The sources.
        policies: The policies to play.
        extras: Policies that are played only on request.
        items: How many items to keep: numbers, or `"all"`.
        rank: How many features to compute.
        k: Lengths of a slate.
        group: The group of items to keep, by source.
        steps: Slates per run.
        runs: The number of runs.
        seed: The seed of everything random.
        training: How users are split and features learned.
        path: The data's file or folder.
    """

    name: str
    title: str
    data: tuple[Source, ...]
    policies: tuple[Policy, ...]
    extras: tuple[Policy, ...] = ()
    items: tuple[int | str, ...] = (ALL,)
    rank: tuple[int, ...] = (20,)
    k: tuple[int, ...] = (4,)
    group: Mapping[str, str] = field(default_factory=dict)
    steps: int = 100_000
    runs: int = 10
    seed: int = 1
    training: Training = Training()
    path: Path | None = None

    def __post_init__(self) -> None:
        for name in ("policies", "extras"):
            object.__setattr__(self, name, tuple(make_policy(policy) for policy in getattr(self, name)))
        object.__setattr__(self, "data", tuple(make_source(source) for source in self.data))
        for name in ("steps", "runs"):
            object.__setattr__(self, name, whole_number(name, getattr(self, name), at_least=1))
        object.__setattr__(self, "seed", seed_number(self.seed))
        for kind, things in (("policy", (*self.policies, *self.extras)), ("source", self.data)):
            check_distinct(f"experiment {self.name}: {kind}", [thing.label for thing in things])

    def with_extras(self) -> "Experiment":
        """The experiment with its extras among the policies."""
        return replace(self, policies=(*self.policies, *self.extras), extras=())

    def changed(self, **given: Any) -> "Experiment":
        """The experiment with other steps, runs or seed.

        Args:
            **given: New values; None leaves a value as it is.
        """
        return replace(self, **{name: value for name, value in given.items() if value is not None})


KEYS = tuple(word.name for word in fields(Experiment) if word.name not in ("name", "training")) + tuple(
    word.name for word in fields(Training)
)


def read_experiment(path: str | os.PathLike[str]) -> Experiment:
    """Read an experiment from a TOML file. `firstclick run --help` has an example.

    >>> from pathlib import Path
    >>> lines = ['title = "Yelp"', 'data = ["synthetic-yelp"]', 'policies = ["random"]', 'runs = 2']
    >>> _ = Path("yelp.toml").write_text("\\n".join(lines))
    >>> read_experiment("yelp.toml").runs
    2

    Args:
        path: The file.

    Raises:
        InvalidInput: The file cannot be read, or a value is wrong.
        UnknownName: A key, policy or source does not exist.
    """
    path = as_path(path)
    content = read_toml(path)
    try:
        return experiment_of(content, name=path.stem, beside=path.parent)
    except FirstclickError as error:
        raise error.within(path.name) from None


def experiment_of(content: Mapping[str, Any], *, name: str, beside: Path) -> Experiment:
    """The experiment that a TOML table declares; paths in it are relative to `beside`."""
    for key in content:
        check_name("key", key, KEYS)
    for key in ("data", "policies"):
        if key not in content:
            raise InvalidInput(f"{key} is missing; see `firstclick run --help` for an example")
    data = tuple(_source(entry) for entry in _list(content["data"]))
    policies, extras = content["policies"], content.get("extras", [])
    for key, entries in (("policies", policies), ("extras", extras)):
        if not isinstance(entries, list):
            raise InvalidInput(f"must be a list of policies, got {quoted(entries)}", key)
    items = tuple(_items(entry) for entry in _list(content.get("items", ALL)))
    for key, values in (("data", data), ("policies", policies), ("items", items)):
        if not values:
            raise InvalidInput(f"{key} is empty; give at least one")
    return Experiment(
        name=name,
        title=_text("title", content.get("title", name)),
        data=data,
        policies=tuple(policies),
        extras=tuple(extras),
        items=items,
        rank=_counts("rank", content.get("rank", 20)),
        k=_counts("k", content.get("k", 4)),
        group=_group(content.get("group"), data),
        **{key: content[key] for key in ("steps", "runs", "seed") if key in content},
        training=training_of(content),
        path=None if "path" not in content else beside / _text("path", content["path"]),
    )


def training_of(content: Mapping[str, Any]) -> Training:
    """The part of a table that says how users are split and features learned."""
    given = {word.name: content[word.name] for word in fields(Training) if word.name in content}
    for name, value in given.items():
        if name == "pick" and value not in PICKS:
            raise InvalidInput(f"must be one of {', '.join(PICKS)}, got {quoted(value)}", "pick")
        if name != "pick" and not isinstance(value, bool):
            raise InvalidInput(f"must be true or false, got {quoted(value)}", name)
    return Training(**given)


def _source(entry: Any) -> Source:
    """`"movielens:above=3"`, or the same as a table: `{source = "movielens", above = 3}`."""
    if isinstance(entry, str):
        return make_source(entry)
    if not isinstance(entry, dict) or not isinstance(entry.get("source"), str):
        raise InvalidInput(
            f'data must be text such as "movielens", or {{source = "table", ...}}, got {quoted(entry)}'
        )
    named = type(make_source(entry["source"]))
    # A value that Python does not write out is refused by its rule all the same.
    texts = {key: value if isinstance(value, str) else quoted(value, 1000) for key, value in entry.items()}
    del texts["source"]
    return named.from_text(texts)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


def _counts(name: str, value: Any) -> tuple[int, ...]:
    counts = tuple(whole_number(name, entry, at_least=1) for entry in _list(value))
    if not counts:
        raise InvalidInput(f"{name} is an empty list; give at least one number")
    return counts


def _items(entry: Any) -> int | str:
    if entry == ALL:
        return ALL
    if isinstance(entry, str):
        raise InvalidInput(f"must be numbers or {ALL!r}, got {quoted(entry)}", "items")
    return whole_number("items", entry, at_least=1)


def _group(value: Any, data: tuple[Source, ...]) -> dict[str, str]:
    if value is None:
        return {}
    if isinstance(value, str):
        return {source.name: value for source in data}
    if not isinstance(value, dict):
        raise InvalidInput(f'group must be a name, or {{movielens = "Adventure", ...}}, got {quoted(value)}')
    names = [source.name for source in data]
    for name in value:
        if name not in names:
            raise UnknownName(f"group names {name!r}, which is no source here; data has {', '.join(names)}")
    return {name: _text("group", group) for name, group in value.items()}


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str) or not value:
        raise InvalidInput(f"must be text, got {quoted(value)}", name)
    return value
