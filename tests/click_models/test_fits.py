"""Fits of click models: against slow references, on simulated sessions, and on odd logs."""

import numpy as np
import pytest

from firstclick.click_models import FITTED_MODELS, fit, fit_sessions, read_sessions
from firstclick.click_models.chain_fit import _Chain, counted
from firstclick.click_models.position_fit import position_counts
from firstclick.errors import InvalidInput
from firstclick.kernels.position_counts import expect_positions
from tests.support.memory_log import EXAMINATION, GOING_ON, InMemoryLog, shuffled_slates, simulated_log
from tests.support.reference.click_models import expected_chain, expected_positions


def small_log(**changes):
    """60 slates of 1 to 4 of 7 items, some of which tell what was examined; two segments."""
    generator = np.random.default_rng(3)
    slates = shuffled_slates(generator, 60, 7, 4)
    for row, length in enumerate(generator.integers(1, 5, 60)):
        slates[row, length:] = -1
    clicks = ((generator.random((60, 4)) < 0.35) & (slates >= 0)).astype(np.uint8)
    examined = np.where(generator.random(60) < 0.3, generator.integers(0, 5, 60), -1)
    segments = generator.integers(0, 2, 60)
    return InMemoryLog(
        slates, clicks, names=range(8), size=17, **{"examined": examined, "segments": segments} | changes
    )


@pytest.mark.parametrize("model", FITTED_MODELS)
def test_parameters_are_recovered_from_simulated_sessions(model):
    # Stated in advance: 40,000 sessions examine an item about 15,000 times, a standard error of 0.004, or up
    # to 0.008 where examination is estimated; satisfaction depends on some 2,000 clicks, half of them without
    # a visible follow-up. Four standard errors, 12 items: a false alarm in about 1 of 1,000 seeds.
    log, attraction, leaving = simulated_log(model, 40_000)
    found = fit(log, model)
    assert np.abs(found.attraction[0] - attraction).max() < 0.03
    if model in ("sdbn", "dbn"):
        assert np.abs(found.satisfaction[0] - leaving).max() < 0.12
    if model == "dcm":
        assert np.abs(found.chances[:5] - GOING_ON[:5]).max() < 0.05
    if model == "pbm":
        assert np.abs(found.chances - EXAMINATION).max() < 0.03
        assert found.chances[0] == 1.0
    if model == "dbn":
        assert abs(found.chances[0] - 0.85) < 0.02
    assert found.slates == 40_000


@pytest.mark.parametrize("first_click", [True, False])
def test_counts_of_closed_forms_equal_a_plain_loop(first_click):
    sessions = read_sessions(small_log(), by_segment=True)
    weights = sessions.weights(resample=4)
    found = counted(sessions, weights, first_click=first_click)
    hits, looks, clicked, left = (np.zeros(sessions.n_cells) for _ in range(4))
    at, stopped = np.zeros(4), np.zeros(4)
    for slate, clicks, told, weight in zip(
        sessions.cells, sessions.clicks, sessions.examined, weights, strict=True
    ):
        length = int((slate >= 0).sum())
        where = np.flatnonzero(clicks)
        if told >= 0:
            seen = min(max(told, where.max(initial=-1) + 1), length)
        elif len(where):
            seen = (where[0] if first_click else where[-1]) + 1
        else:
            seen = length
        for position in range(seen):
            cell = slate[position]
            looks[cell] += weight
            hits[cell] += weight * clicks[position]
            if clicks[position] and position < length - 1:
                clicked[cell] += weight
                at[position] += weight
                if position == seen - 1:
                    left[cell] += weight
                    stopped[position] += weight
    for one, other in zip(found, (hits, looks, clicked, left, at, stopped), strict=True):
        np.testing.assert_array_equal(one, other)
    assert hits.sum() > 10
    assert left.sum() > 3


@pytest.mark.parametrize("model", ["dcm", "sdbn", "dbn"])
@pytest.mark.parametrize("told", [True, False])
def test_em_of_chains_equals_a_slow_one_and_never_lowers_the_objective(model, told):
    log = small_log() if told else small_log(examined=None)
    sessions = read_sessions(log, by_segment=True)
    weights = sessions.weights(resample=1)
    chain = _Chain(sessions, weights, model, threads=2)
    here = chain.start()
    here[-1] = 0.8 if model == "dbn" else 1.0
    slow, before = here, -np.inf
    for _ in range(6):
        attraction, leaving, gamma = chain.parts(slow)
        total, looks, left, going = expected_chain(
            sessions.cells, sessions.clicks, sessions.examined, weights, attraction, leaving, gamma,
            chain.by_position,
        )  # fmt: skip
        for prior, rates, segments in (
            (chain.attraction_prior, attraction, chain.segments), (chain.leaving_prior, leaving, chain.places)
        ):  # fmt: skip
            for rate, segment in zip(rates, segments, strict=True):
                mean = prior.means[segment]
                total += prior.strength * (mean * np.log(rate) + (1 - mean) * np.log(1 - rate))
        slow = chain.joined(looks, left, going[1] / going[0] if model == "dbn" else 1.0)
        here, objective = chain.step(here)
        np.testing.assert_allclose(here, slow, rtol=0, atol=1e-10)
        assert objective == pytest.approx(total, abs=1e-9)
        assert objective >= before - 1e-9
        before = objective


@pytest.mark.parametrize("told", [True, False])
def test_em_of_positions_equals_a_slow_one(told):
    sessions = read_sessions(small_log() if told else small_log(examined=None), by_segment=True)
    weights = sessions.weights(resample=2)
    generator = np.random.default_rng(8)
    attraction, examination = generator.random(sessions.n_cells), np.array([0.9, 0.5, 0.7, 0.2])
    slow = expected_positions(
        sessions.cells, sessions.clicks, sessions.examined, weights, attraction, examination
    )
    looks, seen = np.zeros(sessions.n_cells), np.zeros(4)
    total = expect_positions(position_counts(sessions, weights), attraction, examination, looks, seen)
    assert total == pytest.approx(slow[0], abs=1e-10)
    np.testing.assert_allclose(looks, slow[1], rtol=0, atol=1e-10)
    np.testing.assert_allclose(seen, slow[2], rtol=0, atol=1e-10)


@pytest.mark.parametrize("model", FITTED_MODELS)
def test_one_thread_equals_two_bit_for_bit(model):
    log, _, _ = simulated_log("dbn", 3000)
    one, two = fit(log, model, threads=1), fit(log, model, threads=2)
    for name in ("attraction", "satisfaction", "chances", "looks"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))


def test_a_resample_is_a_fit_to_repeated_slates():
    log = small_log()
    sessions = read_sessions(log)
    weights = sessions.weights(resample=7)
    assert set(weights) >= {0.0, 1.0, 2.0}
    again = np.repeat(np.arange(sessions.n), weights.astype(int))
    part = log.whole
    repeated = InMemoryLog(
        part.items[again], part.clicks[again], names=range(8), examined=part.examined[again]
    )
    found, expected = fit(log, "sdbn", resample=7), fit(repeated, "sdbn")
    np.testing.assert_allclose(found.attraction, expected.attraction, atol=1e-9)
    np.testing.assert_allclose(found.satisfaction, expected.satisfaction, atol=1e-9)


def test_sparse_items_shrink_to_the_mean_of_their_segment():
    # Segment 0 clicks a lot, segment 1 hardly; item 5 is shown once in each, and clicked in neither.
    generator = np.random.default_rng(5)
    slates = generator.integers(0, 5, (4000, 1)).astype(np.int32)
    segments = np.arange(4000) % 2
    slates[:2] = 5
    clicks = generator.random((4000, 1)) < np.where(segments == 0, 0.6, 0.05)[:, None]
    clicks[:2] = 0
    log = InMemoryLog(slates, clicks, names=range(7), segments=segments)
    found = fit(log, "cm", by_segment=True)
    # Items do not differ beyond chance here: one look says next to nothing.
    assert found.attraction[0, 5] == pytest.approx(0.6, abs=0.05)
    assert found.attraction[1, 5] == pytest.approx(0.05, abs=0.02)
    # Never shown: the mean, and no looks.
    assert found.attraction[0, 6] == pytest.approx(0.6, abs=0.05)
    assert found.looks[:, 5:].tolist() == [[1, 0], [1, 0]]
    assert found.shares.tolist() == [0.5, 0.5]


@pytest.mark.parametrize("model", FITTED_MODELS)
def test_logs_of_which_nothing_or_everything_was_clicked_or_of_one_item(model):
    slates = shuffled_slates(np.random.default_rng(0), 200, 4, 3)
    for clicked in (0, 1):
        found = fit(InMemoryLog(slates, np.full((200, 3), clicked)), model)
        chances = found.click_chances(slates[:5], np.zeros(5, np.int32))
        assert chances[:, 0] == pytest.approx(clicked, abs=0.01)
        if clicked and model != "cm":
            assert chances[:, 2] == pytest.approx(1.0, abs=0.02)
    one = fit(InMemoryLog([[0]] * 10, [[1]] * 3 + [[0]] * 7), model)
    chances = one.click_chances(np.zeros((1, 1), np.int32), np.zeros(1, np.int32))
    assert chances[0, 0] == pytest.approx(0.3, abs=0.03)


def test_slates_without_a_report_are_left_out_and_counted():
    sessions = read_sessions(small_log(reported=np.arange(60) % 4 != 0))
    assert (sessions.n, sessions.unreported) == (45, 15)
    with pytest.raises(InvalidInput, match="no slate has a known outcome"):
        read_sessions(small_log(reported=np.zeros(60)))
    with pytest.raises(InvalidInput, match="every slate is left out"):
        fit_sessions(sessions, "cm", np.zeros(sessions.n))


def test_what_the_page_tells_is_used():
    # Users look at 2 of 3 positions and click the second with 0.5: without being told, half of the looks at
    # the third would count against it.
    slates, clicks = [[0, 1, 2]] * 100, [[0, 1, 0]] * 50 + [[0, 0, 0]] * 50
    told = fit(InMemoryLog(slates, clicks, examined=[2] * 100), "dbn")
    assert told.looks[0].tolist() == [100, 100, 0]
    assert fit(InMemoryLog(slates, clicks), "dbn").looks[0, 2] > 10
    examined = fit(InMemoryLog(slates, clicks, examined=[2] * 100), "pbm")
    np.testing.assert_allclose(examined.chances, [1, 1, 0], atol=1e-6)
