"""`firstclick simulate`, as a researcher, an engineer and a student would call it."""

import csv
import errno
import json
import math
import os
import re
import shlex
import subprocess
import sys
from itertools import combinations

import numpy as np
import pytest

import firstclick.report
from firstclick import Results, make_world, world_classes
from tests.support.policies import OTHERS

SMALL = ("--steps", 40, "--runs", 3, "--jobs", 1, "--k", 2)
WORLD = ("simulate", "--world", "blb:n_items=7", *SMALL)
RANDOM = (*WORLD, "--policy", "random", "--seed", 1)
FILE = ("simulate", "--rank", 3, *SMALL)
DAT = (*FILE, "--interactions", "ratings.dat", "--value-column", 2, "--above", 3, "--seed", 5)
REPORT = ["regret.png", "regret.svg", "report.html", "results.csv", "results.json"]


def timeless(out):
    """The JSON without what a clock measured."""
    page = json.loads(out)
    for result in page["results"]:
        assert result.pop("seconds_per_step") > 0
    return page


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_json_is_one_line_with_settings_regrets_and_curves(run):
    seen = run(*WORLD, "--policy", "cascade-ts", "--policy", "random", "--seed", 4, "--json")
    assert (seen.code, seen.err, seen.out.count("\n")) == (0, "", 1)
    page = json.loads(seen.out)
    expected = {"k": 2, "steps": 40, "runs": 3, "seed": 4, "n_items": 7}
    assert {name: page[name] for name in expected} == expected
    assert math.isclose(page["optimal_reward"], 1 - 0.8**2)
    assert [result["policy"] for result in page["results"]] == ["cascade-ts", "random"]
    for result in page["results"]:
        curve = result["curve"]
        assert (curve["step"][-1], curve["regret"][-1]) == (40, result["regret"]["mean"])


def test_drawn_seed_is_printed_and_repeats_the_run(run):
    drawn = run(*WORLD, "--policy", "cascade-ts", "--json")
    seed = re.fullmatch(r"seed (\d+) \(drawn; repeat with --seed \1\)\n", drawn.err)[1]
    again = run(*WORLD, "--policy", "cascade-ts", "--json", "--seed", seed)
    assert timeless(again.out) == timeless(drawn.out)
    assert run(*WORLD, "--policy", "cascade-ts", "--json").err != drawn.err


def test_one_run_has_no_standard_error(run, folder):
    seen = run(*RANDOM, "--runs", 1, "--json", "--out", "alone")
    (result,) = json.loads(seen.out)["results"]
    assert result["regret"]["stderr"] is None
    assert set(result["curve"]["stderr"]) == {None}
    with open("alone/results.csv", newline="") as file:
        assert {row["regret_stderr"] for row in csv.DictReader(file)} == {""}
    assert "nan" not in run(*RANDOM, "--runs", 1).out


def test_results_go_to_stdout_and_notes_to_stderr(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "30")
    label = "cascade-ts:a=0.123456789,b=0.987654321"
    seen = run(*RANDOM, "--policy", label, "--out", "new")
    header, *rows = seen.out.splitlines()
    assert header.split()[:3] == ["policy", "expected", "regret"]
    assert sorted(row.split()[0] for row in rows) == [label, "random"], "no line is folded"
    assert seen.err == "report: new/report.html\n"
    assert "\x1b" not in seen.out


@OTHERS
def test_without_a_policy_all_that_can_play_do(run):
    pages = [json.loads(run("simulate", "--world", f"{world}:n_items=7", *SMALL, "--json").out)
             for world in ("blb", "linear")]  # fmt: skip
    plain, linear = ({result["policy"] for result in page["results"]} for page in pages)
    assert {"random", "cascade-ts"} <= plain
    assert "cascade-lin-ts" in linear - plain


@OTHERS
def test_note_is_on_stderr_and_in_the_json(run):
    policy = "cascade-lin-ucb:c=theory,horizon=40"
    seen = run("simulate", "--world", "linear:n_items=7", *SMALL, "--seed", 1, "--json", "--policy", policy)
    (note,) = json.loads(seen.out)["notes"]
    assert seen.err == f"note: {note}\n"


def test_features_come_from_a_file(run, folder):
    features = np.random.default_rng(1).random((7, 3))
    np.save("own.npy", features)
    np.savetxt("own.tsv", features, delimiter="\t", fmt="%.17g")
    (folder / "one.csv").write_text("1\n0.5\n" + 5 * "0.25\n")
    play = (*WORLD, "--policy", "cascade-lin-ts", "--seed", 1, "--json")
    files = ("own.npy", "own.tsv", "one.csv")
    npy, tsv, other = (timeless(run(*play, "--features", file).out)["results"] for file in files)
    assert npy == tsv != other
    assert run(*play, "--features", "one.csv", "--separator", ",").code == 0


def test_every_kind_of_file_gives_the_same(run, ratings):
    play = (*FILE, "--policy", "cascade-lin-ts", "--policy", "random", "--seed", 5, "--above", 3, "--json")
    pages = []
    for columns in (
        "ratings.dat --value-column 2",
        "ratings.csv --user-column user --item-column 1 --value-column rating",
        "ratings.tsv --user-column who --item-column what --value-column stars",
    ):
        seen = run(*play, "--interactions", *columns.split())
        assert (seen.code, seen.err) == (0, "")
        pages.append(timeless(seen.out))
        pages[-1]["settings"].pop("interactions")
    assert all(page == pages[0] for page in pages)
    assert (pages[0]["n_items"], pages[0]["settings"]["users"]) == (9, 14)


def test_every_option_of_the_data_changes_what_is_played(run, ratings):
    play = (*DAT, "--policy", "cascade-lin-ts", "--json")
    options = ("--items 4", "--items 4 --pick random", "--one-split", "--unscaled", "--intercept", "--rank 5")
    pages = [timeless(run(*play, *option.split()).out) for option in ("", *options, "--above 4", "--above 0")]
    for one, other in combinations(pages, 2):
        assert one["results"] != other["results"]
        assert one["settings"] != other["settings"]
    assert timeless(run(*play, "--items", 4, "--pick", "popular").out)["results"] == pages[1]["results"]


def test_policies_without_features_need_no_rank(run, ratings):
    for policy, rank in (("random", None), ("cascade-mixed", 3)):
        seen = run(*DAT, "--rank", 3 if rank else 999, "--policy", policy, "--json")
        assert json.loads(seen.out)["settings"]["rank"] == rank


def test_folder_gets_report_tables_and_figures(run, folder):
    label = "cascade-ts:a=0.5,b=0.5"
    seen = run(*RANDOM, "--policy", label, "--out", "a/b", "--json")
    assert (seen.code, seen.err) == (0, "report: a/b/report.html\n")
    assert names(folder / "a" / "b") == REPORT
    assert Results.load("a/b/results.json").summary() == json.loads(seen.out)
    with open("a/b/results.csv", newline="") as file:
        last = {row["policy"]: float(row["regret"]) for row in csv.DictReader(file)}
    results = json.loads(seen.out)["results"]
    assert last == {result["policy"]: result["regret"]["mean"] for result in results}, "commas and all"


def test_report_shows_the_command_that_repeats_it(run, folder):
    seen = run(*WORLD, "--policy", "random", "--out", "one")
    seed = re.search(r"--seed (\d+)", seen.err)[1]
    command = "--world blb:n_items=7 --steps 40 --runs 3 --jobs 1 --k 2 --policy random"
    assert f"firstclick simulate {command} --seed {seed}" in (folder / "one/report.html").read_text()
    run(*RANDOM, "--out", "two")
    assert (folder / "two/report.html").read_text().count("--seed") == 1


def test_results_are_replaced_only_on_demand(run, folder):
    assert run(*RANDOM, "--out", "kept").code == 0
    before = (folder / "kept/results.json").read_bytes()
    refused = run(*RANDOM, "--seed", 2, "--out", "kept")
    assert (refused.code, refused.out) == (2, "")
    assert refused.err == "error: --out kept holds results already; name a new folder, or say --overwrite\n"
    assert (folder / "kept/results.json").read_bytes() == before
    assert run(*RANDOM, "--seed", 2, "--out", "kept", "--overwrite").code == 0
    assert json.loads((folder / "kept/results.json").read_text())["seed"] == 2
    assert names(folder / "kept") == REPORT


@pytest.mark.skipif(sys.platform == "win32", reason="processes of POSIX")
@pytest.mark.parametrize("pattern", [".kept.{}.part", "kept/.{}.part"])
def test_drafts_of_a_killed_command_go_with_the_next_report(run, folder, pattern):
    gone = subprocess.Popen(["true"])
    gone.wait()
    drafts = [folder / pattern.format(process) for process in (gone.pid, os.getppid())]
    for draft in drafts:
        draft.mkdir(parents=True)
        (draft / "results.json").write_text("half")
    assert run(*RANDOM, "--out", "kept").code == 0
    assert [draft.exists() for draft in drafts] == [False, True], "one belongs to a process that lives"


@pytest.mark.parametrize("name", [".", "with [brackets]", "ünïcode"])
def test_any_empty_or_new_folder_will_do(run, folder, name):
    seen = run(*RANDOM, "--out", name)
    assert (seen.code, seen.err.endswith("report.html\n")) == (0, True)
    assert names(folder / name) == REPORT
    assert name == "." or f"report: {name}/report.html" in seen.err


@pytest.mark.parametrize("module", [firstclick.report, os], ids=["save_figure", "fsync"])
@pytest.mark.parametrize("there", [False, True])
def test_full_disk_costs_the_report_but_not_the_results(run, folder, monkeypatch, there, module):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    if there:
        assert run(*RANDOM, "--out", "out").code == 0
    before = {path: path.is_file() and path.read_bytes() for path in folder.rglob("*")}
    monkeypatch.setattr(module, "fsync" if module is os else "save_figure", full)
    seen = run(*RANDOM, "--seed", 2, "--out", "out", "--overwrite", "--json")
    assert seen.code == 1
    assert re.fullmatch(
        r"error: out.*cannot be written: No space left on device; .* on stdout alone\n", seen.err
    )
    assert json.loads(seen.out)["seed"] == 2
    assert {path: path.is_file() and path.read_bytes() for path in folder.rglob("*")} == before


def examples(text):
    """The commands in a help text, as a shell would read them."""
    lines = text.replace("\\\n", " ").splitlines()
    return [shlex.split(line) for line in lines if line.strip().startswith("firstclick ")]


@pytest.mark.parametrize("command", [pytest.param("simulate", marks=OTHERS), "demo", "policies", "bound"])
def test_examples_of_the_help_work_when_pasted(run, folder, monkeypatch, command):
    rows = [f"{user}::{item}::{(user * item) % 5 + 1}::0\n" for user in range(60) for item in range(260)]
    (folder / "ratings.dat").write_text("".join(rows))
    shorter = ["--steps", "30", "--runs", "2", "--jobs", "1"] if command in ("simulate", "demo") else []
    monkeypatch.setattr(sys.modules["firstclick.cli.demo"], "POLICIES", ("random", "cascade-ts"))
    commands = examples(run(command, "--help").out)
    assert len(commands) == (3 if command == "simulate" else 1)
    for _, *arguments in commands:
        seen = run(*arguments, *shorter)
        assert (seen.code, bool(seen.out)) == (0, True), seen.err


def test_help_lists_every_world_with_its_parameters_and_defaults(run):
    shown = run("simulate", "--help").out
    specs = re.search(r"Worlds and their defaults:\n((?:    .*\n)+)  Each also takes", shown)[1].split()
    # A world of a file has no defaults, and stands below.
    assert "--world fitted:fit.npz" in shown
    worlds = [cls for cls in world_classes().values() if not cls.bare]
    ours = [cls for cls in worlds if cls.__module__.startswith("firstclick.")]
    for spec, cls in zip(specs, ours, strict=True):
        assert make_world(spec) == cls()
        assert ["clicks", *re.findall(r"(\w+)=", spec)] == list(cls.rules())


def test_baseline_and_guardrail(run, folder):
    """A list from a file, in a world whose items have names and numbers; and one of a given quality."""
    (folder / "list.csv").write_text("item 5\n3\nitem 0\n")
    play = (*WORLD, "--policy", "cascade-ts", "--seed", 4, "--json")
    seen = run(*play[:-1], "--baseline", "list.csv", "--max-loss", 0.2, "--out", "new")
    assert seen.code == 0, seen.err
    assert "policy shown" in (folder / "new" / "report.html").read_text()
    assert "of baseline" in seen.out
    assert "at least 0.8 of the baseline's at all times in" in " ".join(seen.err.split())
    page = json.loads(run(*play, "--baseline", 0.5).out)
    assert page["results"][0]["against_baseline"]["policy_pages"][-1] == 40
    assert page["settings"]["baseline"] == "0.5"
