"""The whole answer: what is chosen, and that the truth is inside."""

import numpy as np
import pytest

from firstclick.evaluation.estimators import evaluate as module
from firstclick.evaluation.estimators.choice import choose
from firstclick.evaluation.estimators.evaluate import evaluate
from firstclick.evaluation.estimators.position_ips import IIPS
from firstclick.evaluation.estimators.prefix_ips import RIPS, SELF_NORMALISED_RIPS
from firstclick.evaluation.estimators.weighted_slates import WeightedSlates
from tests.support.reference import small_worlds as small

LOGGER = small.plackett_luce(np.array([1.0, 2.0, 0.5, 1.5]))
TARGET = small.plackett_luce(np.array([4.0, 1.0, 1.0, 0.3]))


def drawn(model, n, seed, target=TARGET):
    """A log of a small world."""
    slates, chances = small.enumerated(model, LOGGER, target)
    rows = np.random.default_rng(seed).choice(len(chances), size=n, p=chances)
    return WeightedSlates(*(None if one is None else one[rows] for one in slates))


def estimate(found, name):
    (one,) = (one for one in found.estimates if one.name == name)
    return one


@pytest.mark.parametrize("n", [20_000, pytest.param(200_000, marks=pytest.mark.long)])
def test_example_that_others_get_wrong(n):
    """Items (.9, .5, .1), two positions, a cascade, uniform slates, the target (0, 1): 0.95 clicks per
    impression. skdr-eval 0.12 has 1.152 ± 0.003."""
    rng = np.random.default_rng(0)
    slates = np.argsort(rng.random((n, 3)), axis=1)[:, :2]
    attracted = rng.random((n, 2)) < np.array([0.9, 0.5, 0.1])[slates]
    clicks = attracted & (np.cumsum(attracted, axis=1) == 1)
    target = np.cumprod(slates == [0, 1], axis=1) * 1.0
    found = evaluate(WeightedSlates(clicks * 1.0, np.tile([1 / 3, 1 / 6], (n, 1)), target), learning=False)
    assert found.support.verdict == "ok"
    for one in found.estimates:
        # Four standard errors: a false alarm once in 3,000 for each of five.
        assert abs(one.value - 0.95) < one.high - one.low < 12 / np.sqrt(n), one.name
    assert found.answer.low < 0.95 < found.answer.high
    shown = (0.9 + 0.5 + 0.1) / 3 + (0.1 * 0.6 + 0.5 * 1.0 + 0.9 * 1.4) / 6
    assert found.shown == pytest.approx(shown, abs=0.02)
    assert found.answer.difference_low < 0.95 - shown < found.answer.difference_high


def test_estimators_by_position_are_candidates_under_pbm_alone():
    slates = drawn(small.pbm, 3000, seed=1)
    by_position = {"iips", "sn-iips"}
    for model in (None, "cm", "dcm", "sdbn", "dbn"):
        found = evaluate(slates, learning=False, click_model=model)
        assert not by_position & {one.name for one in found.estimates if one.loss is not None}
        assert by_position < {one.name for one in found.estimates}
    found = evaluate(slates, learning=False, click_model="pbm")
    assert by_position < {one.name for one in found.estimates if one.loss is not None}
    assert any("PBM fits the log" in reason for reason in found.reasons)


def test_cross_validation_prefers_the_estimator_with_less_spread():
    """One list of 24 is the target. The model of the clicks is right, so what remains is the users' own."""
    target = np.eye(len(small.SLATES))[5]
    slates = drawn(small.pbm, 4000, seed=2, target=target)
    # Whatever is shown above, the target's item is expected to have the chance of its place.
    truth = small.EXAMINATION * small.ATTRACTION[small.SLATES[5]]
    right = slates._replace(
        predicted_target=np.tile(truth, (4000, 1)), predicted=np.where(slates.target > 0, truth, 0.0)
    )
    found = evaluate(right, learning=False)
    assert found.chosen in ("cascade-dr", "sn-cascade-dr")
    widths = {one.name: one.high - one.low for one in found.estimates}
    assert widths["cascade-dr"] < 0.9 * widths["rips"]


def test_estimators_by_position_win_under_pbm_and_lose_under_a_cascade():
    """One list is the target: its weights by position are far smaller than those of prefixes."""
    target = np.eye(len(small.SLATES))[5]
    found = evaluate(drawn(small.pbm, 20_000, seed=9, target=target), learning=False, click_model="pbm")
    assert found.chosen in ("iips", "sn-iips")
    assert found.answer.low < small.value(small.pbm, target) < found.answer.high
    # The click model is named wrongly.
    found = evaluate(drawn(small.cascade, 20_000, seed=9, target=target), learning=False, click_model="pbm")
    assert found.chosen in ("rips", "sn-rips", "cascade-dr", "sn-cascade-dr")
    assert any("Too far from RIPS for noise: IIPS" in reason for reason in found.reasons)


def test_batches_give_what_the_whole_gives(monkeypatch):
    whole = drawn(small.dbn, 1000, seed=5)
    starts = range(0, 1000, 300)
    parts = [
        WeightedSlates(*(None if one is None else one[start : start + 300] for one in whole))
        for start in starts
    ]
    expected = evaluate(whole, learning=True)
    # The seed decides the folds.
    by_seed = [evaluate(whole, learning=False, seed=seed).estimates for seed in (1, 1, 2)]
    losses = [[row.loss for row in rows] for rows in by_seed]
    assert losses[0] == losses[1] != losses[2]
    monkeypatch.setattr(module, "CHUNK", 70)
    for one, other in zip(evaluate(parts, learning=True).estimates, expected.estimates, strict=True):
        numbers = other.value, other.low, other.difference_high
        assert (one.value, one.low, one.difference_high) == pytest.approx(numbers, abs=1e-9), one.name


def test_log_that_learned_has_bernstein_intervals_unless_spreads_are_known():
    slates = drawn(small.cascade, 4000, seed=6)
    found, fixed = evaluate(slates, learning=True), evaluate(slates, learning=False)
    assert {one.name: one.interval for one in found.estimates if one.valid} == dict.fromkeys(
        ("rips", "iips", "slate-ips"), "bernstein"
    )
    assert found.chosen == "rips"
    assert all(one.interval == "normal" and one.valid for one in fixed.estimates)
    wide, narrow = estimate(found, "rips"), estimate(fixed, "rips")
    assert wide.low < narrow.low < narrow.high < wide.high
    logged, judged = (small.prefix_chances(one) for one in (LOGGER, TARGET))
    # sum over prefixes of target^2 / logged: each slate stands for its prefix, with its share of it
    spread = (judged**2 / logged * (LOGGER[:, None] / logged)).sum(axis=0)
    known = evaluate(slates._replace(spread=np.tile(spread, (4000, 1))), learning=True)
    assert all(one.interval == "stabilised" and one.valid for one in known.estimates)
    assert estimate(known, "rips").value == pytest.approx(narrow.value)


def folds(apart):
    """Fold sums of RIPS and of an estimator with a fifth of its noise, so many standard errors apart."""
    rng = np.random.default_rng(1)
    noisy, quiet = rng.normal(size=(2, 200))
    noisy, quiet = noisy - noisy.mean(), 0.2 * (quiet - quiet.mean())
    error = (noisy - quiet).std() / np.sqrt(200)
    return np.stack([5.0 + noisy, 5.0 + quiet - apart * error], axis=1)


@pytest.mark.parametrize(
    ("other", "apart", "chosen"),
    [
        (SELF_NORMALISED_RIPS, 0.5, "sn-rips"),
        # RIPS itself may be what is off.
        (SELF_NORMALISED_RIPS, 1.95, "sn-rips"),
        (SELF_NORMALISED_RIPS, 3.0, "sn-rips"),
        (IIPS, 1.95, "iips"),
        # What need not be right is then taken to be biased.
        (IIPS, 3.0, "rips"),
    ],
)
def test_the_distance_from_rips_counts_where_noise_cannot_explain_it(other, apart, chosen):
    found = choose([RIPS, other], folds(apart), np.ones(200), "pbm", np.random.default_rng(2))
    assert found.name == chosen
    assert found.name == min(found.losses, key=lambda name: found.losses[name])
    assert ("Too far from RIPS" in found.reasons[1]) == (chosen == "rips")


def test_of_two_the_one_with_less_noise_wins_whichever_comes_first():
    noisy_and_quiet = folds(0.0)
    assert choose(
        [RIPS, SELF_NORMALISED_RIPS], noisy_and_quiet[:, ::-1], np.ones(200), "cm", np.random.default_rng(2)
    ).name == "rips"  # fmt: skip
