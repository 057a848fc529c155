"""Finished cells on the disk: whole and trusted, or played again."""

import csv
import hashlib
import json
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from firstclick.errors import WorkFailed
from firstclick.experiments.cells import Cell
from firstclick.experiments.loop import Record, Speed
from firstclick.experiments.results import MEASURES
from firstclick.files.writing import write_whole

NUMPY = "numpy_microseconds_per_step"


class CellStore:
    """A folder with one file per finished cell, and a log of when and how fast each was played.

    Each file holds its cell's description and a checksum. A file that does not match is ignored.

    Args:
        folder: The folder.
        beside_numpy: The log of speeds has a column for plain NumPy.
    """

    def __init__(self, folder: Path, *, beside_numpy: bool = False) -> None:
        self.folder, self.beside_numpy = folder, beside_numpy
        self.log = folder.parent / "speed.csv"

    def load(self, cell: Cell) -> Record | None:
        """The record of a finished cell; None if there is none, or it does not match.

        Args:
            cell: The cell.
        """
        try:
            content = json.loads((self.folder / cell.file_name()).read_text(encoding="utf-8"))
            told = content.pop("checksum")
            if told != _checksum(content) or content["cell"] != cell.describe():
                return None
            record = content["record"]
            for name in MEASURES:
                record[name] = np.array(record[name], np.float64)
            return Record(
                **record | {"step": np.array(record["step"], np.int64), "notes": tuple(record["notes"])}
            )
        except (OSError, ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError):
            return None

    def save(self, cell: Cell, record: Record) -> Record:
        """Write the record of a finished cell to disk. Only the items that were shown most are kept.

        Args:
            cell: The cell.
            record: Its result.

        Returns:
            What `load` will return.
        """
        most = sorted(record.shown.items(), key=lambda entry: -entry[1])[: 2 * cell.setting.k]
        kept = replace(record, shown=dict(most), speed=None)
        plain = {name: value for name, value in vars(kept).items() if name not in ("speed", "against")}
        plain |= {name: plain[name].tolist() for name in ("step", *MEASURES)}
        content: dict[str, Any] = {"cell": cell.describe(), "record": plain}
        content["checksum"] = _checksum(content)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise WorkFailed(f"{self.folder} cannot be written: {error.strerror or error}") from None
        write_whole(
            self.folder / cell.file_name(), json.dumps(content, allow_nan=False, sort_keys=True).encode()
        )
        if record.speed is not None:
            self._note(cell, record.speed)
        return kept

    def speeds(self) -> dict[str, Speed]:
        """How fast each cell was played, by file name."""
        found = {}
        with suppress(OSError), self.log.open(encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                # A line that a crash cut short is left out: speeds are for people, nothing depends on them.
                with suppress(KeyError, TypeError, ValueError):
                    in_numpy = row.get(NUMPY)
                    found[row["cell"]] = Speed(
                        float(row["microseconds_per_step"]) / 1e6, float(in_numpy) / 1e6 if in_numpy else None
                    )
        return found

    def _note(self, cell: Cell, speed: Speed) -> None:
        place = cell.setting
        row = {
            "dataset": place.dataset, "group": place.group, "items": place.n_items, "rank": place.rank,
            "k": place.k, "policy": cell.policy.label, "run": cell.run,
            "microseconds_per_step": f"{speed.seconds * 1e6:.3f}",
            NUMPY: "" if speed.numpy_seconds is None else f"{speed.numpy_seconds * 1e6:.2f}",
            "cell": cell.file_name(),
        }  # fmt: skip
        # Nothing depends on the log: a disk that is full for it is full for the next cell, which says so.
        with suppress(OSError), self.log.open("a+", encoding="utf-8", newline="") as file:
            file.seek(0)
            columns = next(csv.reader(file), None)
            ours = [name for name in row if name != NUMPY or self.beside_numpy]
            writer = csv.DictWriter(file, columns or ours, extrasaction="ignore", lineterminator="\n")
            if columns is None:
                writer.writeheader()
            writer.writerow(row)


def _checksum(content: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
