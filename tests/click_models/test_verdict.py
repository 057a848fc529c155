"""Quality on held-out slates, the verdict on a page, shrinkage, EM and folds."""

from math import exp

import numpy as np
import pytest

from firstclick import make_policy
from firstclick.click_models import FITTED_MODELS, fit, read_sessions
from firstclick.click_models.em import maximise
from firstclick.click_models.quality import LEAST_CHANCE, quality
from firstclick.click_models.shrinkage import rate_prior
from firstclick.click_models.slate_hash import fold_of, resample_weights
from firstclick.click_models.verdict import compare_models, verdict
from firstclick.errors import InvalidInput
from firstclick.streams import stream
from tests.support.memory_log import simulated_log
from tests.support.reference.click_models import click_chances


def page(model, n=20_000):
    return simulated_log(model, n)[0]


def verdict_of(log):
    return verdict(compare_models(read_sessions(log), FITTED_MODELS))


@pytest.mark.parametrize("model", FITTED_MODELS)
def test_quality_equals_a_slow_reference(model):
    log = page("dbn", 300)
    found, sessions = fit(log, model), read_sessions(log)
    chosen = np.array([5, 17, 200, 201, 44, 3], np.int64)
    measured = quality(found, sessions, chosen)
    plain, given = [], []
    for number, session in enumerate(chosen):
        slate, clicks = log.whole.items[session], log.whole.clicks[session]
        logs = []
        for chances in (click_chances(slate, found, 0), click_chances(slate, found, 0, clicks)):
            happened = np.where(clicks == 1, chances, 1 - np.array(chances))
            logs.append(np.log(np.maximum(happened, LEAST_CHANCE)))
        plain.append(logs[0])
        given.append(logs[1])
        first = int(np.argmax(clicks)) if clicks.any() else len(clicks) - 1
        assert measured.pages[number] == pytest.approx(logs[1].sum(), abs=1e-9)
        assert measured.first_clicks[number] == pytest.approx(logs[1][: first + 1].sum(), abs=1e-9)
    np.testing.assert_allclose(measured.perplexity, 2 ** -np.mean(plain / np.log(2), axis=0), rtol=1e-9)
    expected = 2 ** -np.mean(given / np.log(2), axis=0)
    np.testing.assert_allclose(measured.conditional_perplexity, expected, rtol=1e-9)


@pytest.mark.parametrize(
    ("model", "policy"),
    [
        ("cm", "cascade-mixed"), ("dcm", "dcm-lin-ucb:stop=learned"), ("sdbn", "dcm-lin-ucb:stop=learned"),
        ("pbm", "pbm-ucb:examination=1/0."), ("dbn", "dcm-lin-ucb:stop=learned"),
    ],
)  # fmt: skip
def test_model_that_made_the_clicks_is_chosen(model, policy):
    result = verdict_of(page(model))
    assert (result.take, result.cascade_enough) == (model, model == "cm")
    assert result.policy.startswith(policy)
    assert make_policy(result.policy.partition(",")[0].partition(";")[0])
    # With one click per impression models of later clicks make the same predictions.
    if model in ("cm", "dcm"):
        assert any("cannot be told apart" in text for text in result.sentences) == (model == "cm")


def test_rare_second_clicks_leave_a_cascade_good_enough():
    log = page("cm")
    generator = np.random.default_rng(4)
    clicks = log.whole.clicks
    rows = np.flatnonzero(clicks.any(axis=1) & (generator.random(len(clicks)) < 0.05))
    clicks[rows, np.minimum(clicks[rows].argmax(axis=1) + 1, 4)] = 1
    found = verdict_of(log)
    assert (found.take, found.cascade_enough) == ("dcm", True)
    assert found.policy.startswith("cascade-mixed")
    found = verdict_of(page("dcm", 300))
    assert (found.best, found.take, found.cascade_enough, found.policy) == ("", "", None, "")


def test_few_items_shown_all_the_time_do_not_decide_how_much_items_differ():
    """Four items of a list, alike by chance, have most looks; forty explored ones differ as Beta(2, 8)."""
    draw = stream(3, "rates")
    rates = np.concatenate([[0.19, 0.2, 0.21, 0.2], draw.beta(2.0, 8.0, 40)])
    looks = np.concatenate([np.full(4, 5000.0), np.full(40, 100.0)])
    hits = draw.binomial(looks.astype(int), rates).astype(float)
    strength = rate_prior(hits, looks, np.zeros(44, np.int64), 1).strength
    # 2 + 8 in truth; 6.7 to 25 in 60 other draws. With looks as weights it was 57.
    assert 6 < strength < 20


def test_with_equal_looks_the_strength_is_that_of_the_rates():
    draw = stream(4, "rates")
    looks = np.full(4000, 50.0)
    hits = draw.binomial(50, draw.beta(3.0, 27.0, 4000)).astype(float)
    prior = rate_prior(hits, looks, np.zeros(4000, np.int64), 1)
    # 5 standard errors, found by repeating it: 1.3 each.
    assert prior.strength == pytest.approx(30, abs=6.5)
    assert prior.means[0] == pytest.approx(0.1, abs=0.01)


def test_long_step_that_makes_things_worse_is_not_taken():
    # Equal plain steps up to 0.5 look like a straight way to 1, where the objective is far lower.
    def step(here):
        return np.where(here < 0.5, np.minimum(here + 0.01, 0.5), here), -abs(float(here[0]) - 0.5)

    found = maximise(step, np.array([0.2]), 1.0)
    assert found.parameters[0] == pytest.approx(0.5)
    assert found.finished
    cut = maximise(lambda here: (here * 0.999, -float(here[0])), np.array([0.9]), 1e-9, most_steps=2)
    assert (cut.finished, cut.steps) == (False, 2)


def test_long_steps_save_steps_where_em_is_slow():
    taken = []

    def step(here):
        taken.append(float(here[0]))
        return here + 0.002 * (0.7 - here), -float((here[0] - 0.7) ** 2)

    found = maximise(step, np.array([0.1]), 1.0)
    assert found.parameters[0] == pytest.approx(0.7, abs=0.01)
    # Plain EM: 0.998 to the power of 2,000 is 0.018.
    assert found.steps == len(taken) < 50


def test_folds_are_of_one_size_and_depend_on_the_number_alone():
    numbers = np.arange(100_000)
    folds = fold_of(numbers, 5)
    share = np.bincount(folds, minlength=5) / len(numbers)
    # Four standard errors: a false alarm in 1 of 3,000 for the five together. The numbers are fixed.
    assert np.abs(share - 0.2).max() < 4 * np.sqrt(0.16 / len(numbers))
    np.testing.assert_array_equal(fold_of(numbers[::-7], 5), folds[::-7])


def test_weights_of_a_resample_are_poisson_numbers_of_mean_1():
    numbers = np.arange(100_000)
    weights = resample_weights(numbers, 3)
    for count, share in enumerate([exp(-1), exp(-1), exp(-1) / 2, exp(-1) / 6]):
        error = np.sqrt(share * (1 - share) / len(numbers))
        assert abs((weights == count).mean() - share) < 4 * error
    np.testing.assert_array_equal(resample_weights(numbers[::-3], 3), weights[::-3])
    other = resample_weights(numbers, 4)
    assert abs(np.corrcoef(weights, other)[0, 1]) < 4 / np.sqrt(len(numbers))
    # The fold is no part of it.
    assert abs(weights[fold_of(numbers, 5) == 0].mean() - 1) < 4 * np.sqrt(5 / len(numbers))
    with pytest.raises(InvalidInput, match="resample"):
        resample_weights(np.arange(3), -1)
