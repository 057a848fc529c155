"""DiscountedLinUCB."""

from firstclick.kernels.discounting import forget
from firstclick.kernels.posterior import linear, observe_slate
from firstclick.kernels.search.widths import raise_widths
from firstclick.policies._discounted import DiscountedPolicy
from firstclick.policies.cascade_lin_ucb import CascadeLinUCB


class DiscountedLinUCB(DiscountedPolicy, CascadeLinUCB):
    """CascadeLinUCB for tastes that move: what it learned fades, and the prior stays whole.

    Assumes a cascade, attractions linear in the features, and tastes that drift, or seldom switch. Before
    each slate M <- g M + (1 - g) I and B <- g B, so that an item not seen for long is explored again.
    D-LinUCB takes the width sqrt(x'M^-1 N M^-1 x), where N sums up with g^2; ours is sqrt(x'M^-1 x), which
    is never less. `detector` is that of discounted-lin-ts. discount=1 without a detector is CascadeLinUCB;
    with less, c=theory is still Theorem 1's number, but no theorem. Old widths are kept as bounds, raised
    with each slate: one multiplication an item.
    """

    name = "discounted-lin-ucb"
    paper = "Russac et al. 2019, with Zong et al. 2016, Algorithms 2 and 3"

    @staticmethod
    def learn(numbers, state, catalog, request, slate, examined, clicks):  # type: ignore[no-untyped-def]
        growth = forget(
            state, catalog, request, slate, examined, clicks, numbers.sigma, numbers.scale,
            numbers.discount, numbers.detector,
        )  # fmt: skip
        if growth > 1.0:
            raise_widths(catalog.widths, growth)
        observe_slate(linear(state), catalog, request, slate, examined, clicks, numbers.sigma, numbers.scale)
