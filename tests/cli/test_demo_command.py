"""`firstclick demo`."""

import json
import runpy
import sys

import pytest

from firstclick import Results, registry
from firstclick.registry import DEFAULT_POLICY

OUR_FILES = ["regret.png", "regret.svg", "report.html", "results.csv", "results.json"]
SMALL = ("demo", "--steps", 30, "--runs", 2, "--jobs", 1)


@pytest.fixture
def few(monkeypatch):
    """Two policies instead of all: what is tested here does not depend on which."""
    monkeypatch.setattr(sys.modules["firstclick.cli.demo"], "POLICIES", ("random", "cascade-ts"))
    monkeypatch.setattr(sys.modules["firstclick.cli.demo"], "DEFAULT_POLICY", "cascade-ts")


PAPER = ["cascade-lin-ts", "cascade-lin-ucb", "cascade-ucb1", "cascade-kl-ucb", "ranked-lin-ts"]


@pytest.mark.parametrize(
    ("default", "others"), [(DEFAULT_POLICY, PAPER), ("top-rank", PAPER), ("cascade-lin-ts", PAPER[1:])]
)
def test_it_plays_the_default_then_those_of_the_paper_then_random_order_and_nobody_twice(
    monkeypatch, default, others
):
    monkeypatch.setattr(registry, "DEFAULT_POLICY", default)
    played = runpy.run_path(sys.modules["firstclick.cli.demo"].__file__)["POLICIES"]
    assert list(played) == [default, *others, "random"]


def test_it_says_everywhere_which_policy_is_the_default(run, folder, few):
    seen = run(*SMALL)
    assert [row.split()[:3] for row in seen.out.splitlines() if "default" in row] == [
        ["cascade-ts,", "the", "default"]
    ]
    figure = (folder / "firstclick-demo/regret.svg").read_text()
    assert "the default" in figure
    page = (folder / "firstclick-demo/report.html").read_text()
    assert "cascade-ts, the default, beside five policies of the paper" in page
    assert "cascade-ts is the default: it has" in page
    assert json.loads(run(*SMALL, "--json").out)["settings"]["default policy"] == "cascade-ts"


def test_it_needs_nothing_and_leaves_a_report(run, folder, few):
    seen = run(*SMALL)
    assert seen.code == 0
    assert sorted(row.split()[0] for row in seen.out.splitlines()[1:]) == ["cascade-ts,", "random"]
    assert seen.err == (
        "4,000 made-up users x 2,000 items, of which 256 compete for 4 places\n"
        "2 policies x 2 runs x 30 steps\n"
        "report: firstclick-demo/report.html\n"
    )
    assert [path.name for path in folder.iterdir()] == ["firstclick-demo"]
    assert sorted(path.name for path in (folder / "firstclick-demo").iterdir()) == OUR_FILES
    page = (folder / "firstclick-demo/report.html").read_text()
    assert "firstclick demo --steps 30 --runs 2 --seed 1" in page
    assert "(group " in page, "items are shown by their names"


def test_it_may_be_run_again_and_replaces_its_own(run, folder, few):
    run(*SMALL)
    assert run(*SMALL, "--seed", 2).code == 0
    assert Results.load("firstclick-demo/results.json").seed == 2


def test_it_does_not_touch_a_folder_of_somebody_else(run, folder, few):
    (folder / "firstclick-demo").mkdir()
    (folder / "firstclick-demo" / "thesis.tex").write_text("years of work")
    seen = run(*SMALL)
    assert (seen.code, seen.out) == (2, "")
    assert seen.err == (
        "error: --out firstclick-demo holds other files (thesis.tex) already; "
        "name a new folder, or an empty one\n"
    )
    assert [path.name for path in (folder / "firstclick-demo").iterdir()] == ["thesis.tex"]


def test_json_and_seed(run, few):
    pages = [
        json.loads(run(*SMALL, "--json", "--out", name, "--seed", seed).out)
        for name, seed in (("a", 3), ("b", 3), ("c", 4))
    ]
    rewards = [[result["reward"] for result in page["results"]] for page in pages]
    assert rewards[0] == rewards[1] != rewards[2]
    assert (pages[0]["k"], pages[0]["n_items"], pages[0]["seed"]) == (4, 256, 3)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (["--steps", 0], "--steps must be at least 1, got 0"),
        (["--runs", -1], "--runs must be at least 1, got -1"),
        (["--jobs", -1], "--jobs must be at least 0, got -1"),
        (["--seed", -1], "--seed must be at least 0, got -1"),
        (["--seed", "x"], "--seed must be a whole number, got 'x'"),
    ],
)
def test_what_cannot_be_played_is_refused_in_one_line(run, folder, option, message):
    seen = run(*SMALL, *option)
    assert (seen.code, seen.out, seen.err) == (2, "", f"error: {message}\n")
    assert list(folder.iterdir()) == []
