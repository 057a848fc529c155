"""What a simulation gave: a small value to save, load, print, put in a table and plot."""

import json
import os
import platform
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Self

import numba
import numpy as np
import scipy
from numpy.typing import NDArray

from firstclick._version import __version__
from firstclick.errors import InvalidInput
from firstclick.experiments.loop import Trace
from firstclick.extras import needed_by
from firstclick.files.reading import as_path, reading
from firstclick.files.writing import write_whole

FORMAT = "firstclick results 1"

MEASURES = ("regret", "expected_regret", "reward")


@dataclass(frozen=True)
class Shown:
    """An item and the share of slates it was in, over the last tenth of the steps of all runs."""

    item: str
    share: float


@dataclass(frozen=True, eq=False)
class PolicyResult:
    """One policy's curves, one row per run and one column per recorded step.

    `regret` is realised (the same users for the optimal slate), `expected_regret` has the same
    mean and far less noise. Both can be negative where the optimum is only a greedy cover.
    """

    policy: str
    regret: NDArray[np.float64]
    expected_regret: NDArray[np.float64]
    reward: NDArray[np.float64]
    seconds_per_step: float
    shown: tuple[Shown, ...]

    def mean(self, measure: str = "regret") -> NDArray[np.float64]:
        """The mean over runs of 'regret', 'expected_regret' or 'reward' at each recorded step."""
        return np.asarray(self._runs_of(measure).mean(axis=0))

    def stderr(self, measure: str = "regret") -> NDArray[np.float64]:
        """The standard error of that mean; not a number for a single run."""
        runs = self._runs_of(measure)
        if len(runs) < 2:
            return np.full(runs.shape[1], np.nan)
        return np.asarray(runs.std(axis=0, ddof=1) / np.sqrt(len(runs)))

    def _runs_of(self, measure: str) -> NDArray[np.float64]:
        if measure not in MEASURES:
            raise InvalidInput(f"must be one of {', '.join(MEASURES)}, got {measure!r}", "measure")
        return np.asarray(getattr(self, measure))

    def final(self, measure: str) -> dict[str, float | None]:
        """Mean and standard error after the last step, ready for JSON."""
        return {
            "mean": float(self.mean(measure)[-1]),
            "stderr": _number(self.stderr(measure)[-1]),
        }


def installed_versions() -> dict[str, str]:
    """What the last bits of a result depend on, besides its settings."""
    return {
        "firstclick": __version__,
        "numpy": np.__version__,
        "scipy": scipy.__version__,
        "numba": numba.__version__,
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
    }


@dataclass(frozen=True, eq=False)
class Results:
    """Every policy's result on the same users, and what is needed to repeat it."""

    k: int
    steps: int
    runs: int
    seed: int
    n_items: int
    optimal_reward: float
    optimal_items: tuple[Shown, ...]
    step: NDArray[np.int64]
    results: tuple[PolicyResult, ...]
    settings: dict[str, Any]
    notes: tuple[str, ...] = ()
    versions: dict[str, str] = field(default_factory=installed_versions)

    def __getitem__(self, policy: str) -> PolicyResult:
        for result in self.results:
            if result.policy == policy:
                return result
        raise KeyError(f"no policy {policy!r}; there are {[result.policy for result in self.results]}")

    def rows(self) -> list[dict[str, Any]]:
        """One plain row per policy and recorded step."""
        return [
            {"policy": result.policy, "step": int(step)}
            | {
                f"{measure}{suffix}": float(values[point])
                for measure in MEASURES
                for suffix, values in (("", result.mean(measure)), ("_stderr", result.stderr(measure)))
            }
            for result in self.results
            for point, step in enumerate(self.step)
        ]

    def frame(self) -> Any:
        """The rows as a pandas DataFrame; rows() needs no pandas."""
        with needed_by("frame()"):
            import pandas
        return pandas.DataFrame(self.rows())

    def summary(self) -> dict[str, Any]:
        """What `firstclick simulate --json` prints: means and standard errors, no single runs."""
        return {
            "k": self.k,
            "steps": self.steps,
            "runs": self.runs,
            "seed": self.seed,
            "n_items": self.n_items,
            "optimal_reward": self.optimal_reward,
            "optimal_items": [asdict(item) for item in self.optimal_items],
            "settings": self.settings,
            "notes": list(self.notes),
            "versions": self.versions,
            "results": [
                {
                    "policy": result.policy,
                    **{measure: result.final(measure) for measure in MEASURES},
                    "curve": {
                        "step": self.step.tolist(),
                        "regret": result.mean("regret").tolist(),
                        "stderr": [_number(error) for error in result.stderr("regret")],
                        "expected_regret": result.mean("expected_regret").tolist(),
                        "expected_stderr": [_number(error) for error in result.stderr("expected_regret")],
                        "reward": result.mean("reward").tolist(),
                    },
                    "seconds_per_step": result.seconds_per_step,
                    "shown": [asdict(item) for item in result.shown],
                }
                for result in self.results
            ],
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything, every run included, as one JSON file; an older file is replaced whole."""
        content = self.summary() | {"format": FORMAT}
        for entry, result in zip(content["results"], self.results, strict=True):
            entry["by_run"] = {measure: getattr(result, measure).tolist() for measure in MEASURES}
        write_whole(path, json.dumps(content, allow_nan=False).encode())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read what `save` wrote."""
        try:
            with reading(path):
                content = json.loads(as_path(path).read_text(encoding="utf-8"))
            if content["format"] != FORMAT:
                raise InvalidInput(f"{path}: expected {FORMAT!r}, got {content['format']!r}")
            return cls(
                **{name: content[name] for name in ("k", "steps", "runs", "seed", "n_items", "settings")},
                optimal_reward=content["optimal_reward"],
                optimal_items=_items(content["optimal_items"]),
                step=np.array(content["results"][0]["curve"]["step"], np.int64),
                results=tuple(
                    PolicyResult(
                        policy=entry["policy"],
                        **{measure: np.array(entry["by_run"][measure]) for measure in MEASURES},
                        seconds_per_step=entry["seconds_per_step"],
                        shown=_items(entry["shown"]),
                    )
                    for entry in content["results"]
                ),
                notes=tuple(content["notes"]),
                versions=content["versions"],
            )
        except InvalidInput:
            raise
        except (LookupError, TypeError, ValueError, OverflowError, RecursionError):
            raise InvalidInput(f"{path}: not a file that Results.save wrote") from None


def _items(entries: list[dict[str, Any]]) -> tuple[Shown, ...]:
    return tuple(Shown(**entry) for entry in entries)


def _number(value: float) -> float | None:
    """JSON has no NaN: a standard error of one run is null."""
    return None if np.isnan(value) else float(value)


def gather(
    traces: Sequence[Trace],
    policies: Sequence[str],
    *,
    item_names: Sequence[Sequence[str]],
    optimal: Sequence[NDArray[np.int64]],
    optimal_reward: float,
    record: NDArray[np.int64],
    seed: int,
    n_items: int,
    settings: dict[str, Any],
) -> Results:
    """The traces of all runs and policies, in whatever order they finished, as one value.

    `item_names` and `optimal`, the best slate of each view, have one entry per run: runs may differ in
    their items.
    """
    runs, k, steps = len(item_names), optimal[0].shape[1], int(record[-1])
    by_key = {(trace.policy, trace.run): trace for trace in traces}
    results = []
    for index, policy in enumerate(policies):
        mine = [by_key[index, run] for run in range(runs)]
        results.append(
            PolicyResult(
                policy=policy,
                **{measure: np.stack([getattr(trace, measure) for trace in mine]) for measure in MEASURES},
                seconds_per_step=float(np.mean([trace.seconds_per_step for trace in mine])),
                shown=_most_shown(
                    [trace.shown for trace in mine], item_names, slates=runs * max(steps // 10, 1), most=2 * k
                ),
            )
        )
    indicators = [
        np.bincount(slates.ravel(), minlength=len(names))
        for slates, names in zip(optimal, item_names, strict=True)
    ]
    return Results(
        k=k,
        steps=steps,
        runs=runs,
        seed=seed,
        n_items=n_items,
        optimal_reward=optimal_reward,
        optimal_items=_most_shown(indicators, item_names, slates=sum(map(len, optimal)), most=2 * k),
        step=record,
        results=tuple(results),
        settings=settings,
        notes=tuple(dict.fromkeys(note for index in range(len(policies)) for note in by_key[index, 0].notes)),
    )


def _most_shown(
    counts: Sequence[NDArray[np.int64]], names: Sequence[Sequence[str]], *, slates: int, most: int
) -> tuple[Shown, ...]:
    total: dict[str, int] = {}
    for count, name in zip(counts, names, strict=True):
        for item in np.flatnonzero(count).tolist():
            total[name[item]] = total.get(name[item], 0) + int(count[item])
    ranked = sorted(total.items(), key=lambda entry: (-entry[1], entry[0]))
    return tuple(Shown(item, shown / slates) for item, shown in ranked[:most])
