"""DCMLinUCB."""

from firstclick.policies._dependent import DependentClickPolicy
from firstclick.policies.cascade_lin_ucb import CascadeLinUCB


class DCMLinUCB(DependentClickPolicy, CascadeLinUCB):
    """CascadeLinUCB for several clicks: it learns from all positions down to the last click.

    Assumes the dependent click model: users click what attracts them, and after a click go on or leave.
    Attractions are linear in the features. What is learned, and what `stop` does, is as in dcm-lin-ts; the
    index is that of CascadeLinUCB, which it is with at most one click a slate and no `stop`. The best item
    comes first: right where leaving is no less likely after an early click than after a late one.
    """

    name = "dcm-lin-ucb"
    paper = "Katariya et al. 2016, with Zong et al. 2016, Algorithms 2 and 3"
    draws = False
