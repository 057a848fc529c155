"""VAC2-UCB."""

from typing import ClassVar

from firstclick.kernels.weighting import observe_by_variance
from firstclick.parameters import param
from firstclick.policies.cascade_lin_ucb import CascadeLinUCB


class VAC2UCB(CascadeLinUCB):
    """CascadeLinUCB that trusts clicks the more, the less they vary: made for small attractions.

    Assumes a cascade, and attractions linear in the features. An examined item adds sigma^-2 x x'/V to M and,
    if it was clicked, x/V to B, where V is the largest variance p (1 - p) for which p lies within x'mean -+ c
    sqrt(x'M^-1 x): 1/4 if 1/2 does. Regret O(d sqrt(n)) but for logarithms, whatever K. V and the index are
    the authors' as we remember them, whose c is twice a radius of order sqrt(d log n); that c is 2, the floor
    of V, and that V is taken when the feedback comes are ours. variance=1 is CascadeLinUCB of the same c;
    with V, c=theory is still Theorem 1's number, but no theorem.
    """

    name = "vac2-ucb"
    paper = "Liu et al. 2023, Algorithm 2"
    made_for = ("rare-clicks",)
    # An observation counts by what was known before it.
    mergeable: ClassVar[bool] = False
    order_free: ClassVar[bool] = False

    c: float | str = param(
        2.0, "width of the confidence interval, or 'theory' for Theorem 1", above=0, words=("theory",)
    )
    variance: float | None = param(
        None, "variance of every click, in place of an estimate for each item", kind=float, above=0
    )
    floor: float = param(0.02, "least variance that an estimate may have", above=0, at_most=0.25)

    @staticmethod
    def learn(numbers, state, catalog, request, slate, examined, clicks):  # type: ignore[no-untyped-def]
        observe_by_variance(
            state, catalog, request, slate, examined, clicks, numbers.sigma, numbers.scale, numbers.c,
            numbers.variance, numbers.floor,
        )  # fmt: skip
