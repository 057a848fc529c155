"""What the guide plays in: a world that is built, or one that is made of data."""

from collections.abc import Sequence
from typing import Any, Protocol

from firstclick.studies.guide.data_worlds import MOVIELENS
from firstclick.studies.guide.stock import STOCK, chosen
from firstclick.worlds.base import Stage


class GuideWorld(Protocol):
    """A world, why it is there, and what is known of it; see `StockWorld` and `DataWorld`."""

    @property
    def name(self) -> str: ...
    @property
    def spec(self) -> str: ...
    @property
    def call(self) -> str: ...
    @property
    def k(self) -> int: ...
    @property
    def why(self) -> str: ...
    @property
    def topics(self) -> int: ...
    @property
    def segments(self) -> int: ...
    @property
    def best_first(self) -> bool: ...
    @property
    def core_only(self) -> bool: ...
    def stage(self, seed: int, run: int, spec: str | None = None) -> Stage: ...
    def about(self) -> dict[str, Any]: ...


# All that have a name, in their usual order.
NAMED: tuple[GuideWorld, ...] = (*STOCK, *MOVIELENS)


def worlds_named(names: Sequence[str] = ()) -> tuple[GuideWorld, ...]:
    """The stock worlds and those of MovieLens of these names, in their usual order; all for no name.

    >>> [world.name for world in worlds_named(["movielens-16", "types"])]
    ['types', 'movielens-16']
    """
    return chosen(names, NAMED)
