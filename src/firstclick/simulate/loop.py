"""One run of one policy: the compiled loop and the blocks it is played in."""

from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from firstclick.kernels.attraction import attracts, click_probability, first_attractive, new_memo
from firstclick.kernels.compiling import compiled, learn, recommend
from firstclick.kernels.hashing import fill_normal, mix, user_of
from firstclick.protocol import EVERYTHING, Policy, Stage, catalog_arrays
from firstclick.streams import stream_key

# A block is short enough to stop and to show progress between two of them.
BLOCK_SECONDS = 0.1
FIRST_BLOCK = 64

# What `play` sums up over steps.
REWARD, REGRET, EXPECTED_REGRET = 0, 1, 2


def play(  # type: ignore[no-untyped-def]
    numbers, state, catalog, request, world, memo, optimal, policy_key, world_key,
    first, last, count_from, noise, slate, totals, shown,
):  # fmt: skip
    """Play steps first..last-1, add them to `totals`, and count in `shown` what was recommended."""
    k = len(slate)
    clicks = np.empty(k, np.uint8)
    covered = np.empty((world.n_users + 63) // 64, np.uint64)
    best = click_probability(world, optimal, len(optimal), memo, covered)
    for step in range(first, last):
        key = mix(policy_key, np.uint64(step))
        fill_normal(key, noise)
        n = recommend(numbers, state, catalog, request, key, noise, slate)
        user_key = mix(world_key, np.uint64(step))
        click = first_attractive(world, user_key, slate, n)
        examined = n if click < 0 else click + 1
        for position in range(n):
            clicks[position] = position == click
        learn(numbers, state, catalog, slate, examined, clicks)
        reward = 1.0 if click >= 0 else 0.0
        won = first_attractive(world, user_key, optimal, len(optimal)) >= 0
        totals[REWARD] += reward
        totals[REGRET] += (1.0 if won else 0.0) - reward
        totals[EXPECTED_REGRET] += best - click_probability(world, slate, n, memo, covered)
        if step >= count_from:
            for position in range(n):
                shown[slate[position]] += 1


def look_at_row(world, key, row):  # type: ignore[no-untyped-def]
    """Set row[item] to 1 where the item attracts the user of this key, else to 0."""
    user = user_of(key, world.n_users)
    for item in range(len(row)):
        row[item] = attracts(world, key, user, item)


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
    """Play one policy on one stage from its first step to its last, against the slate `optimal`.

    `report` is called after each block with the number of steps it played, and may raise to stop.
    """
    world, k, steps = stage.world, len(optimal), int(record[-1])
    n_features = 0 if stage.features is None else stage.features.shape[1]
    catalog = policy.shortcuts(catalog_arrays(stage.features, world.n_items))
    numbers = policy.numbers(k, catalog.features)
    state = policy.initial_state(world.n_items, n_features, k)
    # The same users for all policies of a run: the policy has no part in the world's key.
    world_key = stream_key(seed, "run", run, "world")
    policy_key = stream_key(seed, "run", run, "policy", policy.label)
    arrays = world.arrays()
    if policy.learns_row:
        row = np.empty(world.n_items, np.uint8)
        compiled(look_at_row, type(policy))(arrays, stream_key(seed, "run", run, "first row"), row)
        policy.learn_row(state, row)

    loop = compiled(play, type(policy))
    totals = np.zeros(3)
    shown = np.zeros(world.n_items, np.int64)
    fixed: tuple[Any, ...] = (
        numbers, state, catalog, EVERYTHING, arrays, new_memo(k), optimal, policy_key, world_key,
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
