"""Finished cells put together again: learners side by side, one comparison for each setting."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
from numpy.typing import NDArray

from firstclick.errors import WorkFailed
from firstclick.experiments.cells import Cell, Setting, settings_of
from firstclick.experiments.dataset import Dataset
from firstclick.experiments.file import Experiment
from firstclick.experiments.results import MEASURES, PolicyResult, Results, Shown
from firstclick.experiments.store import CellStore, Record, Speed


@dataclass(frozen=True, eq=False)
class Comparison:
    """Every policy in one setting of one experiment, over all runs."""

    experiment: Experiment
    dataset: Dataset
    setting: Setting
    results: Results
    optimal_rewards: NDArray[np.float64]  # one per run
    speeds: Mapping[str, Speed]  # by policy; only where the cells were played into this folder


def comparisons_of(experiment: Experiment, dataset: Dataset, store: CellStore) -> list[Comparison]:
    """The comparisons of an experiment on one data set, as its file orders them; all cells are finished."""
    speeds = store.speeds()
    return [
        _comparison(experiment, dataset, setting, store, speeds)
        for setting in settings_of(experiment, dataset)
    ]


def _comparison(
    experiment: Experiment, dataset: Dataset, setting: Setting, store: CellStore,
    speeds: Mapping[str, Speed],
) -> Comparison:  # fmt: skip
    results, compared = [], {}
    records: list[Record] = []
    for policy in experiment.policies:
        cells = [Cell(setting, policy, run) for run in range(experiment.runs)]
        records = [_finished(store, cell, dataset.digest) for cell in cells]
        timed = [speeds[name] for cell in cells if (name := cell.file_name(dataset.digest)) in speeds]
        if timed:
            compared[policy.label] = _typical(timed)
        results.append(
            PolicyResult(
                policy=policy.label,
                **{name: np.stack([getattr(record, name) for record in records]) for name in MEASURES},
                seconds_per_step=float("nan"),
                shown=_most_shown(
                    [record.shown for record in records],
                    dataset.called,
                    max(setting.steps // 10, 1),
                    2 * setting.k,
                ),
            )
        )
    best = np.array([record.optimal_reward for record in records])
    return Comparison(
        experiment=experiment,
        dataset=dataset,
        setting=setting,
        results=Results(
            k=setting.k,
            steps=setting.steps,
            runs=experiment.runs,
            seed=setting.seed,
            n_items=setting.n_items,
            optimal_reward=float(best.mean()),
            optimal_items=_most_shown(
                [dict.fromkeys(record.optimal_items, 1) for record in records],
                dataset.called,
                1,
                2 * setting.k,
            ),
            step=records[0].step,
            results=tuple(results),
            settings={},
            notes=tuple(dict.fromkeys(note for record in records for note in record.notes)),
        ),
        optimal_rewards=best,
        speeds=compared,
    )


def _finished(store: CellStore, cell: Cell, digest: str) -> Record:
    record = store.load(cell, digest)
    if record is None:
        raise WorkFailed(f"{store.folder / cell.file_name(digest)} is gone; run it again")
    return record


def _typical(timed: Sequence[Speed]) -> Speed:
    """The medians over runs: a run that shared its processor with others does not count."""
    in_numpy = [speed.numpy_seconds for speed in timed if speed.numpy_seconds is not None]
    return Speed(median(speed.seconds for speed in timed), median(in_numpy) if in_numpy else None)


def _most_shown(
    counts: Sequence[Mapping[str, int]], called: Mapping[str, str], slates: int, most: int
) -> tuple[Shown, ...]:
    total: dict[str, int] = {}
    for shown in counts:
        for item, times in shown.items():
            total[called[item]] = total.get(called[item], 0) + times
    ranked = sorted(total.items(), key=lambda entry: (-entry[1], entry[0]))
    return tuple(Shown(item, times / (slates * len(counts))) for item, times in ranked[:most])
