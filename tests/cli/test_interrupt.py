"""The progress bar, and Ctrl-C: one line, exit code 130, no process left, nothing written."""

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
long = pytest.mark.long

PLAY = ("simulate", "--world", "blb", "--k", 2, "--policy", "random", "--seed", 3)
ENDLESS = (*PLAY, "--steps", 10**9, "--runs", 4, "--out", "new")
INTERRUPTED = "error: interrupted; nothing was written"


@long
@posix
def test_bar_shows_the_time_left_and_leaves_no_trace(terminal, folder):
    program = terminal(*PLAY, "--steps", 400_000, "--runs", 2, "--jobs", 1, "--out", "new")
    program.read_to_the_end()
    assert program.process.returncode == 0
    assert "preparing" in program.text
    assert "loading kernels" in program.text
    plain = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", program.text)
    assert re.search(r"playing [━╸╺]+ +\d+% 800,000 steps \d:\d\d:\d\d", plain), plain[-300:]
    assert program.screen() == ["report: new/report.html"]


def test_without_a_terminal_there_is_no_bar(run, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert run(*PLAY, "--steps", 50, "--runs", 2, "--jobs", 1).err == ""


@pytest.fixture
def interrupt(folder):
    """`interrupt(program)`: Ctrl-C, as a terminal sends it to all of the foreground."""

    def interrupt(program, seconds=20):
        before = sorted(folder.iterdir())
        os.killpg(program.process.pid, signal.SIGINT)
        # The terminal has no reader's end as long as any process of the program is left.
        program.read_to_the_end(seconds)
        assert program.process.returncode == 130
        assert "Traceback" not in program.text
        assert program.screen() == [INTERRUPTED]
        assert program.process.stdout.read() == b""
        assert sorted(folder.iterdir()) == before

    return interrupt


@posix
def test_ctrl_c_while_a_file_is_read(terminal, folder, interrupt):
    os.mkfifo(folder / "pipe.csv")
    program = terminal("simulate", "--interactions", "pipe.csv", "--seed", 3, "--out", "new")
    program.read_until(lambda text: "preparing" in text)
    time.sleep(0.3)
    interrupt(program)


@posix
@pytest.mark.parametrize("jobs", [pytest.param(1, marks=long), 2])
def test_ctrl_c_while_kernels_compile(terminal, tmp_path_factory, interrupt, jobs):
    empty = str(tmp_path_factory.mktemp("cache"))
    program = terminal(*ENDLESS, "--jobs", jobs, "--policy", "cascade-kl-ucb", FIRSTCLICK_CACHE_DIR=empty)
    program.read_until(lambda text: "loading kernels" in text)
    time.sleep(1.5)
    # A worker does not finish its compilation.
    interrupt(program, seconds=15)


@posix
@pytest.mark.parametrize(
    ("moment", "seconds", "jobs"),
    [
        pytest.param("loading kernels", 0.3, 2, marks=long),
        pytest.param("playing", 0.0, 1, marks=long),
        ("playing", 0.0, 2),
    ],
)
def test_ctrl_c_while_workers_start_and_play(terminal, interrupt, moment, seconds, jobs):
    program = terminal(*ENDLESS, "--jobs", jobs, "--policy", "cascade-ts")
    program.read_until(lambda text: moment in text)
    time.sleep(seconds)
    interrupt(program)


EXPERIMENT = """
data = "synthetic-movielens:n_users=60,n_items=30"
policies = ["random", "cascade-ts"]
k = 2
steps = 1_000_000_000
runs = 2
"""
RUN = ("run", "mine.toml", "--out", "new")


@posix
@pytest.mark.parametrize(
    ("command", "moment"),
    [
        pytest.param(ENDLESS, "loading kernels", marks=long),
        (ENDLESS, "playing"),
        pytest.param(RUN, "playing", marks=long),
    ],
)
def test_kill_9_leaves_no_worker_behind(terminal, folder, command, moment):
    (folder / "mine.toml").write_text(EXPERIMENT)
    program = terminal(*command, "--jobs", 2)
    program.read_until(lambda text: moment in text)
    time.sleep(0.3)
    program.process.kill()
    try:
        # The terminal has no reader's end as long as any process of the program is left.
        program.read_to_the_end(20)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(program.process.pid, signal.SIGKILL)


class Deaf:
    """A task that returns whether its process began with Ctrl-C blocked."""

    def play(self, report):
        return signal.SIGINT in signal.pthread_sigmask(signal.SIG_BLOCK, [])


@posix
def test_worker_blocks_ctrl_c_from_its_first_import_on():
    assert list(play_in_processes(iter([Deaf()]), lambda steps: None, 1)) == [True]
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, [])


def swallow(progress):
    """Ctrl-C in code that swallows the exception."""
    with suppress(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)
    progress(5, 10)


def call_back(module):
    """Ctrl-C in what a compiler calls back, where no exception may be raised."""

    def press(progress):
        exec("signal.raise_signal(signal.SIGINT)", {"__name__": module, "signal": signal})
        for _ in range(1000):
            time.sleep(0.01)

    return press


@pytest.mark.parametrize("press", [swallow, *map(call_back, CALLS_BACK)])
def test_ctrl_c_is_never_lost(run, monkeypatch, press):
    def play(*_, progress, **__):
        progress(0, 10)
        press(progress)
        pytest.fail("the interrupt was lost")

    monkeypatch.setattr(sys.modules["firstclick.cli.simulate"], "play", play)
    before = signal.getsignal(signal.SIGINT)
    assert run(*ENDLESS) == (130, "", INTERRUPTED + "\n")
    assert signal.getsignal(signal.SIGINT) is before


def test_ctrl_c_while_the_report_is_written_leaves_nothing(run, folder, monkeypatch):
    def pressed(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(firstclick.report, "save_figure", pressed)
    assert run(*ENDLESS, "--steps", 20, "--jobs", 1) == (130, "", INTERRUPTED + "\n")
    assert list(folder.iterdir()) == []
