"""`firstclick reproduce` and `firstclick run`: from files to a report, and on again after a kill."""

import csv
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from firstclick.source_code import installed_versions

USERS, MOVIES = 120, 290
FIGURES = ("figure-1", "figure-2", "sweep-sigma", "sweep-c")


@pytest.fixture(scope="session")
def movielens_files(tmp_path_factory):
    """A folder like ml-1m, made up: ids with gaps, 270 of 290 movies in Adventure, a long tail."""
    folder = tmp_path_factory.mktemp("made-up") / "ml-1m"
    folder.mkdir()
    draw = np.random.default_rng(11)
    attraction = 0.7 * np.arange(1, MOVIES + 1) ** -0.5
    ratings = [
        f"{3 * user + 1}::{2 * movie + 5}::{5 if draw.random() < 0.8 else 2}::978300760"
        for user in range(USERS)
        for movie in range(MOVIES)
        if draw.random() < attraction[movie] or movie == user % MOVIES
    ]
    (folder / "ratings.dat").write_text("\n".join(ratings) + "\n", encoding="latin-1")
    movies = [
        f"{2 * movie + 5}::Made-up Caf\xe9 {movie} (1999)::{'Adventure|Comedy' if movie < 270 else 'Drama'}"
        for movie in range(MOVIES + 3)
    ]
    (folder / "movies.dat").write_text("\n".join(movies) + "\n", encoding="latin-1")
    return folder


def arguments(data, out, **changed):
    given = {"dataset": "movielens", "data": data, "out": out, "steps": 60, "runs": 2, "jobs": 1} | changed
    return ["reproduce", *(part for name, value in given.items() for part in (f"--{name}", value))]


def files_of(folder):
    """Every file but the log of speeds."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name != "speed.csv"
    }


@pytest.fixture(scope="session")
def whole(movielens_files, tmp_path_factory):
    """The folder of an undisturbed reproduction."""
    out = tmp_path_factory.mktemp("whole") / "out"
    done = start(*arguments(movielens_files, out)).communicate(timeout=300)
    assert (out / "report.html").is_file(), done
    return out


# NumPy is timed for 0.1 s a cell, which is longer than playing it.
PROGRAM = """
from firstclick.cli import main
from firstclick.studies.paper import plain_numpy
if __name__ == "__main__":
    plain_numpy.TIMED_SECONDS = 0.005
    main()
"""


def start(*given, **options):
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[2] / "src")}
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *map(str, given)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, **options,
    )  # fmt: skip


@pytest.mark.long
def test_one_command_gives_report_figures_tables_claims_and_manifest(whole):
    names = set(files_of(whole))
    for stem in FIGURES:
        assert {f"{stem}.svg", f"{stem}.png", f"{stem}.pdf"} <= names
    assert {"report.html", "claims.json", "manifest.json", "results.csv", "runs.csv"} <= names
    # 9 curves in experiment 1, 2 more in 2, 3 in 3, 2 more in 4, 4 + 5 in the sweep of sigma, 5 of c
    # besides the default, twice: all cells that experiments share were played once.
    cells = [name for name in names if name.startswith("cells/")]
    assert len(cells) == 2 * (9 + 2 + 3 + 2 + 4 + 5 + 5)
    manifest = json.loads((whole / "manifest.json").read_text())
    assert manifest["mode"] == "paper"
    assert manifest["versions"] == installed_versions()
    assert manifest["data"]["movielens"]["users"] == USERS
    with (whole / "speed.csv").open(newline="") as file:
        timed = list(csv.DictReader(file))
    assert sorted(f"cells/{row['cell']}" for row in timed) == sorted(cells)


@pytest.mark.long
def test_the_ledger_has_a_rule_and_a_verdict_for_every_claim(whole):
    claims = json.loads((whole / "claims.json").read_text())["claims"]
    assert {claim["dataset"] for claim in claims} == {"yelp", "million-song", "movielens"}
    for claim in claims:
        assert claim["verdict"] in ("holds", "does not hold", "not testable with this data")
        assert claim["rule"]
        assert claim["reason"] or claim["verdict"] == "holds"
    assert all(claim["verdict"].startswith("not") for claim in claims if claim["dataset"] != "movielens")
    # 60 steps are not the paper's 100,000, whatever they show.
    played = [claim for claim in claims if claim["dataset"] == "movielens" and claim["experiment"] != "data"]
    assert {claim["verdict"] for claim in played} == {"not testable with this data"}


@pytest.mark.long
def test_the_report_has_every_claim_of_the_data_and_no_others(whole):
    page = (whole / "report.html").read_text(encoding="utf-8")
    claims = json.loads((whole / "claims.json").read_text())["claims"]
    for claim in claims:
        assert (claim["id"] in page) == (claim["dataset"] == "movielens"), claim["id"]
    assert page.count("<svg") >= len(FIGURES)
    assert "firstclick reproduce --dataset movielens" in page
    assert not re.search(r'(src|href)="https?:', page)


@pytest.mark.long
def test_killed_in_the_middle_it_goes_on_and_ends_bit_for_bit_the_same(movielens_files, whole, tmp_path):
    out = tmp_path / "out"
    program = start(*arguments(movielens_files, out, jobs=2), start_new_session=True)
    end = time.monotonic() + 120
    while len(list(out.glob("cells/*.json"))) < 7:
        assert program.poll() is None, program.communicate()
        assert time.monotonic() < end
        time.sleep(0.01)
    os.killpg(program.pid, signal.SIGKILL)
    program.communicate()
    kept = {path.name: path.stat().st_mtime_ns for path in out.glob("cells/*.json")}
    assert 7 <= len(kept) < 60
    # What the kill may leave, and what it must not be taken for.
    (out / "cells" / ".half.json.part").write_text("{")
    program = start(*arguments(movielens_files, out))
    printed, said = program.communicate(timeout=300)
    assert program.returncode == 0, said
    assert {
        path.name: path.stat().st_mtime_ns for path in out.glob("cells/*.json") if path.name in kept
    } == kept
    (out / "cells" / ".half.json.part").unlink()
    assert files_of(out) == files_of(whole)
    assert "Of 17 claims" in printed or "claims of the paper" in printed


@pytest.mark.long
def test_a_finished_folder_is_read_and_not_played_again(run, movielens_files, whole, folder):
    shutil.copytree(whole, folder / "out")
    log = (folder / "out" / "speed.csv").read_bytes()
    seen = run(*arguments(movielens_files, "out"))
    assert seen.code == 0
    assert (folder / "out" / "speed.csv").read_bytes() == log
    assert files_of(folder / "out") == files_of(whole)
    # The tables on the terminal have regret, speed and claims.
    assert re.search(r"1 +L=16 d=20 K=4 +cascade-lin-ts", seen.out)
    assert re.search(r"16 items, d = 20, K = 4 +ranked-lin-ts +[\d.,]+ +[\d.,]+ +\d+\n", seen.out)
    assert seen.err.endswith("report: out/report.html\n")


@pytest.mark.long
def test_the_claims_are_printed_as_json(run, movielens_files, whole, folder):
    shutil.copytree(whole, folder / "out")
    as_json = run(*arguments(movielens_files, "out"), "--json")
    assert json.loads(as_json.out) == json.loads((whole / "claims.json").read_text())


def test_experiments_can_be_chosen(run, movielens_files, folder):
    seen = run(*arguments(movielens_files, "out", experiment=2, steps=20, runs=1))
    assert seen.code == 0, seen.err
    assert {path.stem for path in (folder / "out").glob("*.svg")} == {"figure-2"}


@pytest.mark.long
def test_extras_can_be_added(run, movielens_files):
    seen = run(*arguments(movielens_files, "more", experiment=1, steps=20, runs=1), "--extras")
    assert seen.code == 0, seen.err
    for policy in ("cascade-kl-ucb", "cascade-ts", "cascade-lin-ucb"):
        assert len(re.findall(rf"^1 .*{policy} ", seen.out, re.MULTILINE)) == 3


@pytest.mark.long
def test_the_authors_mode_differs_by_what_it_declares(run, movielens_files, folder):
    seen = run(*arguments(movielens_files, "out", mode="authors", experiment=1, steps=20, runs=2))
    assert seen.code == 0, seen.err
    manifest = json.loads((folder / "out" / "manifest.json").read_text())
    assert manifest["mode"] == "authors"
    assert "cascade-ucb1:start=pessimistic" in manifest["experiments"]["1"]["policies"]
    assert manifest["experiments"]["1"]["training"] == {
        "pick": "source", "scaled": False, "intercept": True, "one_split": True, "with_replacement": True,
        "cut_first": False,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("changed", "complaint"),
    [
        ({"dataset": "movielenz"}, "dataset 'movielenz' is unknown; did you mean 'movielens'?"),
        ({"experiment": 5}, "experiment '5' is unknown; known are 1, 2, 3, 4, sigma, c"),
        ({"engine": "spark"}, "--engine must be local, dask or the tcp://host:port of"),
        ({"steps": 0}, "--steps must be at least 1, got 0"),
        ({"seed": -1}, "--seed must be at least 0, got -1"),
        ({"experiment": 2, "policy": "random"}, "--policy goes with experiment 1, which is not played"),
        ({"experiment": 2, "group": "movielens=Comedy"}, "goes with experiment 3 on movielens"),
        ({"group": "movielens=Adventur"}, "unknown group 'Adventur'; nearest: 'Adventure' (270 items)"),
        ({"group": "Adventure"}, "--group must be DATASET=GROUP"),
        ({"group": "movielens=Drama"}, "experiment 3: items is 256, but MovieLens, group 'Drama' has 20"),
        ({"data": "nowhere"}, "nowhere: no such file or folder"),
        ({"dataset": "yelp"}, "has no Yelp data: expected"),
        ({"out": "taken"}, "taken is a file; the results need a folder"),
    ],
    ids=str,
)  # fmt: skip
def test_a_mistake_is_one_line_before_any_work(run, movielens_files, folder, changed, complaint):
    (folder / "taken").write_text("")
    given = {"data": movielens_files, "out": "out"} | changed
    seen = run(*arguments(**given))
    assert seen.code == 2
    assert seen.out == ""
    assert seen.err.startswith("error: ")
    assert seen.err.count("\n") == 1
    assert complaint in seen.err
    assert not (folder / "out").exists()


def test_without_data_the_ways_out_are_named(run, folder):
    seen = run("reproduce", "--out", "out")
    assert (seen.code, seen.out) == (2, "")
    assert "--data FOLDER" in seen.err
    assert "--dataset synthetic" in seen.err
    (folder / "empty").mkdir()
    seen = run("reproduce", "--data", "empty", "--out", "out")
    assert seen.code == 2
    assert seen.err.splitlines()[-1].startswith("error: empty holds none of yelp, million-song, movielens")


def test_a_broken_data_file_is_named_with_its_line(run, movielens_files, folder):
    shutil.copytree(movielens_files, folder / "ml-1m")
    path = folder / "ml-1m" / "ratings.dat"
    path.write_text(path.read_text() + "7::9::4\n")
    lines = path.read_text().count("\n")
    seen = run(*arguments("ml-1m", "out"))
    assert seen.code == 2
    assert f"ratings.dat line {lines}: expected 4 fields, got 3" in seen.err


FILMS = """
title    = "Which policy for our films?"
data     = "table:user=customer,item=film,value=stars,above=3"
path     = "ratings.csv"
policies = ["cascade-lin-ts", "cascade-ts"]
items    = [6, "all"]
rank     = 3
k        = 2
steps    = 40
runs     = 2
"""


@pytest.fixture
def films(folder):
    draw = np.random.default_rng(3)
    rows = [
        f"c{user},f{film},{draw.integers(1, 6)}"
        for user in range(17)
        for film in range(11)
        if draw.random() < 0.7
    ]
    (folder / "ratings.csv").write_text("customer,film,stars\n" + "\n".join(rows) + "\n")
    (folder / "films.toml").write_text(FILMS)
    return folder


def test_your_own_experiment_is_a_file_and_a_command(run, films):
    seen = run("run", "films.toml", "--out", "results", "--jobs", 1)
    assert seen.code == 0, seen.err
    names = {path.name for path in (films / "results").iterdir()}
    assert {"report.html", "regret.svg", "regret.png", "regret.pdf", "results.csv", "runs.csv"} <= names
    assert "Which policy for our films?" in (films / "results" / "report.html").read_text()
    assert re.search(r"films +L=11 d=3 K=2 +cascade-ts", seen.out), seen.out
    refused = run("run", "films.toml", "--out", "results", "--jobs", 1, "--runs", 3)
    assert refused.code == 2
    assert "--overwrite" in refused.err
    again = run("run", "films.toml", "--out", "results", "--jobs", 1, "--runs", 3, "--overwrite")
    assert again.code == 0
    assert len(list((films / "results" / "cells").iterdir())) == 12


def test_a_run_without_its_data_says_where_it_looked(run, films):
    (films / "ratings.csv").unlink()
    seen = run("run", "films.toml", "--out", "results")
    assert (seen.code, seen.out) == (2, "")
    assert "ratings.csv" in seen.err
    (films / "films.toml").write_text(FILMS.replace('path     = "ratings.csv"\n', ""))
    seen = run("run", "films.toml", "--out", "results")
    assert seen.code == 2
    assert "--data" in seen.err
