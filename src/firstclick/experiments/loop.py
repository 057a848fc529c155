"""One run of one policy: the compiled loop and the blocks it is played in."""

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from firstclick.catalog.search_tree import catalog_arrays
from firstclick.errors import InvalidInput
from firstclick.kernels.arrays import NO_LIMITS, Request
from firstclick.kernels.attraction import WorldArrays, attracts, view_of
from firstclick.kernels.caps import recommend_within_caps
from firstclick.kernels.clicks import answer, examined_positions, expected_reward, new_memo
from firstclick.kernels.compiling import compiled, learn
from firstclick.kernels.hashing import fill_normal, mix, user_of
from firstclick.policies.base import Policy
from firstclick.streams import stream_key
from firstclick.worlds.base import Stage, World

# A block is short enough to stop and to show progress between two of them.
BLOCK_SECONDS = 0.1
FIRST_BLOCK = 64

# What `play` sums up over steps.
REWARD, REGRET, EXPECTED_REGRET = 0, 1, 2


def play(  # type: ignore[no-untyped-def]
    numbers, state, catalog, request, world, contexts, click_model, memo, optimal, policy_key, world_key,
    first, last, count_from, noise, slate, totals, shown,
):  # fmt: skip
    """Play steps first..last-1, add them to `totals`, and count in `shown` what was recommended.

    `contexts` is what the learner knows of each user, `click_model` what it takes for examined; the world has
    its own. `optimal` has the best slate of each view.
    """
    k = len(slate)
    clicks = np.empty(k, np.uint8)
    bits = np.empty((world.n_users + 63) // 64, np.uint64)
    best = np.empty(len(optimal))
    for view in range(len(optimal)):
        best[view] = expected_reward(world, view, optimal[view], k, memo, bits)
    for step in range(first, last):
        key = mix(policy_key, np.uint64(step))
        fill_normal(key, noise)
        user_key = mix(world_key, np.uint64(step))
        user = user_of(user_key, world.n_users)
        view = view_of(world, user, step)
        asked = Request(
            request.candidates, request.hidden, contexts[user], request.features, request.groups, request.caps
        )
        n = recommend_within_caps(numbers, state, catalog, asked, key, noise, slate)
        reward, told = answer(world, user_key, user, view, slate, n, clicks)
        examined = examined_positions(click_model, clicks, n, told)
        learn(numbers, state, catalog, asked, slate[:n], examined, clicks[:n])
        won, _ = answer(world, user_key, user, view, optimal[view], k, clicks)
        totals[REWARD] += reward
        totals[REGRET] += won - reward
        totals[EXPECTED_REGRET] += best[view] - expected_reward(world, view, slate, n, memo, bits)
        if step >= count_from:
            for position in range(n):
                shown[slate[position]] += 1


def look_at_row(world, key, row):  # type: ignore[no-untyped-def]
    """Set row[item] to 1 where the item, shown alone, attracts the user of this key, else to 0."""
    user = user_of(key, world.n_users)
    view = view_of(world, user, 0)
    covered = np.empty(len(world.interest))
    alone = np.empty(1, np.int64)
    for item in range(len(row)):
        alone[0] = item
        row[item] = attracts(world, key, user, view, alone, 0, covered)


@dataclass(frozen=True)
class Trace:
    """What one run of one policy gave: cumulative sums at the recorded steps, and its last slates."""

    run: int
    policy: int
    reward: NDArray[np.float64]
    regret: NDArray[np.float64]
    expected_regret: NDArray[np.float64]
    shown: NDArray[np.int64]  # how often each item was shown in the last tenth of the steps
    seconds_per_step: float
    notes: tuple[str, ...]


def known_of(world: World, arrays: WorldArrays, policy: Policy) -> NDArray[np.float64]:
    """What the policy is told of each user: what the world knows, if it wants to know."""
    if policy.n_context == 0:
        return np.empty((arrays.n_users, 0))
    if policy.n_context != world.n_context:
        raise InvalidInput(
            f"{policy.label} wants {policy.n_context} numbers of context, and this world gives "
            f"{world.n_context}; leave them out to take what it gives"
        )
    for context in arrays.contexts:
        policy.check_context(context)
    return arrays.contexts


def log_spaced(steps: int, points: int = 100) -> NDArray[np.int64]:
    """The steps at which curves are recorded: distinct, rising evenly on a log scale, the last included."""
    return np.unique(np.rint(np.geomspace(1, steps, min(points, steps))).astype(np.int64))


def play_run(
    policy: Policy,
    stage: Stage,
    optimal: NDArray[np.int64],
    *,
    record: NDArray[np.int64],
    seed: int,
    run: int,
    index: int = 0,
    report: Callable[[int], Any] = lambda steps: None,
) -> Trace:
    """Play one policy on one stage from its first step to its last, against the slates `optimal`, one a view.

    `report` is called after each block with the number of steps it played, and may raise to stop.
    """
    world, k, steps = stage.world, optimal.shape[1], int(record[-1])
    policy_key = stream_key(seed, "run", run, "policy", policy.label)
    policy = policy.with_context(world.n_context)
    n_features = 0 if stage.features is None else stage.features.shape[1]
    catalog = policy.shortcuts(catalog_arrays(stage.features, world.n_items))
    numbers = policy.numbers(k, catalog.features)
    state = policy.initial_state(world.n_items, n_features, k)
    # The same users for all policies of a run: the policy has no part in the world's key.
    world_key = stream_key(seed, "run", run, "world")
    arrays = world.arrays()
    if policy.learns_row:
        row = np.empty(world.n_items, np.uint8)
        compiled(look_at_row, type(policy))(arrays, stream_key(seed, "run", run, "first row"), row)
        policy.learn_row(state, row)

    loop = compiled(play, type(policy))
    totals = np.zeros(3)
    shown = np.zeros(world.n_items, np.int64)
    fixed: tuple[Any, ...] = (
        numbers, state, catalog, NO_LIMITS, arrays, known_of(world, arrays, policy), policy.click_model.kind,
        new_memo(k), optimal, policy_key, world_key,
    )  # fmt: skip
    noise = np.empty(policy.noise_size(k, n_features))
    slate = np.empty(k, np.int64)
    count_from = steps - max(steps // 10, 1)

    def steps_between(first: int, last: int) -> float:
        start = perf_counter()
        loop(*fixed, first, last, count_from, noise, slate, totals, shown)
        return perf_counter() - start

    steps_between(0, 0)  # Compiles, or loads from the cache: not part of the time of a step.
    report(0)
    curve = np.empty((len(record), 3))
    seconds, done, block = 0.0, 0, FIRST_BLOCK
    for point, recorded in enumerate(record):
        while done < recorded:
            last = min(done + block, int(recorded))
            took = steps_between(done, last)
            seconds += took
            if took < BLOCK_SECONDS / 2 and last - done == block:
                block *= 2
            report(last - done)
            done = last
        curve[point] = totals
    return Trace(
        run=run,
        policy=index,
        reward=curve[:, REWARD],
        regret=curve[:, REGRET],
        expected_regret=curve[:, EXPECTED_REGRET],
        shown=shown,
        seconds_per_step=seconds / steps,
        notes=policy.notes(numbers, steps),
    )
