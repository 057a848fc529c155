"""Commands of a page of the docs, and a shell to run them in."""

import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
SERVER_SECONDS = 90


class Command(NamedTuple):
    """A command, or a script in Python, and what the page says that it prints."""

    text: str
    answer: str
    is_python: bool = False


def commands(page):
    """The commands of a page: those after `$ ` in blocks of the language console, and blocks in Python."""
    found = []
    for language, block in re.findall(r"```(console|python)\n(.*?)```", page, re.DOTALL):
        if language == "python":
            found.append(Command(block, "", is_python=True))
            continue
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            lines = part.splitlines()
            size = 1 + next(place for place, line in enumerate(lines) if not line.endswith("\\"))
            found.append(Command("\n".join(lines[:size]), "\n".join(lines[size:]).strip()))
    return found


class Shell:
    """A folder to be in, and a free port instead of 8000."""

    def __init__(self, folder):
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
        self.running = []

    def run(self, command, **environment):
        done = subprocess.run(
            ["bash", "-e", "-c", command], cwd=self.folder, env=self.environment | environment,
            capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 0, f"{command}\n{done.stderr}"
        return done.stdout.strip()

    def start(self, command):
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

    def close(self):
        for process in self.running:
            process.send_signal(signal.SIGTERM)
            process.wait(30)
