"""GLRT-CascadeKL-UCB."""

from math import log, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from firstclick.kernels.bounds import kl_bound, kl_budget
from firstclick.kernels.compiling import kernel
from firstclick.kernels.hashing import mix, uniform
from firstclick.kernels.ranking import rank, rows_of
from firstclick.parameters import param
from firstclick.policies.base import State, lengthened
from firstclick.policies.research._forgetting import ForgettingCountPolicy
from firstclick.validation.ranges import Range, check_no_more

# An item's history is cut at so many places at most, equally far apart.
CUTS = 64

# Above every bound, which is at most 1: an item of which nothing is known, and one whose turn it is.
UNSEEN, FORCED = 2.0, 3.0

FORGET = ("all", "item")
FORGET_ALL = FORGET.index("all")

# Whether to explore, and what, are no part of how ties are broken: another key.
_EXPLORING = np.uint64(6 << 56)
_WHETHER, _WHAT = np.uint64(0), np.uint64(1)


class HistoryState(NamedTuple):
    """Counts since the last change, and the hits of each item after every `step` of its examinations."""

    examined: NDArray[np.int64]
    hits: NDArray[np.int64]
    history: NDArray[np.int32]  # items x cuts; the first examined // step of a line hold
    step: NDArray[np.int64]  # by item, a power of two
    since: NDArray[np.int64]  # by item: the time of the last change
    time: NDArray[np.int64]


@kernel
def remember(history, step, examined, hits):  # type: ignore[no-untyped-def]
    """Keep the number of hits after so many examinations, if it is time to; return the step from now on."""
    if examined // step > len(history):
        for i in range(len(history) // 2):
            history[i] = history[2 * i + 1]
        step *= 2
    if examined % step == 0:
        history[examined // step - 1] = hits
    return step


@kernel
def _surprise(hits, examined):  # type: ignore[no-untyped-def]
    """Minus the logarithm of how likely these observations are at their own rate."""
    misses = examined - hits
    total = examined * log(examined)
    if hits > 0:
        total -= hits * log(hits)
    if misses > 0:
        total -= misses * log(misses)
    return total


@kernel
def change_evidence(history, step, examined, hits):  # type: ignore[no-untyped-def]
    """The generalised log likelihood ratio of one change of the rate, at the best cut, against none:
    max over s of s KL(rate before s, rate) + (examined - s) KL(rate after s, rate)."""
    unchanged = _surprise(hits, examined)
    most = 0.0
    for i in range((examined - 1) // step):
        before = step * (i + 1)
        changed = _surprise(history[i], before) + _surprise(hits - history[i], examined - before)
        most = max(most, unchanged - changed)
    return most


class CascadeGLRUCB(ForgettingCountPolicy):
    """Rank items as cascade-kl-ucb does, watch each item for a change of its click rate, and then start anew.

    For the cascade: the first click ends the slate, and items attract independently. Tastes change rarely and
    at once, and stay as they are in between; nobody says when.

    U(e) = max{q : examined * KL(hits / examined, q) <= log t + 3 log log t}, counted since the last change,
    with t the steps since then, from 1; items not examined since come first. A change is found when for some
    cut of an item's n observations since into s and n - s, s KL(rate before, rate) + (n - s) KL(rate after,
    rate) > log(3 n sqrt(n) / delta). With delta=0 and explore=0 it is cascade-kl-ucb:start=first, slate by
    slate. Regret O(sqrt(changes * L n log n)), the least possible but for the logarithm.

    The authors' are the test, delta = 1 / n for n steps (here that of 100,000), forgetting all items upon a
    change, and exploring. The threshold is the leading term of the one in the proofs, which has further ones
    and finds changes later; Besson and Kaufmann, whose test it is, use it so. Ours are: at most 64 cuts are
    tried, at every 2^i-th observation; what is explored is drawn and not taken in turns, and goes to the top
    of the usual slate, which costs its last item; explore is 0.05. The state holds 64 numbers for each item,
    and each examined item costs up to 64 trials a step.
    """

    name = "cascade-glr-ucb"
    paper = "Wang et al. 2021 (GLRT-CascadeKL-UCB)"
    made_for = ("switch",)
    by_item = ("examined", "hits", "history")

    delta: float = param(
        1e-5, "chance of taking luck for a change, for each item; 0 finds none",
        at_least=0, below=1, told="1/horizon",
    )  # fmt: skip
    explore: float = param(
        0.05, "share of slates that have an item drawn from all at the top", at_least=0, at_most=1
    )
    forget: str = param(
        "all", "upon a change of one item: 'all' forgets all items, 'item' that one", words=FORGET
    )

    def initial_state(self, n_items: int, n_features: int, k: int) -> HistoryState:
        return HistoryState(
            examined=np.zeros(n_items, np.int64),
            hits=np.zeros(n_items, np.int64),
            history=np.zeros((n_items, CUTS), np.int32),
            step=np.ones(n_items, np.int64),
            since=np.zeros(n_items, np.int64),
            time=np.zeros(1, np.int64),
        )

    def ranges(self, n_items: int, k: int) -> dict[str, Range]:
        return {"step": Range(1, 2**53)}

    def check_state(self, state: State, n_items: int, k: int) -> None:
        super().check_state(state, n_items, k)
        kept, room = state.examined // state.step, np.full(n_items, CUTS)
        check_no_more(self.name, "examined // step", kept, "the number of cuts", room)
        check_no_more(self.name, "since", state.since, "time", np.repeat(state.time, n_items))

    def grow(self, state: State, n_items: int) -> State:
        since = state.since.max(initial=0) if self.forget == "all" else 0
        return (
            super()
            .grow(state, n_items)
            ._replace(step=lengthened(state.step, n_items, 1), since=lengthened(state.since, n_items, since))
        )

    @staticmethod
    def recommend(numbers, state, catalog, request, key, noise, slate):  # type: ignore[no-untyped-def]
        rows = rows_of(catalog, request)
        scores = np.empty(len(rows))
        since, budget = -1, 0.0
        for j in range(len(rows)):
            row = rows[j]
            if state.since[row] != since:
                since = state.since[row]
                budget = kl_budget(state.time[0] - since + 1)
            examined = state.examined[row]
            scores[j] = kl_bound(state.hits[row] / examined, budget / examined) if examined > 0 else UNSEEN
        exploring = mix(key, _EXPLORING)
        if uniform(exploring, _WHETHER) < numbers.explore:
            _force(rows, scores, catalog, request, mix(exploring, _WHAT))
        return rank(rows, scores, catalog, request, key, slate)

    @staticmethod
    def learn(numbers, state, catalog, request, slate, examined, clicks):  # type: ignore[no-untyped-def]
        state.time[0] += 1
        changed = False
        for position in range(examined):
            item = slate[position]
            state.examined[item] += 1
            state.hits[item] += clicks[position]
            n, hits, history = state.examined[item], state.hits[item], state.history[item]
            state.step[item] = remember(history, state.step[item], n, hits)
            if numbers.delta > 0.0:
                threshold = log(3.0 * n * sqrt(n) / numbers.delta)
                if change_evidence(history, state.step[item], n, hits) > threshold:
                    changed = True
                    _forget(state, item)
        if changed and numbers.forget == FORGET_ALL:
            for item in range(len(state.examined)):
                _forget(state, item)


@kernel
def _force(rows, scores, catalog, request, key):  # type: ignore[no-untyped-def]
    """Put one row, each as likely as any other, above all."""
    hidden = request.hidden
    chosen, luck = -1, np.uint64(0)
    for j in range(len(rows)):
        own = mix(key, catalog.labels[rows[j]])
        if (chosen < 0 or own > luck) and (len(hidden) == 0 or not hidden[rows[j]]):
            chosen, luck = j, own
    if chosen >= 0:
        scores[chosen] = FORCED


@kernel
def _forget(state, item):  # type: ignore[no-untyped-def]
    state.examined[item] = state.hits[item] = 0
    state.step[item] = 1
    state.since[item] = state.time[0]
