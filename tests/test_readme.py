"""The README is a promise: its commands run, in order, and answer as it says; and it stays short."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
SERVER_SECONDS = 90


class Command(NamedTuple):
    """A command, or a script in Python, and what the README says that it prints."""

    text: str
    answer: str
    is_python: bool = False


def commands() -> list[Command]:
    found = []
    for language, block in re.findall(r"```(console|python)\n(.*?)```", README, re.DOTALL):
        if language == "python":
            found.append(Command(block, "", is_python=True))
            continue
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            lines = part.splitlines()
            size = 1 + next(place for place, line in enumerate(lines) if not line.endswith("\\"))
            found.append(Command("\n".join(lines[:size]), "\n".join(lines[size:]).strip()))
    return found


@pytest.fixture
def shell(tmp_path: Path) -> Iterator["Shell"]:
    shell = Shell(tmp_path)
    yield shell
    shell.close()


class Shell:
    """A folder to be in, and a free port instead of 8000."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        with socket.create_server(("127.0.0.1", 0)) as server:
            self.port = server.getsockname()[1]
        sources = [str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
        self.environment = os.environ | {
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]]),
            "PYTHONPATH": os.pathsep.join(filter(None, sources)),
            "FIRSTCLICK_PORT": str(self.port),
            "COLUMNS": "100",
        }
        self.running: list[subprocess.Popen[bytes]] = []

    def run(self, command: str) -> str:
        done = subprocess.run(
            ["bash", "-c", command], cwd=self.folder, env=self.environment, capture_output=True, text=True
        )
        assert done.returncode == 0, f"{command}\n{done.stderr}"
        return done.stdout.strip()

    def start(self, command: str) -> None:
        self.running.append(
            subprocess.Popen(
                ["bash", "-c", f"exec {command}"], cwd=self.folder, env=self.environment,
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            )
        )  # fmt: skip
        end = time.monotonic() + SERVER_SECONDS
        while True:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health/ready").close()
                return
            except OSError:
                assert time.monotonic() < end, f"{command} is not ready after {SERVER_SECONDS} s"
                time.sleep(0.2)

    def close(self) -> None:
        for process in self.running:
            process.send_signal(signal.SIGTERM)
            process.wait(30)


def test_the_commands_run_in_order_and_answer_as_the_readme_says(shell: Shell) -> None:
    token = ""
    answered = []
    for command in commands():
        text = re.sub(r"127\.0\.0\.1:8000", f"127.0.0.1:{shell.port}", command.text)
        if command.is_python:
            (shell.folder / "readme.py").write_text(text, encoding="utf-8")
            shell.run(f"{sys.executable} readme.py")
        elif text.startswith("make "):
            # They install and test: what they would do is enough here.
            shell.run(f"make -n -C {ROOT} {text.split()[1]}")
        elif text.endswith("&"):
            shell.start(text.removesuffix("&"))
        else:
            printed = shell.run(re.sub(r'"token": "[^"]*"', f'"token": "{token}"', text))
            if command.answer.startswith("{"):
                said, got = json.loads(command.answer), json.loads(printed)
                assert {name: type(value) for name, value in said.items()} == {
                    name: type(value) for name, value in got.items()
                }
                assert said.get("status") == got.get("status")
                token = got.get("token", token)
            else:
                assert without_times(printed) == without_times(command.answer)
        answered.append(text.split()[0])
    assert answered.count("curl") == 2
    assert "make" in answered
    assert answered.count("firstclick") >= 2


def without_times(table: str) -> list[list[str]]:
    """The words of a table's lines without the last one, which is a time."""
    return [line.split()[:-1] for line in table.splitlines()]


def test_it_is_short() -> None:
    prose = re.sub(r"```.*?```", "", README, flags=re.DOTALL)
    assert len(prose.split()) <= 600
    assert len(README.splitlines()) <= 150
