"""Fit a click model to a log."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from firstclick.click_models.chain_fit import ChainFit, fit_chain
from firstclick.click_models.click_fit import FITTED_MODELS, SATISFIED_MODELS, ClickFit
from firstclick.click_models.position_fit import PositionFit, fit_positions, position_counts
from firstclick.click_models.sessions import Sessions, read_sessions
from firstclick.click_models.shrinkage import Priors, RatePrior, RedrawnPriors, own_priors
from firstclick.errors import InvalidInput
from firstclick.files.progress import Progress, silent
from firstclick.logs.ranked_log import RankedLog


def fit(
    log: RankedLog, model: str, *, by_segment: bool = False, resample: int | None = None,
    threads: int | None = None, progress: Progress = silent,
) -> ClickFit:  # fmt: skip
    """Fit a click model, one of FITTED_MODELS, to the slates of a log whose outcome is known.

    `resample` counts each slate as often as this bootstrap resample has it. The result does not depend on
    `threads`.
    """
    _check(model)
    sessions = read_sessions(log, by_segment=by_segment, progress=progress)
    return fit_sessions(sessions, model, sessions.weights(resample), threads=threads)


def fit_sessions(
    sessions: Sessions, model: str, weights: NDArray[np.float64] | None = None, *,
    threads: int | None = None,
) -> ClickFit:  # fmt: skip
    """As `fit`, for slates in memory, each with its weight."""
    weights = np.ones(sessions.n) if weights is None else weights
    found, _ = _fitted(sessions, model, weights, threads=threads)
    return found


class Refits:
    """Bootstrap refits of a click model: pages that could have made this log.

    A refit has the resample's counts and the priors of `RedrawnPriors`. A click model that is fitted to a
    resample as to a log of its own (`fit(log, model, resample=...)`) takes the resample's extra chance for
    differences between items. Items are those of the whole log, also those that a resample does not show.
    """

    def __init__(self, sessions: Sessions, model: str, *, seed: int) -> None:
        self.sessions, self.model, self.seed = sessions, model, seed
        self.whole, self.priors = _fitted(sessions, model, np.ones(sessions.n))

    def refit(self, resample: int) -> ClickFit:
        """The refit to this resample; the same one each time."""
        found, _ = _fitted(
            self.sessions, self.model, self.sessions.weights(resample),
            priors=RedrawnPriors(self.priors, self.seed, resample),
        )  # fmt: skip
        return replace(found, looks=self.whole.looks)


def _fitted(
    sessions: Sessions, model: str, weights: NDArray[np.float64], *,
    threads: int | None = None, priors: Priors = own_priors,
) -> tuple[ClickFit, dict[str, RatePrior]]:  # fmt: skip
    """A fit, and the priors it ended with."""
    _check(model)
    total = float(weights.sum())
    if total <= 0:
        raise InvalidInput(f"{sessions.name}: every slate is left out; nothing can be fitted")
    found: ChainFit | PositionFit
    if model == "pbm":
        counts = position_counts(sessions, weights)
        found = fit_positions(counts, sessions.cell_segments, len(sessions.segments), total, priors)
        chances = found.examination
    else:
        found = fit_chain(sessions, weights, model, threads=threads, priors=priors)
        chances = {"dcm": 1.0 - found.leaving, "dbn": np.array([found.gamma])}.get(model, np.empty(0))
    satisfaction, ended_with = np.empty((0, 0)), {"attraction": found.attraction_prior}
    if isinstance(found, ChainFit) and model in SATISFIED_MODELS:
        satisfaction = _table(sessions, found.leaving, found.leaving_prior)
        ended_with["leaving"] = found.leaving_prior
    shares = np.bincount(sessions.slate_segments, weights, len(sessions.segments)) / total
    result = ClickFit(
        model=model, items=sessions.items, segments=sessions.segments, shares=shares,
        attraction=_table(sessions, found.attraction, found.attraction_prior), satisfaction=satisfaction,
        chances=chances, looks=_table(sessions, found.looks, None), k=sessions.k, slates=total,
        converged=found.finished,
    )  # fmt: skip
    return result, ended_with


def _check(model: str) -> None:
    if model not in FITTED_MODELS:
        raise InvalidInput(f"must be one of {', '.join(FITTED_MODELS)}, got {model!r}", "model")


def _table(sessions: Sessions, values: NDArray[np.float64], prior: RatePrior | None) -> NDArray[np.float64]:
    """Values of cells as segments x items; cells that no slate shows get their segment's mean, or 0."""
    shape = len(sessions.segments), len(sessions.items)
    table = np.zeros(shape) if prior is None else np.repeat(prior.means[:, None], shape[1], axis=1)
    table.ravel()[sessions.places] = values
    return table
