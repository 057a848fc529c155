"""TopRank."""

from math import erf, log, pi, sqrt
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from firstclick.kernels.compiling import kernel
from firstclick.kernels.ranking import rank, rows_of
from firstclick.parameters import param
from firstclick.policies._ranking import CLICK_MODEL, PairPolicy, allowed_by, widened
from firstclick.policies.base import PlainParameters, lengthened
from firstclick.validation.ranges import BIT, Range

PAIRS = ("block", "shown")
SHOWN = PAIRS.index("shown")


class TopRankState(NamedTuple):
    """Which items are known to be better than which."""

    wins: NDArray[np.int32]  # [i, j]: slates in which i was clicked and j was not, both in one block
    beats: NDArray[np.uint8]  # [i, j]: i is better than j for sure
    block: NDArray[np.int64]  # by item, from 0
    time: NDArray[np.int64]


@kernel
def _beats_for_sure(wins, i, j, constant):  # type: ignore[no-untyped-def]
    """Whether S >= sqrt(2 N log(constant sqrt(N))): of N slates in which only one of the two was clicked, i
    won S more than j."""
    lead, n = wins[i, j] - wins[j, i], wins[i, j] + wins[j, i]
    return lead > 0 and lead >= sqrt(2.0 * n * log(constant * sqrt(n)))


@kernel
def _in_layers(beats, block):  # type: ignore[no-untyped-def]
    """Set block[j] to 0 for items that no other beats, to 1 for those beaten by none but these, and so on.

    Items that beat each other in a circle, which only happens by mistake, come last, in one block.
    """
    n_items = len(block)
    beaten = np.zeros(n_items, np.int64)
    for row in range(n_items):
        for j in range(n_items):
            beaten[j] += beats[row, j]
    placed = np.zeros(n_items, np.bool_)
    layer, left = 0, n_items
    while left > 0:
        free = np.nonzero(~placed & (beaten == 0))[0]
        if len(free) == 0:
            free = np.nonzero(~placed)[0]
        for i in free:
            placed[i] = True
            block[i] = layer
            for j in range(n_items):
                beaten[j] -= beats[i, j]
        left -= len(free)
        layer += 1


class TopRank(PairPolicy):
    """Sort items into blocks, best first, by who is clicked more often; show each block in random order.

    It needs no click model: only that better items are clicked more often in the same places, and that it is
    best to show them from the top down, as in a cascade, with dependent clicks or by position. For each two
    items of one block it counts the slates in which only one of them was clicked; one that was not shown or
    not examined was not clicked. Of N such slates S is how many more the first item won; it beats the other
    for sure once S >= sqrt(2 N log(c sqrt(N) / delta)), c = 4 sqrt(2 / pi) / erf(sqrt(2)). The first block
    are the items that none beats, the next those that only these beat, and so on.

    delta = 1 / horizon (a co-author's later experiments have 1 / sqrt(horizon)). Regret O(K L / gap log n),
    and O(sqrt(K^3 L n log n)) whatever the gaps. Ours: where mistakes make a circle, its items form the last
    block; feedback that comes late is read by the blocks of the day it comes. pairs=shown compares only items
    that were both shown. It lets items be added later, takes requests with `exclude` or `candidates`, and
    learns more slowly.

    It refuses requests with `pinned` or `at_most`, and with pairs=block those with `exclude` or `candidates`:
    `learn` is not told what a request allowed, so that an item which was left out would look like one that
    nobody clicks. Withdrawn and unavailable items are known, and not compared.

    It keeps L^2 numbers. A click takes time in proportion to L; a relation that is new, to L^2.
    """

    name = "top-rank"
    paper = "Lattimore et al. 2018, Algorithm 1"
    derived = ("constant",)
    # An item that is not shown loses to every click in its block: a state without it cannot be made into one
    # that had it all the time.
    growable: ClassVar[bool] = False
    pairs: str = param(
        "block",
        "which pairs are compared: 'block' all of a block that the request allowed, 'shown' only those that "
        "were both shown",
        words=PAIRS,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.pairs == "shown":
            # Items that were not shown have neither won nor lost: new ones are like them, and those that a
            # request leaves out. Pins and caps still give items that are shown better and worse places.
            object.__setattr__(self, "growable", True)
            object.__setattr__(self, "misreads", {"pinned": CLICK_MODEL, "at_most": CLICK_MODEL})

    def numbers(self, k: int, features: NDArray[np.float64]) -> PlainParameters:
        return self._pack(constant=4.0 * sqrt(2.0 / pi) / erf(sqrt(2.0)) * self.horizon)

    def initial_state(self, n_items: int, n_features: int, k: int) -> TopRankState:
        return TopRankState(
            wins=self._no_wins(n_items),
            beats=np.zeros((n_items, n_items), np.uint8),
            block=np.zeros(n_items, np.int64),
            time=np.zeros(1, np.int64),
        )

    def ranges(self, n_items: int, k: int) -> dict[str, Range]:
        return {"beats": BIT, "block": Range(0, n_items - 1)}

    def grow(self, state: TopRankState, n_items: int) -> TopRankState:
        # Nobody has beaten the new ones yet: they belong to the first block.
        return TopRankState(
            wins=widened(state.wins, n_items),
            beats=widened(state.beats, n_items),
            block=lengthened(state.block, n_items),
            time=state.time,
        )

    @staticmethod
    def recommend(numbers, state, catalog, request, key, noise, slate):  # type: ignore[no-untyped-def]
        rows = rows_of(catalog, request)
        scores = np.empty(len(rows))
        for j in range(len(rows)):
            # Equal scores come in random order: that shuffles each block.
            scores[j] = -state.block[rows[j]]
        return rank(rows, scores, catalog, request, key, slate)

    @staticmethod
    def learn(numbers, state, catalog, request, slate, examined, clicks):  # type: ignore[no-untyped-def]
        wins, beats, block = state.wins, state.beats, state.block
        comparable = allowed_by(request, len(block))
        if numbers.pairs == SHOWN:
            comparable[:] = 0
            for position in range(examined):
                comparable[slate[position]] = 1
        for position in range(examined):
            if clicks[position]:
                comparable[slate[position]] = 0
        news = False
        for position in range(examined):
            if clicks[position]:
                i = slate[position]
                for j in range(len(block)):
                    if comparable[j] and block[j] == block[i]:
                        wins[i, j] += 1
                        if not beats[i, j] and _beats_for_sure(wins, i, j, numbers.constant):
                            beats[i, j] = 1
                            news = True
        if news:
            _in_layers(beats, block)
        state.time[0] += 1
