"""`firstclick bound` and the program as a whole."""

import json
import math
import os
import re
import subprocess
import sys

import pytest
import typer

from firstclick import __version__, confidence_width, regret_bound
from firstclick.cli import app

GIVEN = ("--features", 2, "--k", 1, "--steps", 1_000_000, "--sigma", 0.5, "--theta-norm", 3)


def test_it_prints_the_c_and_the_bound_of_the_theorem(run):
    seen = run("bound", *GIVEN, "--json")
    given = {"n_features": 2, "k": 1, "steps": 1_000_000, "sigma": 0.5, "theta_norm": 3.0}
    assert seen.code == 0
    assert seen.err == ""
    printed = json.loads(seen.out)
    assert printed == given | {
        "c": confidence_width(**given),
        "regret_bound": regret_bound(**given),
        "says_something": True,
    }
    assert math.isclose(
        float(re.search(r"^c +(\S+)$", run("bound", *GIVEN).out, re.M)[1]), printed["c"], rel_tol=1e-5
    )


def test_it_says_when_the_bound_says_nothing(run):
    idle = run("bound", "--features", 20, "--k", 4, "--steps", 100_000, "--sigma", 1, "--theta-norm", 1)
    assert "The bound exceeds n = 100,000" in idle.out
    assert "says nothing" in idle.out
    assert "says nothing" not in run("bound", *GIVEN).out


def test_steps_may_be_written_as_people_write_them(run):
    assert run("bound", "--steps", "1e6").out == run("bound", "--steps", "1_000_000").out
    assert run("bound", "--steps", "1e6").out == run("bound", "--steps", 1_000_000).out


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        (["--theta-norm", "1e308"], "--theta-norm must be at most 1e+300, got 1e+308"),
        (["--sigma", "1e300"], "--sigma must be between 1e-100 and 1e+100, got 1e+300"),
        (["--sigma", "1e-300"], "--sigma must be between 1e-100 and 1e+100, got 1e-300"),
        (
            ["--steps", "1" + 400 * "0"],
            "--steps must be at most 1e+300, got a whole number of about 401 digits",
        ),
        (
            ["--steps", "1e300", "--k", "1e300"],
            "the bound exceeds every number a computer knows; take numbers nearer to 1",
        ),
    ],
)
@pytest.mark.parametrize("how", [[], ["--json"]])
def test_numbers_beyond_every_number_are_refused(run, given, sentence, how):
    seen = run("bound", *given, *how)
    assert (seen.code, seen.out, seen.err) == (2, "", f"error: {sentence}\n")


@pytest.mark.parametrize("wanted", [[], ["--help"], ["-h"]])
def test_help_tells_every_command(run, wanted):
    seen = run(*wanted)
    assert seen.code == 0
    assert seen.err == ""
    for command in ("demo", "simulate", "policies", "bound"):
        assert re.search(rf"^  {command} +\w.*[^.]\.$", seen.out, re.M), f"{command}: a whole sentence"


def every_command(group=None, before=()):
    """`("data", "describe")` and the like, of the whole program."""
    for name, command in (group or typer.main.get_command(app)).commands.items():
        yield (*before, name)
        if hasattr(command, "commands"):
            yield from every_command(command, (*before, name))


@pytest.mark.parametrize("command", list(every_command()), ids=" ".join)
def test_help_explains_every_option_and_fits_80_columns(run, command, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    seen = run(*command, "--help")
    assert seen.code == 0
    assert max(map(len, seen.out.splitlines())) <= 80
    for option in re.findall(r"^  (--[a-z-]+)", seen.out, re.M):
        assert re.search(rf"^  {option}( [A-Z]+| <.*>)?\s+\w+", seen.out, re.M), f"{option} has no help"
    assert "<list" not in seen.out


def test_the_version_is_told(run):
    assert run("--version").out == f"firstclick {__version__}\n"


@pytest.mark.parametrize("buffered", [True, False])
def test_a_reader_that_leaves_early_gets_no_complaint(buffered):
    program = subprocess.Popen(
        [sys.executable, "-m", "firstclick", "policies"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env=os.environ | {"PYTHONUNBUFFERED": "" if buffered else "1"},
    )  # fmt: skip
    program.stdout.close()
    assert program.stderr.read() == b""
    program.stderr.close()
    assert program.wait() == 1


@pytest.mark.skipif(sys.platform != "linux", reason="/dev/full")
def test_a_full_disk_under_stdout_is_one_line():
    with open("/dev/full", "wb") as full:
        seen = subprocess.run(
            [sys.executable, "-m", "firstclick", "bound"], stdout=full, stderr=subprocess.PIPE, text=True,
            env=os.environ | {"PYTHONUNBUFFERED": ""},
        )  # fmt: skip
    assert (seen.returncode, seen.stderr) == (1, "error: No space left on device\n")


@pytest.mark.skipif(sys.platform == "win32", reason="a POSIX shell")
def test_a_closed_stdout_is_no_reason_to_fail():
    seen = subprocess.run(
        ["sh", "-c", '"$0" -m firstclick bound >&-', sys.executable], stderr=subprocess.PIPE, text=True
    )
    assert (seen.returncode, seen.stderr) == (0, "")
