"""Whether the policy that wrote a log stayed the same: the same first items always had the same chance."""

import numpy as np
from numpy.typing import NDArray

from firstclick.evaluation.targets import Table
from firstclick.logs.ranked_log import NO_ITEM, SlateBatch

# The same first items with chances this far apart: the logger changed, or knew what the log does not tell.
CHANGED = 1.02
# First items whose chances are remembered, over all lengths; of more, those that came first.
MOST_REMEMBERED = 100_000

# SplitMix64.
STRIDE, FACTOR_1, FACTOR_2 = (
    np.uint64(number) for number in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)
)

Hashes = NDArray[np.uint64]


class LoggerCheck:
    """The lowest and the highest chance of each beginning of a slate, a batch at a time.

    Slates with different candidates are told apart. Of slates with the probability of the whole alone, the
    whole is compared.
    """

    def __init__(self, k: int) -> None:
        self._known = [_Chances(MOST_REMEMBERED // k) for _ in range(k)]

    @property
    def repeated(self) -> bool:
        """Whether anything came twice, so that it could be compared."""
        return any(one.repeated for one in self._known)

    @property
    def changed(self) -> bool:
        """Whether the same first items had different chances."""
        return any((one.highest > CHANGED * one.lowest).any() for one in self._known)

    def add(self, slates: SlateBatch, logged: Table, whole_alone: NDArray[np.bool_]) -> None:
        """Slates, the chances of their first 1, 2, ... items, and whether only the last of them is known."""
        lengths = (slates.items != NO_ITEM).sum(axis=1)
        hashes = _candidate_sets(slates)
        for place, known in enumerate(self._known):
            hashes = _mixed(hashes, slates.items[:, place])
            told = np.where(whole_alone, lengths == place + 1, lengths > place) & ~np.isnan(logged[:, place])
            known.add(hashes[told], logged[told, place])


class _Chances:
    """The lowest and the highest chance by hash; the hashes are sorted."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._hashes: Hashes = np.empty(0, np.uint64)
        self.lowest: Table = np.empty(0)
        self.highest: Table = np.empty(0)
        self.repeated = False

    def add(self, hashes: Hashes, chances: Table) -> None:
        """Compare with what is remembered, and remember what is new while there is room."""
        before = len(self._hashes)
        if before < self._most:
            self._remember(hashes, chances)
        if not len(self._hashes):
            return
        at = np.minimum(np.searchsorted(self._hashes, hashes), len(self._hashes) - 1)
        known = self._hashes[at] == hashes
        # What is new is found once for itself.
        self.repeated = self.repeated or int(known.sum()) > len(self._hashes) - before
        np.minimum.at(self.lowest, at[known], chances[known])
        np.maximum.at(self.highest, at[known], chances[known])

    def _remember(self, hashes: Hashes, chances: Table) -> None:
        different, first = np.unique(hashes, return_index=True)
        new = np.sort(first[~np.isin(different, self._hashes)])[: self._most - len(self._hashes)]
        joined = np.concatenate([self._hashes, hashes[new]])
        order = np.argsort(joined)
        self._hashes = joined[order]
        self.lowest = np.concatenate([self.lowest, chances[new]])[order]
        self.highest = np.concatenate([self.highest, chances[new]])[order]


def _candidate_sets(slates: SlateBatch) -> Hashes:
    """A number for the candidates of each slate, whatever their order; 0: all items."""
    slate_of, named = slates.candidates_named()
    found = np.zeros(slates.n, np.uint64)
    np.add.at(found, slate_of, _mixed(np.zeros(len(named), np.uint64), named))
    return found


def _mixed(hashes: Hashes, items: NDArray[np.int32]) -> Hashes:
    """A hash of what came before and the next item."""
    mixed = hashes + (items + 2).astype(np.uint64) * STRIDE
    mixed = (mixed ^ (mixed >> np.uint64(30))) * FACTOR_1
    mixed = (mixed ^ (mixed >> np.uint64(27))) * FACTOR_2
    return np.asarray(mixed ^ (mixed >> np.uint64(31)), np.uint64)
