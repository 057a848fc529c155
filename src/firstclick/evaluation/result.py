"""What an evaluation says: numbers with intervals, or that the log cannot say."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from firstclick.source_code import installed_versions

OK, CAUTION, CANNOT_SAY = "ok", "caution", "cannot say"

# The exit code of `evaluate run` when some policy that was asked for cannot be judged.
CANNOT_SAY_CODE = 3

MODEL_BASED = "model-based, not an estimate from the log"


class Estimate(NamedTuple):
    """A number of clicks per page and its interval.

    >>> Estimate(0.31, 0.27, 0.36).low
    0.27

    Attributes:
        value: The estimate.
        low: The lower end of the interval.
        high: The upper end.
    """

    value: float
    low: float
    high: float

    def as_json(self) -> dict[str, float] | None:
        """The estimate as a dict; None if it is not finite."""
        if not all(map(math.isfinite, self)):
            return None
        return self._asdict()


class EstimatorRow(NamedTuple):
    """What one estimator says of one policy."""

    name: str
    title: str
    value: Estimate | None  # None: it cannot be computed, or it must not be believed
    difference: Estimate | None
    chosen: bool
    note: str = ""

    def as_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "title": self.title,
            "value": _json(self.value),
            "difference": _json(self.difference),
            "chosen": self.chosen,
            "note": self.note or None,
        }


@dataclass(frozen=True)
class PolicyAnswer:
    """What the log says about one policy.

    Attributes:
        policy: Its name.
        verdict: `"ok"`, `"caution"` or `"cannot say"`.
        reasons: Why, in sentences.
        needed: The logging that would answer, if this log cannot.
        difference: The policy's clicks per page minus those of what was shown; None for "cannot say".
        value: The policy's clicks per page; None for "cannot say".
        estimator: The title of the chosen estimator.
        why: Why that estimator was chosen.
        estimators: What every estimator says.
        support: Numbers that the verdict rests on.
        notes: What else to know.
    """

    policy: str
    verdict: str
    reasons: tuple[str, ...] = ()
    needed: str = ""
    difference: Estimate | None = None
    value: Estimate | None = None
    estimator: str = ""
    why: str = ""
    estimators: tuple[EstimatorRow, ...] = ()
    support: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """The answer as plain values for JSON."""
        return {
            "policy": self.policy,
            "verdict": self.verdict,
            "reasons": list(self.reasons),
            "needed": self.needed or None,
            "difference": _json(self.difference),
            "value": _json(self.value),
            "estimator": self.estimator or None,
            "why": self.why or None,
            "estimators": [row.as_json() for row in self.estimators],
            "support": plain(self.support),
            "notes": list(self.notes),
        }


@dataclass(frozen=True)
class PlayedAnswer:
    """What a policy that goes on learning earns in worlds fitted to the log: clicks per page."""

    policy: str
    value: Estimate | None
    difference: Estimate | None  # from what was shown, played in the same worlds

    def as_json(self) -> dict[str, Any]:
        return {
            "policy": self.policy,
            "value": _json(self.value),
            "difference": _json(self.difference),
        }


@dataclass(frozen=True)
class Played:
    """Policies that go on learning, played in fitted worlds."""

    answers: tuple[PlayedAnswer, ...]
    shown: Estimate | None
    sentences: tuple[str, ...] = ()  # which model, how many pages, how many refits
    level: float = 0.95

    def as_json(self) -> dict[str, Any]:
        return {
            "kind": MODEL_BASED,
            "level": self.level,
            "about": list(self.sentences),
            "shown": _json(self.shown),
            "policies": [answer.as_json() for answer in self.answers],
        }


@dataclass(frozen=True)
class Evaluation:
    """The answers for several policies from one log. `print(evaluation.text())` shows them.

    Attributes:
        log: The log's name.
        slates: How many slates were used.
        left_out: How many were not, by reason.
        items: The number of items.
        k: The longest slate.
        shown: Clicks per page of what was shown; None if no slate could be used.
        answers: Estimates from the log, one per policy.
        played: Model-based answers for policies that keep learning; None if none were asked for.
        click_model: Which click model fits, in a sentence.
        level: The confidence level of the intervals.
        seed: The seed of everything random.
        notes: Sentences for people.
        description: The log in short, as names and values.
        versions: Versions of firstclick, Python and libraries.
    """

    log: str
    slates: int
    left_out: Mapping[str, int]
    items: int
    k: int
    shown: Estimate | None
    answers: tuple[PolicyAnswer, ...]
    played: Played | None = None
    click_model: str = ""
    level: float = 0.95
    seed: int = 0
    notes: tuple[str, ...] = ()
    description: tuple[tuple[str, str], ...] = ()
    versions: Mapping[str, str] = field(default_factory=installed_versions)

    @property
    def exit_code(self) -> int:
        """0, or 3 if the log cannot judge one of the policies."""
        unknown = any(answer.verdict == CANNOT_SAY for answer in self.answers)
        if self.played is not None:
            unknown = unknown or any(answer.difference is None for answer in self.played.answers)
        return CANNOT_SAY_CODE if unknown else 0

    def answer(self, policy: str) -> PolicyAnswer:
        """The answer for one policy.

        Args:
            policy: Its name, as given to `evaluate`.
        """
        return next(answer for answer in self.answers if answer.policy == policy)

    def text(self) -> str:
        """The headline, tables and reasons, for a terminal."""
        from firstclick.evaluation.text import in_words

        return in_words(self)

    def as_json(self) -> dict[str, Any]:
        """Everything as plain values for JSON. Numbers that are unknown are None."""
        return {
            "log": {
                "name": self.log,
                "slates": self.slates,
                "left_out": dict(self.left_out),
                "items": self.items,
                "k": self.k,
                "about": dict(self.description),
            },
            "unit": "clicks per page",
            "level": self.level,
            "shown": _json(self.shown),
            "policies": [answer.as_json() for answer in self.answers],
            "model_based": None if self.played is None else self.played.as_json(),
            "click_model": self.click_model or None,
            "notes": list(self.notes),
            "seed": self.seed,
            "exit_code": self.exit_code,
            "versions": dict(self.versions),
        }


def _json(estimate: Estimate | None) -> dict[str, float] | None:
    return None if estimate is None else estimate.as_json()


def plain(value: Any) -> Any:
    """The value in types of JSON; a number that is none is null."""
    if isinstance(value, Mapping):
        return {str(name): plain(part) for name, part in value.items()}
    if hasattr(value, "_asdict"):
        return plain(value._asdict())
    if hasattr(value, "tolist"):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value
