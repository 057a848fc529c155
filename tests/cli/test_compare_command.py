"""`firstclick compare`: the guide's table and picture, kept cell by cell."""

import json
import sys

import pytest

from firstclick.errors import InvalidInput
from tests.cli.conftest import write_movielens

SMALL = ("--world", "few-items", "--policy", "cascade-ts", "--steps", 40, "--runs", 2, "--jobs", 1)
PLAY = ("--policy", "cascade-ts", "--steps", 40, "--jobs", 1)
DATA = ("--interactions", "ratings.dat", "--value-column", 2, "--above", 3, "--k", 2)
FILE = ("compare", *DATA, *PLAY, "--out", "mine")


def test_table_and_picture_are_written_and_finished_cells_are_kept(run, folder):
    first = run("compare", *SMALL, "--out", "guide")
    assert first.code == 0
    lines = first.err.splitlines()  # In between there is a line for every half minute.
    assert (lines[0], lines[-1]) == ("4 cells", "guide: guide/guide.md")
    header, row = first.out.splitlines()
    assert header.split()[0] == "world"
    assert row.startswith("few-items  cascade-ts")
    written = {path.name for path in (folder / "guide").iterdir()}
    assert written >= {"guide.md", "guide.png", "guide.svg", "manifest.json", "results.csv", "speed.csv"}
    page = (folder / "guide" / "guide.md").read_bytes()
    again = run("compare", *SMALL, "--out", "guide")
    assert again.err.splitlines()[0] == "4 cells, 4 of them finished already"
    assert again.out == first.out
    assert (folder / "guide" / "guide.md").read_bytes() == page
    other = ("compare", *SMALL, "--seed", 9, "--out", "guide")
    refused = run(*other)
    assert refused.code == 2
    assert "holds the results of another call; pass --overwrite to replace them" in refused.err
    assert run(*other, "--overwrite").code == 0


@pytest.mark.long
def test_file_of_likes_gets_an_answer_and_its_limitations(run, ratings):
    seen = run(*FILE, "--runs", 3)
    assert seen.code == 0
    answer, _, _, *rows = seen.out.splitlines()
    assert answer.startswith(("Take ", "The runs cannot tell: "))
    assert {row.split()[0] for row in rows} == {"cascade-ts", "cascade-mixed", "random"}
    limits, _, guide = seen.err.partition("what ratings.dat cannot tell:\n")[2].rpartition("guide: ")
    assert guide == "mine/guide.md\n"
    assert sum(line.startswith("- ") for line in limits.splitlines()) == 5
    page = (ratings / "mine" / "guide.md").read_text()
    assert page.startswith(f"# Which policy for ratings.dat?\n\n{answer}\n")
    # What `simulate` plays on the same data.
    assert "`--interactions ratings.dat --value-column 2 --above 3 --rank 7 --k 2`" in page
    again = run(*FILE, "--runs", 3)
    assert again.out == seen.out
    assert "finished already" in again.err.splitlines()[0]


def test_odd_header_and_changed_contents_of_a_file_are_noticed(run, ratings):
    (ratings / "likes.csv").write_text("user,item\n1,5\n1,6\n2,5\n2,7\n3,8\n3,6\n")
    call = ("compare", "--interactions", "likes.csv", "--k", 2, *PLAY, "--out", "mine", "--runs", 1)
    seen = run(*call)
    assert seen.code == 0
    assert seen.err.startswith("note: likes.csv has one user")
    with (ratings / "likes.csv").open("a") as file:
        file.write("0,999\n")
    seen = run(*call)
    assert (seen.code, "mine holds the results of another call" in seen.err) == (2, True)


def test_file_is_played_as_simulate_plays_it(run, ratings):
    size = ("--runs", 2, "--items", 6, "--rank", 3, "--seed", 4, "--json")
    seen = run(*FILE, *size)
    line = next(line for line in json.loads(seen.out) if line["learner"] == "cascade-ts")
    same = run("simulate", *DATA, *PLAY, "--policy", "cascade-lin-ts", *size)
    result = next(result for result in json.loads(same.out)["results"] if result["policy"] == "cascade-ts")
    assert line["expected_regret"] == result["expected_regret"]["mean"]


@pytest.fixture
def asked(monkeypatch):
    """What is about to be played; it is not played."""
    calls = []

    def play(policies, worlds, *_, watch, **settings):
        calls.append(settings | {"policies": {policy.label for policy in policies}, "worlds": worlds})
        watch.begins(0, 1)
        watch.steps(0, 1)
        raise InvalidInput("enough")

    monkeypatch.setattr(sys.modules["firstclick.cli.compare"], "play_all", play)
    return calls


def test_on_a_file_more_policies_and_runs_are_played(run, ratings, asked):
    run("compare", "--interactions", "ratings.csv", "--user-column", "user", "--item-column", "item")
    run("compare", "--interactions", "ratings.dat", "--policy", "cascade-ts:a=2")
    run("compare", "--world", "few-items", "--policy", "cascade-ts")
    by_default, given, stock = asked
    assert by_default["policies"] > {"cascade-mixed", "random"}
    assert (by_default["runs"], by_default["steps"], by_default["worlds"][0].k) == (20, 20_000, 4)
    assert given["policies"] == {"cascade-ts:a=2", "cascade-mixed", "random"}
    assert stock["runs"] == 5


def test_sweep_has_a_row_for_each_slate_length(run, ratings):
    seen = run(*FILE, "--runs", 2, "--sweep-k")
    assert seen.code == 0
    _, _, table = seen.out.partition("cascade-mixed with slates of k items\n")
    assert [row.split()[:2] for row in table.splitlines()[1:]] == [["ratings.dat", k] for k in "1248"]
    again = run(*FILE, "--runs", 2, "--sweep-k", "--json")
    worlds = {line["world"] for line in json.loads(again.out)}
    assert worlds == {"ratings.dat", *(f"ratings.dat k={k}" for k in "1248")}
    assert again.err.count("finished already") == 2


@pytest.fixture
def films(folder, monkeypatch):
    """A small data set in the format of MovieLens 1M, where `firstclick data download` puts it."""
    monkeypatch.delenv("FIRSTCLICK_DATA", raising=False)
    (folder / "data").mkdir()
    write_movielens(folder / "data" / "ml-1m", n_users=44, n_movies=20)
    return folder / "data"


def test_movielens_is_played_where_its_data_is_given_or_found(run, films, folder, monkeypatch):
    play = ("compare", *PLAY, "--runs", 2)
    given = run(*play, "--world", "movielens-16", "--world", "few-items", "--data", films, "--out", "given")
    assert given.code == 0
    assert [row.split()[0] for row in given.out.splitlines()[1:]] == ["few-items", "movielens-16"]
    assert "note: not MovieLens 1M, but 44 users and 20 films" in given.err
    world = json.loads((folder / "given" / "manifest.json").read_text())["worlds"]["movielens-16"]
    assert (world["data"]["name"], world["data"]["users"], world["items"]) == ("MovieLens", 44, 16)
    assert run(*play, "--world", "movielens", "--out", "here").code == 0
    films.rename(folder / "elsewhere")
    monkeypatch.setenv("FIRSTCLICK_DATA", str(folder / "elsewhere"))
    assert run(*play, "--world", "movielens", "--out", "here").code == 0


def test_without_data_the_worlds_of_movielens_are_left_out(run, films, asked, folder):
    films.rename(folder / "elsewhere")
    seen = run("compare", "--policy", "cascade-ts")
    assert seen.err.startswith("note: movielens-16, movielens-256, movielens are left out, because they need")
    (call,) = asked
    assert len(call["worlds"]) > 3
    assert not [world.name for world in call["worlds"] if "movielens" in world.name]
    seen = run("compare", "--policy", "cascade-ts", "--data", "elsewhere")
    assert "movielens-256: n_items must be at most 20, the items of MovieLens, got 256" in seen.err
