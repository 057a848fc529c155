"""The fit of the position-based model: from counts of clicks by cell and position, by EM.

Attractions and examinations are known up to a factor, unless the page tells what was examined: the position
that is examined most gets 1, as a rule the first.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from firstclick.click_models.em import Numbers, maximise
from firstclick.click_models.sessions import Sessions
from firstclick.click_models.shrinkage import Priors, RatePrior, own_priors
from firstclick.kernels.position_counts import CLICKED, SEEN, UNSEEN, count_positions, expect_positions

# EM cannot leave a chance of 1: it starts a little below.
FIRST_EXAMINATION = 0.9
SETTLING_STEPS = 20
# Steps are cheap: they go over counts, not over sessions.
MOST_STEPS = 5000


class PositionFit(NamedTuple):
    """Attraction of each cell, examination of each position, and the looks that attractions rest on."""

    attraction: Numbers
    examination: Numbers
    looks: Numbers
    attraction_prior: RatePrior
    steps: int
    finished: bool


def position_counts(sessions: Sessions, weights: Numbers) -> NDArray[np.float64]:
    """Kinds of outcome x cells x positions (`kernels/position_counts.py`)."""
    counts = np.zeros((4, sessions.n_cells, sessions.k))
    count_positions(sessions.cells, sessions.clicks, sessions.examined, weights, 0, sessions.n, counts)
    return counts


def fit_positions(
    counts: NDArray[np.float64], segments: NDArray[np.int64], n_segments: int, weight: float,
    priors: Priors = own_priors,
) -> PositionFit:  # fmt: skip
    """Fit the position-based model; `segments` are those of the cells, `weight` the number of slates."""
    shown = counts.sum(axis=(0, 1))
    hits, by_position = counts[CLICKED].sum(axis=1), counts[CLICKED].sum(axis=0)
    n_cells = len(hits)
    prior = RatePrior(np.full(n_segments, (hits.sum() + 0.5) / (shown.sum() + 1.0)), 1.0)

    def joined(looks: Numbers, examined: Numbers) -> Numbers:
        # Where nothing was ever shown, the chance means nothing.
        examination = np.where(shown > 0, examined / np.maximum(shown, 1e-300), 1.0)
        return np.concatenate([prior.rates(hits, looks, segments), examination])

    def expected(parameters: Numbers) -> tuple[float, Numbers, Numbers]:
        looks, examined = np.zeros(n_cells), np.zeros(len(shown))
        attraction, examination = parameters[:n_cells], parameters[n_cells:]
        total = expect_positions(counts, attraction, examination, looks, examined)
        return float(total), looks, examined

    def step(parameters: Numbers) -> tuple[Numbers, float]:
        total, looks, examined = expected(parameters)
        return joined(looks, examined), total + prior.log_density(parameters[:n_cells], segments)

    rates = (by_position + 0.5) / (shown + 1.0)
    relative = np.clip(FIRST_EXAMINATION * rates / rates[shown > 0].max(), 0.01, FIRST_EXAMINATION)
    here = joined((counts.sum(axis=0) * relative).sum(axis=1) + hits, relative * shown)
    for _ in range(SETTLING_STEPS):
        here, _ = step(here)
    _, looks, _ = expected(here)
    prior = priors("attraction", hits, looks, segments, n_segments)
    end = maximise(step, here, weight, most_steps=MOST_STEPS)
    _, looks, _ = expected(end.parameters)
    attraction, examination = end.parameters[:n_cells], end.parameters[n_cells:]
    factor = 1.0
    if not counts[SEEN : UNSEEN + 1].any() and (most := examination[shown > 0].max()) > 0:
        factor = float(most)
    return PositionFit(
        attraction * factor,
        np.minimum(examination / factor, 1.0),
        looks * 1.0 / factor,
        prior._replace(means=prior.means * factor),
        end.steps + SETTLING_STEPS,
        end.finished,
    )
