"""Runs played on a dask cluster, one of our own on this machine or one that runs already.

A stage is sent to a worker once, unpacked there once, and its tasks come without it. A worker that dies costs
time and nothing else: what it was playing is sent again, and gives the same bits wherever it is played.
"""

from collections import Counter, OrderedDict, deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import islice
from queue import SimpleQueue
from threading import Event, Lock
from time import monotonic
from typing import Any

from distributed import CancelledError, Client, Future, KilledWorker, get_worker
from distributed.protocol.pickle import dumps, loads

from firstclick.errors import InvalidInput, WorkFailed
from firstclick.experiments.engines.dask_connection import connected, quiet
from firstclick.experiments.engines.engine import POLL_SECONDS, Playable, Report

# How often to look whether the cluster has grown or shrunk.
COUNT_SECONDS = 1.0

# A worker is back after a few seconds; a cluster without any for this long does not get them again.
LONELY_SECONDS = 60

# Dask takes some milliseconds for whatever is sent: short tasks of one stage are sent in bundles that take
# about this long, and each thread has a second bundle waiting for it. What is not played after twice the
# time comes back: then tasks are longer than they were, and others may have nothing to do.
BUNDLE_SECONDS = 0.2
LARGEST_BUNDLE = 128

# Bundles from which it is told how long a task may take.
LATEST_BUNDLES = 8

# Stages that stay on the cluster for a while without a task, because the next tasks may be theirs.
STAGES_KEPT = 2

# How often the death of a worker may hit one task before the task itself is taken for the reason.
MOST_DEATHS = 5


def play_on_dask(tasks: Iterator[Playable], report: Report, address: str | None, jobs: int) -> Iterator[Any]:
    """Play tasks on the cluster at `address`; without one, on `jobs` processes of this machine.

    Tasks are made only as they are needed: one more than the cluster can play at once, or as many short ones
    of the same stage as keep it busy for a moment.
    """
    with quiet(), connected(address, jobs) as client:
        yield from _Player(client, report, address or "on this machine").play(tasks)


class _Packed:
    """A stage as bytes. A worker keeps this for all tasks of the stage, and unpacks it for the first of them.

    Bytes, because a worker to which dask hands something it cannot import shuts itself down.
    """

    def __init__(self, content: bytes) -> None:
        self._content = content
        self._unpacked: list[Any] = []
        self._alone = Lock()  # A worker may have several threads.

    def __reduce__(self) -> tuple[Any, ...]:
        return _Packed, (self._content,)

    def __sizeof__(self) -> int:
        """What dask takes for the cost of sending it."""
        return len(self._content)

    def stage(self) -> Any:
        with self._alone:
            if not self._unpacked:
                self._unpacked.append(loads(self._content))
        return self._unpacked[0]


@dataclass
class _Shared:
    """A stage, its place on the cluster while anybody here keeps this, and how many bundles wait for it."""

    stage: Any
    future: Future
    waiting: int = 0


@dataclass
class _Sent:
    """Tasks of one stage on their way, to which worker, and how many of their steps have been reported."""

    tasks: list[Playable]
    shared: _Shared
    worker: str
    future: Future
    deaths: int = 0
    reported: int = 0

    def news(self, steps: int) -> int:
        """How many of `steps` are new; tasks played once more report the first ones again."""
        more = max(steps - self.reported, 0)
        self.reported += more
        return more


class _Supply:
    """The tasks that are still to be sent; each is made when somebody looks for it."""

    def __init__(self, tasks: Iterator[Playable]) -> None:
        self._tasks = tasks
        self._made: deque[Playable] = deque()

    def first(self) -> Playable | None:
        if not self._made:
            self._made.extend(islice(self._tasks, 1))
        return self._made[0] if self._made else None

    def take(self) -> Playable:
        return self._made.popleft()

    def give_back(self, tasks: list[Playable]) -> None:
        self._made.extendleft(reversed(tasks))


class _Player:
    """Sends tasks to a cluster, and sends again what was lost there."""

    def __init__(self, client: Client, report: Report, where: str) -> None:
        self._client, self._report, self._where = client, report, where
        self._threads: dict[str, int] = {}  # of each worker
        self._counted = self._last_seen = monotonic()
        self._took: deque[float] = deque(maxlen=LATEST_BUNDLES)  # seconds of a task
        self._waiting_for: Counter[str] = Counter()  # bundles, by worker
        self._stages: OrderedDict[int, _Shared] = OrderedDict()  # by identity, the one used last at the end
        self._ended = Event()
        self._heard: SimpleQueue[tuple[int, int]] = SimpleQueue()
        self._topic = f"firstclick {client.id}"
        client.subscribe_topic(self._topic, lambda event: self._heard.put(event[1]))

    def play(self, tasks: Iterator[Playable]) -> Iterator[Any]:
        """The results, as they end."""
        supply = _Supply(tasks)
        waiting: dict[int, _Sent] = {}
        sent = 0
        while waiting or supply.first():
            if not self._threads or monotonic() > self._counted + COUNT_SECONDS:
                self._count_threads()
            while len(waiting) < self._most_waiting() and (bundle := self._bundle(supply)):
                waiting[sent] = self._send(sent, bundle)
                sent += 1
            self._ended.clear()
            ended = [number for number, one in waiting.items() if one.future.done()]
            if not ended:
                self._ended.wait(POLL_SECONDS)
            self._report(self._news(waiting))
            for number in ended:
                try:
                    steps, seconds, results = waiting[number].future.result()
                except (KilledWorker, CancelledError) as error:
                    waiting[number].deaths += getattr(error, "allowed_failures", 0) + 1
                    self._send_again(number, waiting[number])
                except OSError:
                    self._count_threads()  # Tells a cluster that is gone from a mistake of the task's own.
                    raise
                else:
                    self._took.append(seconds / len(results))
                    self._report(waiting[number].news(steps))
                    supply.give_back(self._finish(waiting.pop(number), len(results)))
                    yield from results

    def _bundle_size(self) -> float:
        """How many tasks take as long as a bundle should, below 1 for long ones; 0 if nobody knows yet."""
        slowest = max(self._took, default=0.0)
        return BUNDLE_SECONDS / slowest if slowest else 0.0

    def _most_waiting(self) -> int:
        """How many bundles may be on their way."""
        threads = sum(self._threads.values())
        return threads and threads + max(1, int(threads * min(self._bundle_size(), 1)))

    def _bundle(self, supply: _Supply) -> list[Playable]:
        """The next tasks to send, all of one stage; none if there are none, or no room for their stage."""
        first = supply.first()
        if first is None or not self._has_room(first.stage):
            return []
        bundle = [supply.take()]
        most = min(self._bundle_size(), LARGEST_BUNDLE)
        while len(bundle) < most and (task := supply.first()) and task.stage is first.stage:
            bundle.append(supply.take())
        return bundle

    def _has_room(self, stage: Any) -> bool:
        """Whether a task of this stage may be sent now: stages can be large."""
        threads = sum(self._threads.values())
        if id(stage) not in self._stages:
            self._forget_stages(threads)
        return id(stage) in self._stages or len(self._stages) <= threads

    def _forget_stages(self, most: int) -> None:
        """Let go of stages that nobody waits for, unused for longest first, until at most `most` are left."""
        idle = [key for key, shared in self._stages.items() if not shared.waiting]
        for key in idle[: max(len(self._stages) - most, 0)]:
            del self._stages[key]

    def _send(self, number: int, tasks: list[Playable]) -> _Sent:
        stage = tasks[0].stage
        if id(stage) not in self._stages:
            self._stages[id(stage)] = _Shared(stage, self._scatter(stage))
        self._stages.move_to_end(id(stage))
        shared = self._stages[id(stage)]
        shared.waiting += 1
        return _Sent(tasks, shared, *self._submit(number, tasks, shared))

    def _finish(self, sent: _Sent, played: int) -> list[Playable]:
        """Forget a bundle of which so many tasks are played; gives the others."""
        self._waiting_for[sent.worker] -= 1
        sent.shared.waiting -= 1
        self._forget_stages(STAGES_KEPT)
        return sent.tasks[played:]

    def _scatter(self, stage: Any) -> Future:
        """The stage on one worker of the cluster; the others fetch it from there when they need it."""
        for _ in range(MOST_DEATHS):
            try:
                return self._client.scatter(_Packed(dumps(stage)), hash=False, timeout=LONELY_SECONDS)
            except TimeoutError:
                break
            except OSError:
                self._count_threads()  # It was the worker, if the scheduler still answers.
        raise self._no_workers() from None

    def _submit(self, number: int, tasks: list[Playable], shared: _Shared) -> tuple[str, Future]:
        """Send tasks to the worker that has fewest: dask would send all to the one that holds their stage."""
        light = dumps([replace(task, stage=None) for task in tasks])  # type: ignore[type-var]
        worker = min(self._threads, key=lambda one: self._waiting_for[one] / self._threads[one], default="")
        future = self._client.submit(
            _play_there, light, shared.future, self._topic, number, pure=False,
            workers=worker or None, allow_other_workers=bool(worker),
        )  # fmt: skip
        self._waiting_for[worker] += 1
        future.add_done_callback(lambda future: self._ended.set())
        return worker, future

    def _send_again(self, number: int, sent: _Sent) -> None:
        self._count_threads()
        if sent.deaths >= MOST_DEATHS:
            raise WorkFailed(
                f"the dask cluster {self._where} lost {sent.deaths} workers over one task (out of memory?); "
                "try fewer --jobs, or workers with more memory"
            ) from None
        if sent.shared.future.status != "finished":
            sent.shared.future = self._scatter(sent.shared.stage)
        self._waiting_for[sent.worker] -= 1
        sent.worker, sent.future = self._submit(number, sent.tasks, sent.shared)

    def _news(self, waiting: dict[int, _Sent]) -> int:
        """The number of steps that workers have reported and we have not."""
        more = 0
        while not self._heard.empty():
            number, steps = self._heard.get()
            if number in waiting:
                more += waiting[number].news(steps)
        return more

    def _count_threads(self) -> None:
        """Learn how many tasks each worker plays at once; a cluster that has gone away is given up."""
        try:
            # A client that could not reach its scheduler for a while has closed itself, and cannot even ask.
            if self._client.status == "closed":
                raise OSError
            self._threads = {worker: n for worker, n in self._client.nthreads().items() if n}
        except OSError:
            raise WorkFailed(f"the dask cluster {self._where} went away; is its scheduler running?") from None
        self._counted = monotonic()
        if self._threads:
            self._last_seen = self._counted
        elif self._counted > self._last_seen + LONELY_SECONDS:
            raise self._no_workers() from None

    def _no_workers(self) -> WorkFailed:
        return WorkFailed(f"the dask cluster {self._where} lost all its workers, and no other came")


def _play_there(tasks: bytes, packed: _Packed, topic: str, number: int) -> tuple[int, float, list[Any]]:
    """On a worker: play tasks on their stage, and tell whoever listens to `topic` how far they are.

    Gives the steps played, the seconds they took, and the results, those of the first tasks if it took long.
    """
    worker = get_worker()
    began = told = monotonic()
    done = 0

    def report(steps: int) -> None:
        nonlocal done, told
        done += int(steps)
        if monotonic() > told + POLL_SECONDS:
            told = monotonic()
            worker.log_event(topic, (number, done))

    try:
        stage = packed.stage()
        whole = [replace(task, stage=stage) for task in loads(tasks)]
    except (ImportError, AttributeError) as error:
        raise InvalidInput(
            f"dask worker {worker.address} cannot read its task: {error}; install there what is here"
        ) from None
    results: list[Any] = []
    while whole and (not results or monotonic() < began + 2 * BUNDLE_SECONDS):
        results.append(whole.pop(0).play(report))
    return done, monotonic() - began, results
