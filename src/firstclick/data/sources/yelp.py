"""Restaurants of the Yelp data set and who reviewed them."""

import json
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from firstclick.data.interactions import Interactions
from firstclick.data.ranking import most_first, places
from firstclick.data.sources.lines import Lines, lines_of
from firstclick.data.sources.source import Progress, Source, silent
from firstclick.errors import InvalidInput
from firstclick.parameters import param

RESTAURANTS = "Restaurants"
AMERICAN = "American"
AMERICAN_KINDS = {"American (New)", "American (Traditional)"}

Codes = NDArray[np.int64]


class Yelp(Source):
    """A restaurant attracts a user who has reviewed it, whatever the stars.

    "We extract L = 3k most reviewed restaurants and m = 20k most reviewing users" (Zong et al. 2016,
    section 4.4). Both are counted over all reviews of restaurants, independently of each other. A second
    review of the same restaurant by the same user does not count (the authors ranked by distinct reviewers,
    too). Ties go to the lower id. If there are fewer than asked for, all are kept.

    The authors' code took other users, `users_by=first-met`: it went through the restaurants from the most
    reviewed down, and through their reviews in file order, until it had enough users.

    Groups are the categories except "Restaurants", and "American" for New or Traditional. In editions
    that write the categories as one text, a category with a comma in its name is split. Facts count the
    whole files, before anything is left out.
    """

    name = "yelp"
    title = "Yelp"
    folders: ClassVar[tuple[str, ...]] = ("yelp", "yelp_dataset", "yelp_dataset_challenge_academic_dataset")
    forms: ClassVar[tuple[dict[str, str], ...]] = (
        {"business": "yelp_academic_dataset_business.json", "review": "yelp_academic_dataset_review.json"},
        {"business": "business.json", "review": "review.json"},
    )
    n_items: int = param(3000, "restaurants kept, the most reviewed", at_least=1)
    n_users: int = param(20000, "users kept", at_least=1)
    users_by: str = param(
        "reviews", "keep who reviewed most restaurants, or who is met first", words=("reviews", "first-met")
    )

    def load(self, path: Path | None, progress: Progress = silent) -> Interactions:
        """The most reviewed restaurants, the chosen users, and every pair of them with a review, once."""
        lines = lines_of(self.find(path), progress)
        n_businesses, restaurants = _read_restaurants(lines["business"])
        item_ids = list(restaurants)
        n_reviews, user_ids, users, items = _read_reviews(lines["review"], item_ids)
        ranking = _most_frequent(items, item_ids)
        rank = places(ranking, len(item_ids))
        if self.users_by == "reviews":
            chosen = _most_frequent(users, user_ids)
        else:
            chosen = _first_met(users, rank[items])
        kept_users = sorted(chosen[: self.n_users].tolist(), key=user_ids.__getitem__)
        kept_items = sorted(ranking[: self.n_items].tolist(), key=item_ids.__getitem__)
        new_users = places(kept_users, len(user_ids))[users]
        new_items = places(kept_items, len(item_ids))[items]
        both = (new_users >= 0) & (new_items >= 0)
        kept_ids = tuple(item_ids[code] for code in kept_items)
        return Interactions(
            users=new_users[both],
            items=new_items[both],
            attracted=np.ones(np.count_nonzero(both), np.bool_),
            user_ids=tuple(user_ids[code] for code in kept_users),
            item_ids=kept_ids,
            item_names=tuple(restaurants[item][0] for item in kept_ids),
            item_groups=tuple(restaurants[item][1] for item in kept_ids),
            item_ranks=rank[kept_items].astype(np.int64),
            facts={
                "businesses": n_businesses,
                "restaurants": len(item_ids),
                "reviews": n_reviews,
                "users": len(user_ids),
            },
        )


def _read_restaurants(lines: Lines) -> tuple[int, dict[str, tuple[str, tuple[str, ...]]]]:
    """How many businesses there are, and the name and groups of each restaurant by its id."""
    n_businesses = 0
    restaurants: dict[str, tuple[str, tuple[str, ...]]] = {}
    for number, record in _records(lines):
        if "user_id" in record:
            raise lines.error(
                number, "expected a business, got a review; are the business and review files swapped?"
            )
        business = _text(lines, number, record, "business_id")
        categories = _categories(lines, number, record)
        n_businesses += 1
        if RESTAURANTS not in categories:
            continue
        if business in restaurants:
            raise lines.error(number, f"business_id {business!r} is already on an earlier line")
        # The name is for people only: a restaurant without one is no reason to refuse the file.
        unnamed = _value(lines, number, record, "name") in (None, "")
        name = business if unnamed else _text(lines, number, record, "name")
        restaurants[business] = name, _groups(categories)
    if not restaurants:
        raise InvalidInput(
            f"{lines.name} has {n_businesses} businesses, but none in the category {RESTAURANTS!r}"
        )
    return n_businesses, restaurants


def _read_reviews(lines: Lines, restaurants: list[str]) -> tuple[int, list[str], Codes, Codes]:
    """How many reviews there are, the ids of users, and user and restaurant of every pair with a review.

    Pairs are codes, each there once, in the order in which the file has them first.
    """
    item_codes = {restaurant: code for code, restaurant in enumerate(restaurants)}
    user_codes: dict[str, int] = {}
    users, items = array("i"), array("i")
    n_reviews = 0
    for number, record in _records(lines):
        if "categories" in record:
            raise lines.error(
                number, "expected a review, got a business; are the business and review files swapped?"
            )
        business = _text(lines, number, record, "business_id")
        user = user_codes.setdefault(_text(lines, number, record, "user_id"), len(user_codes))
        n_reviews += 1
        if business in item_codes:
            users.append(user)
            items.append(item_codes[business])
    if not users:
        raise InvalidInput(
            f"{lines.name} has {n_reviews} reviews, but none of a restaurant in the business file; "
            "are both files of one edition?"
        )
    pairs = np.frombuffer(users, np.intc) * np.int64(len(restaurants)) + np.frombuffer(items, np.intc)
    _, first = np.unique(pairs, return_index=True)
    return n_reviews, list(user_codes), *np.divmod(pairs[np.sort(first)], len(restaurants))


def _records(lines: Lines) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in lines:
        try:
            record = json.loads(line)
            if not isinstance(record, dict):
                raise ValueError
        except (ValueError, RecursionError):
            raise lines.error(number, f"expected one JSON object, got {line[:40]!r}") from None
        yield number, record


def _value(lines: Lines, number: int, record: dict[str, Any], key: str) -> Any:
    if key not in record:
        raise lines.error(number, f"no {key!r} among the keys {', '.join(record)}")
    return record[key]


def _text(lines: Lines, number: int, record: dict[str, Any], key: str) -> str:
    value = _value(lines, number, record, key)
    if not isinstance(value, str) or not value:
        raise lines.error(number, f"{key} must be a text that is not empty, got {value!r}")
    return value


def _categories(lines: Lines, number: int, record: dict[str, Any]) -> list[str]:
    value = _value(lines, number, record, "categories")
    if value is None:
        return []
    if isinstance(value, str):
        return [category.strip() for category in value.split(",")]
    if not isinstance(value, list) or not all(isinstance(category, str) for category in value):
        raise lines.error(number, f"categories must be a list of texts, one text or null, got {value!r}")
    return value


def _groups(categories: list[str]) -> tuple[str, ...]:
    groups = [category for category in categories if category not in ("", RESTAURANTS)]
    if not AMERICAN_KINDS.isdisjoint(groups):
        groups.append(AMERICAN)
    return tuple(dict.fromkeys(groups))


def _most_frequent(codes: Codes, ids: list[str]) -> Codes:
    """The codes that occur, most frequent first, among equals in the order of their ids."""
    counts = np.bincount(codes, minlength=len(ids))
    return most_first(counts, ids)[: np.count_nonzero(counts)]


def _first_met(users: Codes, ranks: NDArray[np.int32]) -> Codes:
    """The users in the order in which the reviews, taken by the ranks of their restaurants, meet them."""
    in_turn = users[np.argsort(ranks, kind="stable")]
    return np.array(list(dict.fromkeys(in_turn.tolist())), np.int64)
