"""What is measured: policies, numbers of items, features and places."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from firstclick.errors import InvalidInput
from firstclick.policies.base import Policy
from firstclick.validation.whole_number import whole_number

SHORT_ITEMS = (16, 256, 3000)
LONG_ITEMS = (16, 256, 3000, 10_000, 100_000, 1_000_000)
SHORT_FEATURES = (20,)
LONG_FEATURES = (10, 20, 40, 64)
K = 4

# Where the number of places is varied in the long form, and where policies meet peers.
SWEPT_ITEMS, SWEPT_FEATURES = 3000, 20
SWEPT_K = (1, 2, 4, 8, 16, 32)


@dataclass(frozen=True)
class Cell:
    """One policy on one catalog."""

    policy: Policy
    n_items: int
    n_features: int
    k: int

    @property
    def key(self) -> tuple[str, int, int, int]:
        """What tells it from other cells, in plain words."""
        return self.policy.label, self.n_items, self.n_features, self.k


def grid(
    policies: Sequence[Policy], items: Sequence[int], features: Sequence[int], k: int, sweep: bool = False
) -> list[Cell]:
    """Every policy with every number of items and features; with `sweep`, also with other k.

    Policies without features do not care for their number: they are measured with one alone. Cells of one
    catalog follow one another.
    """
    check(items, features, k)
    one = main_features(features)
    places = [(n_items, d, k) for n_items in sorted(set(items)) for d in sorted(set(features))]
    if sweep:
        places += [(SWEPT_ITEMS, one, other) for other in SWEPT_K]
    return [
        Cell(policy, *place)
        for place in sorted(set(places))
        for policy in policies
        if policy.needs_features or place[1] == one
    ]


def main_features(features: Iterable[int]) -> int:
    """The one number of features that policies without features, pictures and peers are measured with."""
    known = sorted(set(features))
    return SWEPT_FEATURES if SWEPT_FEATURES in known else known[0]


def check(items: Sequence[int], features: Sequence[int], k: int) -> None:
    """Refuse sizes that cannot be."""
    whole_number("k", k, at_least=1)
    for n_features in features:
        whole_number("n_features", n_features, at_least=1, at_most=10_000)
    for n_items in items:
        whole_number("n_items", n_items, at_least=1, at_most=10**8)
        if k > n_items:
            raise InvalidInput(f"must be at most the number of items, {n_items}, got {k}", "k")
