"""RecurRank."""

from math import ceil, log
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from firstclick.errors import InvalidInput
from firstclick.kernels.compiling import kernel
from firstclick.kernels.design import g_optimal, least_squares, spanning
from firstclick.kernels.hashing import mix, uniform
from firstclick.kernels.ranking import rank, rows_of
from firstclick.policies._ranking import BlockPolicy, slots_of_block
from firstclick.policies.base import State
from firstclick.validation.ranges import Range

# Block first, then place: more than there are places.
_BLOCK = 2.0**40
# Who is tried is no part of the order of ties: another key.
_TRIED = np.uint64(8 << 56)
# Half of a millionth: phases beyond it would last longer than anybody waits, and leave floating point.
_LAST_PHASE = 20


class RecurRankState(NamedTuple):
    """Which slots each item competes for, and what the running phases have seen."""

    block: NDArray[np.int64]  # by item: the first slot of its block; k for an item that was dropped
    place: NDArray[np.int64]  # by item, within its block
    left: NDArray[np.int64]  # how many times it is still to be tried in the first slot of its block
    shown: NDArray[np.int64]  # how many times it was, in this phase
    hits: NDArray[np.int64]
    phase: NDArray[np.int64]  # by slot: that of the block that begins there; 0 not begun, -1 for none
    time: NDArray[np.int64]


@kernel
def _begin_phase(state, features, rows, start, phase, horizon):  # type: ignore[no-untyped-def]
    """Plan how often each of the rows is tried in the first slot of their block."""
    state.phase[start] = phase
    failure = len(state.phase) * phase * (phase + 1.0) * horizon
    trials = 0.5 * 4.0 ** min(phase, _LAST_PHASE) * log(len(rows) * failure)
    taken, z = spanning(features[rows])
    for row in rows:
        state.block[row] = start
        state.shown[row] = state.hits[row] = 0
        # Items without features are all one.
        state.left[row] = 1 if len(taken) == 0 else 0
    if len(taken) > 0:
        weights, width = g_optimal(taken, z)
        for j in range(len(rows)):
            state.left[rows[j]] = np.int64(ceil(width * weights[j] * trials))


@kernel
def _end_phase(state, features, rows, start, horizon):  # type: ignore[no-untyped-def]
    """Drop and split what is decided, and begin the next phase."""
    k, phase = len(state.phase), state.phase[start]
    slots = slots_of_block(state.phase, start)
    gap = 2.0 * 0.5 ** min(phase, _LAST_PHASE)
    _, z = spanning(features[rows])
    rates = least_squares(z, 1.0 * state.shown[rows], state.hits[rows])
    best = np.argsort(-rates)
    kept = len(rows)
    if kept > slots:
        while rates[best[slots - 1]] - rates[best[kept - 1]] >= gap:
            kept -= 1
            dropped = rows[best[kept]]
            state.block[dropped], state.place[dropped] = k, 0
    first = 0
    for place in range(kept):
        if place == 0 or rates[best[place]] < rates[best[place - 1]]:
            shared = place  # Items of equal rate share a place, and come in random order.
        state.place[rows[best[place]]] = shared
        # All that is kept below the last slot lies within the gap: nothing is split there.
        if place + 1 == kept or rates[best[place]] - rates[best[place + 1]] >= gap:
            members = np.sort(rows[best[first : place + 1]])
            _begin_phase(state, features, members, start + first, phase + 1, horizon)
            first = place + 1


class RecurRank(BlockPolicy):
    """Give slots to blocks of items, try items in the first slot of each, and split it by a linear model.

    It needs no click model: a click at a slot is the chance that it is examined, which may depend on what
    stands above, times an attraction that is linear in the features. In phase l every item of a block A has
    its turns in the block's first slot, T(a) = ceil(g w(a) 4^l / 2 log(|A| / delta_l)) of them, where w is a
    G-optimal design of the items and g the largest x'V^-1 x under it, nearly their rank d; the slots below
    show the best of the block so far. Least squares on the clicks of that one slot then know each item to
    within 2^-l: items are dropped that are 2 2^-l or more below the last that has a slot, and the block is
    split wherever two that follow each other are so far apart. Regret O(K sqrt(d n log(n L))).

    delta_l = 1 / (K l (l + 1) n), with n the horizon, so that all phases together fail with a chance of at
    most 2 / n; the first author's code has sqrt(n) there, and phases half as long again. Ours: the design,
    found to within a tenth by Frank and Wolfe's method from items that span the others (g makes good for the
    tenth); the order in which items are tried, which is random; all items in random order before the first
    phase ends. A block learns only from clicks at its own first slot.

    Requests with `candidates`, `exclude`, `pinned` or `at_most` are refused: what stands above an item
    decides how often it is examined, and has to be the same for all items of its block. Withdrawn and
    unavailable items are passed over, and a block waits for all its items: while one is gone nothing is
    decided there. Start anew without items that will not come back.

    A slate takes time in proportion to L; the end of a phase, once in a long while, to some hundred L d^2.
    """

    name = "recur-rank"
    paper = "Li, Lattimore and Szepesvari 2019, Algorithm 2 (RecurRank)"
    by_slot = "phase"
    needs_features: ClassVar[bool] = True
    # What it tries is planned from the features of the catalog, before any request.
    takes_features: ClassVar[bool] = False
    # The design of a running phase knows nothing of items that come later.
    growable: ClassVar[bool] = False

    def initial_state(self, n_items: int, n_features: int, k: int) -> RecurRankState:
        block, place, left, shown, hits = (np.zeros(n_items, np.int64) for _ in range(5))
        return RecurRankState(block, place, left, shown, hits, self._no_blocks(k), np.zeros(1, np.int64))

    def ranges(self, n_items: int, k: int) -> dict[str, Range]:
        return {"block": Range(0, k), "place": Range(0, n_items), "phase": Range(-1, 2**31)}

    def check_state(self, state: State, n_items: int, k: int) -> None:
        super().check_state(state, n_items, k)
        if state.left[state.block == k].any():
            raise InvalidInput(f"{self.name}: left must be 0 for items that were dropped")

    @staticmethod
    def recommend(numbers, state, catalog, request, key, noise, slate):  # type: ignore[no-untyped-def]
        block, place, left, labels = state.block, state.place, state.left, catalog.labels
        k, hidden, tried = len(state.phase), request.hidden, mix(key, _TRIED)
        rows = rows_of(catalog, request)
        scores = np.empty(len(rows))
        # Of each block the item to try: a race in which an item with more trials left is so much quicker.
        ahead, luck = np.full(k + 1, -1), np.full(k + 1, -np.inf)
        for j in range(len(rows)):
            row = rows[j]
            scores[j] = -(block[row] * _BLOCK + place[row])
            if left[row] > 0 and (len(hidden) == 0 or not hidden[row]):
                own = log(uniform(tried, labels[row])) / left[row]
                if own > luck[block[row]]:
                    luck[block[row]], ahead[block[row]] = own, j
        for start in range(k):
            if ahead[start] >= 0:
                scores[ahead[start]] = -(start * _BLOCK - 1.0)
        return rank(rows, scores, catalog, request, key, slate)

    @staticmethod
    def learn(numbers, state, catalog, request, slate, examined, clicks):  # type: ignore[no-untyped-def]
        features, k = catalog.features, len(state.phase)
        if state.phase[0] == 0:
            _begin_phase(state, features, catalog.rows, 0, 1, numbers.horizon)
        done = np.zeros(k, np.bool_)
        for position in range(min(examined, k)):
            row = slate[position]
            if state.block[row] == position:
                state.shown[row] += 1
                state.hits[row] += clicks[position]
                state.left[row] = max(state.left[row] - 1, 0)
                done[position] = True
        for row in range(len(state.block)):
            if state.left[row] > 0:
                done[state.block[row]] = False
        for start in range(k):
            if done[start]:
                rows = np.nonzero(state.block == start)[0]
                _end_phase(state, features, rows, start, numbers.horizon)
        state.time[0] += 1
