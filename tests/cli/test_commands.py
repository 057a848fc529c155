"""The program as a whole: help, exit codes, what an error says, pipes; and `firstclick bound`."""

import json
import os
import re
import subprocess
import sys
from typing import Annotated

import pytest
import typer

from firstclick import __version__, confidence_width, regret_bound
from firstclick.cli import CommandLine, app, run_command_line
from firstclick.errors import InvalidInput, UnknownName, WorkFailed

WORLD = ("simulate", "--world", "blb", "--steps", 10, "--runs", 1, "--jobs", 1, "--k", 2, "--out", "new")
WITH_EXAMPLES = {("features",), ("data", "download"), ("data", "describe"), ("data", "sources")}
linux = pytest.mark.skipif(sys.platform != "linux", reason="/dev/full, /proc")


def every_command(group=None, before=()):
    """`("data", "describe")` and the like, of the whole program."""
    for name, command in (group or typer.main.get_command(app)).commands.items():
        yield (*before, name)
        if hasattr(command, "commands"):
            yield from every_command(command, (*before, name))


@pytest.mark.parametrize("words", [[], ["--help"], ["-h"]])
def test_help_lists_commands_with_a_sentence_each(run, words):
    seen = run(*words)
    assert (seen.code, seen.err) == (0, "")
    for command in ("demo", "simulate", "policies", "bound"):
        assert re.search(rf"^  {command} +\w.*[^.]\.$", seen.out, re.M), command


def test_help_explains_each_option_in_80_columns(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    for command in every_command():
        seen = run(*command, "--help")
        assert seen.code == 0
        assert max(map(len, seen.out.splitlines())) <= 80
        for option in re.findall(r"^  (--[a-z-]+)", seen.out, re.M):
            assert re.search(rf"^  {option}( [A-Z]+| <.*>)?\s+\w+", seen.out, re.M), f"{command} {option}"
        assert "<list" not in seen.out
        assert command not in WITH_EXAMPLES or f"  firstclick {' '.join(command)} " in seen.out.replace(
            "\n", " \n"
        )


def test_group_without_a_command_and_version_are_printed(run):
    seen = run("data")
    assert (seen.code, seen.err) == (0, "")
    assert {"sources", "download", "describe"} <= set(seen.out.split())
    assert run("--version").out == f"firstclick {__version__}\n"


BOUND = ("--features", 2, "--k", 1, "--steps", 1_000_000, "--sigma", 0.5, "--theta-norm", 3)


def test_bound_prints_the_width_and_the_bound_of_the_theorem(run):
    seen = run("bound", *BOUND, "--json")
    given = {"n_features": 2, "k": 1, "steps": 1_000_000, "sigma": 0.5, "theta_norm": 3.0}
    printed = json.loads(seen.out)
    bound = {"c": confidence_width(**given), "regret_bound": regret_bound(**given), "says_something": True}
    assert (seen.code, seen.err, printed) == (0, "", given | bound)
    table = run("bound", *BOUND).out
    assert float(re.search(r"^c +(\S+)$", table, re.M)[1]) == pytest.approx(printed["c"], rel=1e-5)
    assert "says nothing" not in table
    assert "says nothing" in run("bound", "--steps", 100_000).out
    assert len({run("bound", "--steps", steps).out for steps in ("1e6", "1_000_000", 1_000_000)}) == 1


def test_long_number_is_cut_in_the_message(run):
    assert run(*WORLD, "--steps", 5000 * "9").err.endswith(f"got '{79 * '9'}...\n")


@linux
def test_folder_that_cannot_be_written_is_refused_before_the_work(run):
    for folder, reason in (("/proc/here/no", ""), (300 * "x", "File name too long")):
        seen = run(*WORLD, "--steps", 10**12, "--out", folder)
        assert (seen.code, seen.out) == (2, "")
        assert re.fullmatch(rf"error: .* cannot be written: .*{reason}\n", seen.err)


def test_wrong_number_is_refused_before_a_large_file_is_read(run, ratings, monkeypatch):
    def read(*_, **__):
        pytest.fail("the file is read")

    monkeypatch.setattr(sys.modules["firstclick.cli.interaction_file"], "read_interactions", read)
    for option in ("--k", "--steps", "--runs", "--rank", "--items"):
        seen = run("simulate", "--interactions", "ratings.csv", "--header", option, 0)
        assert (seen.code, seen.err) == (2, f"error: {option} must be at least 1, got 0\n")


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (WorkFailed("a worker process died"), "a worker process died"),
        (OSError(13, "Permission denied", "/srv/cache"), "/srv/cache: Permission denied"),
        (MemoryError("Unable to allocate 7.28 TiB"), "out of memory: Unable to allocate 7.28 TiB"),
    ],
)
def test_failed_work_is_one_sentence_with_exit_code_1(run, monkeypatch, error, sentence):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr(sys.modules["firstclick.cli.simulate"], "play", fail)
    seen = run(*WORLD)
    assert (seen.code, seen.out, seen.err.splitlines()[-1]) == (1, "", f"error: {sentence}")


K = InvalidInput("must be at least 1, got 0", "k")


@pytest.mark.parametrize(
    ("error", "sentence"),
    [
        (K, "--k must be at least 1, got 0"),
        (InvalidInput("must be at least 1, got 0", "n_items"), "--items must be at least 1, got 0"),
        (InvalidInput("must be a file", "file"), "file must be a file"),
        (InvalidInput("k must be at least 1, got 0"), "k must be at least 1, got 0"),
        (InvalidInput("must be at least 1", "k").within("films.toml"), "films.toml: k must be at least 1"),
        (InvalidInput("is there; pass `overwrite=True`", owner="x"), "x: is there; pass --overwrite"),
        (WorkFailed("try a lower `k`"), "try a lower --k"),
        (UnknownName("try `encoding='iso-8859-1'`"), "try --encoding iso-8859-1"),
        (InvalidInput("pass `separator`; `file`, `k k`"), "pass `separator`; `file`, `k k`"),
        (InvalidInput("two\n  lines"), "two lines"),
    ],
)
def test_error_names_the_options_of_its_command(monkeypatch, capsys, error, sentence):
    command_line = CommandLine()

    @command_line.command()
    def work(
        file: Annotated[str, typer.Argument()] = "",
        k: int = 4,
        n_items: Annotated[int, typer.Option("--items")] = 4,
        encoding: str = "",
        overwrite: Annotated[bool, typer.Option("--overwrite")] = False,
    ) -> None:
        raise error

    monkeypatch.setattr(sys, "argv", ["work"])
    with pytest.raises(SystemExit) as end:
        run_command_line(command_line)
    assert capsys.readouterr().err == f"error: {sentence}\n"
    assert end.value.code == (1 if isinstance(error, WorkFailed) else 2)


def program(*words, buffered, **options):
    environment = os.environ | {"PYTHONUNBUFFERED": "" if buffered else "1"}
    command = [sys.executable, "-m", "firstclick", *words]
    return subprocess.Popen(command, stderr=subprocess.PIPE, env=environment, **options)


@pytest.mark.parametrize("buffered", [pytest.param(True, marks=pytest.mark.long), False])
def test_reader_that_leaves_early_gets_no_complaint(buffered):
    process = program("policies", stdout=subprocess.PIPE, buffered=buffered)
    process.stdout.close()
    assert process.communicate()[1] == b""
    assert process.returncode == 1


@linux
def test_full_disk_under_stdout_is_one_sentence():
    with open("/dev/full", "wb") as full:
        process = program("bound", stdout=full, buffered=True)
        assert process.communicate()[1] == b"error: No space left on device\n"
    assert process.returncode == 1


@pytest.mark.skipif(sys.platform == "win32", reason="a POSIX shell")
def test_closed_stdout_is_not_a_failure():
    command = ["sh", "-c", '"$0" -m firstclick bound >&-', sys.executable]
    seen = subprocess.run(command, stderr=subprocess.PIPE, text=True)
    assert (seen.returncode, seen.stderr) == (0, "")
