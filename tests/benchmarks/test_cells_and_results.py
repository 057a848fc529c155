"""What is measured, and what is kept of it."""

import numpy as np
import pytest

from benchmarks.bench import run
from benchmarks.bench.cells import SWEPT_K, grid, main_features
from benchmarks.bench.peers import __main__ as peers
from benchmarks.bench.results import FLOOR, PASS, PLAIN, POLICY, SCAN, TUNED, Kept
from benchmarks.bench.run import already_measured, measure_cells
from firstclick.errors import InvalidInput, WorkFailed
from firstclick.kernels.source_files import with_imports
from firstclick.registry import make_policy

LIN, COUNTS = make_policy("cascade-lin-ts"), make_policy("cascade-ts")
SECONDS = 0.01


def silent(done, total):
    pass


def keys(cells):
    return [cell.key for cell in cells]


def test_policies_without_features_are_measured_with_one_number_of_them():
    cells = grid([LIN, COUNTS], (256, 16), (10, 20), 4)
    assert keys(cells) == [
        ("cascade-lin-ts", 16, 10, 4),
        ("cascade-lin-ts", 16, 20, 4),
        ("cascade-ts", 16, 20, 4),
        ("cascade-lin-ts", 256, 10, 4),
        ("cascade-lin-ts", 256, 20, 4),
        ("cascade-ts", 256, 20, 4),
    ]
    assert main_features((10, 40)) == 10


def test_a_sweep_adds_other_numbers_of_places_once():
    cells = keys(grid([LIN], (16, 3000), (20,), 4, sweep=True))
    assert len(cells) == len(set(cells)) == 2 + len(SWEPT_K) - 1
    assert {key[3] for key in cells if key[1] == 3000} == set(SWEPT_K)


@pytest.mark.parametrize(
    ("items", "features", "k", "message"),
    [
        ((16, 3), (20,), 4, "k must be at most the number of items, 3, got 4"),
        ((0,), (20,), 1, "n_items must be at least 1, got 0"),
        ((16,), (0,), 4, "n_features must be at least 1, got 0"),
        ((16,), (20,), 0, "k must be at least 1, got 0"),
    ],
)
def test_sizes_that_cannot_be(items, features, k, message):
    with pytest.raises(InvalidInput, match=message):
        grid([LIN], items, features, k)


@pytest.mark.long
def test_a_cell_has_all_its_contenders_and_is_measured_once(tmp_path):
    kept = Kept(tmp_path / "new" / "cells.jsonl")
    cells = grid([LIN, COUNTS], (16,), (3,), 2)
    first = measure_cells(cells, kept, seconds=SECONDS, report=silent)
    assert set(first[0].timings) == {POLICY, SCAN, FLOOR, PASS, PLAIN, TUNED}
    assert set(first[1].timings) == {POLICY, SCAN, FLOOR, PASS}
    for cell in first:
        assert all(timing.seconds > 0 and timing.steps >= 1 for timing in cell.timings.values())
        assert cell.slates_compared >= 1
        assert cell.ratio(SCAN) == cell.timings[SCAN].seconds / cell.seconds
    assert first[1].ratio(PLAIN) is None
    assert first[0].times_floor == first[0].seconds / first[0].timings[FLOOR].seconds
    assert first[0].ratio(PASS) == first[0].timings[PASS].seconds / first[0].seconds
    # It reads no features: neither of the two says anything of it.
    assert (first[1].times_floor, first[1].ratio(PASS)) == (None, None)
    assert measure_cells(cells, kept, seconds=SECONDS, report=silent) == first
    assert measure_cells(cells, kept, seconds=2 * SECONDS, report=silent) != first


@pytest.mark.long
def test_a_line_that_a_crash_cut_short_is_measured_again(tmp_path):
    kept = Kept(tmp_path / "cells.jsonl")
    cells = grid([COUNTS], (16, 20), (3,), 2)
    measure_cells(cells, kept, seconds=SECONDS, report=silent)
    text = kept.path.read_text()
    kept.path.write_text(text[: len(text) - 30])
    assert list(already_measured(cells, kept, seconds=SECONDS)) == [cells[0].key]


def test_what_other_code_measured_is_not_used(tmp_path, monkeypatch):
    kept = Kept(tmp_path / "cells.jsonl")
    cells = grid([COUNTS], (16,), (3,), 2)
    measure_cells(cells, kept, seconds=SECONDS, report=silent)
    assert len(already_measured(cells, kept, seconds=SECONDS)) == 1
    monkeypatch.setattr(run, "_code", lambda: "another")
    assert not already_measured(cells, kept, seconds=SECONDS)


@pytest.mark.parametrize(
    ("timed", "parts"),
    [
        (run, {"benchmarks.bench.contenders", "benchmarks.bench.tuned_numpy", "firstclick.experiments.loop"}),
        (peers, {"benchmarks.bench.peers.mabwiser", "benchmarks.bench.peers.process"}),
    ],
)
def test_the_hash_of_what_is_timed_follows_the_imports_of_benchmarks_and_of_firstclick(timed, parts):
    """Times of older code are not used again, whichever file was changed."""
    names = {module.name for module in with_imports([timed.__name__])}
    always = {timed.__name__, "benchmarks.bench.measure", "benchmarks.bench.world"}
    assert names >= parts | always | {"firstclick.worlds.long_tail"}


@pytest.mark.long
def test_a_policy_that_a_scan_contradicts_is_not_measured(monkeypatch):
    honest = run.LoopPlayer.record

    def record(player, steps):
        slates, clicked = honest(player, steps)
        return (np.roll(slates, 1, axis=1), clicked) if player.scan else (slates, clicked)

    monkeypatch.setattr(run.LoopPlayer, "record", record)
    with pytest.raises(WorkFailed, match=r"cascade-lin-ts: slate 0 of 16 items is \[.*\] with shortcuts and"):
        measure_cells(grid([LIN], (16,), (3,), 2), Kept(None), seconds=SECONDS, report=silent)


def test_progress_counts_what_was_there_already(tmp_path):
    kept = Kept(tmp_path / "cells.jsonl")
    measure_cells(grid([COUNTS], (16,), (3,), 2), kept, seconds=SECONDS, report=silent)
    seen = []
    cells = grid([COUNTS], (16, 17), (3,), 2)
    measure_cells(cells, kept, seconds=SECONDS, report=lambda done, total: seen.append((done, total)))
    assert seen[0] == (1, 2)
    assert seen[-1] == (2, 2)
