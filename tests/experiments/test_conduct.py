"""Experiments are carried out cell by cell, and go on where they stopped."""

import csv
import json
import os
import shutil
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from firstclick import make_policy, simulate
from firstclick.data import FeedbackScenario
from firstclick.errors import InvalidInput, UnknownName, WorkFailed
from firstclick.experiments import CellStore, Dataset, Experiment, Training, cells, plan
from firstclick.experiments import store as store_module
from firstclick.experiments.cells import recorded_steps, settings_of
from firstclick.experiments.conduct import conduct
from firstclick.experiments.engines import play_here
from firstclick.experiments.runner import Watch
from firstclick.registry import DEFAULT_POLICY
from firstclick.source_code import code_hash
from firstclick.studies.paper import plain_numpy
from tests.support.garden import Garden, files_of
from tests.support.policies import OTHERS
from tests.support.stopped_engine import Stopped, stop_after

POLICIES = ("cascade-lin-ts", "cascade-ts", "random")


@pytest.fixture(scope="module")
def garden():
    return Dataset.load(Garden(), None)


@pytest.fixture
def experiment():
    """Three policies in 7 and 61 items, twice: 12 cells."""
    policies = tuple(make_policy(name) for name in POLICIES)
    return Experiment(
        "tiny", "A tiny experiment", (Garden(),), policies, items=(7, "all"), rank=(5,), k=(3,), steps=120,
        runs=2, seed=4,
    )  # fmt: skip


def play_counted(experiments, datasets, folder, **how):
    """Conduct experiments; return their comparisons and the number of cells that were played."""
    played = []

    def engine(tasks, report):
        for result in play_here(tasks, report):
            played.append(result)
            yield result

    return conduct(experiments, datasets, folder, engine, **how), len(played)


def test_panels_equal_simulate_and_extras_change_nothing(garden, experiment, tmp_path):
    comparisons = conduct([experiment], [garden], tmp_path / "out", play_here)
    assert [comparison.setting.n_items for comparison in comparisons] == [7, 61]
    for comparison in comparisons:
        scenario = FeedbackScenario(
            garden.matrix, rank=5, n_items=comparison.setting.n_items, item_names=garden.interactions.names
        )
        alone = simulate([*POLICIES], scenario, k=3, steps=120, runs=2, seed=4)
        assert [result.policy for result in comparison.results.results] == [*POLICIES]
        for mine, theirs in zip(comparison.results.results, alone.results, strict=True):
            for measure in ("regret", "expected_regret", "reward"):
                assert np.array_equal(getattr(mine, measure)[:, -1], getattr(theirs, measure)[:, -1])
        assert comparison.results.optimal_reward == pytest.approx(alone.optimal_reward)
        assert comparison.results.optimal_items == alone.optimal_items
    fewer = replace(experiment, policies=experiment.policies[:2], extras=experiment.policies[2:])
    assert fewer.with_extras() == experiment
    without = conduct([fewer], [garden], tmp_path / "without", play_here)[1].results
    assert [result.policy for result in without.results] == ["cascade-lin-ts", "cascade-ts"]
    for result in without.results:
        assert np.array_equal(comparisons[1].results[result.policy].regret, result.regret)


def test_group_has_its_own_items(garden, experiment, tmp_path):
    long = "bed " + "A" * 300
    grown = tuple((long,) if groups == ("bed B",) else groups for groups in garden.interactions.item_groups)
    garden = Dataset.of(replace(garden.interactions, item_groups=grown), garden.source)
    beds = replace(experiment, group={"garden": long}, items=("all",))
    (comparison,) = conduct([beds], [garden], tmp_path / "out", play_here)
    members = garden.interactions.groups()[long]
    assert (comparison.setting.group, comparison.setting.n_items) == (long, len(members))
    shown = {entry.item for result in comparison.results.results for entry in result.shown}
    assert shown <= {garden.interactions.names[item] for item in members}
    with pytest.raises(UnknownName, match="nearest: 'bed "):
        settings_of(replace(experiment, group={"garden": "bed X"}), garden)


def test_shared_cells_are_planned_once(garden, experiment):
    again = replace(experiment, name="again", items=("all",), k=(3, 5))
    planned = plan([experiment, again], [garden])
    # 3 policies x 2 runs in 7 items, in all items with k = 3 (shared), and with k = 5.
    assert len(planned) == len(set(planned)) == 18
    # A source with other parameters is another data set.
    assert plan([replace(experiment, data=(Garden(seed=8),))], [garden]) == []
    # The rank does not matter where no policy has features.
    counts = replace(experiment, policies=experiment.policies[1:], rank=(1000,))
    assert len(settings_of(counts, garden)) == 2
    # The default can do without, and takes features where there are some.
    mixed = replace(experiment, policies=(make_policy(DEFAULT_POLICY),), rank=(3,))
    assert {setting.rank for setting in settings_of(mixed, garden)} == {3}


def test_training_reaches_every_cell(garden, experiment, tmp_path):
    for one_split, optima in ((True, 1), (False, 2)):
        shared = replace(experiment, training=Training(one_split=one_split), items=("all",))
        (comparison,) = conduct([shared], [garden], tmp_path / str(one_split), play_here)
        assert len(set(comparison.optimal_rewards)) == optima
    steps = recorded_steps(100_000)
    assert {1, 10, 100, 1000, 10_000, 50_000, 100_000} <= set(steps.tolist())
    assert [recorded_steps(n).tolist() for n in (1, 7)] == [[1], [1, 2, 3, 4, 5, 6, 7]]


@OTHERS
def test_notes_of_all_policies_are_kept(garden, experiment, tmp_path):
    given = (make_policy("cascade-lin-ucb:c=theory,horizon=50"), *experiment.policies)
    for _ in range(2):  # as played, and as read again
        comparisons = conduct([replace(experiment, policies=given)], [garden], tmp_path, play_here)
        assert "50 steps" in comparisons[0].results.notes[0]


def test_interrupted_folder_ends_bit_for_bit_the_same(garden, experiment, tmp_path):
    conduct([experiment], [garden], tmp_path / "whole", play_here)
    with pytest.raises(Stopped):
        conduct([experiment], [garden], tmp_path / "broken", stop_after(5))
    assert len(list((tmp_path / "broken" / "cells").iterdir())) == 5
    begun, progress = [], []
    watch = Watch(lambda *cells: begun.append(cells), lambda *steps: progress.append(steps))
    _, played = play_counted([experiment], [garden], tmp_path / "broken", watch=watch)
    assert (played, begun) == (12 - 5, [(5, 12)])
    assert (progress[0], progress[-1]) == ((5 * 120, 12 * 120), (12 * 120, 12 * 120))
    assert files_of(tmp_path / "broken") == files_of(tmp_path / "whole")


def test_damaged_cell_is_played_again(garden, experiment, tmp_path):
    conduct([experiment], [garden], tmp_path, play_here)
    before = files_of(tmp_path)
    cell = sorted(tmp_path.glob("cells/*run-1*.json"))[0]
    content = cell.read_bytes()
    for damaged in (
        content[: len(content) // 2],
        content.replace(b'"run": 1', b'"run": 0'),
        content.replace(b'"reward": [', b'"reward": [7.0, ', 1),
        b"\xff" + content,
        b"[" * 100_000,
    ):
        assert damaged != content
        cell.write_bytes(damaged)
        assert play_counted([experiment], [garden], tmp_path)[1] == 1
        assert files_of(tmp_path) == before


def test_cells_of_other_settings_data_or_code_are_not_used(garden, experiment, tmp_path, monkeypatch):
    conduct([experiment], [garden], tmp_path, play_here)
    trainings = Training(scaled=False), Training(intercept=True), Training(with_replacement=True)
    changes = [{"seed": 5}, {"steps": 121}, {"rank": (6,)}, {"k": (2,)}]
    for change in (*changes, *({"training": training} for training in trainings)):
        _, played = play_counted([replace(experiment, **change)], [garden], tmp_path, overwrite=True)
        assert played == 12, change
    comparisons, played = play_counted([replace(experiment, runs=3)], [garden], tmp_path, overwrite=True)
    assert (played, comparisons[0].results.runs) == (6, 3)
    row, column = (int(place[0]) for place in garden.matrix.nonzero())
    changed = garden.matrix.tolil()
    changed[row, column] = 0
    other = replace(garden, matrix=changed.tocsr())
    assert play_counted([experiment], [other], tmp_path, overwrite=True)[1] == 12
    monkeypatch.setattr(cells, "code_hash", lambda module, policy: "other")
    assert play_counted([experiment], [garden], tmp_path, overwrite=True)[1] == 12


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"items": (62,)}, "items is 62"),
        ({"k": (8,)}, "k is 8"),
        ({"rank": (46,)}, "rank is 46"),
        ({"rank": (8,), "training": Training(cut_first=True)}, "items 7"),
        ({"group": {"garden": "bed C"}, "items": (60,)}, "group 'bed C'"),
    ],
)
def test_too_small_data_is_refused_before_any_work(garden, experiment, tmp_path, change, problem):
    with pytest.raises(InvalidInput, match=problem):
        conduct([replace(experiment, **change)], [garden], tmp_path / "out", stop_after(0))
    assert not (tmp_path / "out").exists()


def test_tables_are_tidy_and_the_manifest_describes_the_data(garden, experiment, tmp_path):
    comparisons = conduct([experiment], [garden], tmp_path, play_here, about={"mode": "mine"})
    with (tmp_path / "results.csv").open(newline="") as file:
        means = list(csv.DictReader(file))
    with (tmp_path / "runs.csv").open(newline="") as file:
        runs = list(csv.DictReader(file))
    steps = len(recorded_steps(120))
    assert (len(means), len(runs)) == (2 * 3 * steps, 2 * 3 * 2 * steps)
    wanted = {"step": "120", "policy": "random", "items": "7"}
    (last,) = [row for row in means if wanted.items() <= row.items()]
    regret = comparisons[0].results["random"].final("expected_regret")
    assert (float(last["expected_regret"]), float(last["expected_regret_stderr"])) == (*regret.values(),)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    assert manifest["mode"] == "mine"
    described = manifest["data"]["garden"]
    assert (described["sha256"], described["users"]) == (garden.digest, 90)
    assert manifest["experiments"]["tiny"]["seed"] == 4
    assert set(manifest["versions"]) >= {"firstclick", "numpy", "numba", "scipy"}


def test_numpy_is_timed_only_on_demand_and_where_it_is_transcribed(garden, experiment, tmp_path, monkeypatch):
    monkeypatch.setattr(plain_numpy, "TIMED_SECONDS", 0.005)
    timed = {"overwrite": True, "beside_numpy": plain_numpy.numpy_seconds_per_step}
    more_runs = [replace(experiment, runs=4)]
    conduct(more_runs, [garden], tmp_path / "timed", play_here, **timed)
    kept = CellStore(tmp_path / "timed" / "cells").speeds()
    # One of three policies, in two settings and three of four runs.
    assert sum(speed.numpy_seconds is not None for speed in kept.values()) == 6

    speeds = conduct([experiment], [garden], tmp_path / "not", play_here)[0].speeds
    log = tmp_path / "not" / "speed.csv"
    assert ("numpy" in log.read_text(), speeds["cascade-lin-ts"].seconds > 0) == (False, True)
    # Both in one folder: the log keeps its columns.
    conduct(more_runs, [garden], tmp_path / "not", play_here, **timed)
    assert {len(line.split(",")) for line in log.read_text().splitlines()} == {9}
    assert len(CellStore(tmp_path / "not" / "cells").speeds()) == 24


@pytest.mark.parametrize(
    ("name", "content"), [("thesis.tex", "years of work"), ("manifest.json", '{"name": "a web app"}')]
)
def test_folder_with_other_files_is_refused(garden, experiment, tmp_path, name, content):
    (tmp_path / name).write_text(content)
    for folder, problem in ((tmp_path, "holds other files"), (tmp_path / name, "is a file")):
        with pytest.raises(InvalidInput, match=problem):
            conduct([experiment], [garden], folder, play_here)
    assert (tmp_path / name).read_text() == content


def test_folder_of_another_format_is_refused(garden, experiment, tmp_path):
    (tmp_path / "manifest.json").write_text('{"format": "firstclick experiments 2"}')
    problem = (
        "has the format 'firstclick experiments 2', and this firstclick reads 'firstclick experiments 1'"
    )
    with pytest.raises(InvalidInput, match=problem):
        conduct([experiment], [garden], tmp_path, play_here)


def test_full_disk_keeps_the_finished_cells(garden, experiment, tmp_path, monkeypatch):
    written, calls = store_module.write_whole, iter(range(100))

    def fill(path, content):
        if next(calls) == 4:
            raise WorkFailed(f"{path} cannot be written: No space left on device")
        written(path, content)

    with monkeypatch.context() as patched:
        patched.setattr(store_module, "write_whole", fill)
        with pytest.raises(WorkFailed, match="No space left"):
            conduct([experiment], [garden], tmp_path, play_here)
    assert play_counted([experiment], [garden], tmp_path)[1] == 8


def test_items_of_one_name_are_told_apart(garden, experiment, tmp_path):
    names = tuple("Starbucks" if item % 2 else f"café {item}" for item in range(61))
    chain = Dataset.of(replace(garden.interactions, item_names=names), garden.source)
    comparison = conduct([experiment], [chain], tmp_path, play_here)[1]
    assert len(comparison.results.optimal_items) >= 3
    for shown in (comparison.results.optimal_items, *(one.shown for one in comparison.results.results)):
        called = [entry.item for entry in shown]
        assert len(set(called)) == len(called)
        assert all(item.startswith(("Starbucks (plant ", "café ")) for item in called)
    assert sum(entry.share for entry in comparison.results.optimal_items) == pytest.approx(3)


def test_the_hash_of_the_code_follows_all_that_a_class_is_made_of(tmp_path):
    program = (
        "import mine, firstclick.experiments.conduct; from firstclick.source_code import code_hash; "
        "print(*(code_hash('firstclick.experiments.conduct', *classes) for classes in ((mine.Mine,), ())))"
    )
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([str(tmp_path), *sys.path])}

    def hashes(helper, mine="from helper import SIZE\nclass Mine:\n    size = SIZE\n"):
        for name, text in (("helper.py", helper), ("mine.py", mine)):
            (tmp_path / name).write_text(text)
            os.utime(tmp_path / name, (1e9, 1e9))  # Python's own cache looks at the size and this.
        shutil.rmtree(tmp_path / "__pycache__", ignore_errors=True)
        command = [sys.executable, "-c", program]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        return done.stdout.split()

    first = hashes("SIZE = 1\n")
    assert first[0] != first[1]
    edited = hashes("SIZE = 2\n")
    assert (edited[0] != first[0], edited[1]) == (True, first[1])
    assert hashes("SIZE = 1\n", "class Mine:\n    size = 1\n")[0] not in (first[0], edited[0])


def test_code_edited_after_it_was_loaded_has_another_hash(monkeypatch):
    def edited(modules):
        raise OSError("policies/random.py was changed after this process started")

    before = code_hash("firstclick.experiments.conduct")
    monkeypatch.setattr("firstclick.source_code.digest", edited)
    code_hash.cache_clear()
    assert code_hash("firstclick.experiments.conduct") != before
    code_hash.cache_clear()


@pytest.mark.skipif(sys.platform == "win32", reason="drafts are removed where files can be locked")
def test_files_of_another_call_do_not_stay(garden, experiment, tmp_path):
    # A call that was killed while it wrote its manifest.
    (tmp_path / ".lock").touch()
    (tmp_path / ".manifest.json.0123abcd.part").write_bytes(b'{"form')
    conduct([experiment], [garden], tmp_path, play_here)
    for name in ("figure-1.svg", "sweep-c.png", "report.html", "claims.json", "notes.txt"):
        (tmp_path / name).write_text("old")
    conduct([experiment], [garden], tmp_path, play_here)
    fewer = [replace(experiment, runs=1)]
    with pytest.raises(InvalidInput, match="holds the results of another call"):
        conduct(fewer, [garden], tmp_path, play_here)
    assert (tmp_path / "figure-1.svg").exists()  # the same call again: still true
    conduct(fewer, [garden], tmp_path, play_here, overwrite=True)
    left = {path.name for path in tmp_path.iterdir()}
    assert left == {".lock", "cells", "manifest.json", "notes.txt", "results.csv", "runs.csv", "speed.csv"}


@pytest.mark.skipif(sys.platform == "win32", reason="locks of POSIX")
def test_second_process_in_one_folder_is_refused(garden, experiment, tmp_path):
    def engine(tasks, report):
        with pytest.raises(InvalidInput, match="another process is at work in"):
            conduct([experiment], [garden], tmp_path, play_here)
        return play_here(tasks, report)

    assert len(conduct([experiment], [garden], tmp_path, engine)) == 2
