"""Carry experiments out in a folder; the same call goes on where the last one stopped."""

import os
from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from firstclick.experiments.cells import plan
from firstclick.experiments.comparison import Comparison, comparisons_of
from firstclick.experiments.dataset import Dataset
from firstclick.experiments.engine import Engine, engine_named
from firstclick.experiments.file import Experiment
from firstclick.experiments.folder import CELLS, alone_in, check_folder, write_manifest
from firstclick.experiments.play import UNWATCHED, Watch, play_missing
from firstclick.experiments.results import installed_versions
from firstclick.experiments.store import CellStore
from firstclick.experiments.tables import write_tables
from firstclick.files.reading import as_path


def conduct(
    experiments: Sequence[Experiment],
    datasets: Sequence[Dataset],
    folder: str | os.PathLike[str],
    engine: Engine | str = "local",
    *,
    overwrite: bool = False,
    about: dict[str, Any] | None = None,
    watch: Watch = UNWATCHED,
) -> list[Comparison]:
    """Every comparison of the experiments; cells finished in the folder already are not played again.

    `engine` is one of `engine_named`, or its name for one process. What the data is too small for is said
    before anything is played. A folder with the results of another call is refused without `overwrite`;
    cells are kept in any case. The folder gets manifest.json (`about` in it as it is), results.csv and
    runs.csv, the same bytes however often it was interrupted; and speed.csv, the one file that tells how
    fast it went.
    """
    folder = as_path(folder)
    engine = engine_named(engine, 1) if isinstance(engine, str) else engine
    cells = plan(experiments, datasets)
    check_folder(folder)
    with alone_in(folder):
        write_manifest(folder, _manifest(experiments, datasets) | (about or {}), overwrite=overwrite)
        store = CellStore(folder / CELLS)
        play_missing(cells, datasets, store, engine, watch)
        comparisons = [
            comparison
            for experiment in experiments
            for dataset in datasets
            if dataset.source in experiment.data
            for comparison in comparisons_of(experiment, dataset, store)
        ]
        write_tables(comparisons, folder)
    return comparisons


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
