"""What a simulation gave: a small value to save, load, print, put in a table and plot."""

import csv
import io
import json
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from firstclick.errors import InvalidInput
from firstclick.experiments.cells import Setting
from firstclick.experiments.loop import Against, Record
from firstclick.extras import needed_by
from firstclick.files.reading import as_path, reading
from firstclick.files.writing import write_whole
from firstclick.source_code import installed_versions
from firstclick.validation.quoting import quoted

FORMAT = "firstclick results 1"

MEASURES = ("regret", "expected_regret", "reward")
PLAIN = ("k", "steps", "runs", "seed", "n_items")


@dataclass(frozen=True)
class Shown:
    """An item, and the share of slates that showed it in the last tenth of the steps of all runs.

    >>> from firstclick.experiments import Shown
    >>> Shown("tea", 0.25).share
    0.25

    Attributes:
        item: The item's name.
        share: From 0 to 1.
    """

    item: str
    share: float


@dataclass(frozen=True, eq=False)
class PolicyResult:
    """The curves of one policy: one row per run, one column per recorded step.

    >>> from firstclick import make_world, simulate
    >>> results = simulate(["random"], make_world("blb:n_items=8,k=2"), k=2, steps=100, runs=2, seed=1)
    >>> (random,) = results.results
    >>> round(float(random.mean("expected_regret")[-1]), 1)
    19.5

    Attributes:
        policy: The policy's name, with parameters that differ from the defaults.
        regret: Clicks lost so far to the optimal slate, on the same users. May be negative where the optimum
            is only a greedy cover.
        expected_regret: The same in expectation: the same mean, much less noise.
        reward: Clicks so far.
        seconds_per_step: Time per step.
        shown: The items that were shown most.
        against: The comparison with the baseline; None without one.
    """

    policy: str
    regret: NDArray[np.float64]
    expected_regret: NDArray[np.float64]
    reward: NDArray[np.float64]
    seconds_per_step: float
    shown: tuple[Shown, ...]
    against: Against | None = None  # where there was a baseline, rows and columns as above

    def mean(self, measure: str = "regret") -> NDArray[np.float64]:
        """The mean over runs at each recorded step.

        Args:
            measure: `"regret"`, `"expected_regret"` or `"reward"`.
        """
        return np.asarray(self._runs_of(measure).mean(axis=0))

    def stderr(self, measure: str = "regret") -> NDArray[np.float64]:
        """The standard error of the mean at each recorded step; NaN for a single run.

        Args:
            measure: `"regret"`, `"expected_regret"` or `"reward"`.
        """
        runs = self._runs_of(measure)
        if len(runs) < 2:
            return np.full(runs.shape[1], np.nan)
        return np.asarray(runs.std(axis=0, ddof=1) / np.sqrt(len(runs)))

    def _runs_of(self, measure: str) -> NDArray[np.float64]:
        if measure not in MEASURES:
            raise InvalidInput(f"must be one of {', '.join(MEASURES)}, got {measure!r}", "measure")
        return np.asarray(getattr(self, measure))

    def final(self, measure: str) -> dict[str, float | None]:
        """The mean and standard error after the last step, as a dict for JSON.

        Args:
            measure: `"regret"`, `"expected_regret"` or `"reward"`.
        """
        return {
            "mean": float(self.mean(measure)[-1]),
            "stderr": _number(self.stderr(measure)[-1]),
        }


@dataclass(frozen=True, eq=False)
class Results:
    """The results of all policies on the same users, with everything needed to repeat them.

    >>> from firstclick import make_world, simulate
    >>> results = simulate(["random"], make_world("blb:n_items=8,k=2"), k=2, steps=100, runs=2, seed=1)
    >>> results.steps, results.runs, [one.policy for one in results.results]
    (100, 2, ['random'])
    >>> results["random"].reward.shape == (2, len(results.step))
    True

    Attributes:
        k: The length of a slate.
        steps: Slates per run.
        runs: The number of runs.
        seed: The seed of everything random.
        n_items: The number of items.
        optimal_reward: Expected clicks per slate of the optimal slate.
        optimal_items: The items of the optimal slates, each with the share of those slates that have it.
        step: The recorded steps: the columns of every curve.
        results: One `PolicyResult` per policy. `results["NAME"]` finds one.
        settings: What `simulate` was given as `settings`.
        notes: Sentences for people.
        versions: Versions of firstclick, Python and libraries.
    """

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
        """One plain dict per policy and recorded step."""
        return [
            {"policy": result.policy, "step": int(step)}
            | {
                f"{measure}{suffix}": float(values[point])
                for measure in MEASURES
                for suffix, values in (("", result.mean(measure)), ("_stderr", result.stderr(measure)))
            }
            | {
                f"{name}_against_baseline": float(values[:, point].mean())
                for name, values in _fields(result.against).items()
            }
            for result in self.results
            for point, step in enumerate(self.step)
        ]

    def frame(self) -> Any:
        """The rows as a pandas DataFrame. `rows()` works without pandas."""
        with needed_by("frame()"):
            import pandas
        return pandas.DataFrame(self.rows())

    def summary(self) -> dict[str, Any]:
        """What `firstclick simulate --json` prints: means and standard errors, without single runs."""
        return {
            **{name: getattr(self, name) for name in (*PLAIN, "optimal_reward")},
            "optimal_items": [asdict(item) for item in self.optimal_items],
            "settings": self.settings,
            "notes": list(self.notes),
            "versions": self.versions,
            "results": [self._summary_of(result) for result in self.results],
        }

    def _summary_of(self, result: PolicyResult) -> dict[str, Any]:
        return {
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
            **(
                {"against_baseline": {name: values.mean(axis=0).tolist() for name, values in against.items()}}
                if (against := _fields(result.against))
                else {}
            ),
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to one JSON file, including every run. An older file is replaced as a whole.

        Args:
            path: The file to write.
        """
        content = self.summary() | {"format": FORMAT}
        for entry, result in zip(content["results"], self.results, strict=True):
            entry["by_run"] = {measure: getattr(result, measure).tolist() for measure in MEASURES}
            if against := _fields(result.against):
                entry["by_run"]["against_baseline"] = {
                    name: values.tolist() for name, values in against.items()
                }
        write_whole(path, json.dumps(content, allow_nan=False).encode())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """Read results that `save` wrote.

        Args:
            path: The file.

        Raises:
            InvalidInput: The file was not written by `save`.
        """
        try:
            with reading(path):
                content = json.loads(as_path(path).read_text(encoding="utf-8"))
            if content["format"] != FORMAT:
                raise InvalidInput(
                    f"{path} has the format {quoted(content['format'])}, and this firstclick reads "
                    f"{FORMAT!r}; run the simulation again"
                )
            return cls(
                **{name: content[name] for name in (*PLAIN, "optimal_reward", "settings")},
                optimal_items=_items(content["optimal_items"]),
                step=np.array(content["results"][0]["curve"]["step"], np.int64),
                results=tuple(
                    PolicyResult(
                        policy=entry["policy"],
                        **{measure: np.array(entry["by_run"][measure]) for measure in MEASURES},
                        seconds_per_step=entry["seconds_per_step"],
                        shown=_items(entry["shown"]),
                        against=_against(entry["by_run"].get("against_baseline")),
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


def _fields(against: Against | None) -> dict[str, NDArray[np.float64]]:
    return {} if against is None else against._asdict()


def _against(entry: dict[str, Any] | None) -> Against | None:
    return None if entry is None else Against(**{name: np.array(runs) for name, runs in entry.items()})


def _items(entries: list[dict[str, Any]]) -> tuple[Shown, ...]:
    return tuple(Shown(**entry) for entry in entries)


def _number(value: float) -> float | None:
    """JSON has no NaN: a standard error of one run is null."""
    return None if np.isnan(value) else float(value)


def as_csv(rows: Iterable[Mapping[str, Any]]) -> bytes:
    """Rows with the same keys as a CSV file with a header; what is no number is empty."""
    text = io.StringIO(newline="")
    writer = csv.writer(text, lineterminator="\n")
    for number, row in enumerate(rows):
        if number == 0:
            writer.writerow(row)
        writer.writerow([None if value != value else value for value in row.values()])
    return text.getvalue().encode()


def gather(
    setting: Setting,
    policies: Sequence[str],
    records: Sequence[Sequence[Record]],
    *,
    called: Callable[[str], str] = str,
    settings: dict[str, Any] | None = None,
) -> Results:
    """The records of each policy, one a run, as one value; `called` says what to call an item."""
    k, runs, first = setting.k, len(records[0]), records[0]
    slates = runs * max(setting.steps // 10, 1)
    return Results(
        k=k,
        steps=setting.steps,
        runs=runs,
        seed=setting.seed,
        n_items=setting.n_items,
        optimal_reward=float(np.mean([record.optimal_reward for record in first])),
        optimal_items=_most_shown(
            [record.optimal_items for record in first], called, sum(record.views for record in first), 2 * k
        ),
        step=first[0].step,
        results=tuple(
            PolicyResult(
                policy=policy,
                **{name: np.stack([getattr(record, name) for record in mine]) for name in MEASURES},
                seconds_per_step=float(
                    np.mean([np.nan if record.speed is None else record.speed.seconds for record in mine])
                ),
                shown=_most_shown([record.shown for record in mine], called, slates, 2 * k),
                against=_gathered([record.against for record in mine]),
            )
            for policy, mine in zip(policies, records, strict=True)
        ),
        settings=settings or {},
        notes=tuple(dict.fromkeys(note for mine in records for note in mine[0].notes)),
    )


def _gathered(runs: Sequence[Against | None]) -> Against | None:
    known = [run for run in runs if run is not None]
    return Against(*(np.stack(curves) for curves in zip(*known, strict=True))) if known else None


def _most_shown(
    counts: Sequence[Mapping[str, int]], called: Callable[[str], str], slates: int, most: int
) -> tuple[Shown, ...]:
    total: Counter[str] = Counter()
    for count in counts:
        for item, times in count.items():
            total[called(item)] += times
    ranked = sorted(total.items(), key=lambda entry: (-entry[1], entry[0]))
    return tuple(Shown(item, times / slates) for item, times in ranked[:most])
