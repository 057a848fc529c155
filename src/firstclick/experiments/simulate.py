"""`simulate`: any number of policies on the same users, many runs, one result."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from firstclick.catalog.features import check_features
from firstclick.errors import InvalidInput
from firstclick.experiments.cells import Cell, Setting
from firstclick.experiments.engines import engine_named
from firstclick.experiments.loop import log_spaced
from firstclick.experiments.results import Results, gather
from firstclick.experiments.runner import UNWATCHED, Watch, play_cells
from firstclick.kernels.compiling import findable
from firstclick.parameters import check_distinct
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
    chosen = [make_policy(policy) for policy in policies]
    labels = [policy.label for policy in chosen]
    if not chosen:
        raise InvalidInput("no policy given; name at least one, such as 'cascade-lin-ts'")
    check_distinct("policy", labels)
    try:
        json.dumps(settings, allow_nan=False)
    except (TypeError, ValueError):
        raise InvalidInput(f"must be plain values that JSON can hold, got {settings!r}", "settings") from None
    scenario = _scenario(world, features, seed)

    def stage(run: int) -> Stage:
        made = scenario.stage(seed, run)
        _check(made, chosen, k)
        return made

    # What is wrong with the first stage is said before anything starts.
    ready = {0: stage(0)}
    setting = Setting("", "", ready[0].world.n_items, None, k, steps, seed)
    cells = [Cell(setting, policy, run) for run in range(runs) for policy in chosen]
    jobs = min(jobs, len(cells))
    alone = [policy.label for policy in chosen if not findable(type(policy))]
    records = play_cells(
        cells,
        lambda cell: ready.pop(cell.run, None) or stage(cell.run),
        engine_named("local", 1 if alone else jobs),
        recorded=lambda steps: log_spaced(steps, points),
        watch=UNWATCHED if progress is None else Watch(steps=progress),
    )
    results = gather(
        setting, labels, [records[index :: len(labels)] for index in range(len(labels))], settings=settings
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


def _check(stage: Stage, policies: Sequence[Policy], k: int) -> None:
    if k > stage.world.n_items:
        raise InvalidInput(f"must be at most the number of items, {stage.world.n_items}, got {k}", "k")
    for policy in policies:
        if policy.needs_features and stage.features is None:
            raise InvalidInput(
                f"{policy.name} needs features, and this world has none; give `features`, or take a "
                "world that has them, such as linear"
            )
