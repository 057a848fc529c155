"""Where runs are played: in this process, in several on this machine, or on a dask cluster.

Every task is played from its own keys alone, so that results do not depend on the number of processes, on who
plays what, or on the order in which tasks end.
"""

import re

from firstclick.errors import InvalidInput
from firstclick.experiments.engines.engine import Engine, play_here
from firstclick.experiments.engines.processes import play_in_processes
from firstclick.extras import needed_by

__all__ = ["Engine", "engine_named", "play_here", "play_in_processes"]


def engine_named(name: str, jobs: int) -> Engine:
    """The engine of this name: 'local', 'dask', or the address of a dask scheduler, 'tcp://host:port'.

    `jobs` is the number of processes on this machine; a cluster that runs already plays with all it has.
    """
    if name == "local":
        return play_here if jobs == 1 else lambda tasks, report: play_in_processes(tasks, report, jobs)
    if name != "dask" and not re.fullmatch(r"(tcp|tls)://[^/\s]+:\d+", name):
        raise InvalidInput(
            f"must be local, dask or the tcp://host:port of a scheduler, got {name!r}", "engine"
        )
    with needed_by(f"engine {name}"):
        from firstclick.experiments.engines.dask import play_on_dask
    address = None if name == "dask" else name
    return lambda tasks, report: play_on_dask(tasks, report, address, jobs)
