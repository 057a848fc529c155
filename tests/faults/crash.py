"""Servers that are killed at named steps, one after another, on one store."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter

import pytest

from firstclick.serve.store import open_store
from tests.faults.clients import MODELS, Caller
from tests.faults.oracle import Served, check


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


class ServerUnderTest:
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

    def start(self, **spec):
        """Start a server with these fields of `zygote.ServerSpec`; return its process id."""
        pid = self._zygote.call("start", {"url": self.url, "port": self.port, "log": str(self.log)} | spec)
        self._pids.add(pid["pid"])
        return pid["pid"]

    def start_ready(self, **spec):
        """Start a server and wait until it is ready."""
        pid = self.start(**spec)
        self.wait_until(200)
        return pid

    def wait(self, pid, seconds=30.0):
        """Return its exit code, -9 after SIGKILL; None if it lives on."""
        code = self._zygote.call("wait", pid, seconds)["code"]
        if code is not None:
            self._pids.discard(pid)
        return code

    def kill_at(self, step, times, **spec):
        """Start a server that is killed at this step."""
        code = self.wait(self.start(step=step, times=times, **spec))
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

    def audit(self, history):
        """Let the server that lives now report what it serves."""
        for model in MODELS:
            code, body, _ = self.ask("GET", f"/v1/models/{model}/audit")
            if code != 200:
                body = {"seq": 0, "digest": str(body), "equal": False}
            history.served.append(Served(model, body["seq"], body["digest"], body["equal"]))

    def check(self, history):
        """Return the result of the oracle, when no process uses the store any more."""
        with open_store(self.url) as store:
            return check(store, history)

    def finish(self, pid, history):
        """Stop a server that is ready; the oracle must find nothing wrong."""
        self.wait_until(200, seconds=30)
        self.audit(history)
        assert self.stop(pid) == 0, self.said()
        result = self.check(history)
        assert not result.complaints, str(result)
        return result


def finish_all(servers, pids, history):
    """Stop all; what each served is what the others served, and the oracle finds nothing."""
    for server in servers:
        server.wait_until(200, seconds=30)
    # All have learned what any has acknowledged, without being asked.
    time.sleep(1.0)
    for server in servers:
        server.audit(history)
    last = history.served[-len(servers) * len(MODELS) :]
    assert len({(served.model, served.seq, served.digest) for served in last}) == len(MODELS), last
    by_seq = Counter((served.model, served.seq) for served in set(history.served))
    assert max(by_seq.values()) == 1, "two servers had different models after the same event"
    for server, pid in zip(servers, pids, strict=True):
        assert server.stop(pid) == 0, server.said()
    result = servers[0].check(history)
    assert not result.complaints, str(result)
    return result


@pytest.fixture
def server(zygote, tmp_path):
    """Servers on a SQLite file."""
    with ServerUnderTest(zygote, str(tmp_path / "shop.db"), tmp_path) as made:
        yield made
