"""What linear policies that forget share: how much of what they know they keep, and when they drop it all."""

from typing import ClassVar

import numpy as np

from firstclick.kernels.discounting import ForgettingState
from firstclick.parameters import param
from firstclick.policies._linear import LinearPolicy


class DiscountedPolicy(LinearPolicy):
    """A linear policy for which an old click counts less than a new one."""

    family = "changes"
    made_for: ClassVar[tuple[str, ...]] = ("switch", "drift")
    # What was learned later counts more: two logs have no common order of time, and one has no other.
    mergeable: ClassVar[bool] = False
    order_free: ClassVar[bool] = False

    discount: float = param(
        0.999, "what is kept of the past with each slate; 1 forgets nothing", above=0, at_most=1
    )
    detector: float | None = param(
        None, "missing clicks at which it drops all it knows, 20 for example", kind=float, above=0
    )

    def initial_state(self, n_items: int, n_features: int, k: int) -> ForgettingState:  # type: ignore[override]
        return ForgettingState(**self._prior((), n_features)._asdict(), missing=np.zeros(1))
