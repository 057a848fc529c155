"""Who is timed in a cell: the policy, the same without its shortcuts, its floor, a pass over memory, NumPy.

All of them play from their first step, in one world, and can begin again.
"""

from typing import Any, Protocol

import numba
import numpy as np
from numba.extending import overload
from numpy.typing import NDArray

from benchmarks.first_attractive import first_attractive
from benchmarks.scanning import scanning
from firstclick.experiments.loop import Ground, Player, Tally, known_of, look_at_row, play
from firstclick.kernels.arrays import NO_LIMITS, CatalogArrays
from firstclick.kernels.clicks import new_memo
from firstclick.kernels.compiling import OPTIONS, POLICY_OF_NUMBERS, compiled, learn, recommend
from firstclick.kernels.hashing import fill_normal, mix
from firstclick.kernels.posterior import mean, sample
from firstclick.policies.base import Policy
from firstclick.streams import stream, stream_key
from firstclick.worlds.long_tail import LongTailWorld

POLICY_KEY, WORLD_KEY, ROW_KEY = (stream_key(0, "bench", name) for name in ("policy", "world", "row"))

# Steps that are recorded for the floor, at most.
RECORDED = 2000

# Steps that `play` never reaches: nothing is counted as shown.
NEVER = 2**62


class Contender(Protocol):
    """Something whose steps are timed."""

    def begin(self) -> None:
        """Get ready for the first step; not timed."""

    def play(self, first: int, last: int) -> None:
        """Play steps first..last-1, which follow those played before."""


class LoopPlayer:
    """A policy in the compiled loop of the simulator, with its shortcuts or, as a `scan`, without any."""

    def __init__(
        self, policy: Policy, world: LongTailWorld, catalog: CatalogArrays, k: int, *, scan: bool = False
    ) -> None:
        self.policy, self.world, self.items, self.k, self.scan = policy, world, catalog, k, scan
        self.optimal, self.arrays = world.optimal_slates(k), world.arrays()
        self.noise = np.empty(policy.noise_size(k, world.features.shape[1]))
        self.tally = Tally(np.zeros(3), np.zeros(world.n_items, np.int64), NEVER)
        self.row: NDArray[np.uint8] | None = None
        if policy.learns_row:
            self.row = np.empty(world.n_items, np.uint8)
            compiled(look_at_row, type(policy))(self.arrays, ROW_KEY, self.row)
        self.contexts = known_of(world, self.arrays, policy)
        self.loop = compiled(play, type(policy))
        self.played = 0

    def begin(self) -> None:
        features = self.world.features
        # Shortcuts remember what was learned: new ones for the new state.
        self.catalog = scanning(self.items) if self.scan else self.policy.shortcuts(self.items)
        self.numbers = self.policy.numbers(self.k, features)
        self.state = self.policy.initial_state(self.world.n_items, features.shape[1], self.k)
        if self.row is not None:
            self.policy.learn_row(self.state, self.row)
        self.player = Player(
            self.numbers, self.state, self.catalog, NO_LIMITS, self.contexts, self.policy.click_model.kind,
            POLICY_KEY, self.noise,
        )  # fmt: skip
        self.ground = Ground(self.arrays, self.optimal, new_memo(self.k), WORLD_KEY)

    def play(self, first: int, last: int) -> None:
        self.played = last
        self.loop(self.player, self.ground, self.tally, first, last)

    def record(self, steps: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The slates of the first steps, and the place of the click in each, -1 for none."""
        self.begin()
        slates, clicked = np.empty((steps, self.k), np.int64), np.empty(steps, np.int64)
        compiled(record, type(self.policy))(
            self.numbers, self.state, self.catalog, NO_LIMITS, self.arrays, POLICY_KEY, WORLD_KEY,
            self.noise, slates, clicked,
        )  # fmt: skip
        return slates, clicked


def record(  # type: ignore[no-untyped-def]
    numbers, state, catalog, request, world, policy_key, world_key, noise, slates, clicked
):
    """What the loop of the simulator shows and is answered, step by step; nothing is summed up."""
    clicks = np.empty(slates.shape[1], np.uint8)
    for step in range(len(slates)):
        key = mix(policy_key, np.uint64(step))
        fill_normal(key, noise)
        slate = slates[step]
        n = recommend(numbers, state, catalog, request, key, noise, slate)
        click = first_attractive(world, mix(world_key, np.uint64(step)), slate, n)
        for position in range(n):
            clicks[position] = position == click
        learn(numbers, state, catalog, request, slate, n if click < 0 else click + 1, clicks)
        clicked[step] = click


class Floor:
    """What a policy cannot do without: the draw of its thetas, and learning from the clicks it met.

    These are the clicks of the policy's first steps, as many as it has played by now, again and again;
    nothing is ranked.
    """

    def __init__(self, player: LoopPlayer) -> None:
        self.player = player
        self.loop = compiled(floor, type(player.policy))
        self.checksum = np.zeros(1)
        self.slates: NDArray[np.int64] | None = None

    def begin(self) -> None:
        player = self.player
        if self.slates is None:
            self.slates, self.clicked = player.record(min(max(player.played, 1), RECORDED))
        policy, features = player.policy, player.world.features
        # Nothing is ranked, so no shortcut is kept up to date.
        self.catalog = scanning(player.items)
        self.state = policy.initial_state(player.world.n_items, features.shape[1], player.k)
        self.numbers = policy.numbers(player.k, features)

    def play(self, first: int, last: int) -> None:
        self.loop(
            self.numbers, self.state, self.catalog, NO_LIMITS, POLICY_KEY, self.slates, self.clicked,
            first, last, self.player.noise, self.checksum,
        )  # fmt: skip


def floor(  # type: ignore[no-untyped-def]
    numbers, state, catalog, request, policy_key, slates, clicked, first, last, noise, checksum
):
    k = slates.shape[1]
    clicks = np.empty(k, np.uint8)
    for step in range(first, last):
        fill_normal(mix(policy_key, np.uint64(step)), noise)
        # Added up, or the compiler would leave out what nobody reads.
        checksum[0] += drawn(numbers, state, noise)
        click = clicked[step % len(slates)]
        for position in range(k):
            clicks[position] = position == click
        examined = k if click < 0 else click + 1
        learn(numbers, state, catalog, request, slates[step % len(slates)], examined, clicks)


def drawn(numbers, state, noise):  # type: ignore[no-untyped-def]
    """A sum over the thetas that the policy needs for one slate."""
    return _drawing(POLICY_OF_NUMBERS[type(numbers)])(numbers, state, noise)


@overload(drawn, jit_options=OPTIONS)
def _drawn(numbers, state, noise):  # type: ignore[no-untyped-def]
    return _drawing(POLICY_OF_NUMBERS.get(getattr(numbers, "instance_class", None)))


def _drawing(policy: Any) -> Any:
    return DRAWN.get(getattr(policy, "name", ""), _nothing)


def _one_sample(numbers, state, noise):  # type: ignore[no-untyped-def]
    return sample(state.moment, state.factor, numbers.sigma, noise)[0]


def _sample_of_each_position(numbers, state, noise):  # type: ignore[no-untyped-def]
    total, d = 0.0, state.moment.shape[1]
    for position in range(len(state.moment)):
        total += sample(
            state.moment[position], state.factor[position], numbers.sigma, noise[position * d :][:d]
        )[0]
    return total


def _mean(numbers, state, noise):  # type: ignore[no-untyped-def]
    return mean(state.moment, state.factor, numbers.sigma)[0]


def _nothing(numbers, state, noise):  # type: ignore[no-untyped-def]
    return 0.0


DRAWN = {
    "cascade-lin-ts": _one_sample,
    "cascade-lin-ucb": _mean,
    "ranked-lin-ts": _sample_of_each_position,
}


class Pass:
    """One look at every feature of every item: no scan can be faster than memory gives them."""

    def __init__(self, world: LongTailWorld) -> None:
        self.features = world.features.reshape(-1)
        self.checksum = 0.0

    def begin(self) -> None:
        pass

    def play(self, first: int, last: int) -> None:
        for _ in range(first, last):
            self.checksum += add_up(self.features)


# Sums may be reordered here, and only here: in order, the adding would take longer than the reading.
@numba.njit(nogil=True, fastmath={"reassoc", "nsz"})
def add_up(numbers):  # type: ignore[no-untyped-def]
    total = 0.0
    for i in range(len(numbers)):
        total += numbers[i]
    return total


class NumPyPlayer:
    """A transcription in NumPy, plain or tuned, in the same world."""

    def __init__(self, transcription: Any, policy: Policy, world: LongTailWorld, k: int) -> None:
        self.transcription, self.policy, self.world, self.k = transcription, policy, world, k

    def begin(self) -> None:
        self.numpy = self.transcription(self.world.features, self.k, self.policy)
        self.draw = stream(0, "bench", "numpy")

    def play(self, first: int, last: int) -> None:
        numpy, draw, attractions, k = self.numpy, self.draw, self.world.attractions, self.k
        for _ in range(first, last):
            slate = numpy.recommend(draw)
            hits = np.flatnonzero(draw.random(k) < attractions[slate])
            numpy.learn(slate, int(hits[0]) if len(hits) else k)
