"""The baseline: the list that is shown today. The policy starts beside it; a floor limits what it may lose.

Each slate is decided by the policy or by the list. The floor says with which probability the policy decides;
the key and the number of the request draw. The choice and its probability are kept with the slate.
"""

from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from firstclick.catalog.catalog import Catalog
from firstclick.catalog.ids import ItemId, item_ids
from firstclick.errors import InvalidInput
from firstclick.kernels.hashing import uniform
from firstclick.online.engine import PolicyEngine
from firstclick.online.explore import Explorer
from firstclick.online.floor import Floor
from firstclick.online.request import Answered, SlateRequest, answered, request_of_rows, within_caps
from firstclick.policies.base import Policy
from firstclick.streams import stream_key
from firstclick.validation.quoting import quoted

MAX_LOSS = 0.05


class Choice(IntEnum):
    """Who decided a slate. The numbers are stored."""

    POLICY = 0
    FLOOR = 1  # the list, because the floor drew it
    HOLDOUT = 2  # the list, because a trial compares with it
    BASELINE = 3  # the list, because a trial has stopped for it

    @property
    def word(self) -> str:
        """As people read it."""
        return self.name.lower()


class Chosen(NamedTuple):
    """Who decided a slate, the probability with which that was the policy, and how many places that were
    free were filled from the list; the policy fills those for which the list has nothing left."""

    choice: Choice
    share: float
    listed: int = 0

    @property
    def by_policy(self) -> bool:
        return self.choice == Choice.POLICY


def reasons(
    rows: Sequence[int], pinned: Iterable[int], chosen: Chosen | None, explored: bool
) -> tuple[str, ...]:
    """Why each of these rows is in the slate: policy, explored, pinned, floor, holdout or baseline.

    `pinned` are the rows that the request pinned.
    """
    fixed = set(pinned)
    left = 0 if chosen is None else chosen.listed
    told = []
    for row in rows:
        if row in fixed:
            told.append("pinned")
        elif left:
            assert chosen is not None
            told.append(chosen.choice.word)
            left -= 1
        else:
            told.append("explored" if explored else "policy")
    return tuple(told)


class Baseline:
    """The list of a ranker or model, and its floor. `key` is that of the ranker or model."""

    def __init__(self, key: np.uint64, items: Sequence[ItemId], rows: Sequence[int], floor: Floor) -> None:
        self.items = tuple(items)
        self.rows = tuple(rows)
        self.floor = floor
        self._key = stream_key(int(key), "floor")

    def choose(self, number: int, *, out: float = 0.0, replicas: int = 1) -> Chosen:
        """Who decides the slate of this number. See `Floor.share` for the rest."""
        share = self.floor.share(out=out, replicas=replicas)
        by_policy = share >= 1 or uniform(self._key, np.uint64(number)) < share
        return Chosen(Choice.POLICY if by_policy else Choice.FLOOR, share)

    def filling(self, engine: PolicyEngine, asked: SlateRequest) -> tuple[SlateRequest, int]:
        """The request with its free places pinned to the items of the list that it allows, and how many."""
        held, hidden = asked.rows.pinned, asked.kernel.hidden
        free = [place for place in range(asked.rows.k) if place not in held]
        candidates = self.rows if asked.rows.candidates is None else asked.rows.candidates.tolist()
        allowed = set(candidates)
        shown = (row for row in self.rows if row in allowed and not (len(hidden) and hidden[row]))
        found = within_caps(asked.kernel, shown, len(free))
        pinned = held | dict(zip(free, found, strict=False))
        filled = request_of_rows(engine, asked.rows._replace(pinned=pinned))
        # It stays the request that was asked.
        return filled._replace(skipped_pins=asked.skipped_pins), len(found)


def decided(
    engine: PolicyEngine,
    key: np.uint64,
    number: int,
    asked: SlateRequest,
    *,
    scored: bool,
    explorer: Explorer,
    baseline: Baseline | None,
    chosen: Chosen | None,
) -> tuple[Answered, Chosen | None]:
    """The slate for a request, by the policy or by the list, as was chosen; without a list by the policy."""
    if baseline is None or chosen is None or chosen.by_policy:
        return answered(engine, key, number, asked, scored=scored, explorer=explorer), chosen
    filled, listed = baseline.filling(engine, asked)
    return answered(engine, key, number, filled, scored=scored), chosen._replace(listed=listed)


def check_baseline(
    items: Iterable[ItemId], catalog: Catalog, k: int, policy: Policy
) -> tuple[list[ItemId], list[int]]:
    """The ids and rows of a list that can be shown today, or InvalidInput."""
    ids = item_ids(items, "baseline")
    check_learns_from_lists(policy)
    if len(ids) < k:
        raise InvalidInput(f"must have at least {k} items, the length of a slate, got {len(ids)}", "baseline")
    rows: dict[int, ItemId] = {}
    for item in ids:
        row = catalog.row_of(item)
        if row is None:
            raise InvalidInput(
                f"must name items of the catalog, got {quoted(item)}; add it first, or leave it out",
                "baseline",
            )
        if row in rows:
            raise InvalidInput(f"must name an item once, got {quoted(item)} twice", "baseline")
        if catalog.withdrawn[row]:
            raise InvalidInput(
                f"must not have withdrawn items, got {quoted(item)}; put it back first, or leave it out",
                "baseline",
            )
        rows[row] = item
    return ids, list(rows)


def check_learns_from_lists(policy: Policy) -> None:
    """Refuse a baseline for a policy that would learn wrongly from it."""
    if not policy.learns_from_others or policy.misreads:
        raise InvalidInput(
            f"is not for {policy.label}, which learns from slates that it has arranged itself; take another "
            "policy, or leave it out",
            "baseline",
        )


def n_shown(catalog: Catalog, rows: Iterable[int]) -> int:
    """How many of these rows may be shown now."""
    return int(np.count_nonzero(catalog.hidden[np.array([*rows], np.int64)] == 0))
