"""The benchmarks of evaluation stand on two computations of their own, checked here."""

import numpy as np
import pytest

from benchmarks.cascade_dr import Tree, run
from benchmarks.evaluation_coverage import ATTRACTIONS, LISTS, Thompson, value, weighted
from benchmarks.evaluation_coverage import Log as CoverageLog


def test_the_chances_of_thompson_sampling_are_those_of_draws():
    """200,000 draws: a chance is off by 5 standard errors once in 1.7 million."""
    hits, misses = np.array([40, 30, 6, 2, 0]), np.array([30, 35, 9, 5, 3])
    thompson = Thompson(5)
    for item in range(5):
        thompson.changed(item, hits[item], misses[item])
    draws = np.random.default_rng(1).beta(1 + hits, 1 + misses, size=(200_000, 5))
    best = np.argsort(-draws, axis=1)[:, :2]
    counted = np.array([(best == one).all(axis=1).mean() for one in LISTS])
    found = thompson.chances()
    assert found.sum() == pytest.approx(1)
    errors = np.sqrt(found * (1 - found) / 200_000)
    assert (np.abs(found - counted) < 5 * errors + 2e-4).all()


def test_prefixes_and_spreads_are_those_of_the_lists():
    chances = np.random.default_rng(2).dirichlet(np.ones(20), size=3)
    target = np.random.default_rng(3).dirichlet(np.ones(20))
    log = CoverageLog(LISTS[[0, 7, 19]].astype(np.int32), np.zeros((3, 2)), chances)
    found = weighted(log, target)
    for row, number in enumerate((0, 7, 19)):
        same = LISTS[:, 0] == LISTS[number, 0]
        assert found.logged[row] == pytest.approx([chances[row, same].sum(), chances[row, number]])
        assert found.target[row] == pytest.approx([target[same].sum(), target[number]])
        by_first = [
            (target[LISTS[:, 0] == item].sum(), chances[row, LISTS[:, 0] == item].sum()) for item in range(5)
        ]
        assert found.spread[row] == pytest.approx(
            [sum(a * a / b for a, b in by_first), (target**2 / chances[row]).sum()]
        )
    first, second = ATTRACTIONS[LISTS[7]]
    assert value(np.eye(20)[7]) == pytest.approx(first + (1 - first) * second)


def test_a_tree_splits_where_the_most_error_goes():
    features = np.array([[0.0, 5.0], [1.0, 3.0], [2.0, 4.0], [3.0, 1.0]])
    tree = Tree(features, np.array([1.0, 1.0, 7.0, 9.0]), np.array([1.0, 1.0, 1.0, 3.0]), depth=1)
    assert (tree.feature, tree.threshold) == (0, 1.5)
    assert tree.predict(features).tolist() == [1.0, 1.0, 8.5, 8.5]


def test_a_run_of_the_experiment_has_an_error_for_each_estimator():
    errors = run(3, "additive", 0.4, False, np.random.default_rng(4))
    assert set(errors) > {"rips", "cascade-dr"}
    assert all(0 <= error < 0.5 for error in errors.values())
