"""DiscountedLinTS."""

from firstclick.policies._discounted import DiscountedPolicy
from firstclick.policies.cascade_lin_ts import CascadeLinTS


class DiscountedLinTS(DiscountedPolicy, CascadeLinTS):
    """CascadeLinTS for tastes that move: what it learned fades, and the prior stays whole.

    Assumes a cascade, attractions linear in the features, and tastes that drift, or seldom switch. Before
    each slate M <- g M + (1 - g) I and B <- g B, so that it knows about as much as 1/(1 - g) slates teach
    (D-LinUCB's rule, here for a sampler, with our g). With `detector` it also starts afresh when the items
    it shows have lost their attraction: expected minus seen clicks, less 0.1 an item, are summed up, never
    below 0, until they exceed it (CUSUM, our choice). At 20 a fall by 0.4 is noticed after some 70 examined
    items. discount=1 without a detector is CascadeLinTS. A step costs d^3/6 more, for the factor of M.
    """

    name = "discounted-lin-ts"
    paper = "Russac et al. 2019, with Zong et al. 2016, Algorithms 1 and 3"
