"""The probability that Gaussian scores come in some order at the top.

"These rows come first, in this order" is a set of linear inequalities in the noise g, so a polyhedron. What
counting knows well enough is counted. Of what is left, each prefix gets draws of its own: a short walk inside
the polyhedron finds where it lies, a Gaussian is fitted to the walk, and independent draws from that Gaussian
are weighed. The walk decides only how good the draws are: the weights are right whatever it found.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from firstclick.evaluation.propensities.fitting import WALKED, Estimate, fitted, weighed_mean
from firstclick.evaluation.propensities.places import Places
from firstclick.evaluation.propensities.propensity import Propensity
from firstclick.kernels.polyhedra import count_orders, nearest_point, walk, weigh_lines
from firstclick.policies.score_laws import GaussianScores, PlaceScores
from firstclick.streams import stream_key

Numbers = NDArray[np.float64]

COUNTED = 2048  # draws that are counted before anything else
# A line that is violated by fewer than one in 1e17 draws is left out.
NEVER = 8.5
# Half the squared distance at which a polyhedron is taken for empty: its probability is below 1e-80.
TOO_FAR = 190.0
# How far inside a walk begins, if that can be.
MARGINS = (0.2, 0.02, 2e-3, 1e-5, 1e-8)


class Polyhedron(NamedTuple):
    """{g: lines g >= bounds}, lines of norm 1, the likeliest violated first."""

    lines: Numbers
    bounds: Numbers


class Reduced(NamedTuple):
    """The question about rows of which none tie. Equal rows are one; `length[j]` of these are in the first j
    of the slate, and `luck[j]` is the probability of the order that the slate gives to equal rows."""

    means: Numbers
    loads: Numbers
    chosen: NDArray[np.int64]
    full_at: NDArray[np.int64]
    length: NDArray[np.int64]
    luck: Numbers


def not_by_redraws(law: GaussianScores, places: Places) -> bool:
    """Whether there is a way that takes no redraws. With caps, which of two equal rows fills a group depends
    on more than the order of their kinds."""
    if law.own is not None:
        return bool((law.own > 0).all())
    return not (places.full_at < len(places.chosen)).any() or not _ties(law)


def _ties(law: GaussianScores) -> bool:
    lines = np.column_stack([law.means, law.loads])
    return len(np.unique(lines, axis=0)) < len(lines)


def gaussian_propensity(law: GaussianScores, places: Places, relative_error: float, seed: int) -> Propensity:
    """The probability of each prefix of a slate."""
    n = len(places.chosen)
    reduced = _without_ties(law, places)
    estimates, method = _orders(reduced, relative_error, seed)
    chances, errors = np.ones(n + 1), np.zeros(n + 1)
    for j in range(1, n + 1):
        if reduced.length[j] >= 0:
            one = estimates[reduced.length[j]]
            chances[j], errors[j] = reduced.luck[j] * one.chance, reduced.luck[j] * one.error
        else:
            chances[j] = 0.0
    chances = np.minimum.accumulate(chances)
    draws = max(one.draws for one in estimates)
    return Propensity(places.by_prefix(chances), places.by_prefix(errors), method, draws)


def place_propensity(law: PlaceScores, places: Places, relative_error: float, seed: int) -> Propensity:
    """The same where each place has scores of its own: a product of chances of first places."""
    n = len(places.chosen)
    chances, errors, draws, method = np.ones(n + 1), np.zeros(n + 1), 0, "exact"
    for place in range(n):
        left = places.full_at >= place
        left[places.chosen[:place]] = False
        rows = np.flatnonzero(left)
        first = np.searchsorted(rows, places.chosen[place])
        scores = law.places[place]
        alone = Places(rows, np.array([first]), np.ones(len(rows), np.int64), np.array([1]))
        part = GaussianScores(scores.means[rows], scores.loads[rows])
        own_seed = int(stream_key(seed, "place", place)) >> 1
        one = gaussian_propensity(part, alone, relative_error / np.sqrt(n), own_seed)
        chances[place + 1] = chances[place] * one.chances[0]
        # Relative errors of independent factors add up by their squares.
        errors[place + 1] = np.hypot(errors[place] * one.chances[0], chances[place] * one.errors[0])
        draws += one.draws
        method = one.method if method == "exact" else method
    return Propensity(places.by_prefix(chances), places.by_prefix(errors), method, draws)


def _without_ties(law: GaussianScores, places: Places) -> Reduced:
    n = len(places.chosen)
    lines = np.column_stack([law.means, law.loads])
    kinds, first, kind_of = np.unique(lines, axis=0, return_index=True, return_inverse=True)
    kind_of = kind_of.ravel()
    length, luck = np.arange(n + 1), np.ones(n + 1)
    if len(kinds) == len(lines):
        return Reduced(law.means, law.loads, places.chosen, places.full_at, length, luck)
    left = np.bincount(kind_of)
    met: list[int] = []
    for j, kind in enumerate(kind_of[places.chosen].tolist(), start=1):
        if not met or kind != met[-1]:
            # Equal rows come one after the other, all of them before the next kind.
            if kind in met or (met and left[met[-1]] > 0):
                length[j:], luck[j:] = -1, 0.0
                break
            met.append(kind)
        length[j], luck[j] = len(met), luck[j - 1] / left[kind]
        left[kind] -= 1
    chosen = np.array(met, np.int64)
    return Reduced(law.means[first], law.loads[first], chosen, np.full(len(kinds), len(chosen)), length, luck)


def _orders(reduced: Reduced, relative_error: float, seed: int) -> tuple[list[Estimate], str]:
    """For 0, 1, 2, ... rows that come first: the estimate. And the method."""
    n = len(reduced.chosen)
    sure = Estimate(1.0, 0.0, 0)
    polyhedra = [_polyhedron(reduced, j) for j in range(1, n + 1)]
    if all(one is None or _is_interval(one) for one in polyhedra):
        found = [Estimate(0.0, 0.0, 0) if one is None else _of_interval(one) for one in polyhedra]
        return [sure, *found], "exact"
    hits = np.zeros(n, np.int64)
    key = stream_key(seed, "counted")
    count_orders(reduced.means, reduced.loads, reduced.chosen, reduced.full_at, key, COUNTED, hits)
    estimates, draws = [sure], COUNTED
    for j, polyhedron in enumerate(polyhedra):
        share = hits[j] / COUNTED
        error = np.sqrt(share * (1 - share) / COUNTED)
        if polyhedron is None or not len(polyhedron.lines):
            one = Estimate(float(polyhedron is not None), 0.0, 0)
        elif _is_interval(polyhedron):
            one = _of_interval(polyhedron)
        elif hits[j] == COUNTED:
            # The polyhedron leaves out little: count what it leaves out by its worst lines.
            missing = min(float(ndtr(polyhedron.bounds).sum()), 1 / COUNTED)
            one = Estimate(1.0, missing, 0)
        elif hits[j] and error <= relative_error * share:
            one = Estimate(share, error, 0)
        else:
            own = stream_key(seed, "weighed", j)
            one = _weighed(polyhedron, relative_error, own)
        draws += one.draws
        estimates.append(one._replace(draws=draws))
    return estimates, "monte carlo"


def _polyhedron(reduced: Reduced, j: int) -> Polyhedron | None:
    """The noise with which the first j rows come first in their order; None if there is none."""
    chosen = reduced.chosen[:j]
    others = np.ones(len(reduced.means), bool)
    others[chosen] = False
    below = np.flatnonzero(others)
    upper = np.concatenate([chosen[:-1], chosen[np.minimum(reduced.full_at[below], j - 1)]])
    lower = np.concatenate([chosen[1:], below])
    lines = reduced.loads[upper] - reduced.loads[lower]
    bounds = reduced.means[lower] - reduced.means[upper]
    norms = np.sqrt((lines * lines).sum(1))
    fixed = norms <= 1e-13 * np.sqrt((reduced.loads[upper] ** 2).sum(1)) + 1e-300
    if (bounds[fixed] > 0).any():
        return None
    lines, bounds = lines[~fixed] / norms[~fixed, None], bounds[~fixed] / norms[~fixed]
    kept = np.flatnonzero(bounds > -NEVER)
    kept = kept[np.argsort(-bounds[kept], kind="stable")]
    return Polyhedron(np.ascontiguousarray(lines[kept]), bounds[kept])


def _is_interval(one: Polyhedron) -> bool:
    return one.lines.shape[1] == 1 or len(one.lines) <= 1


def _of_interval(one: Polyhedron) -> Estimate:
    if not len(one.lines):
        return Estimate(1.0, 0.0, 0)
    if len(one.lines) == 1:
        return Estimate(float(ndtr(-one.bounds[0])), 0.0, 0)
    up = one.lines[:, 0] > 0
    low = one.bounds[up].max(initial=-np.inf)
    high = -one.bounds[~up].max(initial=-np.inf)
    if low >= high:
        return Estimate(0.0, 0.0, 0)
    # In the tail where there are more digits.
    chance = ndtr(-low) - ndtr(-high) if low > 0 else ndtr(high) - ndtr(low)
    return Estimate(float(chance), 0.0, 0)


def _weighed(polyhedron: Polyhedron, relative_error: float, key: np.uint64) -> Estimate:
    """The probability of a polyhedron by weighed draws."""
    lines, bounds = polyhedron
    n, d = lines.shape
    nearest, weights = np.empty(d), np.empty(n)
    if nearest_point(lines, bounds, 500, TOO_FAR, nearest, weights) > TOO_FAR:
        return Estimate(0.0, 0.0, 0)
    start = _inside(polyhedron, nearest)
    if start is None:
        return Estimate(0.0, 0.0, 0)
    points = np.empty((WALKED, d))
    walk(lines, bounds, start, stream_key(int(key) >> 1, "walk"), WALKED, points)
    centre, root = fitted(points)
    slack, slopes = lines @ centre - bounds, np.ascontiguousarray(lines @ root)
    # A slope of 0 has no inverse; this one is as good.
    slopes[np.abs(slopes) < 1e-12] = 1e-12
    order = np.argsort(slack / np.sqrt((slopes * slopes).sum(1)), kind="stable")
    slack, slopes = slack[order], slopes[order]

    def weigh(first: int, weights: Numbers) -> None:
        weigh_lines(slack, slopes, centre, root, key, first, len(weights), weights)

    one = weighed_mean(weigh, relative_error)
    return one._replace(draws=one.draws + WALKED)


def _inside(polyhedron: Polyhedron, nearest: Numbers) -> Numbers | None:
    """A point inside, not far beyond the nearest one if that can be; None if the inside is empty, or thinner
    than the smallest margin."""
    lines, bounds = polyhedron
    found, distance = nearest.copy(), np.inf
    for margin in MARGINS:
        inner, weights = np.empty(len(nearest)), np.empty(len(bounds))
        distance = nearest_point(lines, bounds + margin, 500, TOO_FAR, inner, weights)
        if (lines @ inner >= bounds + 0.1 * margin).all():
            found = inner
            if inner @ inner < nearest @ nearest + 12:
                break
    # What is no point inside after all is where the walk begins to look for one.
    return None if distance > TOO_FAR else found
