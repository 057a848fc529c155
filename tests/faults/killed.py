"""Processes that work on stores and are killed at named steps; `kills` runs this file as a script.

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
from tests.support.stores import feedback

BATCH, BATCHES = 5, 12
# An archive has the events before this one.
BEFORE = 215
# Many pieces of a log that is short.
SMALL_PIECES = Tuning(events_at_once=40, chunk_events=50)


class Kill(NamedTuple):
    """What a process does to a store, and where it dies."""

    work: str  # "write", or a name in CHANGES
    url: str
    step: str
    times: int
    file: str = ""  # the archive to write, the export to read, or where acknowledgements are noted


def kills(asked):
    """Kill a process for each."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.faults.killed"],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        timeout=300,
        check=True,
    )
    assert json.loads(done.stdout) == [9] * len(asked), (done.stdout, done.stderr)


def fill(url):
    """Write a log in which everything happens; return its digest."""
    log = Log().eventful()
    with open_store(url, tuning=SMALL_PIECES) as store:
        store.create("made", [NewEvent(*event[1:]) for event in log.events])
    return log.model.digest()


def exported(url, path):
    with open_store(url, tuning=SMALL_PIECES) as store:
        path.write_bytes(b"".join(export_model(store, store.models()[0])))


def write(url, file):
    """Create a model, append batches, save snapshots; note each when it has returned."""
    acks = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    store = open_store(url, tuning=Tuning(checkpoint_pages=20))
    model = store.create("shop", [feedback(0)])
    for batch in range(BATCHES):
        store.append([(model.id, feedback(1 + batch * BATCH + n)) for n in range(BATCH)])
        os.write(acks, b"%d " % batch)
        store.save_snapshot(model.id, 1 + (batch + 1) * BATCH, b"known")
        os.write(acks, b"s%d " % batch)


def archived(store, file):
    archive(store, store.models()[0], BEFORE, Path(file), token_days=7.0)


def imported(store, file):
    import_model(store, "copy", Path(file).read_bytes())


def forked(store, file):
    fork(store, store, store.models()[0], "copy", "cascade-ts", seed=1)


CHANGES = {"archive": archived, "import": imported, "fork": forked}


def _main():
    Log().eventful()
    ends = []
    for asked in json.load(sys.stdin):
        child = os.fork()
        if child == 0:
            kill = Kill(*asked)
            crash_points.kill_at(kill.step, kill.times)
            if kill.work == "write":
                write(kill.url, kill.file)
            else:
                with open_store(kill.url, tuning=SMALL_PIECES) as store:
                    CHANGES[kill.work](store, kill.file)
            os._exit(0)
        ends.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) * -1)
    print(json.dumps(ends))


if __name__ == "__main__":
    _main()
