"""Worlds made of who liked what: MovieLens 1M, and a file of your own."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

from firstclick.data.scenario import FeedbackScenario
from firstclick.errors import InvalidInput
from firstclick.experiments.dataset import Dataset
from firstclick.validation.whole_number import whole_number
from firstclick.worlds.base import Stage

RANK = 20

# What no policy's regret on such data can tell; the command and its page say it.
LIMITS = (
    "It says who liked what, not what was shown.",
    "A missing row counts as 'does not attract', even if the user never saw the item.",
    "Popular items had more chances to be liked, so they look better than they are.",
    "Users are assumed to click the first item that attracts them, and then to leave.",
    "New items are not in it.",
)


@dataclass(frozen=True, eq=False)
class DataWorld:
    """Each run splits the users anew: one half teaches features by SVD, the other answers with clicks.

    Its catalog is in the order of popularity.
    """

    name: str
    call: str  # how `firstclick simulate` plays it
    k: int
    why: str
    n_items: int | None = None  # the most popular ones; None for all
    rank: int = RANK
    dataset: Dataset | None = None  # None: described, but not read

    topics: ClassVar[int] = 0
    segments: ClassVar[int] = 0
    best_first: ClassVar[bool] = True
    core_only: ClassVar[bool] = True
    limits: ClassVar[tuple[str, ...]] = LIMITS

    def on(self, dataset: Dataset) -> "DataWorld":
        """The world with its data, if there is enough of it."""
        users, items = dataset.matrix.shape
        if users < 2 or items < 2:
            few = "1 user" if users < 2 else "1 item"
            raise InvalidInput(f"{self.name}: {dataset.title} has {few}, and two are needed")
        kept = whole_number(
            "n_items", items if self.n_items is None else self.n_items, at_least=2, at_most=items,
            because=f", the items of {dataset.title}",
        )  # fmt: skip
        whole_number(
            "k", self.k, at_least=1, at_most=kept - 1,
            because=f", because {kept:,} items compete and a slate of all leaves nothing to choose",
        )  # fmt: skip
        whole_number(
            "rank", self.rank, at_least=1, at_most=min(users // 2, items),
            because=f" (half of the users of {dataset.title} are {users // 2:,}, its items {items:,})",
        )  # fmt: skip
        return replace(self, n_items=kept, dataset=dataset)

    @property
    def data(self) -> Dataset:
        if self.dataset is None:
            raise InvalidInput(f"{self.name} needs its data; read it first, and give it to `on`")
        return self.dataset

    @property
    def spec(self) -> str:
        """What cells know the data by: a hash. How much is kept of it they know from their setting."""
        return self.data.digest

    def stage(self, seed: int, run: int, spec: str | None = None) -> Stage:
        """What a run is played on: the same as in `simulate` with this seed."""
        return self._scenario.stage(seed, run)

    @cached_property
    def _scenario(self) -> FeedbackScenario:
        ids = self.data.interactions.item_ids
        return FeedbackScenario(self.data.matrix, rank=self.rank, n_items=self.n_items, item_names=ids)

    def about(self) -> dict[str, Any]:
        """What the manifest tells it by: the data, and how much is kept of it."""
        users, items = self.data.matrix.shape
        return {
            "data": {
                "name": self.data.title,
                "users": users,
                "items": items,
                "attracted pairs": int(self.data.matrix.nnz),
                "sha256": self.data.digest,
            },
            "items": self.n_items,
            "rank": self.rank,
        }


# Users and films of MovieLens 1M: other editions can be read in its place, but are not these worlds.
MOVIELENS_1M = 6_040, 3_706
_RATINGS = "--interactions ml-1m/ratings.dat --value-column 2 --above 3"

MOVIELENS = (
    DataWorld(
        "movielens-16", f"{_RATINGS} --items 16 --rank {RANK} --k 4", 4,
        "The 16 films of MovieLens 1M that most users like: so few that each can be learned by itself.",
        n_items=16,
    ),
    DataWorld(
        "movielens-256", f"{_RATINGS} --items 256 --rank {RANK} --k 4", 4,
        "The 256 films of MovieLens 1M that most users like.",
        n_items=256,
    ),
    DataWorld(
        "movielens", f"{_RATINGS} --rank {RANK} --k 4", 4,
        "All 3,706 films of MovieLens 1M: real tastes, and hardly any film is ever tried.",
    ),
)  # fmt: skip
