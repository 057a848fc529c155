"""Orders of independent scores by quadrature, against exact rational arithmetic."""

from fractions import Fraction
from itertools import permutations
from math import comb, factorial

import numpy as np
import pytest

from firstclick.evaluation.propensities.places import Places
from firstclick.evaluation.propensities.quadrature import beta_chances, ordered_chances
from tests.support.reference.normals import Normals


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


def places(n, chosen, full_at=None):
    never = [len(chosen)] * n
    return Places(np.arange(n), np.array(chosen), np.array(full_at or never), np.arange(1, len(chosen) + 1))


PAIRS = [(1, 1), (2, 5), (4, 3), (1, 6), (2, 2), (3, 8), (2, 5), (7, 2)]


@pytest.mark.parametrize("prefix", [(2, 4, 0), (1, 6, 3), (7, 2, 4, 0), (3, 5, 6, 1)])
def test_betas_equal_exact_integrals(prefix):
    a, b = np.array(PAIRS, float).T
    found = beta_chances(a, b, places(len(PAIRS), prefix))
    wanted = [float(exact_chance(PAIRS, prefix[:j])) for j in range(len(prefix) + 1)]
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-13)


def test_the_chances_of_all_orders_add_up_to_one():
    a, b = np.array([0.5, 3, 40.25, 1, 7]), np.array([2.5, 9, 160, 1, 7])
    found = [beta_chances(a, b, places(5, prefix)) for prefix in permutations(range(5), 3)]
    np.testing.assert_allclose(np.sum(found, 0) / [60, 12, 3, 1], 1.0, rtol=1e-11)


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


def test_normal_scores():
    law = Normals(np.zeros(4), np.ones(4))
    assert ordered_chances(law, np.arange(4), places(4, (2, 0)))[2] == pytest.approx(1 / 12, rel=1e-10)
