"""`simulate`: any number of policies on the same users, many runs, one result."""

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from firstclick.catalog.features import check_features
from firstclick.errors import InvalidInput
from firstclick.experiments.engine import Task, play_here, play_in_processes
from firstclick.experiments.loop import log_spaced
from firstclick.experiments.results import Results, gather
from firstclick.kernels.compiling import findable
from firstclick.policies.base import Policy
from firstclick.registry import make_policy, make_world
from firstclick.validation.whole_number import seed_number, whole_number
from firstclick.worlds.base import Scenario, Stage, World, WorldSpec

# Years of computing; and float64, in which rewards are summed, counts this far without a gap.
MOST_STEPS = 10**15


@dataclass(frozen=True)
class FixedScenario:
    """The same world and features in every run."""

    world: World
    features: NDArray[np.float64] | None

    def stage(self, seed: int, run: int) -> Stage:
        return Stage(self.world, self.features, [f"item {item}" for item in range(self.world.n_items)])


def simulate(
    policies: Sequence[Policy | str],
    world: World | WorldSpec | Scenario | str,
    features: ArrayLike | None = None,
    *,
    k: int,
    steps: int,
    runs: int = 1,
    seed: int = 0,
    jobs: int = 1,
    points: int = 100,
    progress: Callable[[int, int], Any] | None = None,
    settings: dict[str, Any] | None = None,
) -> Results:
    """Play every policy for `steps` steps in each of `runs` runs, all on the same users.

    `world` is a World (its own features are used unless others are given), its description as in
    `make_world`, or a Scenario, which gives each run its own world and features. Same seed, same
    result, bit for bit, whatever `jobs` is. `progress(done, total)` is called with steps, about ten
    times a second; 0 done may come several times while kernels compile. `settings` are kept in the
    result as they are.
    """
    k = whole_number("k", k, at_least=1)
    steps = whole_number("steps", steps, at_least=1, at_most=MOST_STEPS)
    runs = whole_number("runs", runs, at_least=1)
    jobs = whole_number("jobs", jobs, at_least=1)
    points = whole_number("points", points, at_least=2)
    seed = seed_number(seed)
    if isinstance(policies, str | Policy):
        raise InvalidInput(f"must be a list, got {policies!r} alone; put it in brackets", "policies")
    made = [make_policy(policy) for policy in policies]
    labels = [policy.label for policy in made]
    if not made:
        raise InvalidInput("no policy given; name at least one, such as 'cascade-lin-ts'")
    for label in labels:
        if labels.count(label) > 1:
            raise InvalidInput(f"policy {label!r} is given twice")
    try:
        json.dumps(settings, allow_nan=False)
    except (TypeError, ValueError):
        raise InvalidInput(f"must be plain values that JSON can hold, got {settings!r}", "settings") from None
    scenario = _scenario(world, features, seed)
    record = log_spaced(steps, points)
    stages = _Stages(scenario, made, k, seed)
    stages[0]  # What is wrong with the first stage is said before anything starts.

    total = steps * runs * len(made)
    done = 0

    def report(more: int) -> None:
        nonlocal done
        done += more
        if progress is not None:
            progress(done, total)

    def tasks() -> Iterator[Task]:
        for run in range(runs):
            for index, policy in enumerate(made):
                yield Task(policy, index, stages[run], stages.optimal[run], run, record, seed)

    report(0)
    jobs = min(jobs, runs * len(made))
    alone = [policy.label for policy in made if not findable(type(policy))]
    if jobs == 1 or alone:
        traces = list(play_here(tasks(), report))
    else:
        traces = list(play_in_processes(tasks(), report, jobs))
    results = gather(
        traces,
        labels,
        item_names=stages.item_names,
        optimal=stages.optimal,
        optimal_reward=float(np.mean(stages.optimal_reward)),
        record=record,
        seed=seed,
        n_items=stages.n_items,
        settings=settings or {},
    )
    if alone and jobs > 1:
        note = f"played in one process: other processes cannot import {', '.join(alone)}; put it in a file"
        return replace(results, notes=(*results.notes, note))
    return results


def _scenario(world: World | WorldSpec | Scenario | str, features: ArrayLike | None, seed: int) -> Scenario:
    if isinstance(world, str):
        world = make_world(world)
    if isinstance(world, WorldSpec):
        world = world.build(seed)
    if not isinstance(world, World):
        if features is not None:
            raise InvalidInput("a scenario brings its own features; give features only with a world")
        return world
    if features is None:
        return FixedScenario(world, world.features)
    return FixedScenario(world, check_features(features, world.n_items))


class _Stages:
    """The stage of each run, made when its turn comes; only the latest is kept."""

    def __init__(self, scenario: Scenario, policies: Sequence[Policy], k: int, seed: int) -> None:
        self._scenario, self._policies, self._k, self._seed = scenario, policies, k, seed
        self._latest: tuple[int, Stage] | None = None
        self.item_names: list[Sequence[str]] = []
        self.optimal: list[NDArray[np.int64]] = []
        self.optimal_reward: list[float] = []
        self.n_items = 0

    def __getitem__(self, run: int) -> Stage:
        if self._latest is None or self._latest[0] != run:
            stage = self._scenario.stage(self._seed, run)
            self._check(stage)
            self._latest = run, stage
            self.n_items = stage.world.n_items
            self.item_names.append(stage.item_names)
            self.optimal.append(stage.world.optimal_slates(self._k))
            self.optimal_reward.append(stage.world.optimal_reward(self._k))
        return self._latest[1]

    def _check(self, stage: Stage) -> None:
        if self._k > stage.world.n_items:
            raise InvalidInput(
                f"must be at most the number of items, {stage.world.n_items}, got {self._k}", "k"
            )
        for policy in self._policies:
            if policy.needs_features and stage.features is None:
                raise InvalidInput(
                    f"{policy.name} needs features, and this world has none; give `features`, or take a "
                    "world that has them, such as linear"
                )
