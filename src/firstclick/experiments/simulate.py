"""`simulate`: any number of policies on the same users, many runs, one result."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from firstclick.catalog.features import check_features
from firstclick.errors import InvalidInput
from firstclick.experiments.baseline import baseline_rows, check_list_or_share
from firstclick.experiments.cells import Cell, Setting
from firstclick.experiments.engines import engine_named
from firstclick.experiments.loop import log_spaced
from firstclick.experiments.results import Results, gather
from firstclick.experiments.runner import UNWATCHED, Watch, play_cells
from firstclick.kernels.compiling import findable
from firstclick.online.baseline import check_learns_from_lists
from firstclick.online.floor import CONFIDENCE, check_max_loss
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
        return Stage(self.world, self.features, self.world.names())


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
    baseline: Sequence[str | int] | float | None = None,
    max_loss: float | None = None,
    progress: Callable[[int, int], Any] | None = None,
    settings: dict[str, Any] | None = None,
) -> Results:
    """Play policies against simulated users and compare their regret.

    >>> from firstclick import simulate
    >>> results = simulate(["cascade-ts", "random"], "blb:n_items=8,k=2", k=2, steps=2000, runs=2, seed=1)
    >>> [round(float(one.mean("expected_regret")[-1])) for one in results.results]
    [40, 380]

    With a baseline, each policy is compared with the list that is shown today. With `max_loss` the baseline
    is shown too, as often as needed to keep the guarantee of `Ranker(baseline=...)`.

    >>> results = simulate(
    ...     ["cascade-ts"], "bernoulli:attractions=0.3/0.2/0.1/0.1/0.1",
    ...     k=2, steps=3000, baseline=0.7, max_loss=0.1,
    ... )
    >>> against = results["cascade-ts"].against
    >>> print(against.worst_stated[0, -1].round(2), against.policy_pages[0, -1])
    0.97 2515.0

    The same seed gives the same result, bit for bit, whatever `jobs` is.

    Args:
        policies: Policies, or descriptions such as `"cascade-ts"`. All meet the same users.
        world: What answers with clicks: a world, a description as in `make_world`, or a scenario, which gives
            each run its own world and features.
        features: One row per item, in place of the world's own features. Not with a scenario.
        k: The length of a slate.
        steps: Slates per run.
        runs: Independent runs. Standard errors are computed over them.
        seed: The seed of everything random.
        jobs: Processes to use.
        points: How many steps of each curve to record, evenly on a log scale.
        baseline: The list that is shown today: item names, or a number up to 1 for a made-up list that gets
            about this share of the best slate's clicks.
        max_loss: The largest share of the baseline's clicks that may be lost. Needs a baseline.
        progress: Called as `progress(done, total)` with steps, about ten times a second.
        settings: Plain values to keep in the result as they are.

    Returns:
        The regret and clicks of every policy, per run and recorded step.

    Raises:
        InvalidInput: A number is out of range, or a policy cannot play in this world.
        UnknownName: No policy or world has this name.
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
    if baseline is None and max_loss is not None:
        raise InvalidInput("needs a baseline to fall no further than; give `baseline` too", "max_loss")
    known = None if baseline is None else check_list_or_share(baseline)
    max_loss = None if max_loss is None else check_max_loss(max_loss)
    for policy in chosen if known is not None else ():
        check_learns_from_lists(policy)
    scenario = _scenario(world, features, seed)

    def rows_of(cell: Cell, stage: Stage) -> NDArray[np.int64]:
        assert known is not None
        return baseline_rows(known, stage, k, seed, cell.run)

    def stage(run: int) -> Stage:
        made = scenario.stage(seed, run)
        check_stage(made, chosen, k)
        return made

    # What is wrong with the first stage is said before anything starts.
    ready = {0: stage(0)}
    setting = Setting("", "", ready[0].world.n_items, None, k, steps, seed)
    cells = [Cell(setting, policy, run) for run in range(runs) for policy in chosen]
    if known is not None:
        rows_of(cells[0], ready[0])
    jobs = min(jobs, len(cells))
    alone = [policy.label for policy in chosen if not findable(type(policy))]
    records = play_cells(
        cells,
        lambda cell: ready.pop(cell.run, None) or stage(cell.run),
        engine_named("local", 1 if alone else jobs),
        recorded=lambda steps: log_spaced(steps, points),
        watch=UNWATCHED if progress is None else Watch(steps=progress),
        baseline_of=None if known is None else rows_of,
        max_loss=max_loss,
    )
    results = gather(
        setting, labels, [records[index :: len(labels)] for index in range(len(labels))], settings=settings
    )
    if max_loss is not None:
        results = replace(results, notes=(*results.notes, *_kept(results, max_loss)))
    if alone and jobs > 1:
        note = f"played in one process: other processes cannot import {', '.join(alone)}; put it in a file"
        return replace(results, notes=(*results.notes, note))
    return results


def _kept(results: Results, max_loss: float) -> list[str]:
    """In how many runs the floor's promise was kept, for each policy."""
    told = []
    for result in results.results:
        assert result.against is not None
        # Sums of many shares are rounded.
        kept = int(np.count_nonzero(result.against.worst_stated[:, -1] >= 1 - max_loss - 1e-9))
        told.append(
            f"{result.policy}: expected clicks were at least {1 - max_loss:.4g} of the baseline's at all "
            f"times in {kept} of {results.runs} runs; promised for {CONFIDENCE:.0%}"
        )
    return told


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


def _check_segments(world: World, policies: Sequence[Policy], k: int) -> None:
    """Where a view has items of its own, each must have enough of them, and policies must bear it."""
    hidden = world.arrays().hidden
    if not len(hidden):
        return
    fewest = int((hidden == 0).sum(axis=1).min())
    if k > fewest:
        raise InvalidInput(
            f"must be at most {fewest}, got {k}: a segment of this world has no more items; play another "
            "segment alone, by segment=NAME",
            "k",
        )
    for policy in policies:
        if "candidates" in policy.misreads:
            raise InvalidInput(
                f"{policy.name} would learn wrongly where segments have items of their own; play one segment "
                "alone, by segment=NAME, or take another policy"
            )


def check_stage(stage: Stage, policies: Sequence[Policy], k: int) -> None:
    """Refuse slates or policies that cannot be played on this stage."""
    if k > stage.world.n_items:
        raise InvalidInput(f"must be at most the number of items, {stage.world.n_items}, got {k}", "k")
    page = stage.world.longest_slate
    if page is not None and k > page:
        raise InvalidInput(f"must be at most {page}, the positions of the page in the log, got {k}", "k")
    _check_segments(stage.world, policies, k)
    for policy in policies:
        if policy.needs_features and stage.features is None:
            raise InvalidInput(
                f"{policy.name} needs features, and this world has none; give `features`, or take a "
                "world that has them, such as linear"
            )
