"""The slate with most clicks, where users may leave after a click.

An item that ends the visit costs the clicks below it: the most attractive items are not always the best ones.
"""

from itertools import permutations
from math import perm

import numpy as np
from numpy.typing import NDArray

from firstclick.click_models.base import clicks_of_browsing

Numbers = NDArray[np.float64]
Rows = NDArray[np.int64]

# Up to so many slates are compared one by one.
FEW_SLATES = 5_000


def most_clicks_by_item(attraction: Numbers, leaving: Numbers, gamma: float, k: int) -> Rows:
    """The best slate where leaving after a click depends on the item, as in a DBN. Exact.

    Swapping neighbours shows that of two items the one with the larger a / (1 - gamma (1 - a s)) goes first,
    whatever else is shown. So the best slate is in this order, and it remains to choose items: from the last
    item on, the best slate of m items either leaves the item out, or begins with it.
    """
    goes_on = gamma * (1.0 - attraction * leaving)
    with np.errstate(divide="ignore", invalid="ignore"):
        worth = np.where(attraction > 0, attraction / (1.0 - goes_on), 0.0)
    order = np.argsort(-worth, kind="stable")
    n = len(order)
    best = np.full(k + 1, -np.inf)  # by the number of items
    best[0] = 0.0
    chosen = np.zeros((n, k + 1), np.bool_)
    for place in range(n - 1, -1, -1):
        item = order[place]
        below = best[:-1]
        begins = attraction[item] + np.where(
            np.isfinite(below), goes_on[item] * np.maximum(below, 0.0), below
        )
        chosen[place, 1:] = begins >= best[1:]
        best[1:] = np.where(chosen[place, 1:], begins, best[1:])
    slate, left = np.empty(k, np.int64), k
    for place in range(n):
        if left and chosen[place, left]:
            slate[k - left] = order[place]
            left -= 1
    return slate


def most_clicks_by_position(attraction: Numbers, leaving: Numbers, k: int) -> Rows:
    """The best slate where leaving after a click depends on the position, as in a DCM.

    Up to FEW_SLATES slates are compared one by one. With more, the k most attractive items are put where
    fewest users leave, the most attractive first; then single items are exchanged, with one another and with
    the most and the least attractive that are not shown, as long as that gives more clicks. (For a position
    the clicks are linear in the attraction of its item, so that no other item can be a better exchange.) That
    is no proof of the best slate; tests compare it with all slates.
    """
    n = len(attraction)
    at = leaving[:k]
    if perm(n, k) <= FEW_SLATES:
        every = np.array(list(permutations(range(n), k)), np.int64)
        return np.asarray(every[int(np.argmax(clicks_of_browsing(attraction[every], at, 1.0)))])
    by_attraction = np.argsort(-attraction, kind="stable")
    slate = np.empty(k, np.int64)
    slate[np.argsort(at, kind="stable")] = by_attraction[:k]
    clicks = _clicks(attraction, slate, at)
    while True:
        others = [other for other in by_attraction if other not in slate]
        exchanged = []
        for position in range(k):
            for other in (*others[:1], *others[-1:]):
                exchanged.append(slate.copy())
                exchanged[-1][position] = other
            for below in range(position + 1, k):
                exchanged.append(slate.copy())
                exchanged[-1][[position, below]] = slate[[below, position]]
        found = np.array([_clicks(attraction, one, at) for one in exchanged])
        if not len(found) or found.max() <= clicks + 1e-12:
            return slate
        slate, clicks = exchanged[int(np.argmax(found))], float(found.max())


def _clicks(attraction: Numbers, slate: Rows, leaving: Numbers) -> float:
    return float(clicks_of_browsing(attraction[slate], leaving, 1.0))
