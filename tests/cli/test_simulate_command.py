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
from itertools import pairwise

import numpy as np
import pytest

import firstclick.report
from firstclick import Results, make_world, world_classes
from firstclick.registry import DEFAULT_POLICY
from tests.support.policies import OTHERS

SMALL = ("--steps", 40, "--runs", 3, "--jobs", 1, "--k", 2)
WORLD = ("simulate", "--world", "blb:n_items=7", *SMALL)
FILE = ("simulate", "--rank", 3, *SMALL)
DAT = (*FILE, "--interactions", "ratings.dat", "--value-column", 2, "--above", 3, "--seed", 5)

OUR_FILES = ["regret.png", "regret.svg", "report.html", "results.csv", "results.json"]


def timeless(out):
    """The JSON without what a clock measured."""
    page = json.loads(out)
    for result in page["results"]:
        assert result.pop("seconds_per_step") > 0
    return page


def held(folder):
    return sorted(path.name for path in folder.iterdir())


def test_json_has_what_the_docs_promise(run):
    seen = run(*WORLD, "--policy", "cascade-ts", "--policy", "random", "--seed", 4, "--json")
    assert (seen.code, seen.err) == (0, "")
    assert seen.out.count("\n") == 1, "one line for programs"
    page = json.loads(seen.out)
    assert {key: page[key] for key in ("k", "steps", "runs", "seed", "n_items")} == {
        "k": 2, "steps": 40, "runs": 3, "seed": 4, "n_items": 7,
    }  # fmt: skip
    assert math.isclose(page["optimal_reward"], 1 - 0.8**2)
    assert [result["policy"] for result in page["results"]] == ["cascade-ts", "random"]
    for result in page["results"]:
        for measure in ("regret", "expected_regret", "reward"):
            assert set(result[measure]) == {"mean", "stderr"}
            assert all(math.isfinite(value) for value in result[measure].values())
        curve = result["curve"]
        assert len(curve["step"]) == len(curve["regret"]) == len(curve["stderr"])
        assert all(first < second for first, second in pairwise(curve["step"]))
        assert (curve["step"][0], curve["step"][-1]) == (1, 40)
        assert curve["regret"][-1] == result["regret"]["mean"]
        assert curve["stderr"][-1] == result["regret"]["stderr"]
        assert result["seconds_per_step"] > 0


def test_a_seed_repeats_everything_but_the_time(run):
    one = run(*WORLD, "--policy", "cascade-ts", "--seed", 4, "--json")
    again = run(*WORLD, "--policy", "cascade-ts", "--seed", 4, "--json")
    other = run(*WORLD, "--policy", "cascade-ts", "--seed", 5, "--json")
    assert timeless(one.out) == timeless(again.out)
    assert timeless(one.out)["results"] != timeless(other.out)["results"]


def test_a_drawn_seed_is_told_and_kept_and_repeats_the_run(run):
    drawn = run(*WORLD, "--policy", "cascade-ts", "--json")
    told = re.fullmatch(r"seed (\d+) \(drawn; repeat with --seed \1\)\n", drawn.err)
    assert told, drawn.err
    assert json.loads(drawn.out)["seed"] == int(told[1])
    again = run(*WORLD, "--policy", "cascade-ts", "--json", "--seed", told[1])
    assert timeless(again.out) == timeless(drawn.out)
    assert run(*WORLD, "--policy", "cascade-ts", "--json").err != drawn.err


def test_two_processes_give_what_one_gives(run):
    both = [*WORLD, "--policy", "random", "--policy", "cascade-ts", "--seed", 9, "--json"]
    assert timeless(run(*both, "--jobs", 2).out) == timeless(run(*both, "--jobs", 1).out)


def test_one_run_has_no_standard_error(run, folder):
    seen = run(*WORLD, "--policy", "random", "--runs", 1, "--seed", 1, "--json", "--out", "alone")
    (result,) = json.loads(seen.out)["results"]
    assert result["regret"]["stderr"] is None
    assert set(result["curve"]["stderr"]) == {None}
    with open("alone/results.csv", newline="") as file:
        assert {row["regret_stderr"] for row in csv.DictReader(file)} == {""}
    assert "nan" not in run(*WORLD, "--policy", "random", "--runs", 1).out


def test_a_slate_of_all_items_loses_nothing(run):
    seen = run(*WORLD, "--policy", "cascade-ts", "--k", 7, "--seed", 1, "--json")
    (result,) = json.loads(seen.out)["results"]
    assert result["regret"]["mean"] == 0
    assert abs(result["expected_regret"]["mean"]) < 1e-9


def test_results_go_to_stdout_and_talk_to_stderr(run):
    seen = run(*WORLD, "--policy", "random", "--policy", "cascade-ts", "--out", "new")
    header, *rows = seen.out.splitlines()
    assert header.split()[:3] == ["policy", "expected", "regret"]
    assert sorted(row.split()[0] for row in rows) == ["cascade-ts", "random"]
    seed, report = seen.err.splitlines()
    assert seed.startswith("seed ")
    assert report == "report: new/report.html"


def test_with_json_the_report_is_still_told_of(run):
    seen = run(*WORLD, "--policy", "random", "--seed", 1, "--out", "new", "--json")
    assert json.loads(seen.out)["seed"] == 1
    assert seen.err == "report: new/report.html\n"


def test_in_a_pipe_the_table_is_not_folded_nor_coloured(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "30")
    label = "cascade-ts:a=0.123456789,b=0.987654321"
    seen = run(*WORLD, "--policy", label)
    assert seen.out.splitlines()[1].startswith(label + " ")
    assert "\x1b" not in seen.out + seen.err


@OTHERS
def test_without_a_policy_all_that_can_play_do(run):
    plain = json.loads(run(*WORLD, "--json").out)
    linear = json.loads(run("simulate", "--world", "linear:n_items=7", *SMALL, "--json").out)
    assert {"random", "cascade-ts"} <= {result["policy"] for result in plain["results"]}
    assert "cascade-lin-ts" not in {result["policy"] for result in plain["results"]}
    assert "cascade-lin-ts" in {result["policy"] for result in linear["results"]}


@OTHERS
def test_a_note_is_told_on_stderr_and_kept(run):
    seen = run(
        "simulate", "--world", "linear:n_items=7", *SMALL, "--seed", 1, "--json",
        "--policy", "cascade-lin-ucb:c=theory,horizon=40",
    )  # fmt: skip
    (note,) = json.loads(seen.out)["notes"]
    assert seen.err == f"note: {note}\n"


@pytest.mark.parametrize("kind", ["npy", "csv", "tsv"])
def test_features_come_from_a_file(run, folder, kind):
    features = np.random.default_rng(1).random((7, 3))
    np.save("own.npy", features)
    np.savetxt("own.csv", features, delimiter=",", fmt="%.17g")
    np.savetxt("own.tsv", features, delimiter="\t", fmt="%.17g")
    expected = run(*WORLD, "--policy", "cascade-lin-ts", "--seed", 1, "--json", "--features", "own.npy")
    seen = run(*WORLD, "--policy", "cascade-lin-ts", "--seed", 1, "--json", "--features", f"own.{kind}")
    assert seen.code == 0, seen.err
    assert timeless(seen.out)["results"] == timeless(expected.out)["results"]
    other = run("simulate", "--world", "linear:n_items=7", *SMALL, "--policy", "cascade-lin-ts", "--json")
    assert timeless(other.out)["results"] != timeless(seen.out)["results"]


def test_a_single_column_of_features_needs_no_separator(run, folder):
    (folder / "one.csv").write_text("1\n0.5\n" + 5 * "0.25\n")
    given = (*WORLD, "--policy", "cascade-lin-ts", "--features", "one.csv")
    assert run(*given).code == 0
    assert run(*given, "--separator", ",").code == 0


def test_every_kind_of_file_gives_the_same(run, ratings):
    ask = (*FILE, "--policy", "cascade-lin-ts", "--policy", "random", "--seed", 5, "--above", 3, "--json")
    pages = []
    for columns in (
        ("--interactions", "ratings.dat", "--user-column", 0, "--item-column", 1, "--value-column", 2),
        ("--interactions", "ratings.dat", "--value-column", 2),
        ("--interactions", "ratings.csv", "--header", "--value-column", 2),
        (
            "--interactions",
            "ratings.csv",
            "--user-column",
            "user",
            "--item-column",
            1,
            "--value-column",
            "rating",
        ),
        (
            "--interactions",
            "ratings.tsv",
            "--user-column",
            "who",
            "--item-column",
            "what",
            "--value-column",
            "stars",
        ),
    ):
        seen = run(*ask, *columns)
        assert (seen.code, seen.err) == (0, "")
        pages.append(timeless(seen.out))
        pages[-1]["settings"].pop("interactions")
    assert all(page == pages[0] for page in pages)
    assert pages[0]["n_items"] == 9
    assert pages[0]["settings"]["users"] == 14
    assert {shown["item"] for shown in pages[0]["optimal_items"]} <= {str(10 + 3 * item) for item in range(9)}


def test_above_decides_what_attracts(run, ratings):
    rewards = [
        json.loads(run(*FILE, "--interactions", "ratings.dat", "--policy", "random", "--json", *more).out)[
            "optimal_reward"
        ]
        for more in ((), ("--value-column", 2), ("--value-column", 2, "--above", 4))
    ]
    assert rewards[0] == rewards[1] > rewards[2], "without --above it is 0, and all values are above that"


@pytest.mark.parametrize(
    "option",
    [
        ["--items", 4],
        ["--items", 4, "--pick", "random"],
        ["--one-split"],
        ["--unscaled"],
        ["--intercept"],
        ["--rank", 5],
    ],
)
def test_every_option_of_the_data_changes_what_is_played(run, ratings, option):
    plain = run(*DAT, "--policy", "cascade-lin-ts", "--json")
    changed = run(*DAT, "--policy", "cascade-lin-ts", "--json", *option)
    assert changed.code == 0, changed.err
    assert timeless(changed.out)["results"] != timeless(plain.out)["results"]
    assert timeless(changed.out)["settings"] != timeless(plain.out)["settings"]


def test_items_are_picked_by_popularity_or_at_random(run, ratings):
    four = (*DAT, "--policy", "random", "--items", 4, "--json")
    popular, again, random = (
        json.loads(run(*four, *how).out) for how in ((), ("--pick", "popular"), ("--pick", "random"))
    )
    assert popular["optimal_items"] == again["optimal_items"] != random["optimal_items"]
    assert len(random["results"][0]["shown"]) == 4 == popular["n_items"]


def test_policies_without_features_need_no_rank(run, ratings):
    seen = run(*DAT, "--rank", 999, "--policy", "random", "--json")
    assert seen.code == 0
    assert json.loads(seen.out)["settings"]["rank"] is None
    # The default does without features, and learns from them where there are some.
    seen = run(*DAT, "--policy", DEFAULT_POLICY, "--json")
    assert json.loads(seen.out)["settings"]["rank"] == 3


def test_a_header_read_as_a_row_is_spoken_of(run, ratings):
    seen = run(*FILE, "--interactions", "ratings.csv", "--policy", "random", "--seed", 1)
    assert seen.code == 0
    assert seen.err == (
        "note: ratings.csv has one user that is no number, 'user'; if line 1 is a header, say --header\n"
    )
    for fine in (("ratings.csv", "--header"), ("ratings.dat",)):
        assert run(*FILE, "--policy", "random", "--seed", 1, "--interactions", *fine).err == ""


def test_the_folder_gets_report_tables_and_figures(run, folder):
    label = "cascade-ts:a=0.5,b=0.5"
    seen = run(*WORLD, "--policy", label, "--policy", "random", "--seed", 1, "--out", "a/b", "--json")
    assert seen.code == 0
    assert held(folder / "a") == ["b"]
    assert held(folder / "a" / "b") == OUR_FILES
    saved = Results.load("a/b/results.json")
    assert saved.summary() == json.loads(seen.out)
    with open("a/b/results.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert {row["policy"] for row in rows} == {label, "random"}, "commas and all"
    last = [row for row in rows if row["policy"] == label][-1]
    assert (int(last["step"]), float(last["regret"])) == (40, saved[label].final("regret")["mean"])


def test_the_report_tells_the_command_that_repeats_it(run, folder):
    seen = run(*WORLD, "--policy", "random", "--out", "one")
    seed = re.search(r"--seed (\d+)", seen.err)[1]
    page = (folder / "one/report.html").read_text()
    asked = "--world blb:n_items=7 --steps 40 --runs 3 --jobs 1 --k 2 --policy random"
    assert f"firstclick simulate {asked} --seed {seed}" in page
    run(*WORLD, "--policy", "random", "--seed", 77, "--out", "two")
    assert (folder / "two/report.html").read_text().count("--seed") == 1


def test_results_are_replaced_only_on_demand(run, folder):
    first = (*WORLD, "--policy", "random", "--seed", 1, "--out", "kept")
    assert run(*first).code == 0
    before = (folder / "kept/results.json").read_bytes()
    refused = run(*WORLD, "--policy", "random", "--seed", 2, "--out", "kept")
    assert (refused.code, refused.out) == (2, "")
    assert refused.err == "error: --out kept holds results already; name a new folder, or say --overwrite\n"
    assert (folder / "kept/results.json").read_bytes() == before
    assert run(*WORLD, "--policy", "random", "--seed", 2, "--out", "kept", "--overwrite").code == 0
    assert json.loads((folder / "kept/results.json").read_text())["seed"] == 2
    assert held(folder / "kept") == OUR_FILES


@pytest.mark.skipif(sys.platform == "win32", reason="processes of POSIX")
@pytest.mark.parametrize("there", [True, False])
def test_drafts_of_a_killed_command_go_with_the_next_report(run, folder, there):
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    drafts = [folder / f".kept.{process}.part" for process in (gone.pid, os.getppid())]
    if there:
        drafts = [folder / "kept" / f".{process}.part" for process in (gone.pid, os.getppid())]
    for draft in drafts:
        draft.mkdir(parents=True)
        (draft / "results.json").write_text("half")
    assert run(*WORLD, "--policy", "random", "--seed", 1, "--out", "kept").code == 0
    assert [draft.exists() for draft in drafts] == [False, True], "one belongs to a process that lives"


@pytest.mark.parametrize("name", [".", "empty", "with [brackets]", "ünïcode"])
def test_any_empty_or_new_folder_will_do(run, folder, name):
    (folder / "empty").mkdir()
    if name == ".":
        (folder / "empty").rmdir()
    seen = run(*WORLD, "--policy", "random", "--seed", 1, "--out", name)
    assert seen.code == 0, seen.err
    assert held(folder / name) == OUR_FILES
    assert seen.err.endswith("report.html\n")
    assert name == "." or f"report: {name}/report.html" in seen.err


@pytest.mark.parametrize("call", ["save_figure", "fsync"])
@pytest.mark.parametrize("there", [True, False])
def test_a_disk_that_fills_costs_the_report_but_not_the_results(run, folder, monkeypatch, there, call):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    if there:
        (folder / "out").mkdir()
    monkeypatch.setattr(firstclick.report if call == "save_figure" else os, call, full)
    seen = run(*WORLD, "--policy", "random", "--seed", 1, "--out", "out", "--json")
    assert seen.code == 1
    assert seen.err.startswith("error: out")
    assert seen.err.endswith("cannot be written: No space left on device; the results are on stdout alone\n")
    assert seen.err.count("\n") == 1
    assert json.loads(seen.out)["seed"] == 1
    assert held(folder) == (["out"] if there else [])
    assert not there or held(folder / "out") == []


def test_a_disk_that_fills_leaves_old_results_alone(run, folder, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    assert run(*WORLD, "--policy", "random", "--seed", 1, "--out", "out").code == 0
    before = {path.name: path.read_bytes() for path in (folder / "out").iterdir()}
    monkeypatch.setattr(firstclick.report, "save_figure", full)
    assert run(*WORLD, "--policy", "random", "--seed", 2, "--out", "out", "--overwrite").code == 1
    assert {path.name: path.read_bytes() for path in (folder / "out").iterdir()} == before


def test_a_world_too_large_for_the_machine_is_one_line(run, monkeypatch):
    def vast(*_):
        raise MemoryError("Unable to allocate 7.28 TiB")

    monkeypatch.setattr("firstclick.worlds.bernoulli.BLB.build", vast)
    seen = run(*WORLD)
    assert (seen.code, seen.out) == (1, "")
    assert seen.err == "error: out of memory: Unable to allocate 7.28 TiB\n"


def examples(text):
    """The commands in a help text, as a shell would read them."""
    joined = text.replace("\\\n", " ")
    return [shlex.split(line) for line in joined.splitlines() if line.strip().startswith("firstclick ")]


@pytest.mark.parametrize("command", [pytest.param("simulate", marks=OTHERS), "demo", "policies", "bound"])
def test_the_examples_of_the_help_work_when_pasted(run, folder, monkeypatch, command):
    rows = ((user, item, (user * item) % 5 + 1) for user in range(60) for item in range(260))
    (folder / "ratings.dat").write_text(
        "".join(f"{user}::{item}::{value}::0\n" for user, item, value in rows)
    )
    shorter = ["--steps", "30", "--runs", "2", "--jobs", "1"] if command in ("simulate", "demo") else []
    monkeypatch.setattr(sys.modules["firstclick.cli.demo"], "POLICIES", ("random", "cascade-ts"))
    found = examples(run(command, "--help").out)
    assert len(found) == (3 if command == "simulate" else 1)
    for _, *arguments in found:
        seen = run(*arguments, *shorter)
        assert seen.code == 0, seen.err
        assert seen.out


def test_the_help_lists_every_world_with_its_parameters_and_defaults(run):
    shown = run("simulate", "--help").out
    listed = re.search(
        r"Worlds and their defaults:\n((?:    .*\n)+)  Each also takes clicks=: cascade,", shown
    )[1].split()
    # One of a file has no defaults, and stands below.
    ours = {
        name: cls
        for name, cls in world_classes().items()
        if cls.__module__.startswith("firstclick.") and not cls.bare
    }
    assert "--world fitted:fit.npz" in shown
    assert [spec.partition(":")[0] for spec in listed] == list(ours)
    for spec, cls in zip(listed, ours.values(), strict=True):
        assert make_world(spec) == cls()
        assert ["clicks", *re.findall(r"(\w+)=", spec)] == list(cls.rules())


def test_skipped_rows_and_impressions_are_noted(run, folder):
    rows = "".join(f"u{i % 9},i{i % 7},{i % 4},{int(i % 5 == 0)}\n" for i in range(90))
    (folder / "clicks.csv").write_text("user,item,pos,clicked\n" + rows + "u1,,2,NA\n")
    file = ("--interactions", "clicks.csv", "--user-column", "user", "--item-column", "item")
    play = ("--value-column", "clicked", "--policy", "random", "--steps", 20, "--runs", 1, "--k", 2)
    seen = run("simulate", *file, *play, "--seed", 1)
    assert "note: clicks.csv: 1 of 91 rows skipped: 1 without an item (line 92)\n" in seen.err
    assert "note: clicks.csv looks like a log of impressions (column 'pos'): " in seen.err
    seen = run("simulate", *file, *play, "--seed", 1, "--strict")
    assert (seen.code, seen.err) == (2, "error: clicks.csv line 92: empty item id in column item\n")
    assert run("simulate", "--world", "blb", "--strict").err == "error: --strict goes with --interactions\n"


def test_a_baseline_and_a_floor(run, folder):
    """A list from a file, beside a world whose items have names and numbers."""
    (folder / "list.csv").write_text("item 5\n3\nitem 0\n")
    words = ("--policy", "cascade-ts", "--seed", 4, "--baseline", "list.csv", "--max-loss", 0.2)
    seen = run(*WORLD, *words, "--out", "new")
    assert seen.code == 0, seen.err
    assert "policy shown" in (folder / "new" / "report.html").read_text()
    assert "of baseline" in seen.out
    assert "at least 0.8 of the baseline's at all times in" in " ".join(seen.err.split())
    page = json.loads(
        run(*WORLD, "--policy", "cascade-ts", "--seed", 4, "--baseline", 0.5, "--json").out
    )  # fmt: skip
    against = page["results"][0]["against_baseline"]
    assert against["policy_pages"][-1] == 40
    assert page["settings"]["baseline"] == "0.5"


def test_a_floor_needs_a_baseline_that_exists(run):
    assert run(*WORLD, "--max-loss", 0.2).err == "error: --max-loss goes with --baseline\n"
    assert "list.csv" in run(*WORLD, "--baseline", "list.csv").err
    assert "--baseline must be a list" in run(*WORLD, "--baseline", "1.5").err
    assert "--max-loss must be a share" in run(*WORLD, "--baseline", "0.5", "--max-loss", 2).err
