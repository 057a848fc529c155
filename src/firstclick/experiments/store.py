"""Finished cells on the disk: whole and trusted, or played again."""

import csv
import hashlib
import json
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from firstclick.errors import WorkFailed
from firstclick.experiments.cells import Cell
from firstclick.experiments.results import MEASURES
from firstclick.files.writing import write_whole

LOG_COLUMNS = (
    "dataset", "group", "items", "rank", "k", "policy", "run", "microseconds_per_step",
    "numpy_microseconds_per_step", "cell",
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class Record:
    """What one cell gave; nothing in it depends on when, where or how fast it was played."""

    step: NDArray[np.int64]
    reward: NDArray[np.float64]
    regret: NDArray[np.float64]
    expected_regret: NDArray[np.float64]
    optimal_reward: float
    optimal_items: tuple[str, ...]  # ids
    shown: dict[str, int]  # ids of the items shown most often in the last tenth of the steps, and how often
    notes: tuple[str, ...]


@dataclass(frozen=True)
class Speed:
    """Seconds of a step in a cell, and of a step of the same algorithm in plain NumPy where it was timed."""

    seconds: float
    numpy_seconds: float | None = None


class CellStore:
    """A folder with one file per finished cell, and a log of when each was played and how fast.

    A file holds its cell's description and a checksum; what does not agree with both is not used.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.log = folder.parent / "speed.csv"

    def load(self, cell: Cell, data_digest: str) -> Record | None:
        """The record of a finished cell; None if there is none that can be trusted."""
        try:
            content = json.loads((self.folder / cell.file_name(data_digest)).read_text(encoding="utf-8"))
            told = content.pop("checksum")
            if told != _checksum(content) or content["cell"] != _plain(cell.describe(data_digest)):
                return None
            record = content["record"]
            return Record(
                step=np.array(record["step"], np.int64),
                **{name: np.array(record[name], np.float64) for name in MEASURES},
                optimal_reward=record["optimal_reward"],
                optimal_items=tuple(record["optimal_items"]),
                shown=record["shown"],
                notes=tuple(record["notes"]),
            )
        except (OSError, ValueError, LookupError, TypeError, AttributeError, OverflowError, RecursionError):
            return None

    def save(self, cell: Cell, data_digest: str, record: Record, speed: Speed) -> None:
        """Put the record on the disk; when this returns it will be found, whatever happens next."""
        content = {"cell": _plain(cell.describe(data_digest)), "record": _plain(asdict(record))}
        content["checksum"] = _checksum(content)
        name = cell.file_name(data_digest)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise WorkFailed(f"{self.folder} cannot be written: {error.strerror or error}") from None
        write_whole(self.folder / name, json.dumps(content, allow_nan=False, sort_keys=True).encode())
        self._note(cell, name, speed)

    def speeds(self) -> dict[str, Speed]:
        """How fast each cell was played when it was, by the name of its file."""
        try:
            with self.log.open(encoding="utf-8", newline="") as file:
                rows = list(csv.DictReader(file))
        except OSError:
            return {}
        found = {}
        for row in rows:
            try:
                numpy_seconds = row["numpy_microseconds_per_step"]
                found[row["cell"]] = Speed(
                    float(row["microseconds_per_step"]) / 1e6,
                    float(numpy_seconds) / 1e6 if numpy_seconds else None,
                )
            except (KeyError, TypeError, ValueError):
                continue  # A line that a crash cut short: speeds are for people, nothing depends on them.
        return found

    def _note(self, cell: Cell, name: str, speed: Speed) -> None:
        # Nothing depends on the log: a disk that is full for it is full for the next cell, which says so.
        with suppress(OSError):
            new = not self.log.exists()
            with self.log.open("a", encoding="utf-8", newline="") as file:
                writer = csv.writer(file, lineterminator="\n")
                if new:
                    writer.writerow(LOG_COLUMNS)
                compared = "" if speed.numpy_seconds is None else f"{speed.numpy_seconds * 1e6:.2f}"
                place = cell.setting
                writer.writerow(
                    [place.dataset, place.group, place.n_items, place.rank, place.k, cell.policy.label,
                     cell.run, f"{speed.seconds * 1e6:.3f}", compared, name]
                )  # fmt: skip


def _plain(value: Any) -> Any:
    """The value as JSON gives it back."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return value


def _checksum(content: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
