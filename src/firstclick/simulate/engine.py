"""Where runs are played: in this process, or in several on this machine.

Every task is played from its own keys alone, so that results do not depend on the number of
processes, on who plays what, or on the order in which tasks end.
"""

import multiprocessing
import signal
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from firstclick.errors import WorkFailed
from firstclick.protocol import Policy, Stage
from firstclick.simulate.loop import Trace, play_run

POLL_SECONDS = 0.1


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

    def play(self, report: Callable[[int], Any]) -> Trace:
        return play_run(
            self.policy, self.stage, self.optimal, record=self.record, seed=self.seed, run=self.run,
            index=self.index, report=report,
        )  # fmt: skip


def importable(policy: Policy) -> bool:
    """Whether another process can find the policy's class; one typed into a notebook cannot be found."""
    cls = type(policy)
    module = sys.modules.get(cls.__module__)
    return getattr(module, cls.__qualname__, None) is cls and getattr(module, "__file__", None) is not None


def play_here(tasks: Iterator[Task], report: Callable[[int], Any]) -> Iterator[Trace]:
    """Play one task after the other in this process."""
    for task in tasks:
        yield task.play(report)


class _Stopped(Exception):
    pass


_done: Any = None
_stop: Any = None


def _start_worker(done: Any, stop: Any) -> None:
    global _done, _stop
    _done, _stop = done, stop
    # Ctrl-C reaches the whole group: only the parent answers, and tells the workers.
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _play_in_worker(task: Task) -> Trace | None:
    def report(steps: int) -> None:
        with _done.get_lock():
            _done.value += steps
        if _stop.value:
            raise _Stopped

    try:
        return task.play(report)
    except _Stopped:
        return None


def play_in_processes(tasks: Iterator[Task], report: Callable[[int], Any], jobs: int) -> Iterator[Trace]:
    """Play tasks in `jobs` processes. Tasks are made only as they are needed: their data can be large."""
    # Spawn, not fork: a forked child would inherit the threads of BLAS in an unknown state.
    context = multiprocessing.get_context("spawn")
    done, stop = context.Value("q", 0), context.Value("b", 0)
    pool = ProcessPoolExecutor(jobs, mp_context=context, initializer=_start_worker, initargs=(done, stop))
    waiting: set[Future[Trace | None]] = set()
    reported = 0
    try:
        exhausted = False
        while waiting or not exhausted:
            while not exhausted and len(waiting) < jobs + 1:
                task = next(tasks, None)
                if task is None:
                    exhausted = True
                else:
                    waiting.add(pool.submit(_play_in_worker, task))
            finished, waiting = wait(waiting, POLL_SECONDS, FIRST_COMPLETED)
            now = done.value
            report(now - reported)
            reported = now
            for future in finished:
                trace = future.result()
                assert trace is not None, "a worker stops only when this loop has been left"
                yield trace
    except BrokenProcessPool:
        raise WorkFailed(
            "a worker process died (out of memory?); try fewer --jobs. In a script of your own, call "
            "simulate(jobs=...) under `if __name__ == '__main__':`"
        ) from None
    finally:
        stop.value = 1
        pool.shutdown(wait=True, cancel_futures=True)
