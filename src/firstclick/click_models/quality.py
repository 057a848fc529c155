"""How well a fit predicts clicks that it has not seen.

The log-likelihood of a page is that of its clicks, position after position, each given the clicks above it.
Perplexity at a rank is 2 to the minus mean log2 of the chance that a fit gave to what happened there, click
or no click: 1 is perfect, 2 a coin. It is taken given the items alone, as in Chuklin et al. (2015), and
conditional, given also the clicks above. The one number for all ranks is their mean.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from firstclick.click_models.chunks import summed
from firstclick.click_models.click_fit import SATISFIED_MODELS, ClickFit
from firstclick.click_models.sessions import Sessions
from firstclick.kernels.click_chain import score_clicks

# What a fit calls impossible counts as this chance: one click below the first costs a cascade 13.8 nats.
LEAST_CHANCE = 1e-6


@dataclass(frozen=True, eq=False)
class Quality:
    """What a fit makes of held-out slates; logarithms in nats."""

    model: str
    pages: NDArray[np.float64]  # the log-likelihood of each slate's clicks
    first_clicks: NDArray[np.float64]  # that of each slate down to its first click
    perplexity: NDArray[np.float64]  # by rank; NaN where no slate is that long
    conditional_perplexity: NDArray[np.float64]

    @property
    def log_likelihood(self) -> float:
        """Of a slate, on average."""
        return float(self.pages.mean())


def quality(fit: ClickFit, sessions: Sessions, chosen: NDArray[np.int64]) -> Quality:
    """How well `fit`, made of these sessions, predicts the clicks of those `chosen` (their places)."""
    k = sessions.k
    pages, first_clicks = np.empty(len(chosen)), np.empty(len(chosen))
    attraction = fit.attraction.ravel()[sessions.places]
    by_item = fit.model in SATISFIED_MODELS
    leaving = fit.leaving(k).ravel()[sessions.places] if by_item else fit.leaving(k)
    examination = fit.by_position(k) if fit.model == "pbm" else np.empty(0)

    def work(start: int, stop: int, sums: tuple[NDArray[np.float64], ...]) -> float:
        score_clicks(
            sessions.cells, sessions.clicks, chosen, start, stop, attraction, examination, leaving, fit.gamma,
            not by_item, LEAST_CHANCE, pages, first_clicks, sums[0].reshape(3, k),
        )  # fmt: skip
        return 0.0

    _, (sums,) = summed(len(chosen), (3 * k,), work)
    shown, plain, given = sums.reshape(3, k)
    shown = np.where(shown > 0, shown, np.nan)
    return Quality(fit.model, pages, first_clicks, np.exp(-plain / shown), np.exp(-given / shown))
