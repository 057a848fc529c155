"""`python -m benchmarks.bench`: tables, a JSON file, a page and a picture; it goes on where it stopped."""

import json
import re

import pytest

from benchmarks.bench import __main__ as command
from benchmarks.bench import peer_runs

CALL = "python -m benchmarks.bench --items 16 --features 10 --policy cascade-lin-ts"
TINY = ("bench", "--items", 16, "--features", 10, "--policy", "cascade-lin-ts")


@pytest.fixture(autouse=True)
def hurried(monkeypatch):
    """A hundredth of a second for each contender."""
    monkeypatch.setattr(command, "SHORT_SECONDS", 0.01)


def without_progress(err):
    """What is said, without the lines that come now and then where compiling takes long."""
    return re.sub(r"^[a-z]+: \d+%\n", "", err, flags=re.MULTILINE)


@pytest.mark.long
def test_a_short_run_writes_every_file_and_prints_the_table(run, folder):
    seen = run(*TINY, "--out", "new")
    assert seen.code == 0, seen.err
    assert sorted(path.name for path in (folder / "new").iterdir()) == [
        "bench.json", "bench.md", "bench.png", "bench.svg", "cells.jsonl",
    ]  # fmt: skip
    assert re.match(
        r"One core of '.*'\.\n"
        r"Lower is better: µs/step, and x floor, how many times as long as its floor\.\n"
        r"Higher is better: how many times faster than .*\n.*; below 1 is slower\.\n",
        seen.out,
    )
    assert "10 features, 4 places" in seen.out
    assert re.search(r"^policy +items +µs/step +x floor +scan +1 pass +NumPy +tuned", seen.out, re.M)
    assert re.search(r"^cascade-lin-ts +16 ", seen.out, re.M)
    assert max(len(line) for line in seen.out.splitlines()[1:]) <= 80
    assert without_progress(seen.err) == "1 cell\npage: new/bench.md\n"
    told = json.loads((folder / "new" / "bench.json").read_text())
    assert told["command"] == CALL + " --out OUT"
    assert {"machine", "versions", "date", "cells", "peers", "growth"} <= set(told)
    (cell,) = told["cells"]
    assert (cell["policy"], cell["n_items"], cell["n_features"], cell["k"]) == ("cascade-lin-ts", 16, 10, 4)
    took = {name: timing["seconds"] for name, timing in cell["timings"].items()}
    assert cell["ratios"] == pytest.approx(
        {
            "times_floor": took["policy"] / took["floor"],
            "times_faster_than_scan": took["scan"] / took["policy"],
            "times_faster_than_one_pass": took["pass"] / took["policy"],
            "times_faster_than_plain_numpy": took["plain NumPy"] / took["policy"],
            "times_faster_than_tuned_numpy": took["tuned NumPy"] / took["policy"],
        }
    )
    page = (folder / "new" / "bench.md").read_text()
    assert "![" in page
    assert "| `cascade-lin-ts` |" in page
    assert "Peers" not in page
    assert "<svg" in (folder / "new" / "bench.svg").read_text()


@pytest.mark.long
def test_the_same_command_goes_on_and_overwrite_measures_anew(run, folder):
    run(*TINY, "--out", "new")
    first = (folder / "new" / "cells.jsonl").read_text()
    again = run(*TINY, "--out", "new", "--items", "16,32")
    assert again.err.startswith("2 cells, 1 of them measured already\n")
    assert (folder / "new" / "cells.jsonl").read_text().startswith(first)
    assert len(json.loads((folder / "new" / "bench.json").read_text())["cells"]) == 2
    # Nothing is left of the other cell either, as the help says.
    assert run(*TINY, "--out=new", "--overwrite", "--json").err.startswith("1 cell\n")
    (line,) = (folder / "new" / "cells.jsonl").read_text().splitlines()
    assert line + "\n" != first
    told = json.loads((folder / "new" / "bench.json").read_text())
    assert told["command"] == CALL + " --out=OUT"


def test_json_is_printed_and_nothing_written(run, folder):
    seen = run(*TINY, "--k", 2, "--json")
    assert [cell["k"] for cell in json.loads(seen.out)["cells"]] == [2]
    assert list(folder.iterdir()) == []


@pytest.mark.long
def test_the_usual_policies_by_default(run, monkeypatch):
    # Two of them: each is compiled in four ways.
    monkeypatch.setattr(command, "USUAL_POLICIES", ("random", "cascade-ts"))
    seen = run("bench", "--items", "16,32", "--features", 3, "--k", 2, "--json")
    told = json.loads(seen.out)
    assert {cell["policy"] for cell in told["cells"]} == {"random", "cascade-ts"}
    assert told["growth"] == []
    (counting,) = (cell for cell in told["cells"] if (cell["policy"], cell["n_items"]) == ("cascade-ts", 16))
    absent = {name for name, ratio in counting["ratios"].items() if ratio is None}
    assert absent == {
        "times_floor", "times_faster_than_one_pass", "times_faster_than_plain_numpy",
        "times_faster_than_tuned_numpy",
    }  # fmt: skip


def with_peers(monkeypatch, *missing):
    """Peers with made-up answers, all installed but those that are missing."""

    def play(name, n_items, *_, **__):
        if name in missing:
            return {"failure": peer_runs.NOT_INSTALLED}
        answer = {"seconds": 1.5, "steps": 2, "memory": 9}
        return {"failure": "ran out of its 60 s"} if name == "mabwiser" else answer

    def installed(peer):
        return None if peer.package in missing else "7.8"

    monkeypatch.setattr(peer_runs, "play_peer", play)
    monkeypatch.setattr(peer_runs, "installed", installed)
    monkeypatch.setattr(command, "installed", installed)


def test_peers_are_in_the_table_the_page_and_the_picture(run, folder, monkeypatch):
    with_peers(monkeypatch, "mab2rec")
    seen = run(*TINY, "--peers", "--out", "new")
    assert seen.code == 0, seen.err
    said = "1 cell\npeers that are not installed (make peers): Mab2Rec\n"
    assert without_progress(seen.err) == said + "page: new/bench.md\n"
    assert "Peers, 10 features, 4 places (slower: times as long as cascade-lin-ts)" in seen.out
    assert re.search(r"^Vowpal Wabbit +16 +1,500,000 +[\d,]+", seen.out, re.M)
    assert re.search(r"^MABWiser +16 +– +– +ran out of its 60 s", seen.out, re.M)
    page = (folder / "new" / "bench.md").read_text()
    assert re.search(r"^\| Vowpal Wabbit \| 1,500,000 \([\d,]+\) \|$", page, re.M)
    assert "| MABWiser | ran out of its 60 s |" in page
    assert re.search(r"\*\*Vowpal Wabbit\*\* 7\.8: --ccb_explore_adf.*; at least 2 steps\.$", page, re.M)
    picture = (folder / "new" / "bench.svg").read_text()
    for words in ("contextualbandits", "ran out of its 60 s"):
        assert words in picture
    for text in (seen.out, page, picture):
        assert "Mab2Rec" not in text


def test_peers_without_cascade_lin_ts_have_times_alone(run, folder, monkeypatch):
    with_peers(monkeypatch)
    seen = run("bench", "--items", 16, "--policy", "random", "--peers", "--out", "new")
    assert "Peers, 20 features, 4 places\n" in seen.out
    assert "slower" not in seen.out.partition("Peers")[2]
    assert re.search(r"^Vowpal Wabbit +16 +1,500,000 *$", seen.out, re.M)
    page = (folder / "new" / "bench.md").read_text()
    assert "| Vowpal Wabbit | 1,500,000 |" in page
    assert "brackets" not in page


def test_peers_of_which_none_is_installed_are_refused_at_once(run, folder, monkeypatch):
    monkeypatch.setattr(command, "installed", lambda peer: None)
    seen = run(*TINY, "--peers", "--out", "new")
    assert (seen.code, seen.out, list(folder.iterdir())) == (2, "", [])
    assert seen.err == (
        "error: --peers needs one of bayesianbandits, contextualbandits, Vowpal Wabbit, MABWiser, Mab2Rec, "
        "and none is installed; say make peers, or leave --peers out\n"
    )


def test_ctrl_c_keeps_what_is_finished(run, folder, monkeypatch):
    honest = command.measure_cells

    def interrupted(cells, kept, **options):
        honest(cells[:1], kept, **options)
        raise KeyboardInterrupt

    monkeypatch.setattr(command, "measure_cells", interrupted)
    words = (*TINY, "--items", "16,32")
    seen = run(*words, "--out", "new")
    said = "error: interrupted; finished cells are kept in new, the same command goes on\n"
    assert (seen.code, seen.out, without_progress(seen.err)) == (130, "", "2 cells\n" + said)
    assert run(*words).err.endswith("error: interrupted; nothing was written\n")
    monkeypatch.setattr(command, "measure_cells", honest)
    assert run(*words, "--out", "new").err.startswith("2 cells, 1 of them measured already\n")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--items", "16,x"], "--items must be whole numbers separated by commas, got '16,x'"),
        (["--items", "2.5"], "--items must be whole numbers separated by commas, got '2.5'"),
        (["--items", "inf"], "--items must be whole numbers separated by commas, got 'inf'"),
        (["--items", 3], "--k must be at most the number of items, 3, got 4"),
        (["--items", 0], "--items must be at least 1, got 0"),
        (["--features", "-1"], "--features must be at least 1, got -1"),
        (["--k", 0], "--k must be at least 1, got 0"),
        (["--policy", "cascade-lints"], "unknown policy 'cascade-lints'; did you mean 'cascade-lin-ts'?"),
        (["--policy", "random", "--policy", "random"], "policy 'random' is given twice"),
        (["--peer-memory", "much"], "--peer-memory must be a size such as 4GB or 500MB, got 'much'"),
        (["--peer-memory", "0GB"], "--peer-memory must be a size such as 4GB or 500MB, got '0GB'"),
        (["--peer-seconds", 0], "--peer-seconds must be above 0, got 0"),
        (["--overwrite"], "--overwrite goes with --out"),
        (["--out", "file"], "file is a file; --out names a folder"),
        (
            ["--out", "theirs"],
            "--out theirs holds other files (thesis.tex); name a new folder, or an empty one",
        ),
    ],
)
def test_what_cannot_be_is_refused_in_one_sentence(run, folder, words, message):
    (folder / "file").touch()
    (folder / "theirs").mkdir()
    (folder / "theirs" / "thesis.tex").touch()
    before = sorted(folder.rglob("*"))
    seen = run("bench", *words)
    assert (seen.code, seen.out, seen.err) == (2, "", f"error: {message}\n")
    assert sorted(folder.rglob("*")) == before
