"""A process that writes to stores and is killed at named steps; run as a script by `kills`.

It imports once and forks for each kill, because importing takes longer than all the rest.
"""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from firstclick.serve import Tuning
from firstclick.serve.store import crash_points as steps
from firstclick.serve.store import open_store
from firstclick.serve.store.postgresql import PostgresStore  # noqa: F401, imported once for all forks
from tests.support.stores import feedback

BATCH = 5
BATCHES = 12


class Kill(NamedTuple):
    """Where to write, when to die, and where to note what was acknowledged."""

    url: str
    step: str
    times: int
    acks: str
    early: bool = False  # acknowledge before anything is written, as a broken service would


def kills(asked):
    """Kill a process for each; what was acknowledged in it before."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.faults.killed_store"],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        input=json.dumps(asked),
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert json.loads(done.stdout) == [9] * len(asked), (done.stdout, done.stderr)
    return [Path(kill.acks).read_text().split() if Path(kill.acks).exists() else [] for kill in asked]


def write_until_killed(kill):
    """Create a model, append batches, save snapshots; note each when it has returned."""
    steps.kill_at(kill.step, kill.times)
    acks = os.open(kill.acks, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    store = open_store(kill.url, tuning=Tuning(checkpoint_pages=20))
    model = store.create("shop", [feedback(0)])
    os.write(acks, b"created ")
    for batch in range(BATCHES):
        if kill.early:
            os.write(acks, b"%d " % batch)
        store.append([(model.id, feedback(1 + batch * BATCH + n)) for n in range(BATCH)])
        if not kill.early:
            os.write(acks, b"%d " % batch)
        store.save_snapshot(model.id, 1 + (batch + 1) * BATCH, b"known")
        os.write(acks, b"s%d " % batch)


def _main():
    ends = []
    for asked in json.load(sys.stdin):
        child = os.fork()
        if child == 0:
            write_until_killed(Kill(*asked))
            os._exit(0)
        ends.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) * -1)
    print(json.dumps(ends))


if __name__ == "__main__":
    _main()
