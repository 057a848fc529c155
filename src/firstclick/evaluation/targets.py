"""Policies that are judged: how likely each is to show what was logged. Subclass `Target` for your own."""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from firstclick.catalog.ids import ItemId, item_ids
from firstclick.click_models.click_fit import ClickFit
from firstclick.errors import InvalidInput
from firstclick.logs.ranked_log import NO_ITEM, NOT_TOLD, RankedLog, SlateBatch
from firstclick.streams import stream
from firstclick.validation.quoting import quoted

Table = NDArray[np.float64]
Places = NDArray[np.int32]

# An item that a target shows and the log has never heard of.
UNKNOWN_ITEM = -2
UNIFORM_SLATES = 64


class Predictions(NamedTuple):
    """What a click model expects for each slate and position, n x K. Cascade-DR uses it.

    The estimate stays unbiased with any model, as long as `target` is exactly the mean described here.

    Attributes:
        logged: Expected clicks from each position on, with the logged item there and the target's items
            below.
        target: The mean of that over the items that the target may show there, after the logged items above.
    """

    logged: Table
    target: Table


class Target(ABC):
    """A policy to judge from a log. It does not learn. Subclass it for a policy of your own.

    A subclass says how likely it is to show the first 1, 2, ... items of logged slates:

    >>> class Alphabetical(Target):
    ...     def start(self, log):
    ...         self.order = sorted(range(len(log.items)), key=lambda place: str(log.items[place]))
    ...     def prefix_chances(self, slates):
    ...         shown = slates.items == self.order[: slates.items.shape[1]]
    ...         return np.cumprod(shown | (slates.items == NO_ITEM), axis=1).astype(float)

    Attributes:
        judged_from: The event at which the target was made. It is judged only on slates drawn later.
        has_learned: How the target has learned from the slates it is judged on. Its verdict is then "caution"
            at best.
    """

    # An event of the log that the target was made at: it is judged on slates alone that were drawn after it.
    judged_from: int | None = None
    # How the target has learned from the very slates that it is judged on: its verdict is "caution" at best.
    has_learned: str = ""

    def start(self, log: RankedLog) -> None:
        """Called once, before the first batch.

        Args:
            log: The log. Items of slates are positions in `log.items`.
        """
        self.log = log

    @abstractmethod
    def prefix_chances(self, slates: SlateBatch) -> Table:
        """The probability that the target shows the first 1, 2, ... items of each slate.

        Args:
            slates: A batch of n logged slates.

        Returns:
            An n x K array. After the end of a slate the probability stays the same.
        """

    def place_chances(self, slates: SlateBatch) -> Table | None:
        """The probability of each item at its position, whatever is above it.

        Args:
            slates: A batch of n logged slates.

        Returns:
            An n x K array, or None if unknown.
        """
        return None

    def predictions(self, slates: SlateBatch, fit: ClickFit) -> Predictions | None:
        """What a click model expects of the target. None: judge it without a click model.

        Args:
            slates: A batch of logged slates.
            fit: The click model, fitted to the log.
        """
        return None

    def examples(self, n: int) -> Places | None:
        """Some slates that the target shows if all items are allowed; None if it cannot say.

        Args:
            n: The largest number of slates.
        """
        return None

    def refusal(self) -> str:
        """Why the log cannot judge this target, and what to do. Empty if it can. Called after `start`."""
        return ""

    def notes(self) -> list[str]:
        """Sentences about this target and log, for people. Called after the last batch."""
        return []


class DeterministicTarget(Target):
    """A target that always shows the same slate for the same request. Subclass it."""

    @abstractmethod
    def best_slates(self, slates: SlateBatch) -> Places:
        """The slate that the target shows in place of each logged slate.

        Args:
            slates: A batch of n logged slates.

        Returns:
            An n x K array of positions in `log.items`. -2 (`UNKNOWN_ITEM`) stands for an item that the log
            does
            not have, `NO_ITEM` follows the end of a slate.
        """

    def prefix_chances(self, slates: SlateBatch) -> Table:
        return np.cumprod(self._same(slates), axis=1).astype(np.float64)

    def place_chances(self, slates: SlateBatch) -> Table:
        return self._same(slates).astype(np.float64)

    def _same(self, slates: SlateBatch) -> NDArray[np.bool_]:
        # A page has as many places as it had: what would stand below its end is not missed.
        return np.asarray((self.best_slates(slates) == slates.items) | (slates.items == NO_ITEM))

    def examples(self, n: int) -> Places:
        return self.best_slates(plain_batch(np.zeros((1, self.log.k), np.int32)))

    def predictions(self, slates: SlateBatch, fit: ClickFit) -> Predictions:
        best = np.where(slates.items == NO_ITEM, np.int32(NO_ITEM), self.best_slates(slates))
        # Of what stands below an item that the log does not know, a model of the log expects nothing.
        known = np.logical_and.accumulate(best >= 0, axis=1)
        expected = clicks_from_each_place(fit, np.where(known, best, np.int32(NO_ITEM)), slates)
        # Where the logged items above are those of the target, its next item is the only one that counts.
        return Predictions(expected, expected)


class FixedList(DeterministicTarget):
    """The same list for everybody. If a request allows only some items, the first of those on the list.

    >>> FixedList(["tea", "coffee", "cocoa"])
    FixedList(['tea', 'coffee', 'cocoa'])

    Args:
        items: The list, best first; each item once.
    """

    def __init__(self, items: Iterable[ItemId]) -> None:
        self.items = item_ids(items, "items")
        if not self.items:
            raise InvalidInput("a list needs at least one item")
        if len(set(self.items)) < len(self.items):
            twice = next(item for place, item in enumerate(self.items) if item in self.items[:place])
            raise InvalidInput(f"item {quoted(twice)} is in the list twice; name it once")

    def __repr__(self) -> str:
        return f"FixedList({self.items!r})"

    def start(self, log: RankedLog) -> None:
        super().start(log)
        self._places = places_of(self.items, log.items)
        # Whether requests allow some items only, so that the list may go on below its first K.
        first = next(iter(log.batches()), None)
        self._chooses = first is not None and first.candidates is not None

    def best_slates(self, slates: SlateBatch) -> Places:
        n, k = slates.items.shape
        best = np.full((n, k), NO_ITEM, np.int32)
        slate_of, named = slates.candidates_named()
        allows_all = np.ones(n, np.bool_)
        allows_all[slate_of] = False
        shown = self._places[:k]
        best[allows_all, : len(shown)] = shown
        if not len(named):
            return best
        rank_of = np.full(len(self.log.items), -1, np.int64)
        known = self._places >= 0
        rank_of[self._places[known]] = np.flatnonzero(known)
        ranks = rank_of[named]
        slate_of, ranks = slate_of[ranks >= 0], ranks[ranks >= 0]
        order = np.lexsort((ranks, slate_of))
        slate_of, ranks = slate_of[order], ranks[order]
        first = np.searchsorted(slate_of, slate_of)
        place = np.arange(len(slate_of)) - first
        shown_there = place < k
        best[slate_of[shown_there], place[shown_there]] = self._places[ranks[shown_there]]
        return best

    def refusal(self) -> str:
        k = self.log.k
        if len(self.items) < k:
            return shorter_page(f"the list has {len(self.items)}", k)
        strange = [item for item, place in zip(self.items[:k], self._places, strict=False) if place < 0]
        if strange and not self._chooses:
            return f"no slate of the log shows {named(strange)}; log pages that may show it, or leave it out"
        return ""

    def notes(self) -> list[str]:
        if len(self.items) > self.log.k and not self._chooses:
            return [f"the first {self.log.k} of its {len(self.items)} items are judged: slates have no more"]
        return []


class Uniform(Target):
    """Random order: every order of the allowed items is equally likely.

    >>> from pathlib import Path
    >>> from firstclick.evaluation import Uniform, evaluate
    >>> from firstclick.logs.open_log import open_ranked_log
    >>> slates = "tea|milk,0,0.5\\nmilk|tea,,0.5\\n" * 200
    >>> _ = Path("log.csv").write_text("items,click,propensity\\n" + slates)
    >>> evaluate(open_ranked_log("log.csv"), {"random": Uniform()}).answers[0].verdict
    'ok'
    """

    def __repr__(self) -> str:
        return "Uniform()"

    def prefix_chances(self, slates: SlateBatch) -> Table:
        left = np.maximum(self._allowed(slates)[:, None] - np.arange(slates.items.shape[1]), 1)
        chances: Table = np.where(slates.items == NO_ITEM, 1.0, 1.0 / left)
        return np.asarray(np.cumprod(chances, axis=1), np.float64)

    def place_chances(self, slates: SlateBatch) -> Table:
        chance = 1.0 / np.maximum(self._allowed(slates), 1)
        return np.where(slates.items == NO_ITEM, 1.0, chance[:, None])

    def examples(self, n: int) -> Places:
        return uniform_slates(n, len(self.log.items), self.log.k)

    def _allowed(self, slates: SlateBatch) -> NDArray[np.int64]:
        return slates.allowed_counts(len(self.log.items))

    def predictions(self, slates: SlateBatch, fit: ClickFit) -> Predictions:
        """What a click model expects of random order.

        It is exact for the item at each position. Below it is a mean over uniform slates, whatever stands
        above: any number will do there that does not depend on the item.

        Args:
            slates: A batch of logged slates.
            fit: The click model, fitted to the log.
        """
        segments = segments_of(slates, fit)
        n, k = slates.items.shape
        shown = slates.items != NO_ITEM
        of_items = np.where(shown, fit.attraction[segments[:, None], np.maximum(slates.items, 0)], 0.0)
        allowed = self._allowed(slates)
        total = fit.attraction.sum(axis=1)[segments]
        slate_of, named = slates.candidates_named()
        of_named = np.bincount(slate_of, fit.attraction[segments[slate_of], named], minlength=n)
        total[slate_of] = of_named[slate_of]
        above = np.cumsum(of_items, axis=1) - of_items
        left = np.maximum(allowed[:, None] - np.arange(k), 1)
        mean = np.maximum(total[:, None] - above, 0.0) / left
        looks = _examined(fit, slates, segments)
        below = np.where(shown, _below_in_uniform_slates(fit, k)[segments], 0.0)
        return Predictions(looks * of_items + below, np.where(shown, looks * mean, 0.0) + below)


def _below_in_uniform_slates(fit: ClickFit, k: int) -> Table:
    """The clicks below each position in uniform slates, segments x K, from a few of them."""
    n_segments, n_items = fit.attraction.shape
    drawn = uniform_slates(UNIFORM_SLATES, n_items, k)
    chances = fit.click_chances(
        np.tile(drawn, (n_segments, 1)), np.repeat(np.arange(n_segments, dtype=np.int32), UNIFORM_SLATES)
    )
    means = chances.reshape(n_segments, UNIFORM_SLATES, k).mean(axis=1)
    return np.asarray(means.sum(axis=1, keepdims=True) - np.cumsum(means, axis=1))


def uniform_slates(n: int, n_items: int, k: int) -> Places:
    """Slates in any order, always the same ones."""
    draw = stream(0, "evaluation", "uniform slates")
    size = min(k, n_items)
    drawn = np.full((n, k), NO_ITEM, np.int32)
    for row in drawn:
        row[:size] = draw.choice(n_items, size, replace=False)
    return drawn


def plain_batch(items: Places) -> SlateBatch:
    """These slates, for requests that allow all items; nobody saw them."""
    n = len(items)
    none = np.zeros(items.shape, np.uint8)
    return SlateBatch(items, none, np.full(n, NOT_TOLD, np.int32), np.zeros(n, np.bool_), np.arange(n))


def _examined(fit: ClickFit, slates: SlateBatch, segments: NDArray[np.int32]) -> Table:
    """How likely each position is looked at after the items above it: the chance of a click on the most
    attractive item there, over its attraction."""
    n, k = slates.items.shape
    best = fit.attraction.argmax(axis=1)[segments]
    highest = fit.attraction.max(axis=1)[segments]
    looks = np.empty((n, k))
    for place in range(k):
        probe = slates.items.copy()
        probe[:, place] = best
        probe[:, place + 1 :] = NO_ITEM
        looks[:, place] = fit.click_chances(probe, segments)[:, place]
    return np.where(highest[:, None] > 0, looks / np.where(highest > 0, highest, 1.0)[:, None], 0.0)


def clicks_from_each_place(fit: ClickFit, items: Places, slates: SlateBatch) -> Table:
    """The clicks that a model expects on these slates from each position on, in the logged slates' place."""
    chances = fit.click_chances(items, segments_of(slates, fit))
    return np.cumsum(chances[:, ::-1], axis=1)[:, ::-1]


def segments_of(slates: SlateBatch, fit: ClickFit) -> NDArray[np.int32]:
    """The segment of each slate in a fit; 0 where it tells none apart."""
    if slates.segments is None or len(fit.segments) == 1:
        return np.zeros(slates.n, np.int32)
    return slates.segments


def places_of(items: Sequence[ItemId], among: Sequence[ItemId]) -> Places:
    """Where each item stands among others, UNKNOWN_ITEM if it does not. 5 is '5' if there is no 5: files
    often turn one into the other."""
    place_of: dict[ItemId, int] = {item: place for place, item in enumerate(among)}
    as_text: dict[str, int] = {}
    for item, place in place_of.items():
        as_text.setdefault(str(item), place)
    found = [place_of.get(item, as_text.get(str(item), UNKNOWN_ITEM)) for item in items]
    return np.array(found, np.int32)


def shorter_page(target: str, k: int) -> str:
    """The refusal of a target that fills fewer places than the log has."""
    return (
        f"{target} item{'s' * (target.split()[-1] != '1')} and the log's slates up to {k}: a page with fewer "
        f"places was not logged; fill all {k}"
    )


def named(items: Sequence[ItemId], most: int = 3) -> str:
    """'tea, coffee, cocoa and 4 more'."""
    said = ", ".join(str(item) for item in items[:most])
    return f"{said} and {len(items) - most:,} more" if len(items) > most else said
