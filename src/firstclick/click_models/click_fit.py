"""A click model with the numbers that a log gives it."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from firstclick.catalog.ids import ItemId

FITTED_MODELS = ("cm", "dcm", "sdbn", "pbm", "dbn")


@dataclass(frozen=True)
class ClickFit:
    """A click model fitted to a log.

    `chances` are, by position, those of being examined (pbm) or of going on after a click (dcm); for dbn the
    one number gamma, the chance of going on; else empty.
    """

    model: str  # of FITTED_MODELS
    items: tuple[ItemId, ...]
    segments: tuple[str, ...]  # ("",) for a log as a whole
    shares: NDArray[np.float64]  # of all slates, by segment
    attraction: NDArray[np.float64]  # segments x items
    satisfaction: NDArray[np.float64]  # segments x items for sdbn and dbn: leaving after a click; else empty
    chances: NDArray[np.float64]
    looks: NDArray[np.float64]  # segments x items: how many looks each attraction rests on; 0: never shown
    k: int  # positions of the longest slate

    def click_chances(self, items: NDArray[np.int32], segments: NDArray[np.int32]) -> NDArray[np.float64]:
        """The probability of a click at each position of slates (n x K places in `items`, NO_ITEM after the
        end) shown to users of these segments. It depends on the items above, not on what is clicked."""
        raise NotImplementedError
