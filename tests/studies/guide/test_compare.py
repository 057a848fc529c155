"""Comparisons: cells, stock worlds, worlds of data and who can play."""

import json
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import t

from firstclick import make_policy, policy_classes, simulate
from firstclick.data import FeedbackScenario
from firstclick.data.interactions import Interactions
from firstclick.errors import InvalidInput, UnknownName
from firstclick.experiments import Dataset
from firstclick.experiments.engines import play_here
from firstclick.experiments.runner import Watch
from firstclick.policies.cascade_ts import CascadeTS
from firstclick.registry import DEFAULT_POLICY
from firstclick.studies.guide.conduct import compare, policies_named
from firstclick.studies.guide.data_worlds import MOVIELENS, DataWorld
from firstclick.studies.guide.families import family_of, in_order
from firstclick.studies.guide.fitting import Contender, contenders
from firstclick.studies.guide.standings import as_csv, from_csv, lines_of
from firstclick.studies.guide.stock import STOCK, StockWorld, chosen
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


WORLDS = [*chosen(["few-items", "types"], STOCK), world().on(dataset())]
NAMES = ["cascade-ts", "cascade-lin-ts"]
POLICIES = policies_named(NAMES)
SETTINGS = {"steps": 60, "runs": 2, "seed": 5}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A folder that was never interrupted."""
    folder = tmp_path_factory.mktemp("whole")
    compare(POLICIES, WORLDS, folder, play_here, **SETTINGS)
    return folder


def test_regret_is_that_of_simulate(whole):
    lines = {(line.world, line.learner): line for line in from_csv((whole / "results.csv").read_text())}
    assert list(lines) == [
        (world, policy) for world in ("few-items", "types", "films") for policy in (*NAMES, "random")
    ]
    for run in range(2):
        cell = next(whole.glob(f"cells/types-*cascade-ts-run-{run}-*.json"))
        regret = json.loads(cell.read_text())["record"]["expected_regret"][-1]
        stage = WORLDS[1].stage(5, run)
        # A run of `simulate` has the keys of its number: play as many, and compare the last.
        alone = simulate(["cascade-ts"], stage.world, k=4, steps=60, runs=run + 1, seed=5)
        assert regret == alone.results[0].expected_regret[run, -1]
    scenario = FeedbackScenario(dataset().matrix, rank=4, n_items=9)
    alone = simulate(NAMES, scenario, k=3, steps=60, runs=2, seed=5)
    for name in NAMES:
        line, regret = lines["films", name], alone[name].expected_regret[:, -1]
        assert line.expected_regret == pytest.approx(regret.mean(), rel=1e-5)
        assert line.worst_run == pytest.approx(regret.max(), rel=1e-5)
        assert line.clicks_per_step == pytest.approx(alone[name].reward[:, -1].mean() / 60, rel=1e-5)


def test_folder_of_another_call_is_refused_and_cells_of_other_data_are_kept(tmp_path):
    policies, films = policies_named(["cascade-ts"]), WORLDS[2:]
    compare(policies, films, tmp_path, play_here, **SETTINGS)
    other = [world().on(dataset(changed=True))]
    with pytest.raises(InvalidInput, match="results of another call"):
        compare(policies, other, tmp_path, play_here, **SETTINGS)
    compare(policies, other, tmp_path, play_here, overwrite=True, **SETTINGS)
    # Cells of other data are kept, and not used for this data.
    assert len(list((tmp_path / "cells").glob("*.json"))) == 8
    begun = []
    watch = Watch(lambda *cells: begun.append(cells))
    compare(policies, films, tmp_path, play_here, overwrite=True, watch=watch, **SETTINGS)
    assert begun == [(4, 4)]


@pytest.mark.parametrize(("name", "value"), [("steps", 0), ("runs", 0), ("seed", -1), ("steps", 2.5)])
def test_wrong_settings_are_refused_before_anything_is_written(tmp_path, name, value):
    with pytest.raises(InvalidInput, match=f"{name} must be"):
        compare(POLICIES, WORLDS, tmp_path / "new", play_here, **SETTINGS | {name: value})
    assert not (tmp_path / "new").exists()


def standing(policy, *regret, reason=""):
    world = StockWorld("few-items", "blb", 2, "A world.")
    named = SimpleNamespace(label=policy)
    return Contender(world, policy, named, "blb", 4, None, reason, np.array(regret, float))


def test_lines_compare_with_the_best_and_with_random_order():
    lines = lines_of(
        [standing("good", 10, 20, 30), standing("as-good", 13, 16, 34), standing("worse", 21, 30, 42),
         standing("absent", reason="it needs features, and \"more\""), standing("random", 100, 200, 300)],
        steps=50,
    )  # fmt: skip
    good, _, worse, absent, random = lines
    assert (good.expected_regret, good.share_of_random, good.times_best) == (20, 0.1, 1)
    assert good.stderr == pytest.approx(10 / np.sqrt(3))
    # Runs are paired: 'worse' overlaps with 'good' in its runs, but loses more in every one.
    assert [line.leads for line in lines] == [True, True, False, False, False]
    assert worse.times_best == pytest.approx(31 / 20)
    assert random.share_of_random == 1
    assert absent.runs == 0
    assert np.isnan(absent.expected_regret)
    again = from_csv(as_csv(lines).decode())
    assert as_csv(again) == as_csv(lines)
    assert again[3].reason == absent.reason
    with pytest.raises(InvalidInput, match=r"results must have the columns .*, got a, b"):
        from_csv("a,b\n1,2\n")


def test_lines_have_the_spread_of_runs_and_the_paired_difference_to_the_default():
    runs = {DEFAULT_POLICY: range(10, 120, 10), "other": range(15, 125, 10), "random": [500] * 11}
    default, other, random = lines_of([standing(name, *regret) for name, regret in runs.items()], steps=50)
    assert (default.p90, default.worst_run) == (100, 110)
    assert (other.p90, other.worst_run) == (105, 115)
    assert np.isnan([default.more_than_default, default.more_low, default.more_high]).all()
    # Five more in every run: however much runs differ, this does not.
    assert (other.more_than_default, other.more_low, other.more_high) == (5, 5, 5)
    low, high = t.interval(0.9, 10, loc=440, scale=default.stderr)
    assert (random.more_than_default, random.more_low, random.more_high) == pytest.approx((440, low, high))


def test_one_run_has_a_difference_without_an_interval_and_only_one_leader():
    lines = lines_of(
        [standing(DEFAULT_POLICY, 10), standing("other", 10.5), standing("random", 100)], steps=50
    )
    assert [line.leads for line in lines] == [True, False, False]
    assert lines[1].more_than_default == 0.5
    assert np.isnan([lines[0].stderr, lines[1].more_low, lines[1].more_high]).all()
    # Without the default there is no difference.
    alone, _ = lines_of([standing("other", 12, 13), standing("random", 100, 110)], steps=50)
    assert np.isnan([alone.more_than_default, alone.more_low]).all()


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
    ("changes", "problem"),
    [
        ({"n_items": 13}, "n_items must"),
        ({"k": 9}, r"\bk must"),
        ({"rank": 13}, "rank must"),
    ],
)
def test_too_small_data_is_refused(changes, problem):
    with pytest.raises(InvalidInput, match=problem):
        world(**changes).on(dataset())


def test_data_is_required_and_may_leave_nothing_to_lose():
    with pytest.raises(InvalidInput, match="films needs its data"):
        world().stage(1, 0)
    # Random order loses nothing: there are no shares of it.
    users, items = np.divmod(np.arange(24), 4)
    ids = tuple("abcdef")
    liked = Interactions(users, items, np.ones(24, bool), ids, ids[:4])
    played = world(n_items=4, k=2, rank=1).on(Dataset.of(liked))
    (one,) = contenders([make_policy("random")], played, 50, 1)
    (line,) = lines_of([replace(one, regret=np.zeros(2), clicks=np.full(2, 50.0))], 50)
    assert np.isnan(line.share_of_random)
    assert line.clicks_per_step == 1


def test_worlds_of_movielens_are_named_as_stock_worlds_are():
    assert worlds_named() == (*STOCK, *MOVIELENS)
    assert [one.name for one in worlds_named(["movielens", "linear"])] == ["linear", "movielens"]
    with pytest.raises(UnknownName, match="did you mean 'movielens-256'"):
        worlds_named(["movielens-265"])


OURS = {name: cls for name, cls in policy_classes().items() if cls.__module__.startswith("firstclick.")}


def fitted(name, *specs, steps=500):
    (world,) = chosen([name], STOCK)
    return {one.asked: one for one in contenders([make_policy(spec) for spec in specs], world, steps, 1)}


@pytest.mark.parametrize("world", STOCK, ids=lambda world: world.name)
def test_a_stock_world_can_be_built_and_is_another_one_for_another_seed_and_run(world):
    first = world.stage(1, 1)
    assert first.world.n_items >= world.k
    assert first.world.n_context in (0, world.segments) or not world.segments
    if first.features is not None:
        for seed, run in ((1, 0), (2, 1), (2, 0), (0, 2)):
            assert not np.array_equal(first.features, world.stage(seed, run).features), (seed, run)
        assert world.topics <= first.features.shape[1]
    in_order = first.world.optimal_slate(world.k).tolist() == list(range(world.k))
    assert in_order == world.best_first


def test_policies_have_families_and_worlds_that_are_made_for_them():
    assert [name for name, cls in OURS.items() if not cls.family] == ["random"]
    # RankedLinTS is what the paper compares itself with, and random order what all are.
    assert [name for name, cls in OURS.items() if not cls.made_for] == ["random", "ranked-lin-ts"]
    known = {world.name for world in STOCK}
    assert all(known.issuperset(cls.made_for) for cls in OURS.values())
    ordered = ["cascade-ts", "cascade-ucb1", "bubble-rank", "top-rank", "somebody-elses", "random"]
    assert sorted(sorted(ordered), key=in_order) == ordered
    assert family_of("somebody-elses") == "Others"
    # Research policies play in large worlds only if they are named.
    (shop,) = chosen(["shop"], STOCK)
    policies = [make_policy("cascade-ts"), make_policy("cascade-ucb-v")]
    for named, refused in ((False, [False, True]), (True, [False, False])):
        assert [bool(one.reason) for one in contenders(policies, shop, 10, 1, named=named)] == refused


def test_worlds_and_policies_are_found_by_name():
    assert [policy.label for policy in policies_named(["cascade-ts:a=2"])] == ["cascade-ts:a=2", "random"]
    assert set(OURS) <= {policy.name for policy in policies_named()}
    assert chosen([], STOCK) == STOCK
    assert [world.name for world in chosen(["topics", "linear"], STOCK)] == ["linear", "topics"]
    with pytest.raises(UnknownName, match="did you mean 'linear'"):
        chosen(["linaer"], STOCK)
    for find, name in ((policies_named, "random"), (partial(chosen, among=STOCK), "linear")):
        with pytest.raises(InvalidInput, match=f"'{name}' is given twice"):
            find([name, name])


def test_policies_get_what_their_papers_assume_known_and_nothing_else():
    found = fitted("by-position", *OURS)
    changed = {name: one.policy.label for name, one in found.items() if one.policy.label != one.asked}
    assert changed == {
        **{name: f"{name}:horizon=500" for name in
           ("batch-rank", "bubble-rank", "cascade-ducb", "cascade-swucb", "recur-rank", "top-rank")},
        "cascade-glr-ucb": "cascade-glr-ucb:delta=0.002",
        "cascade-hybrid": "cascade-hybrid:topics=0",
    }  # fmt: skip
    assert found["pbm-ucb"].policy.examination == found["pbm-pie"].policy.examination == (
        1.0, 0.7, 0.5, 0.4, 0.3, 0.25, 0.2
    )  # fmt: skip
    assert not any(one.reason for one in found.values())
    assert fitted("topics", "cascade-hybrid")["cascade-hybrid"].policy.topics == 8

    class Unnamed(CascadeTS):
        """A policy that is not in the registry."""

    (alone,) = contenders([Unnamed(a=3.0)], chosen(["few-items"], STOCK)[0], 500, 1)
    assert (alone.policy, alone.reason) == (Unnamed(a=3.0), "")
    # What was given is not changed.
    given = fitted("topics", "top-rank:horizon=70", "cascade-hybrid:topics=3", "pbm-ucb:examination=0.5")
    assert all(one.policy.label == spec for spec, one in given.items())
    # Segments are described by their number.
    one = fitted("types", "segment-lin-ts", "context-lin-ts")
    assert one["segment-lin-ts"].policy.segments == 4
    assert one["segment-lin-ts"].spec == one["context-lin-ts"].spec + ",told=number"


@pytest.mark.parametrize(
    ("world", "policy", "reason"),
    [
        ("few-items", "cascade-lin-ts", "needs features"),
        ("few-items", "bubble-rank", "order of the catalog"),
        ("long-tail", "top-rank", "3,000"),
        ("logistic", "cascade-lsb", "topics"),
        ("types", "context-lin-ts:context=2", "context"),
    ],
)
def test_policy_that_cannot_play_has_a_reason(world, policy, reason):
    assert reason in fitted(world, policy)[policy].reason
