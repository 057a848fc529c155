"""The click model of Cascade-DR, cross-fitted: no slate is predicted by a fit that has seen it."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from firstclick.click_models.click_fit import ClickFit
from firstclick.click_models.fitting import fit_sessions
from firstclick.click_models.sessions import Sessions, read_sessions
from firstclick.click_models.slate_hash import fold_of
from firstclick.click_models.verdict import SIMPLEST_FIRST, compare_models, verdict
from firstclick.evaluation.targets import Predictions, Target
from firstclick.files.progress import Progress, silent
from firstclick.logs.ranked_log import RankedLog, SlateBatch

FOLDS = 3
MOST_FITTED = 500_000


@dataclass(frozen=True)
class CrossFit:
    """Fits of one model: that of a slate's own fold has not seen the slate."""

    model: str
    best: str | None  # the model that fits the log, as far as the log says
    sentence: str  # which model fits the log, for people
    fits: tuple[ClickFit, ...]
    close: tuple[str, ...] = ()  # models that fit the log nearly as well as the one that fits best

    def predictions(self, target: Target, slates: SlateBatch) -> Predictions | None:
        """What the fits expect of the target, slate by slate."""
        folds = fold_of(slates.numbers, len(self.fits))
        found: Predictions | None = None
        for number, fit in enumerate(self.fits):
            of_fold = target.predictions(slates, fit)
            if of_fold is None:
                return None
            if found is None:
                found = Predictions(of_fold.logged.copy(), of_fold.target.copy())
                continue
            rows = folds == number
            found.logged[rows], found.target[rows] = of_fold.logged[rows], of_fold.target[rows]
        return found


def cross_fit(log: RankedLog, progress: Progress = silent) -> CrossFit:
    """The click model that fits the log, fitted without each fold in turn."""
    sessions = _some(read_sessions(log, progress=progress))
    found = verdict(compare_models(sessions, SIMPLEST_FIRST))
    # Whichever model predicts, the estimate is unbiased: where nobody can say, the simplest will do.
    model = found.take or SIMPLEST_FIRST[0]
    folds = sessions.folds(FOLDS)
    fits = [fit_sessions(sessions, model, (folds != number).astype(np.float64)) for number in range(FOLDS)]
    sentence = _sentence(found.best, found.take) if found.take else found.sentences[0].removesuffix(".")
    close = tuple(name for name, one in found.pages.items() if one.close)
    return CrossFit(model, found.take or None, sentence, tuple(fits), close)


def _sentence(best: str, take: str) -> str:
    return (
        f"{take} fits best"
        if best == take
        else f"{take}, the simplest that is close to {best}, which fits best"
    )


def _some(sessions: Sessions) -> Sessions:
    """Every second slate, or every third, ..., of a large log: more would change the predictions little."""
    step = -(-sessions.n // MOST_FITTED)
    if step == 1:
        return sessions
    kept: dict[str, Any] = {
        name: np.ascontiguousarray(getattr(sessions, name)[::step])
        for name in ("cells", "clicks", "examined", "slate_segments", "numbers")
    }
    return replace(sessions, **kept)
