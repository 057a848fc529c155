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

import pytest

from firstclick.source_code import installed_versions
from tests.cli.conftest import write_movielens

FIGURES = ("figure-1", "figure-2", "sweep-sigma", "sweep-c")


@pytest.fixture(scope="session")
def movielens_files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("synthetic") / "ml-1m"
    write_movielens(folder)
    return folder


def arguments(data, out, **changed):
    given = {"dataset": "movielens", "data": data, "out": out, "steps": 60, "runs": 2, "jobs": 1} | changed
    return ["reproduce", *(part for name, value in given.items() for part in (f"--{name}", value))]


def files_of(folder):
    """Every file but the log of speeds."""
    files = (path for path in sorted(folder.rglob("*")) if path.is_file() and path.name != "speed.csv")
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


@pytest.fixture(scope="session")
def whole(movielens_files, tmp_path_factory):
    """The folder of an undisturbed reproduction."""
    out = tmp_path_factory.mktemp("whole") / "out"
    done = start(*arguments(movielens_files, out)).communicate(timeout=300)
    assert (out / "report.html").is_file(), done
    return out


# NumPy is timed for 0.1 s per cell, which is longer than playing it.
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
    with (whole / "speed.csv").open(newline="") as file:
        timed = list(csv.DictReader(file))
    assert sorted(f"cells/{row['cell']}" for row in timed) == sorted(cells)


@pytest.mark.long
def test_every_claim_has_a_verdict_and_is_reported(whole):
    claims = json.loads((whole / "claims.json").read_text())["claims"]
    assert {claim["dataset"] for claim in claims} == {"yelp", "million-song", "movielens"}
    assert all(claim["verdict"].startswith("not") for claim in claims if claim["dataset"] != "movielens")
    # 60 steps are not the paper's 100,000, whatever they show.
    played = [claim for claim in claims if claim["dataset"] == "movielens" and claim["experiment"] != "data"]
    assert {claim["verdict"] for claim in played} == {"not testable with this data"}
    page = (whole / "report.html").read_text(encoding="utf-8")
    for claim in claims:
        assert (claim["id"] in page) == (claim["dataset"] == "movielens"), claim["id"]
    assert page.count("<svg") >= len(FIGURES)
    assert "firstclick reproduce --dataset movielens" in page


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
    kept = {path: path.stat().st_mtime_ns for path in out.glob("cells/*.json")}
    assert 7 <= len(kept) < 60
    # What the kill may leave, and what it must not be taken for.
    (out / "cells" / ".half.json.part").write_text("{")
    program = start(*arguments(movielens_files, out))
    printed, errors = program.communicate(timeout=300)
    assert program.returncode == 0, errors
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    (out / "cells" / ".half.json.part").unlink()
    assert files_of(out) == files_of(whole)
    assert "Of 17 claims" in printed or "claims of the paper" in printed


@pytest.mark.long
def test_finished_folder_is_read_and_not_played_again(run, movielens_files, whole, folder):
    shutil.copytree(whole, folder / "out")
    seen = run(*arguments(movielens_files, "out"))
    assert seen.code == 0
    assert (folder / "out" / "speed.csv").read_bytes() == (whole / "speed.csv").read_bytes()
    assert files_of(folder / "out") == files_of(whole)
    # The tables on the terminal have regret and speed.
    assert re.search(r"1 +L=16 d=20 K=4 +cascade-lin-ts", seen.out)
    assert re.search(r"16 items, d = 20, K = 4 +ranked-lin-ts +[\d.,]+ +[\d.,]+ +\d+\n", seen.out)
    assert seen.err.endswith("report: out/report.html\n")
    as_json = run(*arguments(movielens_files, "out"), "--json")
    assert json.loads(as_json.out) == json.loads((whole / "claims.json").read_text())


def test_experiments_can_be_chosen(run, movielens_files, folder):
    seen = run(*arguments(movielens_files, "out", experiment=2, steps=20, runs=1))
    assert seen.code == 0, seen.err
    assert {path.stem for path in (folder / "out").glob("*.svg")} == {"figure-2"}


@pytest.mark.long
def test_authors_mode_has_its_settings_and_policies_can_be_added(run, movielens_files, folder):
    settings = {"mode": "authors", "experiment": 1, "steps": 20, "runs": 2}
    seen = run(*arguments(movielens_files, "out", **settings), "--extras")
    assert seen.code == 0, seen.err
    manifest = json.loads((folder / "out" / "manifest.json").read_text())
    assert (manifest["mode"], manifest["versions"]) == ("authors", installed_versions())
    assert "cascade-ucb1:start=pessimistic" in manifest["experiments"]["1"]["policies"]
    for policy in ("cascade-kl-ucb", "cascade-ts", "cascade-lin-ucb"):
        assert len(re.findall(rf"^1 .*{policy} ", seen.out, re.MULTILINE)) == 3
    assert manifest["experiments"]["1"]["training"] == {
        "pick": "source", "scaled": False, "intercept": True, "one_split": True, "with_replacement": True,
        "cut_first": False,
    }  # fmt: skip


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


def test_your_own_experiment_is_a_file_and_a_command(run, folder):
    pairs = [(user, film) for user in range(17) for film in range(11) if (user + film) % 4]
    rows = "".join(f"c{user},f{film},{1 + (user * film) % 5}\n" for user, film in pairs)
    (folder / "ratings.csv").write_text("customer,film,stars\n" + rows)
    (folder / "films.toml").write_text(FILMS)
    seen = run("run", "films.toml", "--out", "results", "--jobs", 1)
    assert seen.code == 0, seen.err
    names = {path.name for path in (folder / "results").iterdir()}
    assert {"report.html", "regret.svg", "regret.png", "regret.pdf", "results.csv", "runs.csv"} <= names
    assert "Which policy for our films?" in (folder / "results" / "report.html").read_text()
    assert re.search(r"films +L=11 d=3 K=2 +cascade-ts", seen.out), seen.out
    other = ("run", "films.toml", "--out", "results", "--jobs", 1, "--runs", 3)
    refused = run(*other)
    assert (refused.code, "--overwrite" in refused.err) == (2, True)
    assert run(*other, "--overwrite").code == 0
    assert len(list((folder / "results" / "cells").iterdir())) == 12
