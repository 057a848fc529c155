"""A comparison is played cell by cell, and goes on where it stopped."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import t

from firstclick import simulate
from firstclick.data import FeedbackScenario
from firstclick.errors import InvalidInput
from firstclick.experiments.engines import engine_named, play_here
from firstclick.experiments.runner import Watch
from firstclick.registry import DEFAULT_POLICY
from firstclick.studies.guide.conduct import compare, policies_named
from firstclick.studies.guide.fitting import Contender
from firstclick.studies.guide.page import guide_table
from firstclick.studies.guide.standings import as_csv, from_csv, lines_of
from firstclick.studies.guide.stock import StockWorld, stock_worlds
from tests.studies.guide.test_data_worlds import dataset, world
from tests.support.garden import files_of
from tests.support.stopped_engine import Stopped, stop_after

WORLDS = [*stock_worlds(["few-items", "types"]), world().on(dataset())]
NAMES = ["cascade-ts", "cascade-lin-ts"]
POLICIES = policies_named(NAMES)
SETTINGS = {"steps": 60, "runs": 2, "seed": 5}
CELLS = 16  # few-items has no features: two policies, elsewhere three, twice


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


def test_interrupted_folder_ends_bit_for_bit_the_same(whole, tmp_path):
    with pytest.raises(Stopped):
        compare(POLICIES, WORLDS, tmp_path, stop_after(4), **SETTINGS)
    assert len(list((tmp_path / "cells").iterdir())) == 4
    begun = []
    watch = Watch(lambda *cells: begun.append(cells))
    # In two processes, which must not matter either.
    compare(POLICIES, WORLDS, tmp_path, engine_named("local", 2), watch=watch, **SETTINGS)
    assert begun == [(4, CELLS)]
    assert files_of(tmp_path) == files_of(whole)
    times = (tmp_path / "speed.csv").read_text().splitlines()
    assert len(times) == CELLS + 1
    assert times[1].split(",")[:6] == ["few-items", "", "16", "", "4", "cascade-ts"]
    manifest = json.loads((whole / "manifest.json").read_text())
    assert (manifest["steps"], manifest["runs"], manifest["seed"]) == (60, 2, 5)
    few, films = manifest["worlds"]["few-items"], manifest["worlds"]["films"]
    assert (few["world"], few["policies"]) == (WORLDS[0].spec, ["cascade-ts", "random"])
    assert (films["items"], films["rank"], films["k"]) == (9, 4, 3)
    assert films["data"] == {
        "name": "Films", "users": 30, "items": 12, "attracted pairs": dataset().matrix.nnz,
        "sha256": dataset().digest,
    }  # fmt: skip


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


def test_page_describes_worlds_of_data(whole):
    lines = from_csv((whole / "results.csv").read_text())
    text = guide_table(lines, WORLDS)
    assert any(one.startswith("- **films**: Films. `--interactions films.csv`") for one in text)
    note = "In a world of data each run splits the users"
    assert any(one.startswith(note) for one in text)
    stock = [line for line in lines if line.world == "few-items"]
    assert not any(one.startswith(note) for one in guide_table(stock))


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


def test_lines_have_the_spread_of_runs_and_the_paired_difference_to_the_default():
    runs = {DEFAULT_POLICY: range(10, 120, 10), "other": range(15, 125, 10), "random": [500] * 11}
    default, other, random = lines_of([standing(name, *regret) for name, regret in runs.items()], steps=50)
    assert (default.p90, default.worst_run) == (100, 110)
    assert (other.p90, other.worst_run) == (105, 115)
    assert np.isnan([default.more_than_default, default.more_low, default.more_high]).all()
    # Five more in every run: however much runs differ, this does not.
    assert (other.more_than_default, other.more_low, other.more_high) == (5, 5, 5)
    low, high = t.interval(0.9, 10, loc=440, scale=np.std(range(10, 120, 10), ddof=1) / np.sqrt(11))
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
    assert alone.worst_run == 13


def test_file_with_other_columns_is_refused():
    with pytest.raises(InvalidInput, match=r"results must have the columns .*, got a, b"):
        from_csv("a,b\n1,2\n")
