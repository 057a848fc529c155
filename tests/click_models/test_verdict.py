"""Quality on held-out slates, and what is said about a page."""

import numpy as np
import pytest

from firstclick import make_policy
from firstclick.click_models import FITTED_MODELS, fit, read_sessions
from firstclick.click_models.quality import LEAST_CHANCE, quality
from firstclick.click_models.verdict import compare_models, verdict
from tests.support.made_up_log import MadeUpLog, chain_clicks, position_clicks, shuffled_slates
from tests.support.reference.click_models import click_chances


def page(model, n=20_000, attraction=0.4):
    generator = np.random.default_rng(17)
    slates = shuffled_slates(generator, n, 10, 5)
    attracts = np.linspace(0.25 * attraction, attraction, 10)[slates]
    if model == "pbm":
        return MadeUpLog(slates, position_clicks(generator, attracts, np.array([1, 0.7, 0.5, 0.35, 0.25])))
    leaves = {"cm": np.ones(5), "dcm": 1 - np.array([0.9, 0.6, 0.3, 0.8, 0.5])}
    leaving = np.broadcast_to(leaves.get(model, np.linspace(0.9, 0.1, 10)[slates]), slates.shape)
    clicks, _ = chain_clicks(generator, attracts, leaving, 0.8 if model == "dbn" else 1.0)
    return MadeUpLog(slates, clicks)


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
        slate, clicks = log._items[session], log._clicks[session]
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
    ("model", "policy", "examined"),
    [
        ("cm", "cascade-mixed", "down to the first click"),
        ("dcm", "dcm-lin-ucb:stop=learned", "down to the last click"),
        ("sdbn", "dcm-lin-ucb:stop=learned", "down to the last click"),
        ("pbm", "pbm-ucb:examination=1/0.", "by chance"),
        ("dbn", "dcm-lin-ucb:stop=learned", "leave at each position"),
    ],
)
def test_model_that_made_the_clicks_is_found(model, policy, examined):
    found = verdict_of(page(model))
    assert (found.take, found.cascade_enough) == (model, model == "cm")
    assert found.policy.startswith(policy)
    assert examined in found.examined
    assert make_policy(found.policy.partition(",")[0].partition(";")[0])
    assert any(text.startswith("A cascade is good enough") for text in found.sentences) == (model == "cm")
    # With one click per page models of later clicks cannot be told apart.
    if model in ("cm", "dcm"):
        assert any("cannot be told apart" in text for text in found.sentences) == (model == "cm")


def test_rare_second_clicks_leave_a_cascade_good_enough_and_few_clicks_say_nothing():
    log = page("cm")
    generator = np.random.default_rng(4)
    rows = np.flatnonzero(log._clicks.any(axis=1) & (generator.random(len(log._clicks)) < 0.05))
    log._clicks[rows, np.minimum(log._clicks[rows].argmax(axis=1) + 1, 4)] = 1
    found = verdict_of(log)
    assert (found.take, found.cascade_enough) == ("dcm", True)
    assert found.policy.startswith("cascade-mixed")
    found = verdict_of(page("dcm", 300))
    assert (found.best, found.take, found.cascade_enough, found.policy) == ("", "", None, "")
    assert found.sentences[0].startswith("Cannot say which model fits: ")
