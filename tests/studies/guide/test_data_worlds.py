"""Worlds made of who liked what are played, kept and told apart as stock worlds are."""

import json
from dataclasses import replace

import numpy as np
import pytest

from firstclick import simulate
from firstclick.data import FeedbackScenario, feedback_matrix, read_interactions
from firstclick.data.interactions import Interactions
from firstclick.errors import InvalidInput, UnknownName
from firstclick.experiments import Dataset
from firstclick.experiments.engines import engine_named, play_here
from firstclick.registry import make_policy
from firstclick.studies.guide.conduct import compare, policies_named
from firstclick.studies.guide.data_worlds import MOVIELENS, MOVIELENS_1M, DataWorld
from firstclick.studies.guide.fitting import contenders
from firstclick.studies.guide.page import guide_table
from firstclick.studies.guide.standings import from_csv, lines_of
from firstclick.studies.guide.stock import STOCK, stock_worlds
from firstclick.studies.guide.worlds import worlds_named
from tests.support.stopped_engine import Stopped, stop_after

SETTINGS = {"steps": 60, "runs": 2, "seed": 5}
NAMES = ("cascade-ts", "cascade-lin-ts")


def dataset(changed=False):
    """30 users and 12 items, the first of which most users like."""
    liked = np.random.default_rng(3).random((30, 12)) < np.linspace(0.7, 0.1, 12)
    liked[0, 0] = not changed
    users, items = np.nonzero(np.ones_like(liked))
    ids = tuple(map(str, range(30)))
    read = Interactions(users, items, liked.ravel(), ids, ids[:12])
    return Dataset.of(read, title="Films")


def world(**changes):
    given = {
        "name": "films",
        "call": "--interactions films.csv",
        "k": 3,
        "why": "Films.",
        "n_items": 9,
        "rank": 4,
    }
    return DataWorld(**given | changes)


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A folder that was never interrupted: a stock world, and one of data."""
    folder = tmp_path_factory.mktemp("whole")
    compare(policies_named(NAMES), both(), folder, play_here, **SETTINGS)
    return folder


def both():
    return [*stock_worlds(["few-items"]), world().on(dataset())]


def files_of(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "speed.csv"
    }


def test_its_regret_is_that_of_simulate_on_the_same_data(whole):
    scenario = FeedbackScenario(dataset().matrix, rank=4, n_items=9)
    alone = simulate(NAMES, scenario, k=3, steps=60, runs=2, seed=5)
    lines = {
        line.learner: line for line in from_csv((whole / "results.csv").read_text()) if line.world == "films"
    }
    for name in NAMES:
        regret = alone[name].expected_regret[:, -1]
        assert lines[name].expected_regret == pytest.approx(regret.mean(), rel=1e-5)
        assert lines[name].worst_run == pytest.approx(regret.max(), rel=1e-5)
        assert lines[name].clicks_per_step == pytest.approx(alone[name].reward[:, -1].mean() / 60, rel=1e-5)


def test_an_interrupted_folder_goes_on_in_several_processes_and_ends_the_same(whole, tmp_path):
    with pytest.raises(Stopped):
        compare(policies_named(NAMES), both(), tmp_path, stop_after(6), **SETTINGS)
    assert len(list((tmp_path / "cells").iterdir())) == 6
    compare(policies_named(NAMES), both(), tmp_path, engine_named("local", 2), **SETTINGS)
    assert files_of(tmp_path) == files_of(whole)


def test_the_manifest_tells_the_data_by_name_counts_and_hash(whole, tmp_path):
    told = json.loads((whole / "manifest.json").read_text())["worlds"]["films"]
    matrix = dataset().matrix
    assert told["data"] == {
        "name": "Films", "users": 30, "items": 12, "attracted pairs": matrix.nnz, "sha256": dataset().digest
    }  # fmt: skip
    assert (told["items"], told["rank"], told["k"]) == (9, 4, 3)
    compare(policies_named(["cascade-ts"]), [world().on(dataset())], tmp_path, play_here, **SETTINGS)
    other = world().on(dataset(changed=True))
    with pytest.raises(InvalidInput, match="holds the results of another call"):
        compare(policies_named(["cascade-ts"]), [other], tmp_path, play_here, **SETTINGS)
    compare(policies_named(["cascade-ts"]), [other], tmp_path, play_here, overwrite=True, **SETTINGS)
    # Cells of other data are kept, and not taken for those of this data.
    assert len(list((tmp_path / "cells").glob("*.json"))) == 8


def test_every_run_splits_anew_and_the_catalog_is_in_the_order_of_popularity():
    played = world().on(dataset())
    first, second = played.stage(1, 0), played.stage(1, 1)
    assert first.features.shape == (9, 4)
    assert not np.array_equal(first.features, second.features)
    popular = np.argsort(-np.asarray(dataset().matrix.sum(axis=0)).ravel(), kind="stable")[:9]
    assert list(first.item_names) == [str(item) for item in popular]
    (one,) = contenders([make_policy("bubble-rank")], played, 50, 1)
    assert (
        one.reason == "bubble-rank starts from the order of the catalog, which here has the best items first"
    )


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"n_items": 13}, "n_items must be at most 12, the items of Films, got 13"),
        ({"n_items": 1}, "n_items must be at least 2, got 1"),
        ({"k": 9}, "k must be at most 8, because 9 items compete and a slate of all leaves nothing"),
        ({"k": 0}, "k must be at least 1"),
        ({"rank": 13}, r"rank must be at most 12 \(half of the users of Films are 15, its items 12\)"),
    ],
)  # fmt: skip
def test_what_the_data_is_too_small_for_is_said(changes, sentence):
    with pytest.raises(InvalidInput, match=sentence):
        world(**changes).on(dataset())


def test_all_items_are_taken_if_no_number_is_given():
    assert world(n_items=None).on(dataset()).stage(1, 0).world.n_items == 12


def test_without_its_data_it_is_described_but_not_played():
    with pytest.raises(InvalidInput, match="films needs its data"):
        world().stage(1, 0)
    assert world().call == "--interactions films.csv"


def test_a_data_set_of_one_user_is_refused():
    read = Interactions(np.array([0, 0]), np.array([0, 1]), np.array([True, True]), ("u",), ("a", "b"))
    with pytest.raises(InvalidInput, match="Films has 1 user, and two are needed"):
        world(n_items=None, k=1, rank=1).on(Dataset.of(read, title="Films"))


def test_worlds_of_movielens_are_named_as_stock_worlds_are():
    assert worlds_named() == (*STOCK, *MOVIELENS)
    assert [one.name for one in worlds_named(["movielens", "linear"])] == ["linear", "movielens"]
    with pytest.raises(
        UnknownName, match="stock world 'movielens-265' is unknown; did you mean 'movielens-256'"
    ):
        worlds_named(["movielens-265"])


def test_the_page_says_how_worlds_of_data_are_made(whole):
    lines = from_csv((whole / "results.csv").read_text())
    text = guide_table(lines, both())
    assert any(one.startswith("- **films**: Films. `--interactions films.csv`; random order") for one in text)
    assert any(one.startswith("In a world of data each run splits the users anew") for one in text)
    stock = [line for line in lines if line.world == "few-items"]
    assert not any("splits the users anew" in one for one in guide_table(stock))


def test_a_world_in_which_random_order_loses_nothing_has_no_shares():
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
