"""What a peer is."""

import importlib.metadata
import importlib.util
from collections.abc import Sequence
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

PER_ITEM = "one model per item: it cannot share what it learns, so compare its time only"


class Peer(Protocol):
    """A library at work on one catalog."""

    title: ClassVar[str]
    package: ClassVar[str]
    used: ClassVar[str]  # how, in a few words
    remark: ClassVar[str]  # what it cannot do of the task, or ''

    def __init__(self, features: NDArray[np.float64], k: int, seed: int) -> None: ...

    def recommend(self) -> Sequence[int]:
        """The items to show, best first."""

    def learn(self, slate: Sequence[int], click: int) -> None:
        """Learn that place `click` of the slate was the first clicked; k for none."""


def installed(peer: Any) -> str | None:
    """The version of the peer's package, or None."""
    if importlib.util.find_spec(peer.package) is None:
        return None
    return importlib.metadata.version(peer.package)


def examined(slate: Sequence[int], click: int) -> tuple[list[int], list[int]]:
    """The items that the user looked at, and 1 for the one that was clicked."""
    seen = list(slate[: click + 1])
    return seen, [int(position == click) for position in range(len(seen))]
