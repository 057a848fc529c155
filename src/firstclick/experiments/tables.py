"""Results as tidy CSV files: one value a cell, one observation a row."""

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from firstclick.experiments.comparison import Comparison
from firstclick.experiments.results import MEASURES
from firstclick.files.writing import write_whole


def write_tables(comparisons: Sequence[Comparison], folder: Path) -> None:
    """results.csv has means and standard errors over runs, runs.csv every run; both every recorded step."""
    _write(folder / "results.csv", (row for comparison in comparisons for row in _means(comparison)))
    _write(folder / "runs.csv", (row for comparison in comparisons for row in _runs(comparison)))


def _place(comparison: Comparison) -> dict[str, Any]:
    setting = comparison.setting
    return {
        "experiment": comparison.experiment.name, "dataset": comparison.dataset.title, "group": setting.group,
        "items": setting.n_items, "rank": setting.rank, "k": setting.k,
    }  # fmt: skip


def _means(comparison: Comparison) -> Iterator[dict[str, Any]]:
    return (_place(comparison) | row for row in comparison.results.rows())


def _runs(comparison: Comparison) -> Iterator[dict[str, Any]]:
    for result in comparison.results.results:
        for run in range(comparison.results.runs):
            for point, step in enumerate(comparison.results.step):
                yield (
                    _place(comparison)
                    | {"policy": result.policy, "run": run, "step": int(step)}
                    | {measure: float(getattr(result, measure)[run, point]) for measure in MEASURES}
                )


def _write(path: Path, rows: Iterator[dict[str, Any]]) -> None:
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    for number, row in enumerate(rows):
        if number == 0:
            writer.writerow(row)
        # The standard error of a single run is no number: empty.
        writer.writerow([None if value != value else value for value in row.values()])
    write_whole(path, text.getvalue().encode())
