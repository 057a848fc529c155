"""Orders of Gaussian scores that share their noise, against plain counting and exact integrals."""

from fractions import Fraction
from itertools import pairwise, permutations
from math import comb, factorial

import numpy as np
import pytest
from scipy.special import ndtr

from firstclick.evaluation.propensities.gaussian import gaussian_propensity, place_propensity
from firstclick.evaluation.propensities.own_parts import own_parts_propensity
from firstclick.evaluation.propensities.places import Places
from firstclick.evaluation.propensities.quadrature import beta_chances, ordered_chances
from firstclick.policies.score_laws import GaussianScores, PlaceScores
from tests.support.reference.normals import Normals

DRAW = np.random.default_rng(20)


def places(n, chosen, full_at=None):
    never = [len(chosen)] * n
    return Places(np.arange(n), np.array(chosen), np.array(full_at or never), np.arange(1, len(chosen) + 1))


def greedy(scores, groups, cap, k):
    """The best rows of which no group has more than the cap: slow and obvious."""
    slate = []
    for row in np.argsort(-scores):
        if len(slate) < k and sum(groups[one] == groups[row] for one in slate) < cap:
            slate.append(int(row))
    return tuple(slate)


def in_the_plane(law, prefix):
    """The exact chances for two shared numbers: g = r (cos, sin), and r^2/2 is exponential."""
    angles = (np.arange(400_000) + 0.5) / 400_000 * 2 * np.pi
    along = law.loads @ np.array([np.cos(angles), np.sin(angles)])
    found = []
    for j in range(1, len(prefix) + 1):
        low, high = np.zeros(len(angles)), np.full(len(angles), np.inf)
        below = [(prefix[j - 1], row) for row in range(len(law.means)) if row not in prefix[:j]]
        for upper, lower in [*pairwise(prefix[:j]), *below]:
            slope, start = along[upper] - along[lower], law.means[lower] - law.means[upper]
            low = np.where(slope > 0, np.maximum(low, start / slope), low)
            high = np.where(slope < 0, np.minimum(high, start / slope), high)
        inside = np.exp(-(low**2) / 2) - np.exp(-(high**2) / 2)
        found.append(np.where(low < high, inside, 0.0).mean())
    return np.array(found)


def test_two_shared_numbers_to_one_in_a_thousand():
    law = GaussianScores(DRAW.normal(size=8) / 2, DRAW.normal(size=(8, 2)))
    for prefix in [(0, 1, 2), (3, 7, 4), (5, 2, 6)]:
        wanted = in_the_plane(law, prefix)
        found = gaussian_propensity(law, places(8, prefix), 0.004, seed=1)
        np.testing.assert_allclose(found.chances, wanted, atol=1e-3)
        # Relative errors are as reported; false alarm below 1e-4 for each of nine.
        assert (np.abs(found.chances - wanted) <= 4.5 * found.errors + 1e-6).all()


def test_one_in_a_million_to_a_tenth_with_fewer_draws_than_counting():
    """Independent scores are a case of shared noise, and have exact chances by quadrature."""
    means, deviations = np.array([0.0, 1.0, 2.2, 0.7, 1.9, 1.0]), np.array([0.7, 0.6, 0.5, 0.6, 0.4, 0.5])
    law, chosen = GaussianScores(means, np.diag(deviations)), places(6, (3, 0, 5, 2))
    wanted = ordered_chances(Normals(means, deviations), np.arange(6), chosen)[1:]
    assert 1e-7 < wanted[-1] < 2e-6
    found = gaussian_propensity(law, chosen, 0.1, seed=2)
    np.testing.assert_allclose(found.chances, wanted, rtol=0.4)  # four standard errors
    assert found.draws < 100 / wanted[-1] / 50


@pytest.mark.parametrize("caps", [False, True])
def test_many_shared_numbers_as_counted(caps):
    n, d, draws = 8, 4, 200_000
    law = GaussianScores(DRAW.normal(size=n) / 2, DRAW.normal(size=(n, d)) / 2)
    groups = [0, 1, 0, 1, 2, 2, 0, 1] if caps else list(range(n))
    scores = law.means + DRAW.normal(size=(draws, d)) @ law.loads.T
    slates = [greedy(one, groups, 1, 3) for one in scores[:4000]]
    slate = max(set(slates[:50]), key=slates.count)
    full = {groups[row]: place for place, row in enumerate(slate)}
    chosen = places(n, slate, [full.get(groups[row], 3) for row in range(n)] if caps else None)
    found = gaussian_propensity(law, chosen, 0.02, seed=3)
    for j in range(1, 4):
        share = np.mean([one[:j] == slate[:j] for one in slates])
        error = np.hypot(found.errors[j - 1], np.sqrt(share * (1 - share) / len(slates)))
        assert abs(found.chances[j - 1] - share) < 4.5 * error  # false alarm: 1 in 100,000


def test_exact_and_impossible_orders():
    def chances(means, loads, chosen):
        found = gaussian_propensity(GaussianScores(means, loads), places(len(means), chosen), 0.05, seed=0)
        return found.method, found.chances

    # Equal rows come in any order, one after the other.
    loads = np.array([[1.0], [1.0], [-1.0], [1.0]])
    method, found = chances(np.zeros(4), loads, (1, 0, 3, 2))
    assert method == "exact"
    np.testing.assert_allclose(found, [1 / 6, 1 / 12, 1 / 12, 1 / 12])
    np.testing.assert_allclose(chances(np.zeros(4), loads, (1, 2, 0))[1], [1 / 6, 0, 0])
    # One shared number: row 1 is first from g = 1 on, and before row 2 up to g = 8; row 0 is before row 2
    # below g = 10/3.
    method, found = chances(np.array([1.0, 0.0, -4.0]), np.array([[0.5], [1.5], [2.0]]), (1, 0))
    assert method == "exact"
    np.testing.assert_allclose(found, [ndtr(8) - ndtr(1), ndtr(10 / 3) - ndtr(1)])
    # A row that is never first has no chance.
    loads = np.array([[1.0, 1.0], [-1.0, 1.0], [0.0, -1.0], [0.0, 0.1]])
    np.testing.assert_array_equal(chances(np.zeros(4), loads, (3, 0))[1], 0.0)


def test_places_with_scores_of_their_own():
    """The second place draws anew, among the rows that are left."""
    laws = tuple(GaussianScores(DRAW.normal(size=5) / 2, DRAW.normal(size=(5, 2))) for _ in range(2))
    second = 1 + np.argmax(laws[1].means[1:4])
    found = place_propensity(PlaceScores(laws), places(5, (4, second)), 0.02, seed=5)
    first = in_the_plane(laws[0], (4,))[0]
    left = GaussianScores(laws[1].means[:4], laws[1].loads[:4])
    wanted = np.array([first, first * in_the_plane(left, (second,))[0]])
    assert wanted[1] > 0.01
    assert (np.abs(found.chances - wanted) < 4.5 * found.errors).all()


def test_own_parts():
    """Without shared noise the scores are independent; with it, as counted."""
    means, own = DRAW.normal(size=7) / 2, DRAW.uniform(0.3, 1.0, 7)
    slate = places(7, (2, 5, 1))
    alone = own_parts_propensity(GaussianScores(means, np.zeros((7, 1)), own), slate, 0.01, seed=6)
    wanted = ordered_chances(Normals(means, own), np.arange(7), slate)[1:]
    assert (np.abs(alone.chances - wanted) < 4.5 * alone.errors).all()
    loads = DRAW.normal(size=(7, 2))
    found = own_parts_propensity(GaussianScores(means, loads, own), slate, 0.02, seed=7)
    draws = 400_000
    scores = means + DRAW.normal(size=(draws, 2)) @ loads.T + own * DRAW.normal(size=(draws, 7))
    best = np.argsort(-scores, axis=1)[:, :3]
    for j in range(1, 4):
        share = (best[:, :j] == slate.chosen[:j]).all(1).mean()
        error = np.hypot(found.errors[j - 1], np.sqrt(share * (1 - share) / draws))
        assert abs(found.chances[j - 1] - share) < 4.5 * error


def product(one, other):
    found = [Fraction(0)] * (len(one) + len(other) - 1)
    for i, a in enumerate(one):
        for j, b in enumerate(other):
            found[i + j] += a * b
    return found


def integral(one):
    return [Fraction(0), *(a / (i + 1) for i, a in enumerate(one))]


def density(a, b):
    """u^(a-1) (1-u)^(b-1) / B(a, b), for whole numbers."""
    scale = Fraction(factorial(a + b - 1), factorial(a - 1) * factorial(b - 1))
    return [Fraction(0)] * (a - 1) + [scale * comb(b - 1, i) * (-1) ** i for i in range(b)]


def exact_chance(pairs, prefix):
    """The probability that these come first in this order, by integrating polynomials."""
    inner = [Fraction(1)]
    for item, (a, b) in enumerate(pairs):
        if item not in prefix:
            inner = product(inner, integral(density(a, b)))
    for item in reversed(prefix):
        inner = integral(product(density(*pairs[item]), inner))
    return sum(inner, Fraction(0))


PAIRS = [(1, 1), (2, 5), (4, 3), (1, 6), (2, 2), (3, 8), (2, 5), (7, 2)]


@pytest.mark.parametrize("prefix", [(2, 4, 0), (1, 6, 3), (7, 2, 4, 0), (3, 5, 6, 1)])
def test_betas_equal_exact_integrals(prefix):
    a, b = np.array(PAIRS, float).T
    found = beta_chances(a, b, places(len(PAIRS), prefix))
    wanted = [float(exact_chance(PAIRS, prefix[:j])) for j in range(len(prefix) + 1)]
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-13)


def test_sharp_betas_and_small_chances_keep_their_digits():
    # The first of 3 is far below the second, and 200 others are far below both.
    pairs = [(2, 30), (20, 12), (9, 9)]
    a, b = np.array(pairs, float).T
    found = beta_chances(a, b, places(3, (0, 1, 2)))
    wanted = [float(exact_chance(pairs, (0, 1, 2)[:j])) for j in range(4)]
    assert wanted[3] < 1e-6
    np.testing.assert_allclose(found, wanted, rtol=1e-8)
    a, b = np.r_[a, np.full(200, 3.0)], np.r_[b, np.full(200, 30_000.0)]
    np.testing.assert_allclose(beta_chances(a, b, places(203, (0, 1, 2))), wanted, rtol=1e-7)


def test_a_full_group_bounds_its_rows_by_the_row_that_filled_it():
    """Against all orders of five rows, each cut by the caps as a policy does it."""
    pairs, groups, cap = PAIRS[:5], [0, 0, 1, 0, 1], 1
    wanted = 0.0
    for order in permutations(range(5)):
        slate = []
        for row in order:
            if sum(groups[one] == groups[row] for one in slate) < cap:
                slate.append(row)
        if slate[:2] == [0, 4]:
            wanted += float(exact_chance(pairs, order))
    a, b = np.array(pairs, float).T
    # Group 0 is full at place 0, group 1 at place 1.
    full_at = [groups[row] for row in range(5)]
    found = beta_chances(a, b, places(5, (0, 4), full_at))
    assert found[2] == pytest.approx(wanted, rel=1e-10)
    assert found[2] != pytest.approx(float(exact_chance(pairs, (0, 4))), rel=0.01)
