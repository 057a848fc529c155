"""DiscountedLinUCB."""

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
    draws = False
