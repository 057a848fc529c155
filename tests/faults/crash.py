"""Servers that are killed at named steps, one after another, on one store."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from firstclick.serve.store import open_store
from tests.faults.clients import MODELS, Caller
from tests.faults.oracle import Served, judge


class Zygote:
    """The process that forks servers (zygote.py)."""

    def __init__(self):
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.zygote"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path), "OPENBLAS_NUM_THREADS": "1"},
        )
        self._read()

    def _read(self):
        line = self._process.stdout.readline()
        assert line, "the zygote died; its error stands above"
        return json.loads(line)

    def call(self, name, *arguments):
        self._process.stdin.write(json.dumps([name, arguments]) + "\n")
        self._process.stdin.flush()
        return self._read()

    def close(self):
        self._process.communicate(timeout=60)


@pytest.fixture(scope="session")
def zygote():
    """One for all tests."""
    if not hasattr(os, "fork"):
        pytest.skip("processes cannot be forked here")
    made = Zygote()
    yield made
    made.close()


class Stage:
    """A store and a port on which one server after another lives and dies."""

    def __init__(self, zygote, url, folder):
        self._zygote = zygote
        self.url = url
        self.port = zygote.call("listen")["port"]
        self.log = folder / f"server-{self.port}.log"
        self._pids = set()

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        for pid in list(self._pids):
            os.kill(pid, signal.SIGKILL)
            self.wait(pid)
        self._zygote.call("hang_up", self.port)

    def start(self, **life):
        """Start a server with these fields of `zygote.Life`; return its process id."""
        pid = self._zygote.call("start", {"url": self.url, "port": self.port, "log": str(self.log)} | life)
        self._pids.add(pid["pid"])
        return pid["pid"]

    def start_ready(self, **life):
        """Start a server and wait until it is ready."""
        pid = self.start(**life)
        self.wait_until(200)
        return pid

    def wait(self, pid, seconds=30.0):
        """Return its exit code, -9 after SIGKILL; None if it lives on."""
        code = self._zygote.call("wait", pid, seconds)["code"]
        if code is not None:
            self._pids.discard(pid)
        return code

    def die(self, step, times, **life):
        """Start a server that is killed at this step."""
        code = self.wait(self.start(step=step, times=times, **life))
        assert code == -signal.SIGKILL, f"not killed at {step!r}, time {times}: code {code}: {self.said()}"

    def kill(self, pid):
        os.kill(pid, signal.SIGKILL)
        assert self.wait(pid) == -signal.SIGKILL

    def stop(self, pid):
        """End a server as a service manager would."""
        os.kill(pid, signal.SIGTERM)
        return self.wait(pid)

    def said(self):
        """Return the end of what the servers wrote."""
        return self.log.read_text()[-3000:] if self.log.exists() else ""

    def ask(self, method, path, body=None):
        """Send one request to the server that lives now; it must answer."""
        caller = Caller(self.port)
        try:
            reply = caller.ask(method, path, body)
        finally:
            caller.close()
        assert reply is not None, self.said()
        return reply

    def wait_until(self, code, path="/health/ready", *, seconds=20.0):
        """Return the answer, once it has this code."""
        until = time.monotonic() + seconds
        while (reply := self.ask("GET", path)).code != code:
            assert time.monotonic() < until, (path, reply)
            time.sleep(0.02)
        return reply

    def audit(self, ledger):
        """Let the server that lives now report what it serves."""
        for model in MODELS:
            code, body, _ = self.ask("GET", f"/v1/models/{model}/audit")
            if code != 200:
                body = {"seq": 0, "digest": str(body), "equal": False}
            ledger.served.append(Served(model, body["seq"], body["digest"], body["equal"]))

    def judge(self, ledger):
        """Return the verdict of the oracle, when no process uses the store any more."""
        with open_store(self.url) as store:
            return judge(store, ledger)

    def finish(self, pid, ledger):
        """Stop a server that is ready; the oracle must find nothing wrong."""
        self.wait_until(200, seconds=30)
        self.audit(ledger)
        assert self.stop(pid) == 0, self.said()
        verdict = self.judge(ledger)
        assert not verdict.complaints, str(verdict)
        return verdict


@pytest.fixture
def stage(zygote, tmp_path):
    """Servers on a SQLite file."""
    with Stage(zygote, str(tmp_path / "shop.db"), tmp_path) as made:
        yield made
