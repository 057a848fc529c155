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
    """Simulated users who answer slates with clicks. Subclass it for a world of your own.

    >>> from firstclick.worlds import BernoulliWorld
    >>> world = BernoulliWorld([0.5, 0.2, 0.1])
    >>> round(world.expected_reward([0, 1]), 3)
    0.6

    Attractions may differ between users or change over time: the world has one *view* per user or period. A
    world that is the same for everybody at all times has one view.

    Attributes:
        n_items: The number of items.
        click_model: How attraction turns into clicks; a cascade by default.
        n_views: The number of views.
        features: The world's own item features; None if it has none.
        n_context: How many numbers describe a user.
        longest_slate: The number of positions on its page; None for any number.
        view_shares: How often each view occurs; None: all equally often.
        item_names: Names of the items; by default their numbers.
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
        """The world as arrays, for compiled kernels."""

    @abstractmethod
    def optimal_slate(self, k: int, view: int = 0) -> NDArray[np.int64]:
        """The best slate, which regret is measured against.

        Args:
            k: The length of a slate.
            view: The user or period.
        """

    @abstractmethod
    def expected_reward(self, slate: Sequence[int] | NDArray[np.int64], view: int = 0) -> float:
        """The exact expected reward of a slate. Under a cascade this is the probability of a click.

        Args:
            slate: Item numbers, best first.
            view: The user or period.
        """

    def optimal_slates(self, k: int) -> NDArray[np.int64]:
        """The best slate of each view.

        Args:
            k: The length of a slate.
        """
        return np.stack([self.optimal_slate(k, view) for view in range(self.n_views)])

    def optimal_reward(self, k: int) -> float:
        """The expected reward of the best slates, averaged over views.

        Args:
            k: The length of a slate.
        """
        slates = self.optimal_slates(k)
        return self.mean_over_views([self.expected_reward(slate, view) for view, slate in enumerate(slates)])

    def mean_over_views(self, values: Sequence[float]) -> float:
        """The mean of one value per view, weighted by how often each view occurs.

        Args:
            values: One value per view.
        """
        return float(np.mean(values) if self.view_shares is None else self.view_shares @ values)

    def names(self) -> Sequence[str]:
        """The names of the items."""
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
    """What one run is played on: a world and the features and names of its items.

    >>> from firstclick import Stage
    >>> from firstclick.worlds import BernoulliWorld
    >>> Stage(BernoulliWorld([0.5, 0.2]), None, ["tea", "milk"]).item_names
    ['tea', 'milk']

    Attributes:
        world: Answers with clicks.
        features: One row per item, for policies; None without features.
        item_names: What to call the items.
    """

    world: World
    features: NDArray[np.float64] | None
    item_names: Sequence[str]


class Scenario(Protocol):
    """Gives each run its own stage. Pass one to `simulate` in place of a world.

    All policies of a run get the same stage. `firstclick.data.FeedbackScenario` is one.
    """

    def stage(self, seed: int, run: int) -> Stage:
        """The stage of a run; the same arguments give the same stage.

        Args:
            seed: The seed of the simulation.
            run: The run, from 0.
        """
