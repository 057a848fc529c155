"""Logs that cannot answer are refused, with the reason; good ones are not."""

import itertools

import numpy as np
import pytest

from firstclick.errors import InvalidInput
from firstclick.evaluation.estimators.evaluate import evaluate
from firstclick.evaluation.estimators.support import CANNOT_SAY, CAUTION, OK, prefixes_seen
from firstclick.evaluation.estimators.weighted_slates import WeightedSlates

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


def refusal(slates, **more):
    """The first reason; the answer must be none."""
    found = evaluate(slates, learning=False, **more)
    assert found.support.verdict == CANNOT_SAY
    assert found.chosen is None
    assert found.answer is None
    assert found.support.advice
    return found.support.reasons[0]


def verdict(found):
    assert found.answer is not None
    assert not found.support.advice
    return found.support.verdict


def test_a_log_with_randomness_and_true_propensities_is_ok():
    assert verdict(evaluate(logged(UNIFORM, ONE_LIST), learning=False)) == OK
    assert verdict(evaluate(logged(SOME_ORDER, UNIFORM), learning=False)) == OK


def test_a_deterministic_logger_is_refused():
    reason = refusal(logged(ONE_LIST, OTHER_LIST))
    assert "certain of every slate" in reason
    assert "model-based" in reason
    assert "certain" in refusal(logged(ONE_LIST, 0.5 * ONE_LIST + 0.5 * OTHER_LIST))


def test_a_deterministic_logger_that_is_the_target_has_an_answer():
    found = evaluate(logged(ONE_LIST, ONE_LIST), learning=False)
    assert verdict(found) == OK
    assert found.answer is not None
    assert found.answer.difference == pytest.approx(0, abs=1e-12)


def test_no_overlap_is_refused():
    without = np.where(LISTS[:, 0] == LISTS[13, 0], 0.0, UNIFORM)
    assert "never shows the first item" in refusal(logged(without / without.sum(), OTHER_LIST))
    second = np.where(np.arange(20) == 13, 0.0, UNIFORM)
    assert "never shows the first 2 items" in refusal(logged(second / second.sum(), OTHER_LIST))


def test_a_target_that_the_logger_shows_in_part_is_refused():
    half = np.where(np.arange(20) < 10, 0.1, 0.0)
    assert "hardly ever shows" in refusal(logged(half, UNIFORM))


def test_three_slates_are_refused():
    assert "has 3 slates" in refusal(logged(UNIFORM, ONE_LIST, n=3))


def test_few_matching_slates_are_refused_and_some_more_are_a_caution():
    assert "worth" in refusal(logged(UNIFORM, ONE_LIST, n=200))
    assert verdict(evaluate(logged(UNIFORM, ONE_LIST, n=1200), learning=False)) == CAUTION


@pytest.mark.parametrize("target", [ONE_LIST, OTHER_LIST, UNIFORM], ids=["one list", "other list", "uniform"])
def test_one_by_n_instead_of_the_true_propensities_is_refused(target):
    wrong = np.array([1 / 5, 1 / 20])
    slates = logged(SOME_ORDER, target)
    reasons = refusal(slates._replace(logged=np.tile(wrong, (slates.n, 1))))
    assert "true" in reasons or "propensities" in reasons


def test_the_propensities_of_another_policy_are_refused():
    slates, other = logged(SOME_ORDER, UNIFORM), logged(SOME_ORDER, SOME_ORDER[::-1])
    refusal(slates._replace(logged=other.target))


def test_items_shown_more_often_than_their_propensities_allow_give_wrong_ones_away():
    # The target is the policy itself, so that every weight is 1 and tells nothing.
    slates = logged(SOME_ORDER, SOME_ORDER)
    wrong = np.tile([1 / 5, 1 / 20], (slates.n, 1))
    assert "in first place more often" in refusal(slates._replace(logged=wrong, target=wrong))
    assert evaluate(slates, learning=False).support.items_doubted == 0


def test_weights_with_infinite_variance_are_refused():
    rng = np.random.default_rng(3)
    n = 20_000
    weights = rng.pareto(1.2, n) * 0.2 / 1.2  # mean below 1, tail k = 1 / 1.2
    probability = np.minimum(0.5 / np.maximum(weights, 1e-9), 0.5)
    slates = WeightedSlates(
        (rng.random((n, 1)) < 0.2) * 1.0, probability[:, None], (weights * probability)[:, None]
    )
    assert "Pareto k" in refusal(slates) or "mean" in refusal(slates)
    # With mean 1 it is the tail that gives them away.
    even = slates._replace(target=slates.target / weights.mean())
    assert "Pareto k" in refusal(even)


def test_weights_that_exploration_bounds_are_no_heavy_tail_however_they_are_spread():
    """A policy that learned: most of its slates were likely, some early ones were not, none below 0.05."""
    rng = np.random.default_rng(3)
    n = 3000
    chances = np.where(rng.random(n) < 0.93, 0.98, np.exp(rng.uniform(np.log(0.05), 0.0, n)))
    matches = rng.random(n) < chances
    clicks = (rng.random((n, 1)) < 0.3) * 1.0
    logged_as = np.where(matches, chances, 1.0 - chances)
    slates = WeightedSlates(clicks, logged_as[:, None], matches[:, None] * 1.0)
    support = evaluate(slates, learning=False).support
    assert support.positions[0].pareto_k > 0.7
    assert support.verdict == CAUTION
    assert "heavy tail" in support.reasons[0]


def test_a_log_without_any_click_is_refused():
    slates = logged(UNIFORM, ONE_LIST)
    assert "No slate was clicked" in refusal(slates._replace(clicks=np.zeros_like(slates.clicks)))


def test_a_log_without_any_click_is_not_told_to_explore():
    slates = logged(UNIFORM, ONE_LIST)
    unclicked = slates._replace(clicks=np.zeros_like(slates.clicks))
    advice = evaluate(unclicked, learning=False).support.advice
    assert advice.startswith("Check that clicks are recorded")
    assert "explore" not in advice


def test_a_log_where_everything_was_clicked_is_refused():
    slates = logged(UNIFORM, ONE_LIST)
    assert "Every position" in refusal(slates._replace(clicks=np.ones_like(slates.clicks)))


def test_slates_left_out_are_counted_and_a_caution():
    slates = logged(UNIFORM, ONE_LIST)
    some = slates.logged.copy()
    some[::5] = np.nan
    found = evaluate(slates._replace(logged=some), learning=False)
    assert (found.slates, found.support.missing, verdict(found)) == (3200, 800, CAUTION)
    assert "20% of the slates have no propensity" in found.support.reasons[0]
    found = evaluate(slates, learning=False, unreported=1000)
    assert "20% of the slates have no reported outcome" in found.support.reasons[0]
    assert "0 slates" in refusal(slates._replace(logged=np.full_like(slates.logged, np.nan)))


@pytest.mark.parametrize(
    ("place", "number", "message"),
    [
        ((7, 1), 0.0, "logged must be above 0 .* got 0 at slate 7, position 2"),
        ((8, 0), 1.5, "logged must be probabilities, got 1.5 at slate 8, position 1"),
        ((9, 1), 0.9, "logged must not rise .* got 0.9 at slate 9, position 2"),
    ],
)
def test_what_is_no_probability_is_an_error(place, number, message):
    slates = logged(UNIFORM, ONE_LIST)
    slates.logged[place] = number
    with pytest.raises(InvalidInput, match=message):
        evaluate(slates, learning=False)


def test_arrays_that_do_not_fit_are_an_error():
    slates = logged(UNIFORM, ONE_LIST)
    with pytest.raises(InvalidInput, match=r"target must have the shape \(4000, 2\), got \(3999, 2\)"):
        evaluate(slates._replace(target=slates.target[1:]), learning=False)
    with pytest.raises(InvalidInput, match="gone through twice"):
        evaluate(iter([slates]), learning=False)
    with pytest.raises(InvalidInput, match="at least one slate"):
        evaluate([], learning=False)


def test_the_advice_names_slates_and_a_share_and_holds_what_it_promises():
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


def test_the_advice_for_many_items_is_a_trial():
    poor = logged(UNIFORM, OTHER_LIST, n=200)
    advice = evaluate(poor, learning=False, candidates=10_000).support.advice
    assert "Uniform slates would not do" in advice
    assert "show the policy itself on 10% of" in advice


def test_shares_of_requests_whose_first_places_were_seen():
    shown = np.array([[3, 1, 0], [3, 2, 0], [1, 2, 3]], dtype=np.int32)
    wanted = np.array([[3, 2, 1], [3, 2, 0], [1, 3, 2], [2, 1, 0]], dtype=np.int32)
    np.testing.assert_array_equal(prefixes_seen(shown, wanted).mean(axis=0), [0.75, 0.5, 0.25])
    ended = np.array([[shown[0, 0], -1, -1], [-2, shown[0, 1], -1]], dtype=np.int32)
    # One slate that has ended, and one with an unknown item.
    np.testing.assert_array_equal(prefixes_seen(shown, ended).mean(axis=0), [0.5, 0.5, 0.5])
