"""BatchRank."""

from math import ceil, log
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from firstclick.kernels.bounds import kl_bound
from firstclick.kernels.compiling import kernel
from firstclick.kernels.hashing import mix
from firstclick.kernels.ranking import rank, rows_of
from firstclick.parameters import param
from firstclick.policies._ranking import BlockPolicy, slots_of_block
from firstclick.policies.base import State, lengthened
from firstclick.validation.ranges import Range

# Batch first, then how often shown: more than anything is ever shown.
_BATCH = 2.0**40
# Its end would take 10^19 slates.
LAST_STAGE = 30
# Who is shown is no part of where: another key.
_SHUFFLE = np.uint64(7 << 56)


class BatchRankState(NamedTuple):
    """Which slots each item is tried in, and how it did since the stage began."""

    batch: NDArray[np.int64]  # by item: the first slot of its batch; k for an item that was dropped
    shown: NDArray[np.int64]  # by item, in the stage of its batch
    hits: NDArray[np.int64]
    stage: NDArray[np.int64]  # by slot: the stage of the batch that begins there, -1 for none
    time: NDArray[np.int64]


@kernel
def _stage_length(horizon, stage):  # type: ignore[no-untyped-def]
    """How often each item is shown in a stage: n_l = ceil(16 4^l log n)."""
    return ceil(16.0 * 4.0**stage * log(horizon))


@kernel
def _end_stage(state, start, horizon):  # type: ignore[no-untyped-def]
    """Split the batch that begins at this slot, or drop what cannot be among its best, and start anew."""
    k = len(state.stage)
    slots = slots_of_block(state.stage, start)
    rows = np.nonzero(state.batch == start)[0]
    lower, upper = np.empty(len(rows)), np.empty(len(rows))
    budget = log(horizon) + 3.0 * log(log(horizon))
    for j in range(len(rows)):
        rate, width = state.hits[rows[j]] / state.shown[rows[j]], budget / state.shown[rows[j]]
        upper[j] = kl_bound(rate, width)
        lower[j] = 1.0 - kl_bound(1.0 - rate, width)
    best = np.argsort(-lower)
    # The last place at which all items above are better for sure than all items below.
    split, rival = 0, 0.0
    for place in range(len(rows) - 1, 0, -1):
        rival = max(rival, upper[best[place]])
        if place < slots and lower[best[place - 1]] > rival:
            split = place
            break
    if split > 0:
        state.stage[start] = state.stage[start + split] = 0
        for j in best[split:]:
            state.batch[rows[j]] = start + split
    else:
        state.stage[start] += 1
        if len(rows) > slots:
            least = lower[best[slots - 1]]
            for j in range(len(rows)):
                if upper[j] < least:
                    state.batch[rows[j]] = k
    for row in rows:
        state.shown[row] = state.hits[row] = 0


class BatchRank(BlockPolicy):
    """Give slots to batches of items, split a batch where its best are better for sure, drop the hopeless.

    It needs no click model: only that better items are clicked more often on the average over the slots of
    their batch, as in a cascade or by position. At first one batch has all items and all slots. In stage l
    each item of a batch is shown n_l = ceil(16 4^l log n) times, those shown least first, in random order.
    Then KL bounds with budget log n + 3 log log n decide: the batch is split at the last place where all
    lower bounds above exceed all upper bounds below, and both parts begin with stage 0; if there is none,
    items drop out whose upper bound is under the lower bound of the last that has a slot.

    n is the horizon. Regret O(K^3 L / gap log n). The constants are large: unless gaps are, it wants a
    million slates and more.

    Ours: items are counted whenever they are shown, not only while they are behind; a batch without a split
    goes on even if it has no item to drop; items added later join the last batch.

    Requests with `candidates`, `exclude`, `pinned` or `at_most` are refused: the items of a batch would have
    other slots and other items above them, and their clicks would say nothing of which is better. Withdrawn
    and unavailable items are passed over, and what is left moves up. A batch waits for all its items: while
    one is gone nothing is decided there, and what the others were clicked meanwhile counts. Start anew
    without items that will not come back.
    """

    name = "batch-rank"
    paper = "Zoghi et al. 2017, Algorithm 1 (BatchRank)"
    by_slot = "stage"
    by_item = ("shown", "hits")
    # 16 log n = 184 times each item before it acts at all.
    quick: ClassVar[bool] = False
    horizon: int = param(
        100_000, "n: slates that its confidence is meant for; 100,000 is our choice",
        at_least=3, told="horizon",
    )  # fmt: skip

    def initial_state(self, n_items: int, n_features: int, k: int) -> BatchRankState:
        none = np.zeros(n_items, np.int64)
        return BatchRankState(none, none.copy(), none.copy(), self._no_blocks(k), np.zeros(1, np.int64))

    def grow(self, state: State, n_items: int) -> State:
        last = np.flatnonzero(state.stage >= 0)[-1]
        return super().grow(state, n_items)._replace(batch=lengthened(state.batch, n_items, last))

    def ranges(self, n_items: int, k: int) -> dict[str, Range]:
        return {"batch": Range(0, k), "stage": Range(-1, LAST_STAGE)}

    @staticmethod
    def recommend(numbers, state, catalog, request, key, noise, slate):  # type: ignore[no-untyped-def]
        batch, shown = state.batch, state.shown
        rows = rows_of(catalog, request)
        scores = np.empty(len(rows))
        # Only the last batch has more items than slots: a slate is all of the others and some of it.
        for j in range(len(rows)):
            scores[j] = -(batch[rows[j]] * _BATCH + shown[rows[j]])
        n = rank(rows, scores, catalog, request, key, slate)
        chosen = slate[:n].copy()
        return rank(chosen, -1.0 * batch[chosen], catalog, request, mix(key, _SHUFFLE), slate)

    @staticmethod
    def learn(numbers, state, catalog, request, slate, examined, clicks):  # type: ignore[no-untyped-def]
        for position in range(examined):
            state.shown[slate[position]] += 1
            state.hits[slate[position]] += clicks[position]
        k = len(state.stage)
        least = np.full(k + 1, 2**62)
        for row in range(len(state.batch)):
            start = state.batch[row]
            least[start] = min(least[start], state.shown[row])
        for start in range(k):
            stage = state.stage[start]
            if stage >= 0 and least[start] < 2**62 and least[start] >= _stage_length(numbers.horizon, stage):
                _end_stage(state, start, numbers.horizon)
        state.time[0] += 1
