"""Where runs are played: in this process, in several on this machine, or on a dask cluster.

Every task is played from its own keys alone, so that results do not depend on the number of
processes, on who plays what, or on the order in which tasks end.
"""

import multiprocessing
import os
import re
import signal
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import Field, dataclass
from multiprocessing import resource_tracker
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from firstclick.errors import InvalidInput, WorkFailed
from firstclick.experiments.loop import Trace, play_run
from firstclick.extras import needed_by
from firstclick.policies.base import Policy
from firstclick.worlds.base import Stage

POLL_SECONDS = 0.1

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

Report = Callable[[int], Any]


class Playable(Protocol[T_co]):
    """A piece of work that needs nobody else; `report` is called with each number of steps it has played."""

    def play(self, report: Report) -> T_co: ...


class StagedTask(Playable[T_co], Protocol[T_co]):
    """A dataclass whose field `stage` is the large part, which many tasks share and none changes."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    @property
    def stage(self) -> Any: ...


class Engine(Protocol):
    """Plays all tasks and gives their results as they end, in any order."""

    def __call__(self, tasks: Iterator[StagedTask[T]], report: Report) -> Iterator[T]: ...


@dataclass(frozen=True)
class Task:
    """One run of one policy, with everything it needs."""

    policy: Policy
    index: int
    stage: Stage
    optimal: NDArray[np.int64]
    run: int
    record: NDArray[np.int64]
    seed: int

    def play(self, report: Report) -> Trace:
        return play_run(
            self.policy, self.stage, self.optimal, record=self.record, seed=self.seed, run=self.run,
            index=self.index, report=report,
        )  # fmt: skip


def play_here(tasks: Iterator[Playable[T]], report: Report) -> Iterator[T]:
    """Play one task after the other in this process."""
    for task in tasks:
        yield task.play(report)


_done: Any = None


def _start_worker(done: Any) -> None:
    global _done
    _done = done
    # Ctrl-C reaches the whole group: only the parent answers, and ends the workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # A parent that is killed cannot: a worker would play on, and then wait for work for ever.
    threading.Thread(target=_end_with_parent, name="firstclick-parent", daemon=True).start()


def _end_with_parent() -> None:
    """Wait until the parent process is gone, however it ended, and end this one at once."""
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


def _play_in_worker(task: Playable[T]) -> T:
    def report(steps: int) -> None:
        with _done.get_lock():
            _done.value += steps

    return task.play(report)


@contextmanager
def deaf_to_interrupts() -> Iterator[None]:
    """A process started in here never sees Ctrl-C, not even while it imports; ours comes when we leave."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    # Python starts it with the first process, and then opens our ears in passing.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def play_in_processes(tasks: Iterator[Playable[T]], report: Report, jobs: int) -> Iterator[T]:
    """Play tasks in `jobs` processes. Tasks are made only as they are needed: their data can be large."""
    # Spawn, not fork: a forked child would inherit the threads of BLAS in an unknown state.
    context = multiprocessing.get_context("spawn")
    done = context.Value("q", 0)
    pool = ProcessPoolExecutor(jobs, mp_context=context, initializer=_start_worker, initargs=(done,))
    waiting: set[Future[T]] = set()
    reported, finished_all = 0, False
    try:
        exhausted = False
        while waiting or not exhausted:
            while not exhausted and len(waiting) < jobs + 1:
                task = next(tasks, None)
                if task is None:
                    exhausted = True
                else:
                    with deaf_to_interrupts():
                        waiting.add(pool.submit(_play_in_worker, task))
            finished, waiting = wait(waiting, POLL_SECONDS, FIRST_COMPLETED)
            now = done.value
            report(now - reported)
            reported = now
            for future in finished:
                yield future.result()
        finished_all = True
    except BrokenProcessPool:
        raise WorkFailed(
            "a worker process died (out of memory?); try fewer --jobs. In a script of your own, call "
            "simulate(jobs=...) under `if __name__ == '__main__':`"
        ) from None
    finally:
        if not finished_all:
            # Not asked to stop: a worker that compiles would not hear it for half a minute.
            for process in list((pool._processes or {}).values()):
                process.kill()
        pool.shutdown(wait=True, cancel_futures=True)


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
        from firstclick.experiments.dask_engine import play_on_dask
    address = None if name == "dask" else name
    return lambda tasks, report: play_on_dask(tasks, report, address, jobs)
