"""PBM-PIE."""

from math import inf, log

import numpy as np

from firstclick.kernels.compiling import kernel
from firstclick.kernels.hashing import mix, uniform
from firstclick.kernels.ranking import rank, rows_of
from firstclick.policies.research._positions import PositionPolicy, spread, sums_of

# Coins and lots are no part of the order of ties: other keys.
_COIN, _LOTS = np.uint64(9 << 56), np.uint64(10 << 56)


@kernel
def _is_looked_at(slate, row, examination):  # type: ignore[no-untyped-def]
    """Whether the row stands at a position that some users examine."""
    found = False
    for position in range(len(slate)):
        found = found or (slate[position] == row and examination[position] > 0.0)
    return found


@kernel
def may_reach(shown, hits, examination, rate, budget):  # type: ignore[no-untyped-def]
    """Whether the largest q with sum of N_l KL(S_l / N_l, chance_l q) <= budget is at least this rate.

    The sum is convex in q: so it is if the sum at the rate is within the budget, or still falls there.
    """
    total, slope = 0.0, 0.0
    for position in range(len(examination)):
        n, chance = shown[position], examination[position]
        if n == 0 or chance == 0.0:
            continue
        p, q = hits[position] / n, chance * rate
        if q <= 0.0:
            if p > 0.0:
                return True
        elif q >= 1.0:
            if p < 1.0:
                return False
        else:
            if p > 0.0:
                total += n * p * log(p / q)
            if p < 1.0:
                total += n * (1.0 - p) * log((1.0 - p) / (1.0 - q))
            slope += n * chance * (q - p) / (q * (1.0 - q))
    return slope <= 0.0 or total <= budget


class PbmPIE(PositionPolicy):
    """Show the items that look best, and in the position least looked at now and then one that may be better.

    For clicks by position: each position is examined by its own chance, which is known (`examination`), and
    an item that is examined is clicked if it attracts, whatever stands elsewhere. The leaders are the K items
    of largest S / E: clicks per examination to be expected. The last of them leaves its place, with a chance
    of 1/2, to one of the other items, all equally likely, that may be better: whose U = sup{q : sum over
    positions of N_l KL(S_l / N_l, chance_l q) <= (1 + eps) log t} is at least the leader's S / E. As n grows
    its regret comes near the least that any policy can have.

    Ours: unseen items come first, so that each is shown once (others begin with each item at every position);
    eps = 0.01 by default (the authors ask for more than 0); t, the slates learned from, where public codes of
    others have the horizon. Whether U reaches a rate is told from the sum at that rate, without computing U.
    What the page tells of how far the user came cuts a slate short, and changes no chance above. Positions
    that nobody looks at have no leaders.
    """

    name = "pbm-pie"
    paper = "Lagree, Vernade and Cappe 2016, Algorithm 1 (PBM-PIE)"

    @staticmethod
    def recommend(numbers, state, catalog, request, key, noise, slate):  # type: ignore[no-untyped-def]
        hidden, labels = request.hidden, catalog.labels
        budget = (1.0 + numbers.eps) * log(max(state.time[0], 1))
        rows = rows_of(catalog, request)
        scores = np.empty(len(rows))
        for j in range(len(rows)):
            _, examined, hits = sums_of(state, rows[j])
            scores[j] = hits / examined if examined > 0.0 else inf
        n = rank(rows, scores, catalog, request, key, slate)
        if n < len(slate):
            spread(slate, n, state.examination)
            return n
        last = spread(slate, n, state.examination)
        _, examined, hits = sums_of(state, slate[last])
        if examined == 0.0 or uniform(mix(key, _COIN), np.uint64(0)) < 0.5:
            return n
        rate = min(hits / examined, 1.0)
        lots, highest, drawn = mix(key, _LOTS), np.uint64(0), -1
        for row in rows:
            if (len(hidden) > 0 and hidden[row]) or _is_looked_at(slate, row, state.examination):
                continue
            if may_reach(state.shown[row], state.hits[row], state.examination, rate, budget):
                lot = mix(lots, labels[row])
                if drawn < 0 or lot > highest:
                    highest, drawn = lot, row
        if drawn >= 0:
            for position in range(n):
                if slate[position] == drawn:
                    slate[position] = slate[last]  # Nobody looks there.
            slate[last] = drawn
        return n
