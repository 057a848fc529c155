"""The world in which policies and peers are timed."""

from typing import cast

from firstclick.registry import make_world
from firstclick.worlds.long_tail import LongTailWorld

SEED = 1


def build_world(n_items: int, n_features: int) -> LongTailWorld:
    """The world of a cell, the same in every process."""
    spec = f"long-tail:n_items={n_items},n_features={n_features}"
    return cast(LongTailWorld, make_world(spec).build(SEED))
