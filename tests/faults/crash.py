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

DIE_WITHIN = 30.0


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
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the zygote died; its error stands above"
        answer = json.loads(line)
        return answer

    def call(self, name, *arguments):
        assert self._process.stdin is not None
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
        """A server; its process."""
        from tests.faults.zygote import Life

        asked = Life(self.url, self.port, str(self.log), **life)
        pid = self._zygote.call("start", [*asked[:-1], dict(asked.settings)])["pid"]
        self._pids.add(pid)
        return pid

    def wait(self, pid, seconds=DIE_WITHIN):
        """Its exit code, -9 after SIGKILL; None if it lives on."""
        code = self._zygote.call("wait", pid, seconds)["code"]
        if code is not None:
            self._pids.discard(pid)
        return code

    def die(self, step, times, **life):
        """A life that ends at this step."""
        code = self.wait(self.start(step=step, times=times, **life))
        assert code == -signal.SIGKILL, (
            f"the server should have been killed at {step!r}, time {times}, and ended with {code}: "
            f"{self.said()}"
        )

    def die_some_time(self, seconds, **life):
        """A life that ends wherever it is by then."""
        pid = self.start(**life)
        time.sleep(seconds)
        os.kill(pid, signal.SIGKILL)
        assert self.wait(pid) == -signal.SIGKILL

    def stop(self, pid):
        """End a life as a service manager would."""
        os.kill(pid, signal.SIGTERM)
        return self.wait(pid)

    def said(self):
        """The end of what the servers said."""
        return self.log.read_text()[-3000:] if self.log.exists() else ""

    def ask(self, method, path, body=None):
        """One question to the server that lives now, answered."""
        caller = Caller(self.port)
        try:
            reply = caller.ask(method, path, body)
        finally:
            caller.close()
        assert reply is not None, self.said()
        return reply

    def wait_until(self, code, path="/health/ready", *, seconds=20.0):
        """The answer, once it has this code."""
        until = time.monotonic() + seconds
        while (reply := self.ask("GET", path)).code != code:
            assert time.monotonic() < until, (path, reply)
            time.sleep(0.02)
        return reply

    def audit(self, ledger):
        """Have the server that lives now say what it serves."""
        for model in MODELS:
            code, body, _ = self.ask("GET", f"/v1/models/{model}/audit")
            if code != 200:
                body = {"seq": 0, "digest": str(body), "equal": False}  # Not even that it could say.
            ledger.served.append(Served(model, body["seq"], body["digest"], body["equal"]))

    def judge(self, ledger):
        """The oracle, when nobody uses the store any more."""
        with open_store(self.url) as store:
            return judge(store, ledger)
