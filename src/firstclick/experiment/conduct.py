"""Carry experiments out in a folder; the same call goes on where the last one stopped."""

import json
import tempfile
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from firstclick.errors import InvalidInput
from firstclick.experiment.cells import plan, policies_of
from firstclick.experiment.comparison import Comparison, comparisons_of
from firstclick.experiment.dataset import Dataset
from firstclick.experiment.declaration import Experiment
from firstclick.experiment.play import UNWATCHED, Watch, play_missing
from firstclick.experiment.store import CellStore
from firstclick.experiment.tables import write_tables
from firstclick.simulate.engine import Engine
from firstclick.simulate.results import installed_versions
from firstclick.writing import write_whole

MANIFEST = "manifest.json"
CELLS = "cells"


def check_folder(folder: Path) -> None:
    """Refuse a folder that cannot be written, or that holds something other than an experiment of ours."""
    try:
        if folder.exists() and not folder.is_dir():
            raise InvalidInput(f"{folder} is a file; the results need a folder")
        held = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
        if held and MANIFEST not in held:
            raise InvalidInput(f"{folder} holds other files ({held[0]}); name a new folder, or an empty one")
        folder.mkdir(parents=True, exist_ok=True)
        # Tried, because permissions alone do not tell: a file system may be read-only.
        tempfile.TemporaryFile(dir=folder).close()
    except OSError as error:
        raise InvalidInput(f"{folder} cannot be written: {error.strerror or error}") from None


def conduct(
    experiments: Sequence[Experiment],
    datasets: Sequence[Dataset],
    folder: Path,
    engine: Engine,
    *,
    extras: bool = True,
    about: dict[str, Any] | None = None,
    watch: Watch = UNWATCHED,
) -> list[Comparison]:
    """Every comparison of the experiments; cells finished in the folder already are not played again.

    What the data is too small for is said before anything is played. The folder gets manifest.json
    (`about` in it as it is), results.csv and runs.csv, the same bytes however often it was interrupted;
    and speed.csv, the one file that tells how fast it went.
    """
    cells = plan(experiments, datasets, extras=extras)
    check_folder(folder)
    manifest = _manifest(experiments, datasets, extras=extras) | (about or {})
    write_whole(folder / MANIFEST, (json.dumps(manifest, indent=2, ensure_ascii=False) + "\n").encode())
    store = CellStore(folder / CELLS)
    play_missing(cells, datasets, store, engine, watch)
    comparisons = [
        comparison
        for experiment in experiments
        for dataset in datasets
        if dataset.source in experiment.data
        for comparison in comparisons_of(experiment, dataset, store, extras=extras)
    ]
    write_tables(comparisons, folder)
    return comparisons


def _manifest(
    experiments: Sequence[Experiment], datasets: Sequence[Dataset], *, extras: bool
) -> dict[str, Any]:
    return {
        "format": "firstclick experiments 1",
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
                "policies": [policy.label for policy in policies_of(experiment, extras=extras)],
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
