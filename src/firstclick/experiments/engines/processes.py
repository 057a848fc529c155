"""Runs played in several processes of this machine."""

import multiprocessing
import os
import signal
import threading
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from itertools import islice
from multiprocessing import resource_tracker
from typing import Any

from firstclick.errors import WorkFailed
from firstclick.experiments.engines.engine import POLL_SECONDS, Playable, Report

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


def _play_in_worker(task: Playable) -> Any:
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


def play_in_processes(tasks: Iterator[Playable], report: Report, jobs: int) -> Iterator[Any]:
    """Play tasks in `jobs` processes. Tasks are made only as they are needed: their data can be large."""
    # Spawn, not fork: a forked child would inherit the threads of BLAS in an unknown state.
    context = multiprocessing.get_context("spawn")
    done = context.Value("q", 0)
    pool = ProcessPoolExecutor(jobs, mp_context=context, initializer=_start_worker, initargs=(done,))
    waiting: set[Future[Any]] = set()
    reported = 0
    try:
        while True:
            for task in islice(tasks, jobs + 1 - len(waiting)):
                with deaf_to_interrupts():
                    waiting.add(pool.submit(_play_in_worker, task))
            if not waiting:
                return
            finished, waiting = wait(waiting, POLL_SECONDS, FIRST_COMPLETED)
            now = done.value
            report(now - reported)
            reported = now
            for future in finished:
                yield future.result()
    except BrokenProcessPool:
        raise WorkFailed(
            "a worker process died (out of memory?); try fewer --jobs. In a script of your own, call "
            "simulate(jobs=...) under `if __name__ == '__main__':`"
        ) from None
    finally:
        # Not asked to stop: a worker that compiles would not hear it for half a minute.
        for process in list((pool._processes or {}).values()) if waiting else ():
            process.kill()
        pool.shutdown(wait=True, cancel_futures=True)
