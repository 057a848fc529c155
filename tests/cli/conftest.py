"""The command line in this process, where kernels compile once, and on a terminal of its own."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from firstclick.cli import main
from firstclick.click_models.click_fit import ClickFit


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder to be in, so that short names can be given as people give them."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(folder, monkeypatch, capsys):
    """`run("bound", "--k", 4)`: what `firstclick bound --k 4` prints, and how it ends."""

    def run(*arguments):
        monkeypatch.setattr(sys, "argv", ["firstclick", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            main()
        printed = capsys.readouterr()
        return Outcome(int(end.value.code or 0), printed.out, printed.err)

    return run


def feedback():
    """Who gave what to which: 14 users and 9 items with gaps in their numbers, values from 1 to 5."""
    draw = np.random.default_rng(5)
    return [
        (7 * user, 10 + 3 * item, int(draw.integers(1, 6)))
        for user in range(14)
        for item in range(9)
        if draw.random() < 0.8 or item == 0
    ]


def write_ratings(folder):
    """Write ratings.csv with a header, ratings.tsv with another, and ratings.dat with '::' and none."""
    rows = feedback()
    for name, separator, header in (
        ("ratings.csv", ",", "user,item,rating\n"),
        ("ratings.tsv", "\t", "who\twhat\tstars\n"),
        ("ratings.dat", "::", ""),
    ):
        lines = "".join(separator.join(map(str, row)) + "\n" for row in rows)
        (folder / name).write_text(header + lines)


@pytest.fixture
def ratings(folder):
    write_ratings(folder)
    return folder


def write_movielens(folder, n_users=120, n_movies=290):
    """Write a folder like ml-1m: ids with gaps, all but 20 movies in Adventure, a long tail."""
    folder.mkdir()
    draw = np.random.default_rng(11)
    attraction = 0.7 * np.arange(1, n_movies + 1) ** -0.5
    ratings = [
        f"{3 * user + 1}::{2 * movie + 5}::{5 if draw.random() < 0.8 else 2}::978300760\n"
        for user in range(n_users)
        for movie in range(n_movies)
        if draw.random() < attraction[movie] or movie == user % n_movies
    ]
    (folder / "ratings.dat").write_text("".join(ratings), encoding="latin-1")
    movies = [
        f"{2 * movie + 5}::Café {movie} (1999)::{'Adventure|Comedy' if movie < n_movies - 20 else 'Drama'}\n"
        for movie in range(n_movies + 3)
    ]
    (folder / "movies.dat").write_text("".join(movies), encoding="latin-1")


def write_fit(folder):
    """Write fit.npz: a page of three positions, no water was shown to users on a desk."""
    fit = ClickFit(
        model="pbm", items=("tea", "cocoa", "milk", "juice", "water"), segments=("desk", "phone, old"),
        shares=np.array([0.75, 0.25]), satisfaction=np.empty((0, 0)), chances=np.array([1.0, 0.5, 0.2]),
        attraction=np.array([[0.1, 0.2, 0.3, 0.4, 0.5], [0.5, 0.4, 0.3, 0.2, 0.1]]),
        looks=np.array([[9.0, 9.0, 9.0, 9.0, 0.0], [9.0, 9.0, 9.0, 9.0, 9.0]]), k=3, slates=100.0,
    )  # fmt: skip
    fit.save(folder / "fit.npz")
    return fit


ENVIRONMENT = {"PYTHONPATH": str(Path(__file__).parents[2] / "src"), "TERM": "xterm", "COLUMNS": "80"}


class Terminal:
    """`firstclick ...` in a process group of its own, with stderr on a terminal."""

    def __init__(self, *arguments, cwd, environment):
        self.master, slave = os.openpty()
        self.text = ""
        self.process = subprocess.Popen(
            [sys.executable, "-m", "firstclick", *map(str, arguments)],
            cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=slave, start_new_session=True,
            env={**os.environ, **ENVIRONMENT, **environment},
        )  # fmt: skip
        os.close(slave)
        os.set_blocking(self.master, False)

    def read_until(self, ready, seconds=60):
        """Read until `ready(text)` or, where that never happens, until nobody holds the terminal open."""
        end = time.monotonic() + seconds
        while not ready(self.text):
            assert time.monotonic() < end, f"still waiting; so far the terminal got {self.text!r}"
            try:
                more = os.read(self.master, 1 << 16)
            except BlockingIOError:
                time.sleep(0.02)
                continue
            except OSError:  # the last process that held the terminal is gone
                break
            if not more:
                break
            self.text += more.decode()

    def read_to_the_end(self, seconds=60):
        self.read_until(lambda text: False, seconds)
        self.process.wait(seconds)

    def screen(self):
        """The lines a person sees in the end."""
        lines, row = [""], 0
        for part in re.findall(r"\x1b\[[0-9;?]*[a-zA-Z]|\r|\n|[^\x1b\r\n]+", self.text):
            if part == "\n":
                row += 1
                lines.extend([""] * (row + 1 - len(lines)))
            elif part == "\x1b[2K":
                lines[row] = ""
            elif part == "\x1b[1A":
                row -= 1
            elif not part.startswith("\x1b") and part != "\r":
                lines[row] += part
        return [line for line in lines if line.strip()]


@pytest.fixture
def terminal(folder):
    """`terminal("demo")` starts it; whatever still runs after the test is ended."""
    started = []

    def start(*arguments, **environment):
        started.append(Terminal(*arguments, cwd=folder, environment=environment))
        return started[-1]

    yield start
    for one in started:
        if one.process.poll() is None:
            os.killpg(one.process.pid, 9)
            one.process.wait()
        one.process.stdout.close()
        os.close(one.master)
