"""`firstclick demo`."""

import json
import runpy
import sys

import pytest

from firstclick import Results, registry

SMALL = ("demo", "--steps", 30, "--runs", 2, "--jobs", 1)
PAPER = ["cascade-lin-ts", "cascade-lin-ucb", "cascade-ucb1", "cascade-kl-ucb", "ranked-lin-ts"]


@pytest.fixture
def few(monkeypatch):
    """Two policies instead of all: what is tested here does not depend on which."""
    monkeypatch.setattr(sys.modules["firstclick.cli.demo"], "POLICIES", ("random", "cascade-ts"))
    monkeypatch.setattr(sys.modules["firstclick.cli.demo"], "DEFAULT_POLICY", "cascade-ts")


@pytest.mark.parametrize(
    ("default", "others"), [("cascade-mixed", PAPER), ("top-rank", PAPER), ("cascade-lin-ts", PAPER[1:])]
)
def test_default_is_played_then_those_of_the_paper_then_random_each_once(monkeypatch, default, others):
    monkeypatch.setattr(registry, "DEFAULT_POLICY", default)
    played = runpy.run_path(sys.modules["firstclick.cli.demo"].__file__)["POLICIES"]
    assert list(played) == [default, *others, "random"]


def test_demo_needs_nothing_and_leaves_a_report(run, folder, few):
    seen = run(*SMALL)
    assert seen.code == 0
    assert sorted(row.split()[0] for row in seen.out.splitlines()[1:]) == ["cascade-ts,", "random"]
    _, played, report = seen.err.splitlines()
    assert (played, report) == ("2 policies x 2 runs x 30 steps", "report: firstclick-demo/report.html")
    assert [path.name for path in folder.iterdir()] == ["firstclick-demo"]
    files = sorted(path.name for path in (folder / "firstclick-demo").iterdir())
    assert files == ["regret.png", "regret.svg", "report.html", "results.csv", "results.json"]
    page = (folder / "firstclick-demo/report.html").read_text()
    assert "firstclick demo --steps 30 --runs 2 --seed 1" in page
    assert "(group " in page, "items are shown by their names"
    for shown in (seen.out, page, (folder / "firstclick-demo/regret.svg").read_text()):
        assert "the default" in shown


def test_demo_replaces_its_own_results_and_repeats_by_the_seed(run, folder, few):
    pages = [json.loads(run(*SMALL, "--json", "--seed", seed).out) for seed in (3, 3, 4)]
    rewards = [[result["reward"] for result in page["results"]] for page in pages]
    assert rewards[0] == rewards[1] != rewards[2]
    assert (pages[0]["k"], pages[0]["n_items"], pages[0]["seed"]) == (4, 256, 3)
    assert pages[0]["settings"]["default policy"] == "cascade-ts"
    assert Results.load("firstclick-demo/results.json").seed == 4
