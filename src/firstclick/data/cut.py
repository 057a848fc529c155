"""A part of the interactions: the most active users, the most met items, or the items of a group."""

import difflib
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from firstclick.data.interactions import Interactions
from firstclick.data.ranking import most_first, places
from firstclick.errors import InvalidInput, UnknownName
from firstclick.validation.whole_number import whole_number


def cut(
    interactions: Interactions, *, top_users: int | None = None, top_items: int | None = None
) -> Interactions:
    """Keep the most active users and the most frequent items.

    >>> from pathlib import Path
    >>> from firstclick.data import read_interactions
    >>> _ = Path("likes.csv").write_text("ann,tea\\nann,milk\\nbob,tea\\n")
    >>> cut(read_interactions("likes.csv"), top_items=1).item_ids
    ('tea',)

    Users and items are counted in rows, independently, over all rows. Ties go to the lower code. What is kept
    keeps its order, names, groups, ranks and facts, even if no row is left.

    Args:
        interactions: The data.
        top_users: How many users to keep; all by default.
        top_items: How many items to keep; all by default.
    """
    if top_users is None and top_items is None:
        return interactions
    users = _top("top_users", top_users, interactions.users, len(interactions.user_ids))
    items = _top("top_items", top_items, interactions.items, len(interactions.item_ids))
    return _keep(interactions, users, items)


def keep_items(interactions: Interactions, items: ArrayLike) -> Interactions:
    """Keep the rows of some items. All users stay, and items keep their order.

    >>> from pathlib import Path
    >>> from firstclick.data import read_interactions
    >>> _ = Path("likes.csv").write_text("ann,tea\\nann,milk\\nbob,tea\\n")
    >>> keep_items(read_interactions("likes.csv"), [1]).item_ids
    ('tea',)

    Args:
        interactions: The data.
        items: Item codes: positions in `interactions.item_ids`.
    """
    n_items = len(interactions.item_ids)
    codes = np.asarray(items)
    if codes.ndim != 1 or codes.dtype.kind not in "iu" or not codes.size:
        raise InvalidInput(f"must be a list of item codes, at least one, got {items!r}", "items")
    if codes.min() < 0 or codes.max() >= n_items:
        raise InvalidInput(
            f"must be codes from 0 to {n_items - 1}, got {codes.min()} to {codes.max()}", "items"
        )
    return _keep(interactions, np.arange(len(interactions.user_ids)), np.unique(codes))


def group_items(interactions: Interactions, name: str) -> NDArray[np.int64]:
    """The codes of the items in this group; of an unknown one the nearest are listed."""
    groups = interactions.groups()
    if name in groups:
        return groups[name]
    if not groups:
        raise InvalidInput(f"there is no group {name!r}: the items of this data have no groups")
    # The largest of those that differ in case alone.
    plain = {group.casefold(): group for group in reversed(groups)}
    near = [plain[found] for found in difflib.get_close_matches(name.casefold(), plain, n=5, cutoff=0.5)]
    listed = ", ".join(
        f"{group!r} ({(size := len(groups[group]))} item{'s' * (size != 1)})"
        for group in near or list(groups)[:10]
    )
    raise UnknownName(f"unknown group {name!r}; {'nearest' if near else 'largest'}: {listed}")


def _top(name: str, n: int | None, codes: NDArray[Any], n_ids: int) -> NDArray[np.int64]:
    if n is None:
        return np.arange(n_ids)
    n = whole_number(name, n, at_least=1)
    return np.sort(most_first(np.bincount(codes, minlength=n_ids))[:n])


def _keep(old: Interactions, users: NDArray[np.int64], items: NDArray[np.int64]) -> Interactions:
    new_users = places(users, len(old.user_ids))[old.users]
    new_items = places(items, len(old.item_ids))[old.items]
    kept = (new_users >= 0) & (new_items >= 0)
    # The gaps that items left out leave in the ranks are closed: twice sorted is ranked.
    ranks = old.item_ranks[items] if old.item_ranks.size else old.item_ranks
    return replace(
        old,
        users=new_users[kept],
        items=new_items[kept],
        attracted=old.attracted[kept],
        user_ids=tuple(old.user_ids[user] for user in users.tolist()),
        item_ids=tuple(old.item_ids[item] for item in items.tolist()),
        item_names=old.item_names and tuple(old.item_names[item] for item in items.tolist()),
        item_groups=old.item_groups and tuple(old.item_groups[item] for item in items.tolist()),
        item_ranks=np.argsort(np.argsort(ranks)),
    )
