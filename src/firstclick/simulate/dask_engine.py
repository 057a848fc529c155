"""Where runs are played: on a dask cluster, one of our own on this machine or one that runs already.

A stage is sent to the cluster once, and its tasks without it. A worker that dies costs time and
nothing else: what it was playing is sent again, and gives the same bits wherever it is played.
"""

import asyncio
import logging
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from queue import SimpleQueue
from time import monotonic, sleep
from typing import Any, Generic

import dask
from distributed import CancelledError, Client, Future, KilledWorker, LocalCluster, Security, get_worker
from distributed.protocol.pickle import dumps, loads
from distributed.versions import VersionMismatchWarning

from firstclick.errors import InvalidInput, WorkFailed
from firstclick.simulate.engine import POLL_SECONDS, Report, StagedTask, T, deaf_to_interrupts
from firstclick.simulate.results import installed_versions
from firstclick.source_code import code_hash

CONNECT_SECONDS = 8

# How often to look whether the cluster has grown or shrunk.
COUNT_SECONDS = 1.0

# A worker is back after a few seconds; a cluster without any for this long does not get them again.
LONELY_SECONDS = 60

# How often the death of a worker may hit one task before the task itself is taken for the reason.
MOST_DEATHS = 5

# What a worker may take to end by itself before it is killed: it may be in the middle of a long run.
FAREWELL_SECONDS = 1.0

# Dask gives a worker up for good that is away some time after a death, be it because it died once more.
PATIENCE = {"distributed.deploy.lost-worker-timeout": "365 days"}

HIDDEN = "127.0.0.1:0"

NOISY = ("distributed", "distributed.client", "tornado", "tornado.application", "asyncio")


def play_on_dask(
    tasks: Iterator[StagedTask[T]], report: Report, address: str | None, jobs: int
) -> Iterator[T]:
    """Play tasks on the cluster at `address`; without one, on `jobs` processes of this machine.

    Tasks are made only as they are needed, and no more than the cluster can play at once, plus one.
    """
    with _quiet(), _connected(address, jobs) as client:
        yield from _Player(client, report, address or "on this machine").play(tasks)


@dataclass
class _Shared:
    """A stage, and its place on the cluster for as long as anybody here keeps this."""

    stage: Any
    future: Future


@dataclass
class _Sent(Generic[T]):
    """A task on its way, and how many of its steps have been reported."""

    task: StagedTask[T]
    shared: _Shared
    future: Future
    deaths: int = 0
    reported: int = 0

    def news(self, steps: int) -> int:
        """How many of `steps` are new; a task played once more reports the first ones again."""
        more = max(steps - self.reported, 0)
        self.reported += more
        return more


class _Player:
    """Sends tasks to a cluster, and sends again what was lost there."""

    def __init__(self, client: Client, report: Report, where: str) -> None:
        self._client, self._report, self._where = client, report, where
        self._threads = 0
        self._counted = self._last_seen = monotonic()
        self._heard: SimpleQueue[tuple[int, int]] = SimpleQueue()
        self._topic = f"firstclick {client.id}"
        client.subscribe_topic(self._topic, lambda event: self._heard.put(event[1]))

    def play(self, tasks: Iterator[StagedTask[T]]) -> Iterator[T]:
        """The results, as they end."""
        waiting: dict[int, _Sent[T]] = {}
        shared: _Shared | None = None
        sent, exhausted = 0, False
        while waiting or not exhausted:
            if not self._threads or monotonic() > self._counted + COUNT_SECONDS:
                self._count_threads()
            while not exhausted and len(waiting) <= self._threads:
                task = next(tasks, None)
                if task is None:
                    exhausted = True
                    break
                if shared is None or shared.stage is not task.stage:
                    shared = _Shared(task.stage, self._scatter(task.stage))
                waiting[sent] = _Sent(task, shared, self._submit(sent, task, shared))
                sent += 1
            ended = [number for number, one in waiting.items() if one.future.done()]
            if not ended:
                sleep(POLL_SECONDS)
            self._report(self._news(waiting))
            for number in ended:
                try:
                    steps, result = waiting[number].future.result()
                except (KilledWorker, CancelledError) as error:
                    waiting[number].deaths += getattr(error, "allowed_failures", 0) + 1
                    self._send_again(number, waiting[number])
                except OSError:
                    self._count_threads()  # Tells a cluster that is gone from a mistake of the task's own.
                    raise
                else:
                    self._report(waiting.pop(number).news(steps))
                    yield result

    def _scatter(self, stage: Any) -> Future:
        """The stage on one worker of the cluster; the others fetch it from there when they need it."""
        for _ in range(MOST_DEATHS):
            try:
                return self._client.scatter(dumps(stage), hash=False, timeout=LONELY_SECONDS)
            except TimeoutError:
                break
            except OSError:
                self._count_threads()  # It was the worker, if the scheduler still answers.
        raise self._no_workers() from None

    def _submit(self, number: int, task: StagedTask[Any], shared: _Shared) -> Future:
        light = dumps(replace(task, stage=None))
        return self._client.submit(_play_there, light, shared.future, self._topic, number, pure=False)

    def _send_again(self, number: int, sent: _Sent[Any]) -> None:
        self._count_threads()
        if sent.deaths >= MOST_DEATHS:
            raise WorkFailed(
                f"the dask cluster {self._where} lost {sent.deaths} workers over one task (out of memory?); "
                "try fewer --jobs, or workers with more memory"
            ) from None
        if sent.shared.future.status != "finished":
            sent.shared.future = self._scatter(sent.shared.stage)
        sent.future = self._submit(number, sent.task, sent.shared)

    def _news(self, waiting: dict[int, _Sent[T]]) -> int:
        """The number of steps that workers have reported and we have not."""
        more = 0
        while not self._heard.empty():
            number, steps = self._heard.get()
            if number in waiting:
                more += waiting[number].news(steps)
        return more

    def _count_threads(self) -> None:
        """Learn how many tasks the cluster plays at once; it is given up when it has gone away."""
        try:
            # A client that could not reach its scheduler for a while has closed itself, and cannot even ask.
            if self._client.status == "closed":
                raise OSError
            self._threads = sum(self._client.nthreads().values())
        except OSError:
            raise WorkFailed(f"the dask cluster {self._where} went away; is its scheduler running?") from None
        self._counted = monotonic()
        if self._threads:
            self._last_seen = self._counted
        elif self._counted > self._last_seen + LONELY_SECONDS:
            raise self._no_workers() from None

    def _no_workers(self) -> WorkFailed:
        return WorkFailed(f"the dask cluster {self._where} lost all its workers, and no other came")


def _play_there(task: bytes, stage: bytes, topic: str, number: int) -> tuple[int, Any]:
    """On a worker: play the task on its stage, and tell whoever listens to `topic` how far it is.

    Both come as bytes: a worker to which dask hands something it cannot import shuts itself down.
    """
    worker = get_worker()
    done, told = 0, monotonic()

    def report(steps: int) -> None:
        nonlocal done, told
        done += int(steps)
        if monotonic() > told + POLL_SECONDS:
            told = monotonic()
            worker.log_event(topic, (number, done))

    try:
        whole = replace(loads(task), stage=loads(stage))
    except (ImportError, AttributeError) as error:
        raise InvalidInput(
            f"dask worker {worker.address} cannot read its task: {error}; install there what is here"
        ) from None
    result = whole.play(report)
    return done, result


@contextmanager
def _connected(address: str | None, jobs: int) -> Iterator[Client]:
    """A client of the cluster at `address`, or of a new one; nothing of it is left afterwards."""
    with ExitStack() as stack:
        if address is None:
            ours = stack.enter_context(_local_cluster(jobs)).scheduler_address
            yield stack.enter_context(_client(ours))
        else:
            client = stack.enter_context(_client(address))
            _check_versions(client, address)
            yield client


@contextmanager
def _client(address: str) -> Iterator[Client]:
    if address.startswith("tls://") and not Security().get_connection_args("client").get("ssl_context"):
        raise InvalidInput(f"{address} needs certificates; dask's settings name them (distributed.comm.tls)")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", VersionMismatchWarning)  # We look for ourselves.
            client = Client(address, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ImportError) as error:
        raise InvalidInput(f"no dask scheduler answers at {address}: {error}") from None
    with client:
        yield client


@contextmanager
def _local_cluster(jobs: int) -> Iterator[LocalCluster]:
    """A cluster of `jobs` processes that only this machine can reach."""
    with dask.config.set(PATIENCE), ThreadPoolExecutor(1) as pool:
        with deaf_to_interrupts():
            # In a thread, which Ctrl-C cannot stop half way; its children inherit that they are deaf.
            starting = pool.submit(
                LocalCluster,
                n_workers=jobs,
                threads_per_worker=1,
                memory_limit=None,
                silence_logs=logging.CRITICAL,
                # No dashboard; what answers in its place takes any free port. We count failures ourselves.
                scheduler_kwargs={"dashboard": False, "dashboard_address": HIDDEN, "allowed_failures": 0},
            )
        try:
            if failure := starting.exception():
                raise WorkFailed(
                    f"no dask cluster could be started on this machine ({failure}); in a script of your own, "
                    "start it under `if __name__ == '__main__':`"
                )
            yield starting.result()
        finally:
            if starting.exception() is None:
                cluster = starting.result()
                cluster.sync(_dismiss, cluster)
                cluster.close()


async def _dismiss(cluster: LocalCluster) -> None:
    nannies = cluster.workers.values()
    await asyncio.gather(
        *(nanny.close(timeout=FAREWELL_SECONDS) for nanny in nannies), return_exceptions=True
    )


def _installed() -> dict[str, str]:
    """Versions, and under `code` what tells apart two states of one version."""
    return installed_versions() | {"code": code_hash()}


def _check_versions(client: Client, address: str) -> None:
    """Refuse a cluster that lacks firstclick, or whose results could differ from ours in the last bits."""
    ours = _installed()
    try:
        theirs = client.run(_installed)
        theirs["its scheduler"] = client.run_on_scheduler(_installed)
    except Exception as error:  # Whatever went wrong over there, dask makes its own errors of it.
        raise InvalidInput(
            f"{address}: the dask cluster cannot run firstclick ({error}); install firstclick "
            f"{ours['firstclick']} on its scheduler and on all its workers"
        ) from None
    if len(theirs) == 1:
        raise InvalidInput(f"{address}: the dask cluster has no workers; start one: `dask worker {address}`")
    for who, versions in theirs.items():
        for name in ("firstclick", "code", "numpy", "numba", "platform"):
            if versions[name] != ours[name]:
                raise InvalidInput(
                    f"{address}: {who} has {name} {versions[name]}, this machine {ours[name]}; results are "
                    "equal bit for bit only where these are the same"
                )


@contextmanager
def _quiet() -> Iterator[None]:
    """Nothing that dask has to say about dying workers reaches the terminal; we say it ourselves."""
    loggers = [logging.getLogger(name) for name in NOISY]
    before = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        yield
    finally:
        for logger, level in zip(loggers, before, strict=True):
            logger.setLevel(level)
