"""Policies that go on learning, played in worlds that were fitted to a log: a model-based answer."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import t as student

from firstclick.click_models.click_fit import FITTED_MODELS, ClickFit
from firstclick.click_models.fitting import Refits
from firstclick.click_models.sessions import Sessions, read_sessions
from firstclick.click_models.verdict import compare_models, verdict
from firstclick.errors import InvalidInput
from firstclick.experiments.cells import Cell, Setting
from firstclick.experiments.engines import engine_named
from firstclick.experiments.runner import Watch, play_cells
from firstclick.experiments.simulate import MOST_STEPS, check_stage
from firstclick.files.progress import Progress, silent
from firstclick.logs.ranked_log import NO_ITEM, RankedLog
from firstclick.parameters import check_distinct
from firstclick.policies.base import Policy
from firstclick.registry import make_policy
from firstclick.validation.whole_number import seed_number, whole_number
from firstclick.worlds.base import Stage
from firstclick.worlds.fitted import FittedWorld

REFITS = 20
LEVEL = 0.95

# Slates whose expected clicks are computed at a time: some MB.
PIECE = 100_000


class Interval(NamedTuple):
    """Clicks per page, and a 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True)
class PlayedPolicy:
    """What a policy gets in the fitted worlds, and how much more that is than what was shown gets there."""

    policy: str
    value: Interval
    difference: Interval


@dataclass(frozen=True)
class PlayedOnLog:
    """Policies played in worlds fitted to a log."""

    model: str  # the click model
    slates: int  # of the log, with a known outcome
    pages: int  # that each policy was played for, from knowing nothing
    shown: Interval  # the logged slates in the same worlds
    policies: tuple[PlayedPolicy, ...]
    notes: tuple[str, ...] = ()  # what the intervals contain and what not


def play_on_log(
    log: RankedLog,
    policies: Sequence[Policy | str],
    *,
    model: str | None = None,
    refits: int = REFITS,
    steps: int | None = None,
    seed: int = 0,
    progress: Progress = silent,
) -> PlayedOnLog:
    """Clicks per page of policies that start from nothing and go on learning, in worlds fitted to the log.

    The click model is `model`, one of FITTED_MODELS, or the one that predicts held-out slates best. It is
    fitted to `refits` bootstrap resamples of the log's slates, with priors that come from the whole log and
    are drawn anew for each refit (`click_models.Refits`): rates vary as their posterior does. In each of
    these worlds each policy plays `steps` pages (as many as the log has), with slates as long as
    the log's longest. The logged slates get their expected clicks in the same worlds.

    The answer is the mean over refits. Its interval is Student's, from their spread: the luck of the log, of
    users and of the policies' own draws. It does not know of errors that all refits share: a click model that
    does not fit, and differences between items that a short log makes too large or too small.
    """
    chosen = [make_policy(policy) for policy in policies]
    if not chosen:
        raise InvalidInput("no policy given; name at least one, such as 'cascade-mixed'")
    check_distinct("policy", [policy.label for policy in chosen])
    refits = whole_number("refits", refits, at_least=2, at_most=10_000)
    seed = seed_number(seed)
    if model is not None and model not in FITTED_MODELS:
        raise InvalidInput(f"must be one of {', '.join(FITTED_MODELS)}, got {model!r}", "model")
    sessions = read_sessions(log, progress=progress)
    model = model or _best_model(sessions)
    pages = sessions.n if steps is None else whole_number("steps", steps, at_least=1, at_most=MOST_STEPS)
    refitted = Refits(sessions, model, seed=seed)
    cell_items, shown = _cell_items(sessions), np.empty(refits)

    def stage_of(cell: Cell) -> Stage:
        """Each run has the world of a refit."""
        found = refitted.refit(cell.run)
        shown[cell.run] = _clicks_of_logged(found, sessions, cell_items)
        world = FittedWorld(found)
        stage = Stage(world, world.features, world.names())
        check_stage(stage, chosen, sessions.k)
        return stage

    setting = Setting("", "", len(sessions.items), None, sessions.k, pages, seed)
    cells = [Cell(setting, policy, run) for run in range(refits) for policy in chosen]
    records = play_cells(
        cells,
        stage_of,
        engine_named("local", 1),
        recorded=lambda steps: np.array([steps]),
        watch=Watch(steps=progress),
    )
    # Exact for the slates shown.
    clicks = np.array([record.optimal_reward - record.expected_regret[-1] / pages for record in records])
    by_run = clicks.reshape(refits, len(chosen))
    return PlayedOnLog(
        model=model,
        slates=sessions.n,
        pages=pages,
        shown=_interval(shown),
        policies=tuple(
            PlayedPolicy(policy.label, _interval(by_run[:, place]), _interval(by_run[:, place] - shown))
            for place, policy in enumerate(chosen)
        ),
        notes=_notes(model, refits, sessions),
    )


def _best_model(sessions: Sessions) -> str:
    found = verdict(compare_models(sessions, FITTED_MODELS))
    if not found.take:
        raise InvalidInput(f"{found.sentences[0]} Name a `model` to play in nevertheless", "model")
    return found.take


def _cell_items(sessions: Sessions) -> NDArray[np.int32]:
    """The place of the item of each cell, and NO_ITEM at the end, for -1."""
    items = (sessions.places % len(sessions.items)).astype(np.int32)
    return np.append(items, np.int32(NO_ITEM))


def _clicks_of_logged(fit: ClickFit, sessions: Sessions, cell_items: NDArray[np.int32]) -> float:
    """The expected clicks of the logged slates, a page."""
    total = 0.0
    for start in range(0, sessions.n, PIECE):
        piece = slice(start, start + PIECE)
        slates = cell_items[sessions.cells[piece]]
        total += float(fit.click_chances(slates, sessions.slate_segments[piece]).sum())
    return total / sessions.n


def _interval(values: NDArray[np.float64]) -> Interval:
    """The mean over refits, and where the value of one more would be expected."""
    n, mean = len(values), float(values.mean())
    half = float(student.ppf((1 + LEVEL) / 2, n - 1) * values.std(ddof=1) * np.sqrt(1 + 1 / n))
    return Interval(mean, mean - half, mean + half)


def _notes(model: str, refits: int, sessions: Sessions) -> tuple[str, ...]:
    return (
        f"Intervals are 95 %, over {refits} bootstrap refits of {model} (one fit for all users), with "
        "priors from the whole log: they contain the luck of the log, of users and of the policies' own "
        "draws.",
        f"They do not contain an error of the click model itself: that users click as {model} says, that an "
        "item attracts equally well whatever stands beside it, that items shown rarely are like the others, "
        "and that nothing changes with time.",
        f"Every one of the {len(sessions.items):,} logged items could be shown on every page.",
    )
