"""Worlds that are not the same for all users, or not always the same."""

import numpy as np
from numpy.typing import ArrayLike, NDArray

from firstclick.click_models import ClickModel
from firstclick.errors import InvalidInput
from firstclick.kernels.attraction import BY_TIME, BY_USER, WorldArrays
from firstclick.validation.float_array import float_array
from firstclick.validation.whole_number import whole_number
from firstclick.worlds.bernoulli import NEARLY_ONE, IndependentWorld, world_arrays


class ViewsWorld(IndependentWorld):
    """Attractions that differ between users, or change over time.

    >>> round(ViewsWorld([[0.9, 0.1], [0.1, 0.9]], period=100).expected_reward([0]), 3)
    0.9

    A row of `attractions` is a view: a user, or a period. Regret is measured against the best slate of the
    view. Give either `contexts` or `period`.

    Args:
        attractions: Views x items, probabilities from 0 to 1.
        contexts: One row per user, which policies may see. All users are equally likely.
        period: Steps per view. Views follow one another, then start again with the first.
        features: One row per item.
        clicks: A click model, or its description such as `"pbm/1/0.7/0.5"`.
    """

    def __init__(
        self,
        attractions: ArrayLike,
        *,
        contexts: ArrayLike | None = None,
        period: int | None = None,
        features: ArrayLike | None = None,
        clicks: ClickModel | str = "cascade",
    ) -> None:
        super().__init__(attractions, clicks, features, by_view=True)
        if (contexts is None) == (period is None):
            raise InvalidInput("give contexts, one row a user, or a period in steps, and not both")
        self.period = None if period is None else whole_number("period", period, at_least=1)
        self.contexts = np.empty((1, 0)) if contexts is None else float_array("contexts", contexts)
        if contexts is not None and (
            self.contexts.ndim != 2
            or len(self.contexts) != self.n_views
            or not np.isfinite(self.contexts).all()
        ):
            raise InvalidInput(
                f"must be a table of finite numbers with a row for each of {self.n_views} users", "contexts"
            )
        self.n_context = self.contexts.shape[1]

    def arrays(self) -> WorldArrays:
        if self.period is not None:
            return world_arrays(self.attractions, self.click_model, view_by=BY_TIME, view_steps=self.period)
        return world_arrays(
            self.attractions, self.click_model, view_by=BY_USER, n_users=self.n_views, contexts=self.contexts
        )


def scaled_to(best: float, attractions: NDArray[np.float64]) -> NDArray[np.float64]:
    """Each view multiplied by a number, so that its most attractive item attracts with `best`."""
    return np.asarray(attractions * (NEARLY_ONE * best / attractions.max(axis=1, keepdims=True)))
