"""`firstclick compare`: the guide's table and picture, kept cell by cell."""

import json
import sys

import numpy as np
import pytest

from firstclick.errors import InvalidInput
from firstclick.registry import DEFAULT_POLICY
from firstclick.studies.guide.data_worlds import LIMITS
from firstclick.studies.guide.stock import STOCK
from firstclick.studies.guide.summary import REFERENCES

SMALL = ("--world", "few-items", "--policy", "cascade-ts", "--steps", 40, "--runs", 2, "--jobs", 1)


def test_it_writes_the_table_and_the_picture_and_goes_on_where_it_was(run, folder):
    first = run("compare", *SMALL, "--out", "guide")
    assert first.code == 0
    said = first.err.splitlines()  # In between there is a line for every half minute.
    assert (said[0], said[-1]) == ("4 cells", "guide: guide/guide.md")
    header, row = first.out.splitlines()
    assert header.split() == ["world", "nobody", "clearly", "better", "than", "least", "regret", "random"]
    assert row.startswith("few-items  cascade-ts")
    written = {path.name for path in (folder / "guide").iterdir()} - {".lock"}
    assert written == {
        "cells", "guide.md", "guide.png", "guide.svg", "manifest.json", "results.csv", "speed.csv"
    }  # fmt: skip
    page = (folder / "guide" / "guide.md").read_bytes()
    assert b"| `cascade-ts` |" in page
    again = run("compare", *SMALL, "--out", "guide")
    assert again.err.splitlines()[0] == "4 cells, 4 of them finished already"
    assert again.out == first.out
    assert (folder / "guide" / "guide.md").read_bytes() == page


def test_json_has_every_policy_and_null_for_what_is_no_number(run):
    seen = run("compare", *SMALL, "--policy", "cascade-lin-ts", "--json")
    assert seen.code == 0
    lines = json.loads(seen.out)
    assert [line["learner"] for line in lines] == ["cascade-ts", "cascade-lin-ts", "random"]
    assert lines[1]["expected_regret"] is None
    assert lines[1]["reason"] == "cascade-lin-ts needs features, and this world has none"
    assert lines[2]["share_of_random"] == 1


# Few policies: compiling one takes seconds.
FILE = (
    "compare", "--interactions", "ratings.dat", "--value-column", 2, "--above", 3, "--k", 2,
    "--policy", "cascade-ts", "--steps", 40, "--jobs", 1, "--out", "mine",
)  # fmt: skip


@pytest.mark.long
def test_a_file_of_who_liked_what_gets_an_answer_and_what_it_stands_on(run, ratings):
    seen = run(*FILE, "--runs", 3)
    assert seen.code == 0
    answer, blank, header, *rows = seen.out.splitlines()
    assert answer.startswith(("Take ", "The runs cannot tell: "))
    assert blank == ""
    assert header.split("  ")[0] == "policy"
    assert header.endswith(f"more than {DEFAULT_POLICY} (90 %)")
    assert {row.split()[0] for row in rows} == {"cascade-ts", DEFAULT_POLICY, "random"}
    said = seen.err.splitlines()
    assert said[-1] == "guide: mine/guide.md"
    assert said[-7:-1] == ["what ratings.dat cannot tell:", *(f"- {limit}" for limit in LIMITS)]
    page = (ratings / "mine" / "guide.md").read_text()
    assert page.startswith(f"# Which policy for ratings.dat?\n\n{answer}\n")
    # What `simulate` plays on the same data.
    call = "--interactions ratings.dat --value-column 2 --above 3 --rank 7 --k 2"
    assert f"`{call}`" in page
    assert (ratings / "mine" / "guide.png").exists()
    manifest = json.loads((ratings / "mine" / "manifest.json").read_text())
    assert manifest["runs"] == 3
    told = manifest["worlds"]["ratings.dat"]
    assert (told["data"]["name"], told["data"]["users"], told["items"], told["rank"]) == (
        "ratings.dat",
        14,
        9,
        7,
    )
    again = run(*FILE, "--runs", 3)
    assert again.out == seen.out
    assert "finished already" in again.err.splitlines()[0]


def test_a_line_that_looks_like_a_header_is_noted(run, ratings):
    (ratings / "likes.csv").write_text("user,item\n1,5\n1,6\n2,5\n2,7\n3,8\n3,6\n")
    seen = run("compare", "--interactions", "likes.csv", "--k", 2, *FILE[9:], "--runs", 1)
    assert seen.code == 0
    assert seen.err.splitlines()[0].startswith("note: likes.csv has one user that is no number, 'user'")


def test_other_contents_under_the_same_name_are_another_call(run, ratings):
    assert run(*FILE, "--runs", 1).code == 0
    rows = (ratings / "ratings.dat").read_text().splitlines()
    (ratings / "ratings.dat").write_text("\n".join([*rows, "0::999::5"]) + "\n")
    seen = run(*FILE, "--runs", 1)
    assert seen.code == 2
    assert "mine holds the results of another call" in seen.err


def test_a_file_is_played_as_simulate_plays_it(run, ratings):
    seen = run(*FILE, "--runs", 2, "--items", 6, "--rank", 3, "--seed", 4, "--json")
    assert any(line.startswith(("Take ", "The runs cannot tell: ")) for line in seen.err.splitlines())
    line = next(one for one in json.loads(seen.out) if one["learner"] == "cascade-ts")
    same = run(
        "simulate", "--interactions", "ratings.dat", "--value-column", 2, "--above", 3, "--k", 2,
        "--items", 6, "--rank", 3, "--policy", "cascade-ts", "--policy", "cascade-lin-ts", "--steps", 40,
        "--runs", 2, "--seed", 4, "--jobs", 1, "--json",
    )  # fmt: skip
    (alone,) = (one for one in json.loads(same.out)["results"] if one["policy"] == "cascade-ts")
    assert line["expected_regret"] == alone["expected_regret"]["mean"]


def test_on_a_file_the_references_play_and_there_are_more_runs(run, ratings, monkeypatch):
    asked = {}

    def play(policies, worlds, *_, **settings):
        asked.update(settings, policies=[policy.label for policy in policies], k=worlds[0].k)
        raise InvalidInput("enough")

    monkeypatch.setattr(sys.modules["firstclick.cli.compare"], "play_all", play)
    run("compare", "--interactions", "ratings.csv", "--user-column", "user", "--item-column", "item")
    assert set(asked["policies"]) == {*REFERENCES, "random"}
    assert (asked["runs"], asked["steps"], asked["k"]) == (20, 20_000, 4)
    run("compare", "--interactions", "ratings.dat", "--policy", "cascade-ts:a=2")
    assert set(asked["policies"]) == {"cascade-ts:a=2", DEFAULT_POLICY, "random"}
    run("compare", "--world", "few-items", "--policy", "cascade-ts")
    assert asked["runs"] == 5


def test_the_sweep_has_a_row_for_each_size_of_slate(run, ratings):
    seen = run(*FILE, "--runs", 2, "--sweep-k")
    assert seen.code == 0
    _, _, table = seen.out.partition(f"{DEFAULT_POLICY} with slates of k items\n")
    assert [row.split()[:2] for row in table.splitlines()[1:]] == [["ratings.dat", k] for k in "1248"]
    assert "## How many items to show" in (ratings / "mine" / "guide.md").read_text()
    assert (ratings / "mine" / "sweep-k" / "results.csv").exists()
    plain = json.loads(run(*FILE, "--runs", 2, "--sweep-k", "--json").out)
    assert {line["world"] for line in plain} == {"ratings.dat", *(f"ratings.dat k={k}" for k in "1248")}
    again = run(*FILE, "--runs", 2, "--sweep-k")
    assert again.out == seen.out
    assert again.err.count("finished already") == 2


@pytest.fixture
def films(folder):
    """A folder with a small data set in the format of MovieLens 1M."""
    draw = np.random.default_rng(8)
    place = folder / "data" / "ml-1m"
    place.mkdir(parents=True)
    rows = [(user, film, draw.integers(1, 6)) for user in range(44) for film in range(20)]
    (place / "ratings.dat").write_text("".join(f"{user}::{film}::{stars}::9\n" for user, film, stars in rows))
    (place / "movies.dat").write_text("".join(f"{film}::Film {film}::Drama\n" for film in range(20)))
    return folder / "data"


MOVIES = ("compare", "--policy", "cascade-ts", "--steps", 40, "--runs", 2, "--jobs", 1)


def test_worlds_of_movielens_are_played_where_their_data_is_given_or_found(run, films, folder, monkeypatch):
    given = run(*MOVIES, "--world", "movielens-16", "--world", "few-items", "--data", films, "--out", "given")
    assert given.code == 0
    assert [row.split()[0] for row in given.out.splitlines()[1:]] == ["few-items", "movielens-16"]
    assert "note: not MovieLens 1M, but 44 users and 20 films" in given.err
    page = (folder / "given" / "guide.md").read_text()
    assert "| `cascade-ts` | 1.00, worst 1.00 in few-items |" in page
    assert "The 16 films of MovieLens 1M that most users like" in page
    told = json.loads((folder / "given" / "manifest.json").read_text())["worlds"]["movielens-16"]
    assert (told["data"]["name"], told["data"]["users"], told["items"]) == ("MovieLens", 44, 16)
    # In the folder to which `firstclick data download` brings it.
    assert run(*MOVIES, "--world", "movielens", "--out", "here").code == 0
    (folder / "data").rename(folder / "elsewhere")
    seen = run(*MOVIES, "--world", "movielens", "--out", "nowhere")
    assert seen.code == 2
    assert seen.err.startswith("error: movielens needs MovieLens 1M; say where it is with --data FOLDER; ")
    assert "firstclick data download movielens-1m" in seen.err
    monkeypatch.setenv("FIRSTCLICK_DATA", str(folder / "elsewhere"))
    assert run(*MOVIES, "--world", "movielens", "--out", "here").code == 0


def test_without_data_the_worlds_of_movielens_are_left_out_with_a_sentence(run, films, monkeypatch):
    asked = []

    def play(policies, worlds, *_, watch, **__):
        asked.append([world.name for world in worlds])
        watch.begins(0, 1)
        watch.steps(0, 1)
        raise InvalidInput("enough")

    monkeypatch.setattr(sys.modules["firstclick.cli.compare"], "play_all", play)
    seen = run("compare", "--policy", "cascade-ts")
    note, *_ = seen.err.splitlines()
    assert note.startswith("note: movielens-16, movielens-256, movielens are left out, because they need")
    assert "MovieLens 1M; say where it is with --data FOLDER; `firstclick data download" in note
    assert asked == [[world.name for world in STOCK]]
    seen = run("compare", "--policy", "cascade-ts", "--data", films)
    assert "movielens-256: n_items must be at most 20, the items of MovieLens, got 256" in seen.err


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (("--world", "few-itms"), "stock world 'few-itms' is unknown; did you mean 'few-items'?"),
        (("--policy", "cascade-tss"), "policy 'cascade-tss' is unknown; did you mean 'cascade-ts'?"),
        (("--policy", "cascade-ts", "--policy", "cascade-ts"), "policy 'cascade-ts' is given twice"),
        (("--steps", 0), "--steps must be at least 1, got 0"),
        (("--runs", "many"), "--runs must be a whole number, got 'many'"),
        (("--engine", "cluster"), "--engine must be local, dask or the tcp://host:port of a scheduler, got"),
        (("--world", "few-items", "--out", "mine"), "mine holds other files (notes.txt); name a new folder,"),
        (
            ("--world", "types", "--interactions", "ratings.dat"),
            "--world and --interactions exclude each other",
        ),
        (("--data", "mine", "--interactions", "ratings.dat"), "--interactions names its file itself"),
        (("--interactions", "nowhere.csv"), "nowhere.csv: no such file"),
        (("--interactions", "ratings.dat", "--k", 9), "--k must be at most 8, because 9 items compete"),
        (("--interactions", "ratings.dat", "--k", 0), "--k must be at least 1, got 0"),
        (
            ("--interactions", "ratings.dat", "--items", 10),
            "--items must be at most 9, the items of ratings.dat",
        ),
        (("--interactions", "ratings.dat", "--rank", 8), "--rank must be at most 7 (half of the users of"),
        (("--interactions", "ratings.dat", "--above", 3), "--above needs --value-column"),
        (
            ("--interactions", "ratings.dat", "--value-column", 2, "--above", "nan"),
            "--above must be a finite",
        ),
        (("--interactions", "ratings.dat", "--value-column", 2, "--above", 5), "no value is above 5"),
        (("--above", 3), "--above goes with --interactions"),
        (("--world", "few-items", "--k", 3), "--k goes with --interactions"),
        (
            ("--world", "few-items", "--data", "mine"),
            "--data goes with movielens-16, movielens-256, movielens",
        ),
        (("--data", "mine"), "mine has no MovieLens data: expected ratings.dat and movies.dat"),
        (("--data", "nowhere"), "nowhere: no such file or folder"),
        (("--world", "movielens-16"), "movielens-16 needs MovieLens 1M; say where it is with --data FOLDER"),
        (("--world", "few-items", "--sweep-k"), "--sweep-k goes with worlds of data"),
    ],
)
def test_a_wrong_call_is_one_line(run, folder, ratings, monkeypatch, given, sentence):
    monkeypatch.delenv("FIRSTCLICK_DATA", raising=False)
    (folder / "mine").mkdir()
    (folder / "mine" / "notes.txt").write_text("mine")
    seen = run("compare", *given)
    assert seen.code == 2
    assert sentence in seen.err
    assert len(seen.err.splitlines()) == 1
    assert seen.out == ""


def test_a_folder_of_another_call_is_refused_without_overwrite(run):
    assert run("compare", *SMALL, "--out", "guide").code == 0
    other = ("compare", *SMALL, "--seed", 9, "--out", "guide")
    seen = run(*other)
    assert seen.code == 2
    assert "holds the results of another call; pass --overwrite to replace them" in seen.err
    assert run(*other, "--overwrite").code == 0
