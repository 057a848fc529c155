"""Play the cells that are not finished yet, and keep each as soon as it is."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from firstclick.data.scenario import FeedbackScenario
from firstclick.experiments.cells import Cell, Setting, recorded_steps
from firstclick.experiments.dataset import Dataset
from firstclick.experiments.engine import Engine, StagedTask
from firstclick.experiments.loop import play_run
from firstclick.experiments.plain_numpy import numpy_seconds_per_step
from firstclick.experiments.store import CellStore, Record, Speed
from firstclick.policies.base import Policy
from firstclick.worlds.base import Stage


def _nothing(done: int, total: int) -> None:
    pass


@dataclass(frozen=True)
class Watch:
    """Who wants to know: `begins(finished, cells)` once before the first step, then `steps(done, total)`.

    Steps of cells that were found finished count as done.
    """

    begins: Callable[[int, int], Any] = _nothing
    steps: Callable[[int, int], Any] = _nothing


UNWATCHED = Watch()

# Runs of a setting that are timed against NumPy too: enough for a median, and few for a sweep of short cells.
RUNS_COMPARED = 3


@dataclass(frozen=True)
class Played:
    """A cell's number in the list of cells to play, and what it gave."""

    index: int
    record: Record
    speed: Speed


@dataclass(frozen=True)
class CellTask:
    """One cell with everything that a process far away needs to play it."""

    index: int
    policy: Policy
    stage: Stage
    optimal: NDArray[np.int64]
    optimal_reward: float
    run: int
    record: NDArray[np.int64]
    seed: int
    beside_numpy: bool = True  # Time the same algorithm in plain NumPy too, in the first runs.

    def play(self, report: Callable[[int], Any]) -> Played:
        trace = play_run(
            self.policy, self.stage, self.optimal, record=self.record, seed=self.seed, run=self.run,
            report=report,
        )  # fmt: skip
        ids, k = self.stage.item_names, self.optimal.shape[1]
        most = np.argsort(-trace.shown, kind="stable")[: 2 * k]
        record = Record(
            step=self.record,
            reward=trace.reward,
            regret=trace.regret,
            expected_regret=trace.expected_regret,
            optimal_reward=self.optimal_reward,
            optimal_items=tuple(ids[item] for item in self.optimal[0]),
            shown={ids[item]: int(trace.shown[item]) for item in most if trace.shown[item]},
            notes=trace.notes,
        )
        # Right here, where both have the same neighbours.
        compared = None
        if self.beside_numpy and self.run < RUNS_COMPARED:
            compared = numpy_seconds_per_step(self.policy, self.stage, k)
        return Played(self.index, record, Speed(trace.seconds_per_step, compared))


def play_missing(
    cells: Sequence[Cell],
    datasets: Sequence[Dataset],
    store: CellStore,
    engine: Engine,
    watch: Watch,
) -> None:
    """Every cell of experiments on these data sets is in the store."""
    by_label = {dataset.source.label: dataset for dataset in datasets}
    digests = [by_label[cell.setting.dataset].digest for cell in cells]
    finish(cells, digests, lambda missing: _tasks(cells, missing, by_label), store, engine, watch)


def finish(
    cells: Sequence[Cell],
    digests: Sequence[str],
    tasks: Callable[[Sequence[int]], Iterator[StagedTask[Played]]],
    store: CellStore,
    engine: Engine,
    watch: Watch,
) -> None:
    """Every cell is in the store; those that were there already are not played.

    A digest tells what the world of its cell is made of; `tasks` makes those of the cells with these numbers.
    """
    missing = [
        number
        for number, (cell, digest) in enumerate(zip(cells, digests, strict=True))
        if store.load(cell, digest) is None
    ]
    total = sum(cell.setting.steps for cell in cells)
    done = total - sum(cells[number].setting.steps for number in missing)
    watch.begins(len(cells) - len(missing), len(cells))
    watch.steps(done, total)

    def report(steps: int) -> None:
        nonlocal done
        done += steps
        watch.steps(done, total)

    for played in engine(tasks(missing), report):
        store.save(cells[played.index], digests[played.index], played.record, played.speed)


def _tasks(
    cells: Sequence[Cell], missing: Sequence[int], by_label: Mapping[str, Dataset]
) -> Iterator[CellTask]:
    """The tasks of missing cells; a stage and its best slate are made once for neighbours that share them."""
    scenarios = _Scenarios(by_label)
    latest: tuple[Any, ...] | None = None
    for number in missing:
        cell = cells[number]
        setting = cell.setting
        wanted = setting, cell.run
        if latest is None or latest[0] != wanted:
            stage = scenarios.of(setting).stage(setting.seed, cell.run)
            optimal = stage.world.optimal_slates(setting.k)
            latest = wanted, stage, optimal, stage.world.expected_reward(optimal[0])
        _, stage, optimal, best = latest
        record = recorded_steps(setting.steps)
        yield CellTask(number, cell.policy, stage, optimal, best, cell.run, record, setting.seed)


class _Scenarios:
    """The scenario of each setting; settings of one data set and group share splits and features."""

    def __init__(self, by_label: Mapping[str, Dataset]) -> None:
        self._by_label = by_label
        self._shared: tuple[Any, FeedbackScenario] | None = None
        self._latest: tuple[Any, FeedbackScenario] | None = None

    def of(self, setting: Setting) -> FeedbackScenario:
        shared = setting.dataset, setting.group, setting.training
        if self._shared is None or self._shared[0] != shared:
            dataset = self._by_label[setting.dataset]
            items = dataset.items_of(setting.group)
            ids, ranks = dataset.interactions.item_ids, dataset.interactions.item_ranks
            options = asdict(setting.training)
            if options["pick"] == "source" and not ranks.size:
                options["pick"] = "popular"
            scenario = FeedbackScenario(
                dataset.matrix[:, items] if setting.group else dataset.matrix,
                item_names=[ids[item] for item in items],
                item_ranks=ranks[items] if ranks.size else None,
                **options,
            )
            self._shared = shared, scenario
        # Kept too, because settings that differ in k alone have one stage.
        wanted = *shared, setting.n_items, setting.rank
        if self._latest is None or self._latest[0] != wanted:
            self._latest = wanted, self._shared[1].resized(setting.n_items, setting.rank)
        return self._latest[1]
