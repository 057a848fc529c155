"""One run of one policy: the compiled loop, the blocks it is played in, and what it gives."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from firstclick.catalog.search_tree import catalog_arrays
from firstclick.errors import InvalidInput
from firstclick.kernels.arrays import NO_LIMITS, CatalogArrays, Request
from firstclick.kernels.attraction import WorldArrays, attracts, user_in, view_of
from firstclick.kernels.caps import recommend_within_caps
from firstclick.kernels.clicks import answer, click_chance, examined_positions, expected_reward, new_memo
from firstclick.kernels.compiling import compiled, kernel, learn
from firstclick.kernels.floor import allowed_share, blank_floor, observe_page
from firstclick.kernels.hashing import fill_normal, mix, uniform
from firstclick.online.floor import CONFIDENCE
from firstclick.policies.base import Policy
from firstclick.streams import stream_key
from firstclick.worlds.base import Stage, World

# A block is short enough to stop and to show progress between two of them.
BLOCK_SECONDS = 0.1
FIRST_BLOCK = 64

# What `play` sums up over steps.
REWARD, REGRET, EXPECTED_REGRET = 0, 1, 2

# What it sums up besides where there is a baseline: the fields of `Against`.
SHOWN, STATED, BASELINE, SHARE, POLICY_PAGES, WORST_SHOWN, WORST_STATED = range(7)

# A step's key has other uses: the floor's coin is far from them.
_COIN = np.uint64(11 << 56)


class Player(NamedTuple):
    """A policy, for `play`."""

    numbers: Any
    state: Any
    catalog: CatalogArrays
    request: Request
    contexts: NDArray[np.float64]  # what it knows of each user
    click_model: Any  # what it takes for examined; the world has its own
    key: np.uint64
    noise: NDArray[np.float64]


class Ground(NamedTuple):
    """A world, for `play`."""

    world: WorldArrays
    optimal: NDArray[np.int64]  # the best slate of each view
    memo: Any
    key: np.uint64


class Tally(NamedTuple):
    """What `play` adds up: the totals, and how often each item is shown from step `count_from` on."""

    totals: NDArray[np.float64]
    shown: NDArray[np.int64]
    count_from: int


class Launch(NamedTuple):
    """A baseline for `play`, and the floor under the policy that takes its place."""

    baseline: NDArray[np.int64]  # rows of the catalog
    max_loss: float  # 1: no floor
    floor: NDArray[np.float64]
    sums: NDArray[np.float64]
    # Show the policy's slate where its share is 1, and nowhere else: benchmarks/floor.py compares with this.
    gate: bool = False


def new_launch(baseline: NDArray[np.int64], max_loss: float | None) -> Launch:
    """A launch before its first step."""
    sums = np.zeros(WORST_STATED + 1)
    sums[WORST_SHOWN] = sums[WORST_STATED] = 1.0
    return Launch(baseline, 1.0 if max_loss is None else max_loss, blank_floor(CONFIDENCE), sums)


@kernel
def _count_page(launch, share, by_policy, clicked, chance, usual):  # type: ignore[no-untyped-def]
    """Add a page to the floor and to the sums; `chance` and `usual` are the click probabilities of the
    policy's slate and of the baseline."""
    observe_page(launch.floor, share, by_policy, clicked)
    sums = launch.sums
    sums[SHOWN] += chance if by_policy else usual
    sums[STATED] += share * chance + (1.0 - share) * usual
    sums[BASELINE] += usual
    sums[SHARE] += share
    sums[POLICY_PAGES] += by_policy
    if sums[BASELINE] > 0.0:
        sums[WORST_SHOWN] = min(sums[WORST_SHOWN], sums[SHOWN] / sums[BASELINE])
        sums[WORST_STATED] = min(sums[WORST_STATED], sums[STATED] / sums[BASELINE])


def play(player, ground, tally, first, last, launch=None):  # type: ignore[no-untyped-def]
    """Play steps first..last-1, and add them to the tally. With a `launch`, steps show the policy's slate or
    the baseline as the floor has it; the policy learns from both."""
    numbers, state, catalog, request, contexts, click_model, policy_key, noise = player
    world, optimal, memo, world_key = ground
    totals, shown, count_from = tally
    k = optimal.shape[1]
    slate = np.empty(k, np.int64)
    clicks = np.empty(k, np.uint8)
    bits = np.empty((world.n_users + 63) // 64, np.uint64)
    best = np.empty(len(optimal))
    for view in range(len(optimal)):
        best[view] = expected_reward(world, view, optimal[view], k, memo, bits)
    if launch is not None:
        usual = np.empty(len(optimal))
        for view in range(len(optimal)):
            usual[view] = click_chance(world, view, launch.baseline, k, memo, bits)
    for step in range(first, last):
        key = mix(policy_key, np.uint64(step))
        fill_normal(key, noise)
        user_key = mix(world_key, np.uint64(step))
        user = user_in(world, user_key)
        view = view_of(world, user, step)
        hidden = world.hidden[view] if len(world.hidden) else request.hidden
        asked = Request(
            request.candidates, hidden, contexts[user], request.features, request.groups, request.caps
        )
        n = recommend_within_caps(numbers, state, catalog, asked, key, noise, slate)
        if launch is not None:
            chance = click_chance(world, view, slate, n, memo, bits)
            share = allowed_share(launch.floor, launch.max_loss, 0.0, 1.0)
            if launch.gate and share < 1.0:
                share = 0.0
            by_policy = uniform(key, _COIN) < share
            if not by_policy:
                n = k
                for position in range(k):
                    slate[position] = launch.baseline[position]
        reward, told = answer(world, user_key, user, view, slate, n, clicks)
        examined = examined_positions(click_model, clicks, n, told)
        learn(numbers, state, catalog, asked, slate[:n], examined, clicks[:n])
        if launch is not None:
            _count_page(launch, share, by_policy, clicks[:n].any(), chance, usual[view])
        won, _ = answer(world, user_key, user, view, optimal[view], k, clicks)
        totals[REWARD] += reward
        totals[REGRET] += won - reward
        totals[EXPECTED_REGRET] += best[view] - expected_reward(world, view, slate, n, memo, bits)
        if step >= count_from:
            for position in range(n):
                shown[slate[position]] += 1


def look_at_row(world, key, row):  # type: ignore[no-untyped-def]
    """Set row[item] to 1 where the item, shown alone, attracts the user of this key, else to 0."""
    user = user_in(world, key)
    view = view_of(world, user, 0)
    covered = np.empty(len(world.interest))
    alone = np.empty(1, np.int64)
    for item in range(len(row)):
        alone[0] = item
        row[item] = attracts(world, key, user, view, alone, 0, covered)


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


class Against(NamedTuple):
    """A run with a baseline, up to each recorded step. `shown`, `stated` and `baseline` are expected clicks:
    pages with at least one click."""

    shown: NDArray[np.float64]  # of the slates shown
    stated: NDArray[np.float64]  # before the floor's coin fell: what the floor makes its promise about
    baseline: NDArray[np.float64]  # of the baseline alone, on the same pages
    share: NDArray[np.float64]  # the sum of the policy's shares
    policy_pages: NDArray[np.float64]
    # The smallest ratio so far, over all steps, of `shown` and of `stated` to `baseline`; at most 1.
    worst_shown: NDArray[np.float64]
    worst_stated: NDArray[np.float64]


class Speed(NamedTuple):
    """Seconds of a step, and of a step of the same algorithm in plain NumPy where it was timed."""

    seconds: float
    numpy_seconds: float | None = None


@dataclass(frozen=True, eq=False)
class Record:
    """What one run gave; nothing in it but its speed depends on when, where or how fast it was played."""

    step: NDArray[np.int64]
    reward: NDArray[np.float64]  # this and the regrets: sums up to each of these steps
    regret: NDArray[np.float64]
    expected_regret: NDArray[np.float64]
    shown: Mapping[str, int]  # items, and how often they were shown in the last tenth of the steps
    optimal_reward: float
    optimal_items: Mapping[str, int]  # in how many of the best slates they are
    views: int  # how many best slates there are
    notes: tuple[str, ...]
    speed: Speed | None = None  # None: it was not played just now
    against: Against | None = None  # None: there was no baseline


# Times another implementation of a policy on a stage, for slates of k; None if there is none.
Beside = Callable[[Policy, Stage, int], float | None]


@dataclass(frozen=True)
class Task:
    """One run of one policy, with everything that a process far away needs to play it."""

    number: int
    policy: Policy
    stage: Stage
    optimal: NDArray[np.int64]  # the best slate of each view
    optimal_reward: float
    run: int
    recorded: NDArray[np.int64]  # steps, up to the last one
    seed: int
    beside: Beside | None = None
    baseline: NDArray[np.int64] | None = None  # rows
    max_loss: float | None = None  # None: no floor

    def play(self, report: Callable[[int], Any]) -> tuple[int, Record]:
        """Play from the first step to the last; the task's number and what it gave.

        `report` is called after each block with the number of steps it played, and may raise to stop.
        """
        world, k, steps = self.stage.world, self.optimal.shape[1], int(self.recorded[-1])
        policy, player, ground = self._begin()
        tally = Tally(np.zeros(3), np.zeros(world.n_items, np.int64), steps - max(steps // 10, 1))
        loop = compiled(play, type(policy))
        # Compiles, or loads from the cache: not part of the time of a step.
        launch = None if self.baseline is None else new_launch(self.baseline, self.max_loss)
        loop(player, ground, tally, 0, 0, launch)
        report(0)
        curve = np.empty((len(self.recorded), 3))
        against = np.empty((len(self.recorded), len(Against._fields)))
        seconds, done, block = 0.0, 0, FIRST_BLOCK
        for point, recorded in enumerate(self.recorded):
            while done < recorded:
                last = min(done + block, int(recorded))
                start = perf_counter()
                loop(player, ground, tally, done, last, launch)
                took = perf_counter() - start
                seconds += took
                if took < BLOCK_SECONDS / 2 and last - done == block:
                    block *= 2
                report(last - done)
                done = last
            curve[point] = tally.totals
            if launch is not None:
                against[point] = launch.sums
        # Right here, where both have the same neighbours.
        compared = self.beside(self.policy, self.stage, k) if self.beside else None
        names = self.stage.item_names
        return self.number, Record(
            step=self.recorded,
            reward=curve[:, REWARD],
            regret=curve[:, REGRET],
            expected_regret=curve[:, EXPECTED_REGRET],
            shown=_by_name(tally.shown, names),
            optimal_reward=self.optimal_reward,
            optimal_items=_by_name(np.bincount(self.optimal.ravel(), minlength=len(names)), names),
            views=len(self.optimal),
            notes=policy.notes(player.numbers, steps),
            speed=Speed(seconds / steps, compared),
            against=None if launch is None else Against(*against.T),
        )

    def _begin(self) -> tuple[Policy, Player, Ground]:
        """The policy as it plays in this world, before its first step."""
        world, features, k = self.stage.world, self.stage.features, self.optimal.shape[1]
        policy_key = stream_key(self.seed, "run", self.run, "policy", self.policy.label)
        # The same users for all policies of a run: the policy has no part in the world's key.
        world_key = stream_key(self.seed, "run", self.run, "world")
        policy = self.policy.with_context(world.n_context)
        n_features = 0 if features is None else features.shape[1]
        catalog = policy.shortcuts(catalog_arrays(features, world.n_items))
        numbers = policy.numbers(k, catalog.features)
        state = policy.initial_state(world.n_items, n_features, k)
        arrays = world.arrays()
        if policy.learns_row:
            row = np.empty(world.n_items, np.uint8)
            row_key = stream_key(self.seed, "run", self.run, "first row")
            compiled(look_at_row, type(policy))(arrays, row_key, row)
            policy.learn_row(state, row)
        player = Player(
            numbers, state, catalog, NO_LIMITS, known_of(world, arrays, policy), policy.click_model.kind,
            policy_key, np.empty(policy.noise_size(k, n_features)),
        )  # fmt: skip
        return policy, player, Ground(arrays, self.optimal, new_memo(k), world_key)


def _by_name(counts: NDArray[np.int64], names: Any) -> Counter[str]:
    total: Counter[str] = Counter()
    for item in np.flatnonzero(counts).tolist():
        total[names[item]] += int(counts[item])
    return total
