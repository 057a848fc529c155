"""DCMLinTS."""

from firstclick.policies._dependent import DependentClickPolicy
from firstclick.policies.cascade_lin_ts import CascadeLinTS


class DCMLinTS(DependentClickPolicy, CascadeLinTS):
    """CascadeLinTS for several clicks: it learns from all positions down to the last click.

    Assumes the dependent click model: users click what attracts them, and after a click go on or leave.
    Attractions are linear in the features. Without clicks all was examined; after the last click nobody
    knows, and nothing is learned (dcmKL-UCB's rule). That drops skips and keeps clicks, so attractions come
    out too high. With `stop`, the chance v of leaving after a click, the positions after the last one count
    as skipped with weight (1 - v) q / (v + (1 - v) q), the chance that the user went on, where q is the
    product of their 1 - x'mean (ours; what the page tells to be examined is sure). With stop=learned, 1 - v
    is the number of clicks that others follow, over the number that would be followed if all users went on,
    which is the sum of 1 - q (1/2 a click and 1 are added, and what the page tells counts as it is; ours).
    Not for users who pass positions over and leave without a click: there it is far behind plain dcm-lin-ts.
    With at most one click a slate and no `stop` it is CascadeLinTS.
    """

    name = "dcm-lin-ts"
    paper = "Katariya et al. 2016, with Zong et al. 2016, Algorithms 1 and 3"
