"""What was measured, as plain numbers, and the file that keeps it while the rest is measured."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from benchmarks.bench.measure import Timing
from firstclick.errors import WorkFailed
from firstclick.registry import policy_class

POLICY, SCAN, FLOOR, PASS = "policy", "scan", "floor", "pass"
PLAIN, TUNED = "plain NumPy", "tuned NumPy"


@dataclass(frozen=True)
class Measured:
    """One cell: the times of its contenders, and how many slates of policy and scan were compared."""

    policy: str
    n_items: int
    n_features: int
    k: int
    timings: dict[str, Timing]
    slates_compared: int
    date: str

    @property
    def key(self) -> tuple[str, int, int, int]:
        return self.policy, self.n_items, self.n_features, self.k

    @property
    def seconds(self) -> float:
        """The policy's time of a step."""
        return self.timings[POLICY].seconds

    @property
    def reads_features(self) -> bool:
        """Whether the policy needs features; if not, a pass over them and its floor say nothing of it."""
        return policy_class(self.policy.partition(":")[0]).needs_features

    @property
    def times_floor(self) -> float | None:
        """How many times as long as its floor the policy takes; None for a policy without features."""
        return self.seconds / self.timings[FLOOR].seconds if self.reads_features else None

    def ratio(self, name: str) -> float | None:
        """How many times as long as the policy this contender takes.

        None if it was not timed, and for one pass over features that the policy does not read.
        """
        timing = self.timings.get(name)
        if timing is None or (name == PASS and not self.reads_features):
            return None
        return timing.seconds / self.seconds

    @classmethod
    def from_plain(cls, plain: dict[str, Any]) -> "Measured":
        timings = {name: Timing(**timing) for name, timing in plain["timings"].items()}
        return cls(**{**plain, "timings": timings})


@dataclass(frozen=True)
class PeerMeasured:
    """What became of one peer on one catalog: a time of a step, or why there is none."""

    peer: str
    version: str
    n_items: int
    n_features: int
    k: int
    seconds: float | None
    steps: int
    memory: int  # bytes, the most it took
    failure: str
    date: str

    @property
    def key(self) -> tuple[str, int, int, int]:
        return self.peer, self.n_items, self.n_features, self.k


@dataclass(frozen=True)
class Bench:
    """All that was measured, where, when and how; `n_features` and `k` are those of the main tables."""

    machine: str
    versions: dict[str, str]
    date: str
    command: str
    n_features: int
    k: int
    cells: tuple[Measured, ...]
    peers: tuple[PeerMeasured, ...]

    @property
    def main(self) -> list[Measured]:
        """The cells of the main tables."""
        return [cell for cell in self.cells if (cell.n_features, cell.k) == (self.n_features, self.k)]

    def cell(self, policy: str, n_items: int) -> Measured | None:
        """The cell of this policy and size in the main tables, if it was measured."""
        found = [cell for cell in self.main if (cell.policy, cell.n_items) == (policy, n_items)]
        return found[0] if found else None


class Kept:
    """Finished measurements in a file, a line each; lines of other machines or other code are left alone."""

    def __init__(self, path: Path | None) -> None:
        self.path = path

    def load(self, kind: str, context: str) -> list[dict[str, Any]]:
        """The measurements of this kind that were made in this context."""
        if self.path is None or not self.path.exists():
            return []
        found = []
        for line in self.path.read_text(encoding="utf-8").splitlines():
            try:
                entry = json.loads(line)
                if (entry["kind"], entry["context"]) == (kind, context):
                    found.append(entry["measured"])
            except (ValueError, KeyError, TypeError):
                continue  # A line that a crash cut short is measured again.
        return found

    def add(self, kind: str, context: str, measured: Measured | PeerMeasured) -> None:
        if self.path is None:
            return
        entry = {"kind": kind, "context": context, "measured": asdict(measured)}
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(entry) + "\n")
        except OSError as error:
            raise WorkFailed(f"{self.path} cannot be written: {error.strerror or error}") from None
