"""The progress bar, and Ctrl-C: one line, exit code 130, nobody left behind, nothing written."""

import os
import re
import signal
import sys
import time
from contextlib import suppress

import pytest

import firstclick.report
from firstclick.cli.progress_bar import CALLS_BACK
from firstclick.experiments.engines import play_in_processes

posix = pytest.mark.skipif(sys.platform == "win32", reason="terminals of POSIX")

ENDLESS = (
    "simulate",
    "--world",
    "blb",
    "--k",
    2,
    "--steps",
    10**9,
    "--runs",
    4,
    "--policy",
    "random",
    "--out",
    "new",
)
INTERRUPTED = "error: interrupted; nothing was written"


def interrupt(program):
    """Ctrl-C, as a terminal sends it to everybody in the foreground."""
    os.killpg(program.process.pid, signal.SIGINT)
    # The terminal has no reader's end as long as any process of the program is left.
    program.read_to_the_end(20)
    assert program.process.returncode == 130
    assert "Traceback" not in program.text
    assert program.screen()[-1] == INTERRUPTED
    assert all(line == INTERRUPTED or line.startswith("seed ") for line in program.screen())
    assert program.process.stdout.read() == b""


@pytest.mark.long
@posix
def test_the_bar_shows_the_time_left_and_leaves_no_trace(terminal, folder):
    program = terminal(
        "simulate", "--world", "blb", "--k", 2, "--steps", 400_000, "--runs", 2, "--policy", "random",
        "--seed", 3, "--jobs", 1, "--out", "new",
    )  # fmt: skip
    program.read_to_the_end()
    assert program.process.returncode == 0
    assert "preparing" in program.text
    assert "loading kernels" in program.text
    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", program.text)
    assert re.search(r"playing [━╸╺]+ +\d+% 800,000 steps \d:\d\d:\d\d", plain), plain[-300:]
    assert program.screen() == ["report: new/report.html"]
    header, row = program.process.stdout.read().decode().splitlines()
    assert header.startswith("policy")
    assert row.startswith("random")


@posix
def test_there_is_no_bar_where_nobody_watches(run, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    seen = run(
        "simulate",
        "--world",
        "blb",
        "--k",
        2,
        "--steps",
        50,
        "--runs",
        2,
        "--jobs",
        1,
        "--policy",
        "random",
        "--seed",
        3,
    )
    assert seen.err == ""


@posix
def test_ctrl_c_while_a_file_is_read(terminal, folder):
    os.mkfifo(folder / "pipe.csv")
    program = terminal("simulate", "--interactions", "pipe.csv", "--out", "new")
    program.read_until(lambda text: "preparing" in text)
    time.sleep(0.3)
    interrupt(program)
    assert [path.name for path in folder.iterdir()] == ["pipe.csv"]


@posix
@pytest.mark.parametrize("jobs", [pytest.param(1, marks=pytest.mark.long), 2])
def test_ctrl_c_while_kernels_compile(terminal, folder, tmp_path_factory, jobs):
    empty = str(tmp_path_factory.mktemp("cache"))
    program = terminal(*ENDLESS, "--jobs", jobs, "--policy", "cascade-kl-ucb", FIRSTCLICK_CACHE_DIR=empty)
    program.read_until(lambda text: "loading kernels" in text)
    time.sleep(1.5)
    started = time.monotonic()
    interrupt(program)
    assert time.monotonic() - started < 15, "a worker is not asked to finish its compilation"
    assert list(folder.iterdir()) == []


@posix
@pytest.mark.parametrize("seconds", [pytest.param(0.0, marks=pytest.mark.long), 0.3])
def test_ctrl_c_while_workers_start(terminal, folder, seconds):
    program = terminal(*ENDLESS, "--jobs", 2, "--policy", "cascade-ts")
    program.read_until(lambda text: "loading kernels" in text)
    time.sleep(seconds)
    interrupt(program)
    assert list(folder.iterdir()) == []


@posix
@pytest.mark.parametrize("jobs", [pytest.param(1, marks=pytest.mark.long), 2])
def test_ctrl_c_while_playing(terminal, folder, jobs):
    program = terminal(*ENDLESS, "--jobs", jobs)
    program.read_until(lambda text: "playing" in text)
    interrupt(program)
    assert list(folder.iterdir()) == []


def killed(program):
    """kill -9, which nobody can answer; and then nobody is left within seconds."""
    program.process.kill()
    try:
        # The terminal has no reader's end as long as any process of the program is left.
        program.read_to_the_end(20)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(program.process.pid, signal.SIGKILL)


@posix
@pytest.mark.parametrize("moment", [pytest.param("loading kernels", marks=pytest.mark.long), "playing"])
def test_kill_9_leaves_no_worker_behind(terminal, folder, moment):
    program = terminal(*ENDLESS, "--jobs", 2)
    program.read_until(lambda text: moment in text)
    time.sleep(0.3)
    killed(program)


EXPERIMENT = """
data = "synthetic-movielens:n_users=60,n_items=30"
policies = ["random", "cascade-ts"]
k = 2
steps = 1_000_000_000
runs = 2
"""


@pytest.mark.long
@posix
def test_kill_9_of_an_experiment_leaves_no_worker_behind(terminal, folder):
    (folder / "mine.toml").write_text(EXPERIMENT)
    program = terminal("run", "mine.toml", "--out", "new", "--jobs", 2)
    program.read_until(lambda text: "playing" in text)
    time.sleep(0.3)
    killed(program)


class Deaf:
    """A task that tells whether its process was born with Ctrl-C blocked."""

    def play(self, report):
        return signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, [])


@posix
def test_a_worker_is_deaf_to_ctrl_c_from_its_first_import_on():
    assert list(play_in_processes(iter([Deaf()]), lambda steps: None, 1)) == [True]
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


def test_ctrl_c_that_a_compiler_swallows_is_heard_all_the_same(run, monkeypatch):
    def play(*_, progress, **__):
        progress(0, 10)
        with suppress(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
        progress(5, 10)
        pytest.fail("the interrupt was lost")

    monkeypatch.setattr(sys.modules["firstclick.cli.simulate"], "play", play)
    before = signal.getsignal(signal.SIGINT)
    seen = run(*ENDLESS, "--seed", 1)
    assert (seen.code, seen.out, seen.err) == (130, "", INTERRUPTED + "\n")
    assert signal.getsignal(signal.SIGINT) is before


@pytest.mark.parametrize("module", CALLS_BACK)
def test_ctrl_c_in_what_a_compiler_calls_back_is_answered_a_moment_later(run, monkeypatch, module):
    def play(*_, progress, **__):
        progress(0, 10)
        called_back = {"__name__": module, "signal": signal}
        exec("signal.raise_signal(signal.SIGINT)", called_back)
        for _ in range(1000):
            time.sleep(0.01)
        pytest.fail("the interrupt was lost")

    monkeypatch.setattr(sys.modules["firstclick.cli.simulate"], "play", play)
    seen = run(*ENDLESS, "--seed", 1)
    assert (seen.code, seen.out, seen.err) == (130, "", INTERRUPTED + "\n")


def test_ctrl_c_while_the_report_is_written_leaves_nothing(run, folder, monkeypatch):
    def pressed(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(firstclick.report, "save_figure", pressed)
    seen = run(*ENDLESS, "--steps", 20, "--jobs", 1, "--seed", 1)
    assert (seen.code, seen.out, seen.err) == (130, "", INTERRUPTED + "\n")
    assert list(folder.iterdir()) == []
