"""The demo: a café's catalog, and simulated users whose taste is hidden from the policy."""

import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from firstclick.catalog.feature_scale import FeatureScale
from firstclick.catalog.file import CatalogFile, read_catalog
from firstclick.catalog.ids import ItemId
from firstclick.streams import stream
from firstclick.wire.errors import Refused

if TYPE_CHECKING:
    from firstclick.serve.service import Service

SEED = 2
# Slates that users look at, so many at once, so often: thirty a second, so that learning can be watched.
AT_ONCE = 3
PAUSE = 0.1

# What the café recommends so far, by hand: one of the six things that its visitors would like best.
FAVOURITES = ("cappuccino", "almond-croissant", "carrot-cake", "apple-juice", "cheese-toastie", "flat-white")
# Visitors return: the small numbers come again and again.
VISITORS = 600
# The trial's second figure is about so many pages: half a minute.
LAST_PAGES = 1000

# How often a slate of SLATE items is clicked: one drawn by chance, and the best one.
SLATE = 6
BY_CHANCE = 0.12
AT_BEST = 0.6

# How much two things, drawn among those that fewer items than RARE have, are liked.
LIKINGS = (1.0, 0.8)
RARE = 0.5

# What an item has of its own, beside the largest difference that features make.
OWN = 0.05
LEAST, MOST = 0.005, 0.6
HALVINGS = 50


def demo_catalog() -> CatalogFile:
    """The café's 60 items, from a file like those that people bring themselves."""
    return read_catalog(Path(__file__).with_name("cafe.csv"))


def demo_list() -> list[ItemId]:
    """The café's list, best first: its favourites, and then the menu as it is printed."""
    menu = [item.id for item in demo_catalog().items]
    return [*FAVOURITES, *(item for item in menu if item not in FAVOURITES)]


def start_beside_the_list(service: "Service", model: str, max_loss: float) -> list[str]:
    """Let the policy of a new café start beside the list, and compare both; what to know of it."""
    try:
        service.set_baseline(model, demo_list(), max_loss)
        service.start_trial(model, last_pages=LAST_PAGES)
    except Refused as refusal:
        return [f"the café's own list is not compared with: {refusal}"]
    return [
        "the café's own list is the baseline: one of its slates in five is clicked. A trial shows it to "
        "every tenth visitor. Who visits, and what they click, is made up"
    ]


class DemoUsers:
    """Users who look at a slate from the top and click the first item that attracts them, or none.

    They love two things and do not care for the rest; which, is drawn with the seed. An item's attraction
    is linear in its features, but for a little of its own and never less than LEAST; it is sized so that
    one slate in eight is clicked if it is drawn by chance, and three in five if it is the best.
    """

    def __init__(self, seed: int) -> None:
        catalog = demo_catalog()
        given = np.array([item.features for item in catalog.items])
        features = FeatureScale.fitted(catalog.feature_names, given).apply(given)
        draw = stream(seed, "crowd", "taste")
        # Of what only some items have: if most were sweet and loved for it, nothing would stand out.
        rare = np.flatnonzero((features != 0).mean(axis=0) < RARE)
        liking = np.zeros(features.shape[1])
        liking[draw.permutation(rare)[: len(LIKINGS)]] = LIKINGS
        appeal = features @ liking
        appeal += OWN * np.ptp(appeal) * draw.standard_normal(len(appeal))
        sized = _sized(appeal)
        self._attraction: dict[ItemId, float] = {
            item.id: float(sized[row]) for row, item in enumerate(catalog.items)
        }
        self._average = float(sized.mean())
        self._clicks = stream(seed, "crowd", "clicks")

    def attract(self, item: ItemId) -> float:
        """The probability that the item attracts; one that is new to the café attracts like the average."""
        return self._attraction.get(item, self._average)

    def click(self, items: Sequence[ItemId]) -> int | None:
        """The position of the first item that attracts the next user, or None."""
        luck = self._clicks.random(len(items))
        return next((at for at, item in enumerate(items) if luck[at] < self.attract(item)), None)


class DemoTraffic(threading.Thread):
    """Users who ask the service for slates and click, until it closes."""

    def __init__(self, service: "Service", model: str) -> None:
        super().__init__(name="firstclick-demo", daemon=True)
        self._service, self._model = service, model
        self._users = DemoUsers(SEED)
        self._units = stream(SEED, "crowd", "units")
        self._closing = threading.Event()

    def close(self) -> None:
        """Stop."""
        self._closing.set()
        self.join()

    def run(self) -> None:
        due = time.monotonic()
        while not self._closing.wait(max(0.0, due - time.monotonic())):
            due = max(due + PAUSE, time.monotonic())
            units = self._units.exponential(VISITORS, AT_ONCE).astype(int).tolist()
            slates = [self._service.recommend(self._model, unit=f"visitor {unit}") for unit in units]
            answers = [(slate.token, self._users.click(slate.items)) for slate in slates]
            try:
                self._service.feedback_batch(self._model, answers)
            except Refused:
                continue  # The service is busy or closing; other users come later.


def _sized(appeal: NDArray[np.float64]) -> NDArray[np.float64]:
    """Attractions that grow with the appeal, by a line that meets BY_CHANCE and AT_BEST."""

    def attractions(spread: float) -> NDArray[np.float64]:
        def at(level: float) -> NDArray[np.float64]:
            return np.clip(level + spread * appeal, LEAST, MOST)

        largest = spread * float(np.abs(appeal).max()) + 1.0
        return at(_where(lambda level: _by_chance(at(level)) >= BY_CHANCE, -largest, largest))

    return attractions(_where(lambda spread: _at_best(attractions(spread)) >= AT_BEST, 0.0, 100.0))


def _where(true: Callable[[float], bool], below: float, above: float) -> float:
    """The number from which on it is true, by halving."""
    for _ in range(HALVINGS):
        middle = (below + above) / 2
        below, above = (below, middle) if true(middle) else (middle, above)
    return above


def _by_chance(attractions: NDArray[np.float64]) -> float:
    """How often a slate drawn by chance is clicked, but for drawing no item twice."""
    return float(1 - (1 - attractions.mean()) ** SLATE)


def _at_best(attractions: NDArray[np.float64]) -> float:
    return float(1 - (1 - np.sort(attractions)[-SLATE:]).prod())
