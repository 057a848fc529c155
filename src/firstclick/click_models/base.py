"""How a user goes through a slate: what is examined, what is clicked, and what that is worth.

A world has a click model, which answers; a policy has one too, which says what it takes for examined. Write
one as its name, followed by its chances by position if they are not the usual ones: `cascade`, `dcm/0.6/0.5`,
`pbm/1/0.7/0.5`, `scroll/0.9`. The last chance holds for all further positions.
"""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from firstclick.errors import InvalidInput
from firstclick.kernels.clicks import (
    CASCADE,
    COUNTED,
    DEPENDENT,
    DYNAMIC,
    LEAVING,
    POSITION,
    SCROLL,
    UNTOLD,
    examined_positions,
)
from firstclick.parameters import check_name
from firstclick.validation.float_array import float_array


class ClickModel:
    """How users go through a slate. Equal if name and chances are."""

    name: ClassVar[str]
    kind: ClassVar[int]  # for kernels
    usual: ClassVar[tuple[float, ...]] = ()
    chances: tuple[float, ...]

    def __init__(self, *chances: float) -> None:
        self.chances = (
            tuple(float_array(f"click model {self.name}: chances", chances, largest=1).tolist()) or self.usual
        )
        if self.chances and not self.usual:
            raise InvalidInput(f"click model {self.name} has no chances to give, got {_text(chances)}")
        for chance in self.chances:
            if not 0.0 <= chance <= 1.0:
                raise InvalidInput(f"click model {self.name}: chances must lie in [0, 1], got {chance:g}")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ClickModel) and (self.name, self.chances) == (other.name, other.chances)

    def __hash__(self) -> int:
        return hash((self.name, self.chances))

    def __repr__(self) -> str:
        return self.label

    @property
    def label(self) -> str:
        """As `make_click_model` reads it."""
        return self.name if self.chances == self.usual else f"{self.name}/{_text(self.chances)}"

    def by_position(self, n: int) -> NDArray[np.float64]:
        """The chances of the first `n` positions."""
        return np.array([self.chances[min(position, len(self.chances) - 1)] for position in range(n)])

    def examined(self, clicks: Sequence[int] | NDArray[np.uint8], told: int | None = None) -> int:
        """How many positions were examined, where `clicks` has a 1 for each that was clicked.

        `told` is what the page knows, and comes first.
        """
        bits = np.asarray(clicks, np.uint8)
        return int(examined_positions(self.kind, bits, len(bits), UNTOLD if told is None else told))

    def reward(self, attractions: ArrayLike) -> NDArray[np.float64]:
        """The expected reward of slates whose items attract independently with these probabilities, position
        by position along the last axis: the number of clicks."""
        attraction = np.asarray(attractions)
        return np.asarray((self.worth(attraction.shape[-1]) * attraction).sum(axis=-1))

    def worth(self, k: int) -> NDArray[np.float64]:
        """What an attractive item is worth at each position, up to a factor: the best items go where it is
        largest."""
        return self.by_position(k)


class Cascade(ClickModel):
    """The user looks from the top and clicks the first item that attracts, if any; then leaves.

    Reward: 1 for a click (Craswell et al. 2008; the model of Zong et al.).
    """

    name, kind = "cascade", CASCADE

    def reward(self, attractions: ArrayLike) -> NDArray[np.float64]:
        return np.asarray(1.0 - np.prod(1.0 - np.asarray(attractions), axis=-1))

    def worth(self, k: int) -> NDArray[np.float64]:
        return np.ones(k)


class DependentClick(ClickModel):
    """The user looks from the top and clicks what attracts; after each click leaves satisfied by chance.

    Its chances are those of leaving satisfied. Examined up to the last click; after it nobody knows, and a
    slate without clicks was examined to its end. Reward: 1 if the user leaves satisfied, which the page does
    not see (Guo et al. 2009; Katariya et al. 2016).
    """

    name, kind, usual = "dcm", DEPENDENT, (0.5,)

    def reward(self, attractions: ArrayLike) -> NDArray[np.float64]:
        attraction = np.asarray(attractions)
        satisfied = self.by_position(attraction.shape[-1]) * attraction
        return np.asarray(1.0 - np.prod(1.0 - satisfied, axis=-1))


class LeavingUnseen(DependentClick):
    """Dependent clicks, for a policy that weighs how likely it is that the user went on after the last one:
    then -1 positions (UNTOLD) are said to be examined, unless the page tells, or nothing was clicked. No
    world is asked for this."""

    name, kind = "dcm-unseen", LEAVING


class DependentCounted(DependentClick):
    """Dependent clicks, and the reward is the number of clicks: what the page sees. For worlds made of a log;
    no policy is asked for this."""

    name, kind = "dcm-counted", COUNTED

    def reward(self, attractions: ArrayLike) -> NDArray[np.float64]:
        attraction = np.asarray(attractions)
        return clicks_of_browsing(attraction, self.by_position(attraction.shape[-1]), 1.0)


class DynamicBayesian(ClickModel):
    """The user looks from the top and clicks what attracts. After a click the user leaves satisfied with a
    chance of the item's own; else, and after no click, goes on with the chance gamma.

    Its one chance is gamma; with 1 it is the simplified model. Which positions were examined below the last
    click, nobody knows. Reward: the number of clicks (Chapelle and Zhang 2009). For worlds made of a log,
    which know what satisfies; no policy is asked for this.
    """

    name, kind, usual = "dbn", DYNAMIC, (1.0,)

    def reward(self, attractions: ArrayLike, satisfaction: ArrayLike = 0.0) -> NDArray[np.float64]:
        return clicks_of_browsing(np.asarray(attractions), np.asarray(satisfaction), self.chances[0])


def clicks_of_browsing(
    attraction: NDArray[np.float64], leaving: NDArray[np.float64], gamma: float
) -> NDArray[np.float64]:
    """The expected clicks of a user who goes on with the chance gamma, and after a click leaves by chance;
    position by position along the last axis."""
    goes_on = np.cumprod(gamma * (1.0 - attraction * leaving), axis=-1)
    reached = np.concatenate([np.ones_like(goes_on[..., :1]), goes_on[..., :-1]], axis=-1)
    return np.asarray((reached * attraction).sum(axis=-1))


class PositionBased(ClickModel):
    """The user examines each position by chance, whatever is elsewhere, and clicks it if it attracts.

    Its chances are those of being examined. Which positions were, nobody knows. Reward: the number of clicks
    (Richardson et al. 2007; Lagree et al. 2016).
    """

    name, kind, usual = "pbm", POSITION, (1.0, 0.7, 0.5, 0.4, 0.3, 0.25, 0.2)


class Scroll(ClickModel):
    """The user scrolls down, clicks all that attracts, and after each position goes on by chance.

    Its chances are those of going on. The page tells how far the user came. Reward: the number of clicks.
    """

    name, kind, usual = "scroll", SCROLL, (0.8,)

    def worth(self, k: int) -> NDArray[np.float64]:
        return np.concatenate([[1.0], np.cumprod(self.by_position(k - 1))]) if k else np.empty(0)


CLICK_MODELS: dict[str, type[ClickModel]] = {
    model.name: model for model in (Cascade, DependentClick, PositionBased, Scroll)
}


def make_click_model(spec: "ClickModel | str") -> ClickModel:
    """The click model that `name/chance/chance...` describes."""
    if isinstance(spec, ClickModel):
        return spec
    if not isinstance(spec, str):
        raise InvalidInput(f"a click model must be text such as 'dcm/0.6/0.5', got {spec!r}")
    name, *chances = spec.split("/")
    model = CLICK_MODELS[check_name("click model", name, CLICK_MODELS)]
    try:
        numbers = [float(chance) for chance in chances]
    except ValueError:
        raise InvalidInput(f"click model {spec!r}: chances must be numbers, as in {name}/0.6/0.5") from None
    return model(*numbers)


def _text(chances: Sequence[float]) -> str:
    return "/".join(f"{chance:g}" for chance in chances)
