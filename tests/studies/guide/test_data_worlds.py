"""Worlds made of interactions: splits, limits and names."""

from dataclasses import replace

import numpy as np
import pytest

from firstclick import make_policy
from firstclick.data import FeedbackScenario, feedback_matrix, read_interactions
from firstclick.data.interactions import Interactions
from firstclick.errors import InvalidInput, UnknownName
from firstclick.experiments import Dataset
from firstclick.studies.guide.data_worlds import MOVIELENS, MOVIELENS_1M, DataWorld
from firstclick.studies.guide.fitting import contenders
from firstclick.studies.guide.standings import lines_of
from firstclick.studies.guide.stock import STOCK
from firstclick.studies.guide.worlds import worlds_named


def dataset(changed=False):
    """30 users and 12 items, the first of which most users like."""
    liked = np.random.default_rng(3).random((30, 12)) < np.linspace(0.7, 0.1, 12)
    liked[0, 0] = not changed
    users, items = np.nonzero(np.ones_like(liked))
    ids = tuple(map(str, range(30)))
    read = Interactions(users, items, liked.ravel(), ids, ids[:12])
    return Dataset.of(read, title="Films")


def world(**changes):
    given = {"name": "films", "call": "--interactions films.csv", "k": 3, "why": "Films."}
    return DataWorld(**given | {"n_items": 9, "rank": 4} | changes)


def test_each_run_has_its_own_split_and_items_are_ordered_by_popularity():
    played = world().on(dataset())
    first, second = played.stage(1, 0), played.stage(1, 1)
    assert first.features.shape == (9, 4)
    assert not np.array_equal(first.features, second.features)
    popular = np.argsort(-np.asarray(dataset().matrix.sum(axis=0)).ravel(), kind="stable")[:9]
    assert list(first.item_names) == [str(item) for item in popular]
    assert world(n_items=None).on(dataset()).stage(1, 0).world.n_items == 12
    (one,) = contenders([make_policy("bubble-rank")], played, 50, 1)
    assert "order of the catalog" in one.reason


@pytest.mark.parametrize(
    ("changes", "argument"),
    [
        ({"n_items": 13}, "n_items"),
        ({"n_items": 1}, "n_items"),
        ({"k": 9}, "k"),
        ({"k": 0}, "k"),
        ({"rank": 13}, "rank"),
    ],
)
def test_too_small_data_is_refused(changes, argument):
    with pytest.raises(InvalidInput, match=rf"\b{argument} must be"):
        world(**changes).on(dataset())


def test_data_is_required_and_has_at_least_two_users():
    with pytest.raises(InvalidInput, match="films needs its data"):
        world().stage(1, 0)
    read = Interactions(np.array([0, 0]), np.array([0, 1]), np.array([True, True]), ("u",), ("a", "b"))
    with pytest.raises(InvalidInput, match="1 user"):
        world(n_items=None, k=1, rank=1).on(Dataset.of(read, title="Films"))


def test_worlds_of_movielens_are_named_as_stock_worlds_are():
    assert worlds_named() == (*STOCK, *MOVIELENS)
    assert [one.name for one in worlds_named(["movielens", "linear"])] == ["linear", "movielens"]
    with pytest.raises(UnknownName, match="did you mean 'movielens-256'"):
        worlds_named(["movielens-265"])


def test_world_in_which_random_order_loses_nothing_has_no_shares():
    users, items = np.divmod(np.arange(24), 4)
    read = Interactions(users, items, np.ones(24, bool), tuple("abcdef"), tuple("wxyz"))
    played = world(n_items=4, k=2, rank=1).on(Dataset.of(read))
    (one,) = contenders([make_policy("random")], played, 50, 1)
    (line,) = lines_of([replace(one, regret=np.zeros(2), clicks=np.full(2, 50.0))], 50)
    assert np.isnan(line.share_of_random)
    assert line.clicks_per_step == 1


def test_movielens_1m_is_what_simulate_plays_with_the_same_options(movielens_1m):
    from firstclick.data.sources import make_source

    read = Dataset.load(make_source("movielens"), movielens_1m)
    assert read.matrix.shape == MOVIELENS_1M
    direct = read_interactions(
        movielens_1m / "ratings.dat", user_column=0, item_column=1, value_column=2, above=3
    )
    matrix = feedback_matrix(direct)
    for one, n_items in zip(MOVIELENS, (16, 256, 3706), strict=True):
        stage = one.on(read).stage(7, 1)
        same = FeedbackScenario(matrix, rank=20, n_items=n_items).stage(7, 1)
        assert stage.world.n_items == n_items
        assert np.array_equal(stage.features, same.features)
        assert (stage.world.matrix != same.world.matrix).nnz == 0
        assert ("--items" in one.call) == (n_items != 3706)
