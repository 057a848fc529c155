"""What all peers share: whether they are installed, and which items a user examined."""

import importlib.metadata
import importlib.util
from collections.abc import Sequence
from typing import Any

PER_ITEM = "one model per item: it cannot share what it learns, so compare its time only"


def installed(peer: Any) -> str | None:
    """The version of the peer's package, or None."""
    if importlib.util.find_spec(peer.package) is None:
        return None
    return importlib.metadata.version(peer.package)


def examined(slate: Sequence[int], click: int) -> tuple[list[int], list[int]]:
    """The items that the user looked at, and 1 for the one that was clicked."""
    seen = list(slate[: click + 1])
    return seen, [int(position == click) for position in range(len(seen))]
