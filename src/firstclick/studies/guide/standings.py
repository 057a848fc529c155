"""What a comparison gave: the regret of every policy in every world, against random order and the default."""

import csv
import io
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from math import nan, sqrt
from typing import Any

import numpy as np
from scipy.special import stdtrit

from firstclick.errors import InvalidInput
from firstclick.experiments.results import as_csv as rows_as_csv
from firstclick.registry import DEFAULT_POLICY
from firstclick.studies.guide.families import FLOOR
from firstclick.studies.guide.fitting import Contender

# By so many standard errors of the paired difference one is clearly better than the other.
CLEARLY = 2.0
# Of the paired difference to the default policy: 90 %, a twentieth on either side.
INTERVAL = 0.9


@dataclass(frozen=True, eq=False)
class Line:
    """One cell of the table, as results.csv has it."""

    world: str
    learner: str  # the policy as it was asked for: readers of the file know it by this name
    policy: str  # as it played
    steps: int
    runs: int
    expected_regret: float
    stderr: float
    share_of_random: float  # 0 for the best slates, 1 for random order; no number if that loses nothing
    times_best: float  # times the least regret of this world; no number where that is not above 0
    leads: bool  # nobody is clearly better
    reason: str
    # NaN where it did not run, or where there is nothing to compare it with.
    p90: float = nan  # the regret that nine runs of ten stay below
    worst_run: float = nan
    more_than_default: float = nan  # run by run; below 0 it lost less than the default policy
    more_low: float = nan  # a 90% interval of it, by Student's t
    more_high: float = nan
    clicks_per_step: float = nan


COLUMNS = tuple(Line.__annotations__)


def lines_of(played: Sequence[Contender], steps: int) -> list[Line]:
    """All contenders against the best and against random order, world by world."""
    lines = []
    for world in dict.fromkeys(one.world for one in played):
        here = [one for one in played if one.world == world]
        best = min((one for one in here if not one.reason), key=lambda one: one.mean)
        floor = next(one for one in here if one.asked == FLOOR)
        default = next((one for one in here if one.asked == DEFAULT_POLICY and not one.reason), None)
        lines += [
            Line(
                world=world.name,
                learner=one.asked,
                policy=one.policy.label,
                steps=steps,
                runs=len(one.regret),
                expected_regret=one.mean,
                stderr=one.stderr,
                share_of_random=one.mean / floor.mean if floor.mean else nan,
                times_best=one.mean / best.mean if best.mean > 0 else nan,
                leads=not one.reason and not _clearly_worse(one, best),
                reason=one.reason,
                **_spread(one, default),
                clicks_per_step=float(one.clicks.mean()) / steps if len(one.clicks) else nan,
            )
            for one in here
        ]
    return lines


def _spread(one: Contender, default: Contender | None) -> dict[str, float]:
    """How its runs differ, and by how much they are worse than those of the default policy."""
    if one.reason:
        return {}
    spread = {"p90": float(np.quantile(one.regret, 0.9)), "worst_run": float(one.regret.max())}
    if default is None or one is default:
        return spread
    more = one.regret - default.regret
    mean = spread["more_than_default"] = float(more.mean())
    if len(more) > 1:
        half = half_width(float(more.std(ddof=1)) / sqrt(len(more)), len(more), (1 - INTERVAL) / 2)
        spread |= {"more_low": mean - half, "more_high": mean + half}
    return spread


def half_width(stderr: float, runs: int, chance: float) -> float:
    """How far from the mean of so many runs the truth is, but for this chance on either side."""
    return float(stdtrit(runs - 1, 1 - chance)) * stderr


def _clearly_worse(one: Contender, best: Contender) -> bool:
    """Whether it loses more in every run, or in the mean by more than luck: runs are paired, having the same
    world and the same users for all."""
    more = one.regret - best.regret
    if (more > 0).all():
        return True
    return len(more) > 1 and bool(more.mean() > CLEARLY * more.std(ddof=1) / sqrt(len(more)))


def as_csv(lines: Sequence[Line]) -> bytes:
    """results.csv: one line for each policy in each world, numbers with six digits."""
    return rows_as_csv(
        {
            name: f"{value:.6g}" if isinstance(value, float) and value == value else value
            for name, value in asdict(line).items()
        }
        for line in lines
    )


def from_csv(content: str) -> list[Line]:
    """The lines of a results.csv."""
    kinds = Line.__annotations__
    rows = list(csv.DictReader(io.StringIO(content, newline="")))
    if rows and set(rows[0]) != set(COLUMNS):
        raise InvalidInput(f"must have the columns {', '.join(COLUMNS)}, got {', '.join(rows[0])}", "results")
    return [Line(**{name: _value(kinds[name], text) for name, text in row.items()}) for row in rows]


def _value(kind: type, text: str) -> Any:
    if kind is bool:
        return text == "True"
    return kind(text) if text or kind is str else nan


def worlds_in(lines: Sequence[Line]) -> list[str]:
    """The names of the worlds of these lines, in the order in which they were played."""
    return list(dict.fromkeys(line.world for line in lines))


def by_cell(lines: Sequence[Line]) -> dict[tuple[str, str], Line]:
    """The line of each policy and world."""
    return {(line.learner, line.world): line for line in lines}
