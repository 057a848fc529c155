"""The probability that independent scores come in some order at the top, by nested integrals.

The densities are f, the distribution functions F, and R_m(t) is the product of F(t) over the rows that must
stay below place m of the prefix a_1 ... a_j, and below no place above it. Then

    G_j(t) = integral up to t of f_{a_j} R_j
    G_m(t) = integral up to t of f_{a_m} R_m G_{m+1}
    P = G_1(infinity)

Every G_m is kept at the nodes of Gauss-Legendre panels, in which it is the integral of a polynomial. Panels
in which the integrand is not resolved are halved.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import betainc, betaln, expit

from firstclick.evaluation.propensities.places import Places

Numbers = NDArray[np.float64]

NODES = 16
# A panel is halved until the last Legendre coefficients are this small beside the largest value in it, unless
# the panel adds less than NEGLIGIBLE of the whole.
RESOLVED, NEGLIGIBLE, MOST_HALVINGS = 1e-10, 1e-17, 14
# Where a density has fallen by this power of e, it ends.
FALL = 46.0
# A distribution function this close to 1 is 1.
SURE = 1e-17


class LogitBeta(NamedTuple):
    """The logits of Beta(a, b) scores: the same order, and densities that are smooth at both ends."""

    a: Numbers
    b: Numbers

    def log_density(self, items: NDArray[np.int64], t: Numbers) -> Numbers:
        """Of each item, a row, at each t, a column."""
        a, b = self.a[items, None], self.b[items, None]
        # log of u^a (1 - u)^b / B(a, b), where u = 1 / (1 + exp(-t)).
        found: Numbers = a * -np.logaddexp(0.0, -t) + b * -np.logaddexp(0.0, t) - betaln(a, b)
        return found

    def log_distribution(self, items: NDArray[np.int64], t: Numbers) -> Numbers:
        """The logarithm of the probability to be at most t."""
        a, b = self.a[items, None], self.b[items, None]
        found = np.empty((len(items), len(t)))
        low = t < 0
        with np.errstate(divide="ignore"):
            found[:, low] = np.log(betainc(a, b, expit(t[low])))
            # Near 1 what is left to 1 has more digits.
            found[:, ~low] = np.log1p(-betainc(b, a, expit(-t[~low])))
        return found

    def centres(self, items: NDArray[np.int64]) -> tuple[Numbers, Numbers]:
        """About where the density of each item is largest, and how wide it is."""
        a, b = self.a[items], self.b[items]
        return np.log(a / b), np.sqrt((a + b) / (a * b))


def _gauss_legendre() -> tuple[Numbers, Numbers, Numbers, Numbers]:
    """Nodes and weights on [-1, 1]; the matrix that gives integrals from -1 to each node; and the one that
    gives Legendre coefficients."""
    x, w = np.polynomial.legendre.leggauss(NODES)
    values = np.polynomial.legendre.legvander(x, NODES)
    degrees = np.arange(NODES)
    coefficients = (degrees + 0.5)[:, None] * w * values[:, :NODES].T
    integrals = np.empty((NODES, NODES))
    integrals[:, 0] = x + 1
    integrals[:, 1:] = (values[:, 2:] - values[:, :-2]) / (2 * degrees[1:] + 1)
    return x, w, integrals @ coefficients, coefficients


X, WEIGHTS, INTEGRALS, COEFFICIENTS = _gauss_legendre()


def ordered_chances(scores: LogitBeta, same: NDArray[np.int64], places: Places) -> Numbers:
    """For 0, 1, 2, ... free places: the probability that the rows chosen come first, in order.

    `same` gives for each row the item of `scores` that has its law: rows with equal laws are one item.
    """
    n = len(places.chosen)
    chances = np.ones(n + 1)
    if not n:
        return chances
    factors = _factors(same, places)
    chosen = same[places.chosen]
    edges = _first_edges(scores, np.unique(chosen))
    panels = _Panels(scores, chosen, factors)
    panels.refine(edges)
    for j in range(1, n + 1):
        chances[j] = panels.nested(j)
    # The first n places have rounding of their own.
    return np.minimum.accumulate(np.clip(chances, 0.0, 1.0))


class _Factors(NamedTuple):
    """How often the distribution function of each item is a factor of R_m, for the prefix of length j."""

    items: NDArray[np.int64]  # those that are a factor anywhere
    times: dict[tuple[int, int], Numbers]  # by (j, m)


def _factors(same: NDArray[np.int64], places: Places) -> _Factors:
    n = len(places.chosen)
    n_items = int(same.max()) + 1
    times: dict[tuple[int, int], Numbers] = {}
    used = np.zeros(n_items)
    for j in range(1, n + 1):
        below = np.minimum(places.full_at, j - 1)
        below[places.chosen[:j]] = -1
        for m in range(j):
            times[j, m] = np.bincount(same[below == m], minlength=n_items).astype(np.float64)
            used += times[j, m]
    items = np.flatnonzero(used)
    return _Factors(items, {pair: counts[items] for pair, counts in times.items()})


def _first_edges(scores: LogitBeta, items: NDArray[np.int64]) -> Numbers:
    """Edges of panels that are fine near the centres of these items, and reach to where densities end."""
    centres, widths = scores.centres(items)
    edges = []
    for item, centre, width in zip(items, centres, widths, strict=True):
        one = np.array([item])

        def fallen(t: float, one: NDArray[np.int64] = one) -> float:
            return float(scores.log_density(one, np.array([t]))[0, 0])

        top = fallen(centre)
        steps = [centre]
        for sign in (-1.0, 1.0):
            step, t = width, centre
            while fallen(t) > top - FALL:
                t += sign * step
                step *= 1.5
                steps.append(t)
        edges.append(steps)
    found = np.unique(np.concatenate(edges))
    # Edges that nearly coincide make panels for nothing.
    return np.asarray(found[np.diff(found, prepend=-np.inf) > 0.05 * widths.min()])


class _Panels:
    """The functions f_{a_m} R_m at the nodes of panels, from left to right."""

    def __init__(self, scores: LogitBeta, chosen: NDArray[np.int64], factors: _Factors) -> None:
        self._scores, self._chosen, self._factors = scores, chosen, factors
        self._left, self._half = np.empty(0), np.empty(0)
        self._values: dict[tuple[int, int], Numbers] = {}

    def refine(self, edges: Numbers) -> None:
        """Panels between these edges, halved until all functions are resolved in each."""
        left, half = edges[:-1], np.diff(edges) / 2
        kept: list[tuple[Numbers, Numbers, dict[tuple[int, int], Numbers]]] = []
        whole = dict.fromkeys(self._factors.times, 0.0)
        for halving in range(MOST_HALVINGS + 1):
            values = self._at(left, half)
            split = np.zeros(len(left), bool)
            for pair, value in values.items():
                sums = half * (value @ WEIGHTS)
                whole[pair] = max(whole[pair], float(sums.sum()))
                if halving < MOST_HALVINGS:
                    tail = np.abs(value @ COEFFICIENTS[-2:].T).max(1)
                    top = value.max(1)
                    split |= (tail > RESOLVED * top) & (top * half > NEGLIGIBLE * whole[pair])
            done = ~split
            kept.append((left[done], half[done], {pair: value[done] for pair, value in values.items()}))
            if not split.any():
                break
            half = np.repeat(half[split] / 2, 2)
            left = np.repeat(left[split], 2)
            left[1::2] += 2 * half[1::2]
        self._left = np.concatenate([one[0] for one in kept])
        order = np.argsort(self._left)
        self._half = np.concatenate([one[1] for one in kept])[order]
        self._values = {
            pair: np.concatenate([one[2][pair] for one in kept])[order] for pair in self._factors.times
        }

    def _at(self, left: Numbers, half: Numbers) -> dict[tuple[int, int], Numbers]:
        t = ((left + half)[:, None] + half[:, None] * X).ravel()
        density = self._scores.log_density(self._chosen, t)
        below = self._distributions(left, t)
        found = {}
        for (j, m), times in self._factors.times.items():
            counted = times > 0
            # 0 times the logarithm of 0 is nothing.
            log_rest = times[counted] @ below[counted] if counted.any() else 0.0
            found[j, m] = np.exp(density[m] + log_rest).reshape(len(left), NODES)
        return found

    def _distributions(self, left: Numbers, t: Numbers) -> Numbers:
        """log F of every item at every node; where it is 1 at the left end of a panel, it is 1 in all."""
        items = self._factors.items
        found = np.zeros((len(items), len(t)))
        unsure = self._scores.log_distribution(items, left) < -SURE
        for place, item in enumerate(items):
            nodes = np.repeat(unsure[place], NODES)
            if nodes.any():
                found[place, nodes] = self._scores.log_distribution(np.array([item]), t[nodes])[0]
        return np.maximum(found, -1e300)

    def nested(self, j: int) -> float:
        """P of the prefix of length j."""
        inner: Numbers | float = 1.0
        total = 0.0
        for m in range(j - 1, -1, -1):
            value = self._values[j, m] * inner
            sums = self._half * (value @ WEIGHTS)
            before = np.cumsum(sums) - sums
            inner = before[:, None] + self._half[:, None] * (value @ INTEGRALS.T)
            total = float(sums.sum())
        return total


def beta_chances(a: Numbers, b: Numbers, places: Places) -> Numbers:
    """The chances of rows whose scores are Beta(a, b)."""
    pairs, same = np.unique(np.column_stack([a, b]), axis=0, return_inverse=True)
    return ordered_chances(LogitBeta(pairs[:, 0], pairs[:, 1]), same.ravel(), places)
