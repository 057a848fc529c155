"""The one runner: cells that are not stored yet are played by an engine, and kept as soon as they are."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from firstclick.experiments.cells import Cell, recorded_steps
from firstclick.experiments.engines import Engine
from firstclick.experiments.loop import Beside, Record, Task
from firstclick.experiments.store import CellStore
from firstclick.files.progress import Progress, silent
from firstclick.worlds.base import Stage

# Runs of a setting that are timed beside another implementation: enough for a median, and few for a sweep of
# short cells.
RUNS_TIMED = 3


@dataclass(frozen=True)
class Watch:
    """Who wants to know: `begins(finished, cells)` once before the first step, then `steps(done, total)`.

    Steps of cells that were found finished count as done.
    """

    begins: Progress = silent
    steps: Progress = silent


UNWATCHED = Watch()


def play_cells(
    cells: Sequence[Cell],
    stage_of: Callable[[Cell], Stage],
    engine: Engine,
    *,
    recorded: Callable[[int], NDArray[np.int64]] = recorded_steps,
    store: CellStore | None = None,
    watch: Watch = UNWATCHED,
    beside: Beside | None = None,
    baseline_of: Callable[[Cell, Stage], NDArray[np.int64]] | None = None,
    max_loss: float | None = None,
) -> list[Record]:
    """The records of the cells, in their order; those that the store holds are not played again.

    `stage_of` is asked once for neighbours of one setting and run. `recorded` gives the steps at which curves
    are recorded, of so many. With `beside` the first runs are timed beside another implementation. With
    `baseline_of` cells are played beside a baseline, over a floor of `max_loss`.
    """
    loaded = {number: store.load(cell) for number, cell in enumerate(cells)} if store else {}
    found = {number: record for number, record in loaded.items() if record is not None}
    total = sum(cell.setting.steps for cell in cells)
    done = sum(cells[number].setting.steps for number in found)
    watch.begins(len(found), len(cells))

    def report(steps: int) -> None:
        nonlocal done
        done += steps
        watch.steps(done, total)

    def tasks() -> Iterator[Task]:
        latest: tuple[Any, ...] | None = None
        for number in [number for number in range(len(cells)) if number not in found]:
            cell, setting = cells[number], cells[number].setting
            shared = setting, cell.data, cell.run
            if shared != latest:
                latest, stage = shared, stage_of(cell)
                optimal = stage.world.optimal_slates(setting.k)
                baseline = None if baseline_of is None else baseline_of(cell, stage)
                rewards = [stage.world.expected_reward(slate, view) for view, slate in enumerate(optimal)]
            yield Task(
                number, cell.policy, stage, optimal, stage.world.mean_over_views(rewards), cell.run,
                recorded(setting.steps), setting.seed, beside if cell.run < RUNS_TIMED else None,
                baseline, max_loss,
            )  # fmt: skip

    report(0)
    for number, record in engine(tasks(), report):
        found[number] = record if store is None else store.save(cells[number], record)
    return [found[number] for number in range(len(cells))]
