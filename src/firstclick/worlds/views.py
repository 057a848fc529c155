"""Worlds that are not the same for all users, or not always the same."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from firstclick.catalog.features import check_features
from firstclick.click_models import ClickModel, make_click_model
from firstclick.errors import InvalidInput
from firstclick.kernels.attraction import BY_TIME, BY_USER, WorldArrays
from firstclick.validation.float_array import float_array
from firstclick.validation.whole_number import whole_number
from firstclick.worlds.base import World
from firstclick.worlds.bernoulli import best_of, world_arrays


class ViewsWorld(World):
    """Item e attracts with probability attractions[view, e]: one view for each user, or for each period.

    With `contexts`, one row a user, views are users, each as likely as any other, and a policy may be told
    the row. With `period`, views are periods of so many steps, one after the other and then again from the
    first. Regret is measured against the best slate of the view.
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
        self.attractions = float_array("attractions", attractions, largest=1)
        self.click_model = make_click_model(clicks)
        if self.attractions.ndim != 2 or 0 in self.attractions.shape:
            raise InvalidInput("must be a table, views x items, with at least one of each", "attractions")
        wrong = ~((self.attractions >= 0) & (self.attractions <= 1))
        if wrong.any():
            view, item = np.argwhere(wrong)[0]
            raise InvalidInput(
                f"must lie in [0, 1], got {self.attractions[view, item]:g} for item {item} in view {view}",
                "attractions",
            )
        self.n_views, self.n_items = self.attractions.shape
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
        self._features = None if features is None else check_features(features, self.n_items)

    @property
    def features(self) -> NDArray[np.float64] | None:
        return self._features

    @property
    def n_context(self) -> int:
        return self.contexts.shape[1]

    def arrays(self) -> WorldArrays:
        if self.period is not None:
            return world_arrays(self.attractions, self.click_model, view_by=BY_TIME, view_steps=self.period)
        return world_arrays(
            self.attractions, self.click_model, view_by=BY_USER, n_users=self.n_views, contexts=self.contexts
        )

    def optimal_slate(self, k: int, view: int = 0) -> NDArray[np.int64]:
        return best_of(self.attractions[view], k, self.click_model)

    def expected_reward(self, slate: Sequence[int] | NDArray[np.int64], view: int = 0) -> float:
        return float(self.click_model.reward(self.attractions[view, np.asarray(slate, np.int64)]))


def scaled_to(best: float, attractions: NDArray[np.float64]) -> NDArray[np.float64]:
    """Each view multiplied by a number, so that its most attractive item attracts with `best`."""
    # A hair below, so that rounding takes no attraction above `best`.
    return np.asarray(attractions * ((1 - 2.0**-48) * best / attractions.max(axis=1, keepdims=True)))
