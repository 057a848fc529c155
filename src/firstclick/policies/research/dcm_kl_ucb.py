"""dcmKL-UCB."""

from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from firstclick.click_models import ClickModel, DependentClick
from firstclick.errors import InvalidInput
from firstclick.kernels.compiling import kernel
from firstclick.parameters import param
from firstclick.policies.base import PlainParameters
from firstclick.policies.cascade_kl_ucb import CascadeKLUCB
from firstclick.policies.research._positions import spread

# Kernels are compiled for one length of a tuple: that of all slates, however many chances are given.
MOST_CHANCES = 16

_best_first = kernel(CascadeKLUCB.recommend)


class DcmKLUCB(CascadeKLUCB):
    """Rank items as cascade-kl-ucb does, and learn from all clicks of a slate.

    For dependent clicks: the user clicks whatever attracts on the way down, after each click leaves satisfied
    by a chance that the position decides, and goes on otherwise. So all positions down to the last click were
    examined, and all of them where there is no click.

    U(e) = max{q : examined * KL(hits / examined, q) <= log t + 3 log log t}, with t the step, from 1. The
    item of largest U goes where the user is most likely to leave satisfied, the next to the next likely
    position: only the order of `stop` matters. By default that is from the top down, and where no slate has
    more than one click it is cascade-kl-ucb, slate by slate.

    What comes after the last click is left out whether it was examined or not: rates come out a little too
    large, the more so the more often users go on. That is the authors' choice.
    """

    name = "dcm-kl-ucb"
    draws = False
    paper = "Katariya et al. 2016 (dcmKL-UCB)"
    family = "clicks"
    made_for = ("dependent-clicks",)
    click_model: ClassVar[ClickModel] = DependentClick()
    stop: tuple[float, ...] = param(
        (),
        "chances of leaving satisfied after a click, by position, separated by /; the last one holds for all "
        "further positions; without them the best item goes to the top",
        at_least=0,
        at_most=1,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.stop) > MOST_CHANCES:
            raise InvalidInput(
                f"must have at most {MOST_CHANCES} chances, the last one for all further positions, "
                f"got {len(self.stop)}",
                "stop",
                self.name,
            )

    def numbers(self, k: int, features: NDArray[np.float64]) -> PlainParameters:
        given = self.stop or (0.0,)
        return self._pack()._replace(stop=given + given[-1:] * (MOST_CHANCES - len(given)))

    @staticmethod
    def recommend(numbers, state, catalog, request, key, noise, slate):  # type: ignore[no-untyped-def]
        n = _best_first(numbers, state, catalog, request, key, noise, slate)
        chances = np.empty(n)
        for position in range(n):
            chances[position] = numbers.stop[min(position, MOST_CHANCES - 1)]
        spread(slate, n, chances)
        return n
