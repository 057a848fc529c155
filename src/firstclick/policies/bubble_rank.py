"""BubbleRank."""

from math import log, sqrt
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from firstclick.errors import InvalidInput
from firstclick.kernels.compiling import kernel
from firstclick.kernels.hashing import mix, uniform
from firstclick.kernels.ranking import rank, rows_of
from firstclick.parameters import param
from firstclick.policies._ranking import PairPolicy, allowed_by, widened
from firstclick.policies.base import State
from firstclick.validation.ranges import Range

# Coins are no part of the order of ties: another key.
_COINS = np.uint64(6 << 56)


class BubbleRankState(NamedTuple):
    """The list so far, and what is known of pairs that stood next to each other."""

    wins: NDArray[np.int32]  # [i, j]: slates in which i was clicked and j was not
    place: NDArray[np.int64]  # of each item in the list, from 0
    time: NDArray[np.int64]


@kernel
def _swaps_for_sure(wins, i, j, budget):  # type: ignore[no-untyped-def]
    """Whether S > 2 sqrt(N budget): of N slates in which only one of the two was clicked, i won S more."""
    lead, n = wins[i, j] - wins[j, i], wins[i, j] + wins[j, i]
    return lead > 2.0 * sqrt(n * budget)


@kernel
def _first_paired(numbers, time):  # type: ignore[no-untyped-def]
    """The number of the first item that is paired with the next one: 1 for the first slates, then 0, ..."""
    return (time // numbers.turn + 1) % 2


@kernel
def _as_listed(slate, order, allowed, first):  # type: ignore[no-untyped-def]
    """The rows of the slate in the order of the list, and by row its position in the slate, -1 for none.

    If the last slot is paired with an item that is not shown, that one is in it too, at its place.
    """
    n = len(slate)
    position = np.full(len(order), -1)
    for k in range(n):
        position[slate[k]] = k
    listed = np.empty(n + 1, np.int64)
    found, after = 0, 0
    for k in range(len(order)):
        if position[order[k]] >= 0:
            listed[found] = order[k]
            found += 1
            if found == n - 1:
                after = k + 1
    # A log may name an item twice in one slate: then fewer are found.
    if found == n > 0 and (n - 1) % 2 == first and position[listed[n - 1]] == n - 1:
        last = listed[n - 1]
        found = n - 1
        for k in range(after, len(order)):
            if found <= n and (order[k] == last or allowed[order[k]]):
                listed[found] = order[k]
                found += 1
    return listed[:found], position


class BubbleRank(PairPolicy):
    """Start from the list in production, the order of the catalog, and exchange neighbours as clicks tell.

    It needs no click model: only that of two neighbours the better one is clicked more often, if each stands
    above the other equally often. It is safe: what it shows is never much worse than the list it was given.

    Neighbours are paired, from the first or from the second place in turn, and each pair is shown in random
    order; where only one of a pair is clicked, it wins. Of N such slates S is how many more an item won: with
    S > 2 sqrt(N log(1 / delta)) it goes above the other for good, and a pair in the right order is no longer
    exchanged. delta = horizon^-4 is our choice.

    Safety, where slates show the whole list of K items: call a pair wrong if the less attractive item stands
    above. With a chance of at least 1 - K^2 n sqrt(delta) = 1 - K^2 / n none of the first n slates has more
    than K/2 wrong pairs more than the list at the start. Regret O(K (K + wrong pairs at the start) / gap
    log n).

    Ours: with more items than slots, the last slot pairs with the first item that is not shown; one of the
    two is shown by chance, and wins if it is clicked: for that pair nothing is promised. An item that a
    request leaves out would lose there, because feedback does not tell which items were allowed, and pins and
    caps decide which of two stands above: requests with `candidates`, `exclude`, `pinned` or `at_most` are
    refused. Withdrawn and unavailable items are passed over: those above and below are neighbours, and
    exchange their places round them. A pair is counted if the slate shows it as it might be shown now. Of
    feedback that comes late, when the pairing is another, only pairs in the order of the list remain: that is
    safe, but favours that order. So where many slates are out at once, let `turn` be many times their number.
    It keeps L^2 numbers.
    """

    name = "bubble-rank"
    paper = "Li et al. 2019, Algorithm 1 (BubbleRank)"
    # The order of the catalog is the list it starts from, and it strays from it one step at a time.
    unordered: ClassVar[bool] = False
    quick: ClassVar[bool] = False
    turn: int = param(1, "slates between two pairings", at_least=1)

    def initial_state(self, n_items: int, n_features: int, k: int) -> BubbleRankState:
        return BubbleRankState(self._no_wins(n_items), np.arange(n_items), np.zeros(1, np.int64))

    def ranges(self, n_items: int, k: int) -> dict[str, Range]:
        return {"place": Range(0, n_items - 1)}

    def check_state(self, state: State, n_items: int, k: int) -> None:
        super().check_state(state, n_items, k)
        if len(np.unique(state.place)) < n_items:
            raise InvalidInput(f"{self.name}: place must be another for each item, got one twice")

    def grow(self, state: BubbleRankState, n_items: int) -> BubbleRankState:
        last = np.arange(len(state.place), n_items)
        return BubbleRankState(widened(state.wins, n_items), np.concatenate([state.place, last]), state.time)

    @staticmethod
    def recommend(numbers, state, catalog, request, key, noise, slate):  # type: ignore[no-untyped-def]
        place, labels = state.place, catalog.labels
        budget, first = 4.0 * log(numbers.horizon), _first_paired(numbers, state.time[0])
        coins = mix(key, _COINS)
        rows = rows_of(catalog, request)
        listed = np.empty(len(slate) + 1, np.int64)
        n = rank(rows, -1.0 * place[rows], catalog, request, key, listed)
        for k in range(first, n - 1, 2):
            i, j = listed[k], listed[k + 1]
            if uniform(coins, labels[i]) < 0.5 and not _swaps_for_sure(state.wins, i, j, budget):
                listed[k], listed[k + 1] = j, i
        n = min(n, len(slate))
        for k in range(n):
            slate[k] = listed[k]
        return n

    @staticmethod
    def learn(numbers, state, catalog, request, slate, examined, clicks):  # type: ignore[no-untyped-def]
        wins, place = state.wins, state.place
        budget, first = 4.0 * log(numbers.horizon), _first_paired(numbers, state.time[0])
        order = np.empty(len(place), np.int64)
        for row in range(len(place)):
            order[place[row]] = row
        allowed = allowed_by(request, len(place))
        listed, position = _as_listed(slate, order, allowed, first)
        for k in range(first, len(listed) - 1, 2):
            i, j = listed[k], listed[k + 1]
            a, b = position[i], position[j]
            above, below = min(a, b), max(a, b)
            if 0 <= below < examined and (above == below - 1 or above < 0):
                own, other = clicks[a] if a >= 0 else 0, clicks[b] if b >= 0 else 0
                wins[i, j] += own > other
                wins[j, i] += other > own
        upper = np.int64(-1)
        for i in order:
            if not allowed[i]:
                continue
            # Who is passed over stays where it is: to put a pair right never makes more pairs wrong.
            if upper >= 0 and _swaps_for_sure(wins, i, upper, budget):
                place[i], place[upper] = place[upper], place[i]
            else:
                upper = i
        state.time[0] += 1
