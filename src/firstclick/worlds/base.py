"""What answers with clicks: `World`, how one is asked for by name, and what a run is played on."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from firstclick.click_models import Cascade, ClickModel, make_click_model
from firstclick.kernels.attraction import WorldArrays
from firstclick.parameters import Declared, param


class World(ABC):
    """What answers with clicks.

    Attractions may differ between users, or change with time: there is one *view* for each user, or for each
    period. A world that is the same for all, always, has one view.

    >>> from firstclick.worlds import BernoulliWorld
    >>> world = BernoulliWorld([0.5, 0.2, 0.1])
    >>> round(world.expected_reward([0, 1]), 3)
    0.6
    """

    n_items: int
    click_model: ClickModel = Cascade()
    n_views: int = 1
    features: NDArray[np.float64] | None = None  # those that belong to this world, if it has any
    n_context: int = 0  # how many numbers are known of each user
    longest_slate: int | None = None  # how many positions its page has; None: as many as one likes
    view_shares: NDArray[np.float64] | None = None  # how often each view is met; None: all equally often
    item_names: Sequence[str] = ()  # what items are called; none given: by their number

    @abstractmethod
    def arrays(self) -> WorldArrays:
        """The world for kernels."""

    @abstractmethod
    def optimal_slate(self, k: int, view: int = 0) -> NDArray[np.int64]:
        """The slate that regret is measured against."""

    @abstractmethod
    def expected_reward(self, slate: Sequence[int] | NDArray[np.int64], view: int = 0) -> float:
        """The exact expected reward of the slate; under a cascade the probability of a click."""

    def optimal_slates(self, k: int) -> NDArray[np.int64]:
        """The optimal slate of each view."""
        return np.stack([self.optimal_slate(k, view) for view in range(self.n_views)])

    def optimal_reward(self, k: int) -> float:
        """What the optimal slates are worth, on the average over views."""
        slates = self.optimal_slates(k)
        return self.mean_over_views([self.expected_reward(slate, view) for view, slate in enumerate(slates)])

    def mean_over_views(self, values: Sequence[float]) -> float:
        """The mean of one value a view, each as often as the view is met."""
        return float(np.mean(values) if self.view_shares is None else self.view_shares @ values)

    def names(self) -> Sequence[str]:
        """What the items are called."""
        return self.item_names or [f"item {item}" for item in range(self.n_items)]


class WorldSpec(Declared, ABC):
    """A world that can be asked for by name, as in `--world blb:n_items=16,k=2,p=0.2,gap=0.15`."""

    # The parameter that may be given without its name, as in fitted:FILE; it must hold text or a path.
    bare: ClassVar[str] = ""
    clicks: str = param("cascade", "click model: cascade, dcm/0.6/0.5, pbm/1/0.7/0.5 or scroll/0.8")

    def __post_init__(self) -> None:
        super().__post_init__()
        make_click_model(self.clicks)

    @abstractmethod
    def build(self, seed: int) -> World:
        """The world; what is random in it depends on the seed alone."""


@dataclass(frozen=True)
class Stage:
    """What one run is played on: a world, the features of its items, and their names.

    >>> from firstclick import Stage
    >>> from firstclick.worlds import BernoulliWorld
    >>> Stage(BernoulliWorld([0.5, 0.2]), None, ["tea", "milk"]).item_names
    ['tea', 'milk']
    """

    world: World
    features: NDArray[np.float64] | None
    item_names: Sequence[str]


class Scenario(Protocol):
    """What gives each run its stage, the same for all policies of the run."""

    def stage(self, seed: int, run: int) -> Stage: ...
