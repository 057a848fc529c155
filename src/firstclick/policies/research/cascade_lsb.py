"""CascadeLSB."""

from firstclick.policies._coverage import CoveragePolicy


class CascadeLSB(CoveragePolicy):
    """Fill the slate from the top by the upper confidence bound of what each further item adds.

    It takes clicks for those of a cascade, and the features of an item for the shares, between 0 and 1, to
    which it covers each topic; users differ in nothing. Below a set S of items, item e attracts with the
    probability v'theta, where v_i = x_i prod over S of (1 - x_i) is what it adds to topic i. So each position
    takes the item of the largest min(v'mean + c sqrt(v'M^-1 v), 1), and an examined item teaches by the v
    that it had in its slate.

    The regret against a scaled optimum, as greedy slates are not always the best, is of the order of
    cascade-lin-ucb's, O(K d sqrt(n)). It is cascade-lin-ucb, slate by slate, when no topic has more than one
    item, or k = 1. The rule is the authors'; c = 1 and sigma = 1 are our choice, as for cascade-lin-ucb
    (public code has 0.8 and 0.1).

    A request takes O(K L d^2) for L items: what is covered changes the width of each, so that none that is
    kept would do, and each position but the first needs a scan. What it holds for an item's attraction is
    that of the item at the top.
    """

    name = "cascade-lsb"
    draws = False
    paper = "Hiranandani et al. 2019 (CascadeLSB)"
    derived = ("topics",)
