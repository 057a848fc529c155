"""Work of processes on stores, each killed at a named step; the zygote forks one for each kill."""

import os
from pathlib import Path
from typing import NamedTuple

from firstclick.serve import Tuning
from firstclick.serve.log.events import NewEvent
from firstclick.serve.model.archive import archive
from firstclick.serve.model.export import export_model, import_model
from firstclick.serve.model.fork import fork
from firstclick.serve.store import crash_points, open_store
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


def work(kill):
    """Do this to a store until the process is killed."""
    crash_points.kill_at(kill.step, kill.times)
    if kill.work == "write":
        write(kill.url, kill.file)
        return
    with open_store(kill.url, tuning=SMALL_PIECES) as store:
        CHANGES[kill.work](store, kill.file)
