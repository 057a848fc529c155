"""Made-up data of the size and habits of the paper's three sets, for whoever has no files."""

from pathlib import Path
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from firstclick.data.interactions import Interactions
from firstclick.data.sources.source import Progress, Source, silent
from firstclick.parameters import param
from firstclick.streams import stream

Floats = NDArray[np.float64]

# Shares of the variance of a user's interest in an item that are the same for all items of a group, and
# for all items of a taste.
GROUP, TASTE = 0.15, 0.3

# The items of a kind, those in the same groups, speak to this many tastes.
TASTES = 4

# Of the most popular items, the share that speaks to one and the same taste, the mainstream; so a mixed
# slate covers more users than the most popular one.
MAINSTREAM = 0.6

# Users of similar interest are drawn for together; more bins waste fewer draws and cost more each.
_BINS = 32


class StandIn(Source):
    """Interactions with the size, density, popularity and groups of a real set, made up from a seed.

    An item attracts when activity + taste for its groups + taste for its sort + chance, a standard normal in
    sum, exceeds the item's own bar: as in `synthetic_matrix`, but drawn in time proportional to the
    attractions. Every interaction attracts, each pair is there at most once, and users whom nothing attracts
    are there without any. Item numbers tell nothing about popularity.
    """

    synthetic = True

    # What an item is called, before its number.
    thing: ClassVar[str] = "item"
    # Attraction of the item of rank r among n: top * (1 + r / n / head) ** -fall.
    top: ClassVar[float] = 0.5
    head: ClassVar[float] = 0.03
    fall: ClassVar[float] = 1.0
    # Share of the variance of a user's interest that is the same for all items.
    activity: ClassVar[float] = 0.15
    # Items by the groups they are in, of as many as the real set has; other sizes keep the proportions.
    kinds: ClassVar[dict[tuple[str, ...], int]] = {}

    seed: int = param(0, "seed of everything that is made up", at_least=0)
    n_users: int = param(1000, "users", at_least=1)
    n_items: int = param(100, "items", at_least=1)

    def load(self, path: Path | None, progress: Progress = silent) -> Interactions:
        kinds = list(self.kinds)
        tastes = self._tastes()
        attraction = self._attraction(tastes)
        pairs = [np.empty(0, np.int64)]
        done = 0
        for taste in range(len(kinds) * TASTES):
            items = np.flatnonzero(tastes == taste)
            if len(items):
                users, chosen = attracted(
                    self._interest(kinds[taste // TASTES], taste),
                    attraction[items],
                    1 - self.activity - GROUP - TASTE,
                    stream(self.seed, self.name, "chance", taste),
                )
                pairs.append(users * self.n_items + items[chosen])
            done += len(items)
            progress(done, self.n_items)
        every = np.sort(np.concatenate(pairs))
        every = every[np.diff(every, prepend=-1) > 0]
        width = max(4, len(str(self.n_items - 1)))
        return Interactions(
            users=(every // self.n_items).astype(np.int32),
            items=(every % self.n_items).astype(np.int32),
            attracted=np.ones(len(every), np.bool_),
            user_ids=tuple(f"user {user}" for user in range(self.n_users)),
            item_ids=tuple(f"item {item}" for item in range(self.n_items)),
            item_names=tuple(f"synthetic {self.thing} {item:0{width}}" for item in range(self.n_items)),
            item_groups=tuple(kinds[taste // TASTES] for taste in tastes.tolist()),
        )

    def _tastes(self) -> NDArray[np.int64]:
        """The taste that each item speaks to; TASTES of them in a row are those of one kind."""
        shares = np.repeat(list(self.kinds.values()), TASTES) / TASTES
        ends = np.rint(np.cumsum(shares) / shares.sum() * self.n_items).astype(np.int64)
        tastes = np.repeat(np.arange(len(ends)), np.diff(ends, prepend=0))
        shuffled: NDArray[np.int64] = stream(self.seed, self.name, "tastes").permutation(tastes)
        return shuffled

    def _attraction(self, tastes: NDArray[np.int64]) -> Floats:
        waits = stream(self.seed, self.name, "popularity").exponential(size=self.n_items)
        mainstream = tastes == 0
        size = int(mainstream.sum())
        odds = size / max(self.n_items - size, 1)
        waits[mainstream] *= odds * (1 - MAINSTREAM) / MAINSTREAM
        rank = np.empty(self.n_items)
        rank[np.argsort(waits, kind="stable")] = np.arange(self.n_items)
        curve: Floats = self.top * (1 + rank / self.n_items / self.head) ** -self.fall
        return curve

    def _interest(self, groups: tuple[str, ...], taste: int) -> Floats:
        """How much each user is drawn to items of this taste, whatever the item."""
        activity = self._normals("activity")
        group = np.sum([self._normals("group", name) for name in groups], axis=0) / np.sqrt(len(groups))
        own = self._normals("taste", taste)
        interest: Floats = np.sqrt(self.activity) * activity + np.sqrt(GROUP) * group + np.sqrt(TASTE) * own
        return interest

    def _normals(self, *names: str | int) -> Floats:
        return stream(self.seed, self.name, *names).standard_normal(self.n_users)


def attracted(
    interest: Floats, attraction: Floats, chance: float, rng: np.random.Generator
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Codes (users, items) of all pairs with interest + chance above the item's bar; some are there twice.

    `attraction` is the share of users over each bar, if interests are normal of variance 1 - `chance`.
    """
    # Imported late: a tenth of a second that only those pay who make data up.
    from scipy.special import log_ndtr, ndtri

    spread = np.sqrt(chance)
    bars = -ndtri(attraction)

    # A user with chance p is hit by a Poisson number of mean -log(1 - p): none at all has chance 1 - p. So
    # hits may fall anywhere in a bin, at the rate of its keenest user, and each is then kept with the
    # share of that rate that belongs to the user it fell on.
    order = np.argsort(interest, kind="stable")
    keenest = np.linspace(interest[order[0]], interest[order[-1]], _BINS + 1)[1:]
    ends = np.searchsorted(interest[order[:-1]], keenest, side="right")
    ends[-1] = len(order)
    starts = np.concatenate([[0], ends[:-1]])
    sizes = ends - starts
    rates = -log_ndtr((bars - keenest[:, None]) / spread)
    hits = rng.poisson(rates * sizes[:, None])
    cells = np.repeat(np.arange(hits.size), hits.ravel())
    bins, items = np.divmod(cells, len(bars))
    users = order[starts[bins] + (rng.random(len(cells)) * sizes[bins]).astype(np.int64)]
    own = -log_ndtr((bars[items] - interest[users]) / spread)
    kept = rng.random(len(cells)) * rates.ravel()[cells] < own
    return users[kept], items[kept]


class SyntheticYelp(StandIn):
    """Made-up restaurants and diners, as many and as sparse as those of the paper's Yelp data."""

    name = "synthetic-yelp"
    title = "Synthetic stand-in for Yelp"
    thing = "restaurant"
    top, head, fall = 0.04, 0.028, 1.0
    activity = 0.03
    kinds: ClassVar[dict[tuple[str, ...], int]] = {
        ("American", "American (New)"): 420,
        ("American", "American (Traditional)"): 480,
        ("Mexican",): 360,
        ("Italian", "Pizza"): 340,
        ("Chinese",): 300,
        ("Japanese", "Sushi Bars"): 270,
        ("Nightlife", "Bars"): 270,
        ("Breakfast & Brunch",): 280,
        ("Sandwiches",): 280,
    }

    n_users: int = param(20_000, "diners", at_least=1)
    n_items: int = param(3000, "restaurants", at_least=1)


class SyntheticMillionSong(StandIn):
    """Made-up songs and listeners, as many and as sparse as those of the paper's Million Song data."""

    name = "synthetic-million-song"
    title = "Synthetic stand-in for Million Song"
    thing = "song"
    top, head, fall = 0.1, 0.001, 0.65
    activity = 0.03
    kinds: ClassVar[dict[tuple[str, ...], int]] = {
        ("Rock",): 4200,
        ("Pop",): 1500,
        ("Electronic",): 1200,
        ("Rap",): 800,
        ("RnB",): 600,
        ("Country",): 500,
        ("Metal",): 450,
        ("Latin",): 400,
        ("Folk",): 350,
    }

    n_users: int = param(400_000, "listeners", at_least=1)
    n_items: int = param(10_000, "songs", at_least=1)


class SyntheticMovieLens(StandIn):
    """Made-up movies and viewers, as many and as dense as those of MovieLens 1M."""

    name = "synthetic-movielens"
    title = "Synthetic stand-in for MovieLens"
    thing = "movie"
    top, head, fall = 0.5, 0.031, 1.5
    kinds: ClassVar[dict[tuple[str, ...], int]] = {
        ("Drama",): 1060,
        ("Comedy",): 800,
        ("Drama", "Romance"): 260,
        ("Comedy", "Romance"): 200,
        ("Action", "Adventure"): 153,
        ("Adventure", "Children's"): 130,
        ("Children's", "Comedy"): 130,
        ("Action", "Thriller"): 220,
        ("Crime", "Thriller"): 263,
        ("Horror",): 230,
        ("Horror", "Sci-Fi"): 120,
        ("Action", "Sci-Fi"): 140,
    }

    n_users: int = param(6040, "viewers", at_least=1)
    n_items: int = param(3706, "movies", at_least=1)
