"""A comparison is played cell by cell, and goes on where it stopped."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import t

from firstclick import simulate
from firstclick.errors import InvalidInput
from firstclick.experiments.engines import engine_named, play_here
from firstclick.experiments.runner import Watch
from firstclick.registry import DEFAULT_POLICY
from firstclick.studies.guide.conduct import compare, policies_named
from firstclick.studies.guide.fitting import Contender
from firstclick.studies.guide.standings import COLUMNS, as_csv, from_csv, lines_of
from firstclick.studies.guide.stock import StockWorld, stock_worlds
from tests.support.stopped_engine import Stopped, stop_after

WORLDS = stock_worlds(["few-items", "types"])
SETTINGS = {"steps": 60, "runs": 2, "seed": 5}


@pytest.fixture(scope="module")
def policies():
    return policies_named(["cascade-ts", "cascade-lin-ts"])


@pytest.fixture(scope="module")
def whole(policies, tmp_path_factory):
    """A folder that was never interrupted."""
    folder = tmp_path_factory.mktemp("whole")
    compare(policies, WORLDS, folder, play_here, **SETTINGS)
    return folder


def files_of(folder):
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "speed.csv"
    }


def test_regret_is_what_simulate_gives_in_a_world_of_its_own_for_every_run(policies, whole):
    lines = from_csv((whole / "results.csv").read_text())
    assert [(line.world, line.learner) for line in lines] == [
        (world, policy)
        for world in ("few-items", "types")
        for policy in ("cascade-ts", "cascade-lin-ts", "random")
    ]
    for run in range(2):
        cell = next(whole.glob(f"cells/types-*cascade-ts-run-{run}-*.json"))
        regret = json.loads(cell.read_text())["record"]["expected_regret"][-1]
        stage = WORLDS[1].stage(5, run)
        # A run of `simulate` has the keys of its number: play as many, and look at the last.
        alone = simulate(["cascade-ts"], stage.world, k=4, steps=60, runs=run + 1, seed=5)
        assert regret == alone.results[0].expected_regret[run, -1]


def test_an_interrupted_folder_goes_on_and_ends_bit_for_bit_the_same(policies, whole, tmp_path):
    with pytest.raises(Stopped):
        compare(policies, WORLDS, tmp_path, stop_after(4), **SETTINGS)
    assert len(list((tmp_path / "cells").iterdir())) == 4
    begun = []
    watch = Watch(lambda *cells: begun.append(cells))
    # In two processes, which must not matter either.
    compare(policies, WORLDS, tmp_path, engine_named("local", 2), watch=watch, **SETTINGS)
    assert begun == [(4, 10)]
    assert files_of(tmp_path) == files_of(whole)
    times = (tmp_path / "speed.csv").read_text().splitlines()
    assert len(times) == 11
    assert times[1].split(",")[:6] == ["few-items", "", "16", "", "4", "cascade-ts"]


def test_other_settings_are_refused_and_finished_cells_are_kept_and_used(policies, whole, tmp_path):
    compare(policies, WORLDS[:1], tmp_path, play_here, **SETTINGS)
    with pytest.raises(InvalidInput, match="holds the results of another call; pass `overwrite=True`"):
        compare(policies, WORLDS, tmp_path, play_here, **SETTINGS)
    begun = []
    compare(
        policies, WORLDS, tmp_path, play_here, overwrite=True,
        watch=Watch(lambda *cells: begun.append(cells)), **SETTINGS,
    )  # fmt: skip
    assert begun == [(4, 10)]
    assert files_of(tmp_path) == files_of(whole)


def test_the_manifest_says_what_was_played(whole):
    manifest = json.loads((whole / "manifest.json").read_text())
    assert (manifest["steps"], manifest["runs"], manifest["seed"]) == (60, 2, 5)
    assert manifest["worlds"]["few-items"]["world"] == WORLDS[0].spec
    assert manifest["worlds"]["few-items"]["policies"] == ["cascade-ts", "random"]


@pytest.mark.parametrize(("name", "value"), [("steps", 0), ("runs", 0), ("seed", -1), ("steps", 2.5)])
def test_what_cannot_be_played_is_refused_before_anything_is_written(policies, tmp_path, name, value):
    with pytest.raises(InvalidInput, match=f"{name} must be"):
        compare(policies, WORLDS, tmp_path / "new", play_here, **SETTINGS | {name: value})
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


def test_one_run_has_a_difference_and_no_interval_and_without_the_default_there_is_none():
    _, other, _ = lines_of(
        [standing(DEFAULT_POLICY, 10), standing("other", 12), standing("random", 100)], steps=50
    )
    assert other.more_than_default == 2
    assert np.isnan([other.more_low, other.more_high]).all()
    alone, _ = lines_of([standing("other", 12, 13), standing("random", 100, 110)], steps=50)
    assert np.isnan([alone.more_than_default, alone.more_low]).all()
    assert alone.worst_run == 13


def test_of_a_single_run_only_the_best_leads():
    lines = lines_of([standing("a", 10), standing("b", 10.5), standing("random", 100)], steps=50)
    assert [line.leads for line in lines] == [True, False, False]
    assert np.isnan(lines[0].stderr)


def test_a_file_of_something_else_is_refused():
    with pytest.raises(InvalidInput, match=f"results must have the columns {', '.join(COLUMNS)}, got a, b"):
        from_csv("a,b\n1,2\n")
