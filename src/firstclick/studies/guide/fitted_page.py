"""The world of a click model that was fitted to the log of a page: which policy for my page?"""

import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from firstclick.errors import InvalidInput
from firstclick.files.reading import reading
from firstclick.registry import make_world
from firstclick.validation.whole_number import whole_number
from firstclick.worlds.base import Stage
from firstclick.worlds.fitted import Fitted, FittedWorld

PREFIX = "fitted:"
_AS_NUMBER = ",told=number"


@dataclass(frozen=True, eq=False)
class FittedPage:
    """A fitted world for the guide. All runs are played in the same world, with other users."""

    name: str
    kind: Fitted
    k: int

    topics: ClassVar[int] = 0
    best_first: ClassVar[bool] = False  # Its items are in the order of the log.
    core_only: ClassVar[bool] = True
    # What no policy's regret in such a world can tell; the command and its page say it.
    limits: ClassVar[tuple[str, ...]] = (
        "It is model-based, not an estimate from the log: users click as the fitted model says.",
        "What the log showed rarely, the fit hardly knows; what it never showed is not there.",
        "The fit has the luck of the log in it, and runs do not show that: they share one world.",
        "Clicks count, whatever they are worth; attraction does not change with time.",
        "New items are not in it.",
    )

    @classmethod
    def of(cls, spec: str, k: int | None = None) -> "FittedPage":
        """The world that `fitted:FILE` describes, with slates of k items; by default as in the log."""
        kind = make_world(spec)
        if not isinstance(kind, Fitted) or kind.file is None:
            raise InvalidInput(f"{spec!r}: expected fitted:FILE")
        world = kind.build(0)
        fewest = min(len(world.candidates(view)) for view in range(world.n_views))
        k = whole_number(
            "k", min(world.longest_slate, fewest - 1) if k is None else k, at_least=1, at_most=fewest - 1,
            because=f", because {fewest:,} items compete and a slate of all leaves nothing to choose",
        )  # fmt: skip
        return cls(kind.file.name if kind.segment is None else f"{kind.file.name} {kind.segment}", kind, k)

    @property
    def call(self) -> str:
        return f"--world {self.kind.label} --k {self.k}"

    @property
    def why(self) -> str:
        world = self._world
        users = f"{world.n_views:,} segments of users" if world.n_views > 1 else "one segment of users"
        return f"A click model ({world.model}) fitted to a log: {world.n_items:,} items, {users}."

    @property
    def segments(self) -> int:
        return self._world.n_views if self._world.n_views > 1 else 0

    @property
    def spec(self) -> str:
        """What cells know the world by: hashes of its files, and the segment."""
        return f"fitted {self._digest} {self.kind.segment or ''}"

    def stage(self, seed: int, run: int, spec: str | None = None) -> Stage:
        """What a run is played on; `spec` may ask for segments by their number."""
        by_number = spec is not None and spec.endswith(_AS_NUMBER)
        world = self._told_by_number if by_number else self._world
        return Stage(world, world.features, world.names())

    def about(self) -> dict[str, Any]:
        return {"world": self.kind.label, "sha256": self._digest}

    @cached_property
    def _world(self) -> FittedWorld:
        return self.kind.build(0)

    @cached_property
    def _told_by_number(self) -> FittedWorld:
        return Fitted(**{**self.kind.settings, "told": "number"}).build(0)

    @cached_property
    def _digest(self) -> str:
        digest = hashlib.sha256()
        for file in filter(None, (self.kind.file, self.kind.catalog)):
            with reading(file):
                digest.update(Path(file).read_bytes())
        return digest.hexdigest()
