"""Support: logs that cannot answer have no number and a reason; good ones are not refused."""

import itertools
import re

import numpy as np
import pytest

from firstclick.evaluation.estimators.evaluate import evaluate
from firstclick.evaluation.estimators.support import CANNOT_SAY, CAUTION, OK, prefixes_seen
from firstclick.evaluation.estimators.weighted_slates import WeightedSlates
from tests.support.refusals import check_refused

ATTRACTION = np.array([0.6, 0.5, 0.3, 0.2, 0.1])
LISTS = np.array(list(itertools.permutations(range(5), 2)))


def logged(chances, wanted, n=4000, seed=0):
    """A cascade, logged by a policy that shows each list with these chances, and a target with others."""
    rng = np.random.default_rng(seed)
    which = rng.choice(len(LISTS), size=n, p=chances)
    slates = LISTS[which]
    attracted = rng.random((n, 2)) < ATTRACTION[slates]
    clicks = attracted & (np.cumsum(attracted, axis=1) == 1)

    def prefixes(of):
        first = np.array([of[LISTS[:, 0] == item].sum() for item in range(5)])
        return np.stack([first[slates[:, 0]], of[which]], axis=1)

    return WeightedSlates(clicks * 1.0, prefixes(chances), prefixes(wanted), items=slates.astype(np.int32))


UNIFORM = np.full(20, 1 / 20)
SOME_ORDER = np.arange(1.0, 21.0) / np.arange(1.0, 21.0).sum()
ONE_LIST, OTHER_LIST = np.eye(20)[0], np.eye(20)[13]


def without(rows):
    """Uniform slates without these."""
    left = np.where(rows, 0.0, UNIFORM)
    return left / left.sum()


def changed(slates, **arrays):
    """The slates with other arrays, each repeated for all slates if it is a row."""
    return slates._replace(
        **{name: np.broadcast_to(array, slates.logged.shape) for name, array in arrays.items()}
    )


def heavy_tail(mean):
    """Weights with infinite variance, their tail k = 1 / 1.2."""
    rng = np.random.default_rng(3)
    n = 20_000
    weights = rng.pareto(1.2, n) * 0.2 / 1.2
    probability = np.minimum(0.5 / np.maximum(weights, 1e-9), 0.5)
    weights = weights if mean is None else mean * weights / weights.mean()
    clicks = (rng.random((n, 1)) < 0.2) * 1.0
    return WeightedSlates(clicks, probability[:, None], (weights * probability)[:, None])


OTHER_POLICY = logged(SOME_ORDER, SOME_ORDER[::-1])


def check_without_number(slates, reason):
    found = evaluate(slates, learning=False)
    assert (found.support.verdict, found.chosen, found.answer) == (CANNOT_SAY, None, None)
    assert re.search(reason, found.support.reasons[0])
    advice = found.support.advice
    assert advice
    assert ("explore" not in advice) == advice.startswith("Check that clicks are recorded")


def test_a_deterministic_logger_is_refused():
    check_without_number(logged(ONE_LIST, OTHER_LIST), "certain of every slate.*model-based")
    check_without_number(logged(ONE_LIST, 0.5 * ONE_LIST + 0.5 * OTHER_LIST), "certain")


# One over the number of items, in place of the true propensities.
ONE_BY_N = np.array([1 / 5, 1 / 20])


@pytest.mark.parametrize(
    ("slates", "reason"),
    [
        (lambda: logged(without(LISTS[:, 0] == LISTS[13, 0]), OTHER_LIST), "never shows the first item"),
        (lambda: logged(without(np.arange(20) == 13), OTHER_LIST), "never shows the first 2 items"),
        (lambda: logged(without(np.arange(20) >= 10), UNIFORM), r"mean 0\.600 .* hardly ever shows"),
        (lambda: logged(UNIFORM, ONE_LIST, n=3), "has 3 slates"),
        (lambda: logged(UNIFORM, ONE_LIST, n=200), r"worth 12\.0 slates: too few"),
        (lambda: changed(logged(SOME_ORDER, ONE_LIST), logged=ONE_BY_N), r"mean 0\.249 .* are not true, or"),
        (lambda: changed(logged(SOME_ORDER, OTHER_LIST), logged=ONE_BY_N), r"mean 1\.371 .* not those of"),
        (lambda: changed(logged(SOME_ORDER, UNIFORM), logged=ONE_BY_N), "^2 items .* more often"),
        # The propensities of another policy.
        (lambda: changed(logged(SOME_ORDER, UNIFORM), logged=OTHER_POLICY.target), r"mean 2\.235 .* not"),
        # The target is the policy itself, so that every weight is 1; items are shown too often.
        (lambda: changed(logged(SOME_ORDER, SOME_ORDER), logged=ONE_BY_N, target=ONE_BY_N), "^2 items"),
        (lambda: heavy_tail(None), r"mean 0\.692 .* are not true, or"),
        (lambda: changed(logged(UNIFORM, ONE_LIST), clicks=0.0), "No slate was clicked"),
        (lambda: changed(logged(UNIFORM, ONE_LIST), clicks=1.0), "Every position"),
        # With mean 1 it is the tail that gives them away.
        (lambda: heavy_tail(1.0), r"Pareto k 0\.79.* too heavy"),
    ],
)
def test_log_without_support_has_no_number_but_a_reason_and_advice(slates, reason):
    check_without_number(slates(), reason)


@pytest.mark.parametrize(
    ("logger", "target", "n", "verdict"),
    [
        (UNIFORM, ONE_LIST, 4000, OK),
        (SOME_ORDER, UNIFORM, 4000, OK),
        (SOME_ORDER, SOME_ORDER, 4000, OK),
        (UNIFORM, ONE_LIST, 1200, CAUTION),
        (ONE_LIST, ONE_LIST, 4000, OK),
    ],
)
def test_log_with_support_has_an_answer(logger, target, n, verdict):
    found = evaluate(logged(logger, target, n), learning=False)
    assert (found.support.verdict, found.support.items_doubted) == (verdict, 0)
    assert found.answer is not None
    assert not found.support.advice
    if logger is target:
        assert found.answer.difference == pytest.approx(0, abs=1e-12)


def test_weights_bounded_by_exploration_are_not_a_heavy_tail():
    """A policy that learned: most of its slates were likely, some early ones were not, none below 0.05."""
    rng = np.random.default_rng(3)
    n = 3000
    chances = np.where(rng.random(n) < 0.93, 0.98, np.exp(rng.uniform(np.log(0.05), 0.0, n)))
    matches = rng.random(n) < chances
    clicks = (rng.random((n, 1)) < 0.3) * 1.0
    logged_as = np.where(matches, chances, 1.0 - chances)
    slates = WeightedSlates(clicks, logged_as[:, None], matches[:, None] * 1.0)
    support = evaluate(slates, learning=False).support
    assert (support.positions[0].pareto_k > 0.7, support.verdict) == (True, CAUTION)


@pytest.mark.parametrize(
    ("name", "position", "wrong"),
    [("logged", 1, 0.0), ("logged", 0, 1.5), ("logged", 1, 0.9), ("target", 0, -0.25), ("clicks", 0, -1.0)],
)
def test_impossible_arrays_are_refused(name, position, wrong):
    slates = logged(UNIFORM, ONE_LIST, n=10)
    array = getattr(slates, name).copy()
    array[7, position] = wrong
    check_refused(lambda: evaluate(slates._replace(**{name: array}), learning=False), name)


def test_advice_gives_a_number_of_slates_that_is_enough():
    poor = logged(UNIFORM, OTHER_LIST, n=200)
    found = evaluate(poor, learning=False, candidates=5, explore=0.2)
    assert "slates with explore=0.2 would answer" in found.support.advice
    needed = int(found.support.advice.split()[0].replace(",", ""))
    enough = logged(0.8 * ONE_LIST + 0.2 * UNIFORM, OTHER_LIST, n=needed)
    answered = evaluate(enough, learning=False)
    assert answered.support.verdict == OK
    rips = next(one for one in answered.estimates if one.name == "rips")
    assert (rips.high - rips.low) / 2 <= 0.1 * answered.shown * 1.3
    assert min(one.effective_slates for one in answered.support.positions) >= 80
    # Of many items it is a trial.
    advice = evaluate(poor, learning=False, candidates=10_000).support.advice
    assert "Uniform slates would not do" in advice
    assert "show the policy itself on 10% of" in advice


def test_shares_of_requests_whose_first_positions_were_seen():
    shown = np.array([[3, 1, 0], [3, 2, 0], [1, 2, 3]], dtype=np.int32)
    wanted = np.array([[3, 2, 1], [3, 2, 0], [1, 3, 2], [2, 1, 0]], dtype=np.int32)
    np.testing.assert_array_equal(prefixes_seen(shown, wanted).mean(axis=0), [0.75, 0.5, 0.25])
    ended = np.array([[shown[0, 0], -1, -1], [-2, shown[0, 1], -1]], dtype=np.int32)
    # One slate that has ended, and one with an unknown item.
    np.testing.assert_array_equal(prefixes_seen(shown, ended).mean(axis=0), [0.5, 0.5, 0.5])
