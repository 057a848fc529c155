"""Carry experiments out in a folder; the same call goes on where the last one stopped."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from itertools import product
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from firstclick.data.scenario import FeedbackScenario
from firstclick.experiments.cells import Cell, Setting, plan, settings_of
from firstclick.experiments.dataset import Dataset
from firstclick.experiments.engines import Engine, engine_named
from firstclick.experiments.file import Experiment, Training
from firstclick.experiments.folder import CELLS, alone_in
from firstclick.experiments.loop import Beside, Record, Speed
from firstclick.experiments.results import MEASURES, Results, as_csv, gather
from firstclick.experiments.runner import UNWATCHED, Watch, play_cells
from firstclick.experiments.store import CellStore
from firstclick.files.reading import as_path
from firstclick.files.writing import write_whole
from firstclick.source_code import installed_versions
from firstclick.worlds.base import Stage


@dataclass(frozen=True, eq=False)
class Comparison:
    """The results of all policies in one setting of one experiment.

    Attributes:
        experiment: The experiment.
        dataset: The data.
        setting: What the policies share.
        results: Their results.
        optimal_rewards: The reward of the optimal slate in each run.
        speeds: The speed of each policy; only for cells that were played into this folder.
    """

    experiment: Experiment
    dataset: Dataset
    setting: Setting
    results: Results
    optimal_rewards: NDArray[np.float64]  # one per run
    speeds: Mapping[str, Speed]  # by policy; only where the cells were played into this folder


def conduct(
    experiments: Sequence[Experiment],
    datasets: Sequence[Dataset],
    folder: str | os.PathLike[str],
    engine: Engine | str = "local",
    *,
    overwrite: bool = False,
    about: dict[str, Any] | None = None,
    watch: Watch = UNWATCHED,
    beside_numpy: Beside | None = None,
) -> list[Comparison]:
    """Run experiments in a folder. Call it again to continue an interrupted run.

    Finished cells in the folder are not played again. If the data is too small for an experiment, the error
    comes before anything is played. The folder gets `manifest.json`, `results.csv` and `runs.csv`, the same
    bytes however often the run was interrupted, and `speed.csv`.

    Args:
        experiments: What to play.
        datasets: The data, loaded.
        folder: Where results go.
        engine: An engine of `engine_named`, or its name: `"local"`, `"dask"` or `"tcp://host:port"`.
        overwrite: Replace the results of another call in the folder. Its cells are kept.
        about: Plain values to write to `manifest.json` as they are.
        watch: Receives progress.
        beside_numpy: Also time plain NumPy, for the column in `speed.csv`.

    Returns:
        One comparison per setting.
    """
    folder = as_path(folder)
    engine = engine_named(engine, 1) if isinstance(engine, str) else engine
    cells = plan(experiments, datasets)
    with alone_in(folder, _manifest(experiments, datasets) | (about or {}), overwrite=overwrite):
        store = CellStore(folder / CELLS, beside_numpy=beside_numpy is not None)
        stages = _Stages(datasets)
        played = play_cells(cells, stages, engine, store=store, watch=watch, beside=beside_numpy)
        records, speeds = dict(zip(cells, played, strict=True)), store.speeds()
        comparisons = [
            _comparison(experiment, dataset, setting, records, speeds)
            for experiment, dataset in product(experiments, datasets)
            if dataset.source in experiment.data
            for setting in settings_of(experiment, dataset)
        ]
        means = (_place(one) | row for one in comparisons for row in one.results.rows())
        write_whole(folder / "results.csv", as_csv(means))
        write_whole(folder / "runs.csv", as_csv(row for one in comparisons for row in _runs(one)))
    return comparisons


class _Stages:
    """The stage of each cell; settings of one data set and group share splits and features."""

    def __init__(self, datasets: Sequence[Dataset]) -> None:
        self._datasets = {dataset.source.label: dataset for dataset in datasets}
        self._scenario = lru_cache(1)(self._scenario_of)
        # Kept too, because settings that differ in k alone have one stage.
        self._resized = lru_cache(1)(lambda n_items, rank, *key: self._scenario(*key).resized(n_items, rank))

    def __call__(self, cell: Cell) -> Stage:
        at = cell.setting
        scenario = self._resized(at.n_items, at.rank, at.dataset, at.group, at.training)
        return scenario.stage(at.seed, cell.run)

    def _scenario_of(self, label: str, group: str, training: Training) -> FeedbackScenario:
        dataset = self._datasets[label]
        items = dataset.items_of(group)
        ids, ranks = dataset.interactions.item_ids, dataset.interactions.item_ranks
        options = asdict(training)
        if options["pick"] == "source" and not ranks.size:
            options["pick"] = "popular"
        return FeedbackScenario(
            dataset.matrix[:, items] if group else dataset.matrix,
            item_names=[ids[item] for item in items],
            item_ranks=ranks[items] if ranks.size else None,
            **options,
        )


def _comparison(
    experiment: Experiment,
    dataset: Dataset,
    setting: Setting,
    records: Mapping[Cell, Record],
    speeds: Mapping[str, Speed],
) -> Comparison:
    cells = [
        [Cell(setting, policy, run, dataset.digest) for run in range(experiment.runs)]
        for policy in experiment.policies
    ]
    labels = [policy.label for policy in experiment.policies]
    mine = [[records[cell] for cell in each] for each in cells]
    timed = [[speeds[name] for cell in each if (name := cell.file_name()) in speeds] for each in cells]
    return Comparison(
        experiment,
        dataset,
        setting,
        gather(setting, labels, mine, called=dataset.called.__getitem__),
        np.array([record.optimal_reward for record in mine[0]]),
        {label: _typical(each) for label, each in zip(labels, timed, strict=True) if each},
    )


def _typical(timed: Sequence[Speed]) -> Speed:
    """The medians over runs: a run that shared its processor with others does not count."""
    in_numpy = [speed.numpy_seconds for speed in timed if speed.numpy_seconds is not None]
    return Speed(median(speed.seconds for speed in timed), median(in_numpy) if in_numpy else None)


def _place(comparison: Comparison) -> dict[str, Any]:
    setting = comparison.setting
    return {
        "experiment": comparison.experiment.name, "dataset": comparison.dataset.title, "group": setting.group,
        "items": setting.n_items, "rank": setting.rank, "k": setting.k,
    }  # fmt: skip


def _runs(comparison: Comparison) -> Iterator[dict[str, Any]]:
    """Every run, at every recorded step."""
    for result in comparison.results.results:
        for run in range(comparison.results.runs):
            for point, step in enumerate(comparison.results.step):
                yield (
                    _place(comparison)
                    | {"policy": result.policy, "run": run, "step": int(step)}
                    | {measure: float(getattr(result, measure)[run, point]) for measure in MEASURES}
                )


def _manifest(experiments: Sequence[Experiment], datasets: Sequence[Dataset]) -> dict[str, Any]:
    return {
        "versions": installed_versions(),
        "data": {
            dataset.source.label: {
                "title": dataset.title,
                "synthetic": dataset.source.synthetic,
                "users": dataset.matrix.shape[0],
                "items": dataset.matrix.shape[1],
                "attracted pairs": int(dataset.matrix.nnz),
                "facts": dict(dataset.interactions.facts),
                "sha256": dataset.digest,
            }
            for dataset in datasets
        },
        "experiments": {
            experiment.name: {
                "title": experiment.title,
                "policies": [policy.label for policy in experiment.policies],
                "items": list(experiment.items),
                "rank": list(experiment.rank),
                "k": list(experiment.k),
                "group": dict(experiment.group),
                "steps": experiment.steps,
                "runs": experiment.runs,
                "seed": experiment.seed,
                "training": asdict(experiment.training),
            }
            for experiment in experiments
        },
    }
