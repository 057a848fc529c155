"""The click model of Cascade-DR, cross-fitted: no slate is predicted by a fit that has seen it."""

from dataclasses import dataclass

import numpy as np

from firstclick.click_models.click_fit import ClickFit
from firstclick.click_models.fitting import fit_sessions
from firstclick.click_models.sessions import read_sessions
from firstclick.click_models.slate_hash import fold_of
from firstclick.evaluation.targets import Predictions, Target
from firstclick.files.progress import Progress, silent
from firstclick.logs.ranked_log import RankedLog, SlateBatch

FOLDS = 3


@dataclass(frozen=True)
class CrossFit:
    """Fits of one model: that of a slate's own fold has not seen the slate."""

    model: str
    sentence: str  # which model fits the log, for people
    fits: tuple[ClickFit, ...]

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
    """The click model that fits the log best, fitted without each fold in turn."""
    sessions = read_sessions(log, progress=progress)
    folds = sessions.folds(FOLDS)
    model = "dcm"
    fits = [fit_sessions(sessions, model, (folds != number).astype(np.float64)) for number in range(FOLDS)]
    return CrossFit(model, f"{model} fits", tuple(fits))
