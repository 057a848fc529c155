"""A process with everything imported and compiled that forks a server for each spec it is asked for.

Run as a script by `crash.Zygote`, which talks to it in lines of JSON. It has one thread and no connections,
so a child begins as a fresh process would, but in milliseconds. It holds the listening sockets: whoever
connects between two lives waits for the next one.
"""

import json
import os
import signal
import socket
import sys
import tempfile
import time
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from firstclick.registry import DEFAULT_POLICY
from firstclick.serve import Tuning
from firstclick.serve.config import Settings
from firstclick.serve.http import connection as protocol
from firstclick.serve.http import server
from firstclick.serve.startup import open_for
from firstclick.serve.store import crash_points as steps
from firstclick.validation import duration
from tests.faults import killed, mutants
from tests.support.made_log import K, bare, made_items

MODELS = {"shop": "cascade-lin-ts", "bar": "cascade-ts", "cafe": DEFAULT_POLICY}
RIVAL = {"rival": "cascade-ts"}
LIST = ["i7", "i2", "i9", "i4"]
TRIALS = {
    "bar": {"policy": 0.4, "model:rival": 0.4, "baseline": 0.2},
    "shop": {"policy": 0.8, "baseline": 0.2},
}


class ServerSpec(NamedTuple):
    """A server from its start to its death."""

    url: str
    port: int
    log: str  # file for what it writes to stderr
    step: str = ""  # where it is killed, when it has come there so many times
    times: int = 1
    broken: Sequence[str] = ()  # names in `mutants.ALL`
    file_most: int = 0  # bytes that a file may have; 0 for no limit
    checkpoint_pages: int = 40
    busy_seconds: float = 2.0
    patience: float = 30.0  # seconds for a request to arrive
    probe_seconds: float = 5.0  # without a write, after which one is tried
    wait: float = 0.0  # seconds after which a slate that nobody reported had no click; 0: never
    launched: bool = False  # whether the models have a list that is shown today, and two of them a trial
    settings: Mapping[str, Any] = MappingProxyType({})


def make_models(service, wait=0.0, *, launched=False):
    """Those that are not there yet. Features are learned as they are, so that a log can be read off."""
    for name, policy in (MODELS | RIVAL if launched else MODELS).items():
        if name not in service.names():
            items = bare(made_items()) if name in ("bar", *RIVAL) else made_items()
            more = {"baseline": LIST, "max_loss": 0.4} if launched and name in MODELS else {}
            service.create(
                name, policy=policy, k=K, items=items, seed=5, scale=False, no_click_after=wait, **more
            )
    for name, arms in TRIALS.items():
        if launched and service.model(name).launch.trial is None:
            service.start_trial(name, arms)


def live(spec, listening):
    """Serve until killed, or stopped; the exit code."""
    if spec.file_most:
        import resource

        resource.setrlimit(resource.RLIMIT_FSIZE, (spec.file_most, spec.file_most))
    if spec.wait:
        duration.SHORTEST_WAIT = 0
    # What a server does now and then happens all the time here.
    tuning = Tuning(
        seldom_seconds=0.05, probe_seconds=spec.probe_seconds, checkpoint_pages=spec.checkpoint_pages,
        busy_seconds=spec.busy_seconds, timeout_pause=0.02 if spec.wait else 1.0,
        count_seconds=0.1 if spec.wait else 60.0,
    )  # fmt: skip
    protocol.GuardedConnection.arrive_within = spec.patience
    server._bound = lambda host, port: listening
    for name in spec.broken:
        mutants.ALL[name]()
    steps.kill_at(spec.step, spec.times)
    settings = Settings(
        **{"store": spec.url, "snapshot_events": 40, "poll_seconds": 0.05, "log_level": "warning"}
        | dict(spec.settings)
    )
    service = open_for(settings, tuning=tuning).service
    make_models(service, spec.wait, launched=spec.launched)
    try:
        return server.Server(service, settings).run()
    finally:
        service.close()


def _warm_up():
    """Import and compile what a server will need, on stores of its own."""
    with suppress(ImportError):
        import firstclick.serve.store.postgresql  # noqa: F401
    with tempfile.TemporaryDirectory() as folder:
        for launched in (True, False):
            settings = Settings(store=str(Path(folder) / f"{launched}.db"))
            with open_for(settings).service as service:
                make_models(service, launched=launched)
                for name in MODELS:
                    for number in range(30):
                        more = {"unit": number} if launched else {}
                        service.feedback(name, service.recommend(name, **more).token, (None, 0)[number % 2])
                    if not launched:
                        service.model(name).warm_up_corrections()
                        service.withdraw_items(name, ["i1"])
                        service.roll_back(name, 2)
                        service.maintenance.snapshot(service.model(name))
        open_for(settings).service.close()


def run_in_child(task):
    """Run this in a child, which ends with the code that it returns; return the child's process id."""
    tasks = Path("/proc/self/task")
    assert not tasks.is_dir() or len(list(tasks.iterdir())) == 1, "a thread would be lost by a fork"
    child = os.fork()
    if child:
        return child
    code = 70
    try:
        code = task() or 0
    except BaseException:
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


class _Zygote:
    def __init__(self):
        self._listening = {}
        self._children = set()

    def listen(self):
        new = socket.create_server(("127.0.0.1", 0), backlog=2048)
        port = new.getsockname()[1]
        self._listening[port] = new
        return {"port": port}

    def hang_up(self, port):
        self._listening.pop(port).close()
        return {}

    def start(self, spec):
        asked = ServerSpec(**spec)

        def serve():
            for port, other in self._listening.items():
                if port != asked.port:
                    other.close()
            log = os.open(asked.log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(log, 1)
            os.dup2(log, 2)
            return live(asked, self._listening[asked.port])

        child = run_in_child(serve)
        self._children.add(child)
        return {"pid": child}

    def work(self, kill):
        """Let a process do this to a store; return its exit code, as `wait` does."""
        return self.wait(run_in_child(lambda: killed.work(killed.Kill(*kill))), 60.0)

    def wait(self, pid, seconds):
        """The exit code, -9 for SIGKILL; None when it still runs after so many seconds."""
        until = time.monotonic() + seconds
        while True:
            found, status = os.waitpid(pid, os.WNOHANG)
            if found:
                self._children.discard(pid)
                return {"code": os.waitstatus_to_exitcode(status)}
            if time.monotonic() > until:
                return {"code": None}
            time.sleep(0.002)

    def close(self):
        for child in self._children:
            os.kill(child, signal.SIGKILL)


def _main():
    _warm_up()
    zygote = _Zygote()
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        call, arguments = json.loads(line)
        print(json.dumps(getattr(zygote, call)(*arguments)), flush=True)
    zygote.close()


if __name__ == "__main__":
    _main()
