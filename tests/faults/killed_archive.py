"""Processes that archive, import or fork a model and are killed at named steps; run as a script by `kills`.

It imports and compiles once and forks for each kill, because that takes longer than all the rest.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from firstclick.serve import Tuning
from firstclick.serve.log.events import NewEvent
from firstclick.serve.model.archive import archive
from firstclick.serve.model.export import export_model, import_model
from firstclick.serve.model.fork import fork
from firstclick.serve.store import crash_points, open_store
from firstclick.serve.store.postgresql import PostgresStore  # noqa: F401, imported once for all forks
from tests.support.made_log import Log

BEFORE = 215


class Kill(NamedTuple):
    """The store, the step and how many times it is passed before, and the file: to write or to read."""

    url: str
    step: str
    times: int
    file: str
    importing: bool = False
    forking: bool = False


# Many pieces of a log that is short.
SMALL_PIECES = Tuning(events_at_once=40, chunk_events=50)


def fill(url):
    """A store with a log in which everything happens; its digest."""
    log = Log().eventful()
    with open_store(url, tuning=SMALL_PIECES) as store:
        store.create("made", [NewEvent(*event[1:]) for event in log.events])
    return log.model.digest()


def exported(url, path):
    with open_store(url, tuning=SMALL_PIECES) as store:
        path.write_bytes(b"".join(export_model(store, store.models()[0])))


def kills(asked):
    """Kill a process for each."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.faults.killed_archive"],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    assert json.loads(done.stdout) == [9] * len(asked), (done.stdout, done.stderr)


def work_until_killed(kill):
    crash_points.kill_at(kill.step, kill.times)
    with open_store(kill.url, tuning=SMALL_PIECES) as store:
        if kill.forking:
            fork(store, store, store.models()[0], "copy", "cascade-ts", seed=1)
        elif kill.importing:
            import_model(store, "copy", Path(kill.file).read_bytes())
        else:
            archive(store, store.models()[0], BEFORE, Path(kill.file), token_days=7.0)


def _main():
    Log().eventful()
    ends = []
    for asked in json.load(sys.stdin):
        child = os.fork()
        if child == 0:
            work_until_killed(Kill(*asked))
            os._exit(0)
        ends.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) * -1)
    print(json.dumps(ends))


if __name__ == "__main__":
    _main()
