"""The commands of benchmarks/ in this process, where kernels compile once."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from benchmarks.bench.__main__ import app as bench
from benchmarks.loadtest.__main__ import app as loadtest
from firstclick.cli.main import run_command_line

COMMANDS = {"bench": bench, "loadtest": loadtest}


class Outcome(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    """An empty folder to be in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(folder, monkeypatch, capsys) -> Callable[..., Outcome]:
    """`run("bench", "--k", 4)`: what `python -m benchmarks.bench --k 4` prints, and how it ends."""

    def run(command: str, *arguments: object) -> Outcome:
        monkeypatch.setattr(sys, "argv", [f"benchmarks.{command}", *map(str, arguments)])
        with pytest.raises(SystemExit) as end:
            run_command_line(COMMANDS[command])
        printed = capsys.readouterr()
        return Outcome(int(end.value.code or 0), printed.out, printed.err)

    return run
