"""cascade-mixed equals a slow reference slate by slate, and its shortcuts change nothing."""

from statistics import NormalDist

import numpy as np
import pytest
from scipy.optimize import minimize

from firstclick.kernels.arrays import NO_LIMITS
from firstclick.kernels.hashing import luck
from firstclick.kernels.mixed import (
    BETA2,
    DELAY,
    DONE,
    FITS,
    MOST_A_LOOK,
    SHAPE,
    STAGE,
    TAU,
    P,
    cost_of_refit,
)
from firstclick.testing import Driver, request
from tests.support.reference.mixed import (
    MixedReference,
    Refit,
    Setting,
    measured,
    prior_of,
    standardised,
    variances,
)
from tests.support.reference.policies import Step

K = 3


def play(driver, reference, number, chances, draw, features=None):
    """A slate, which must be that of the reference, and clicks down to the first, which both learn."""
    step, rows = Step.of(driver, number, features), range(len(driver.catalog.rows))
    asked = NO_LIMITS if features is None else request(rows)._replace(features=features)
    slate = driver.recommend(number, asked)
    assert slate == reference.recommend(step, rows, K), number
    clicks = draw.random(K) < chances[slate]
    examined = int(np.argmax(clicks)) + 1 if clicks.any() else K
    shown = asked if features is None else asked._replace(features=np.ascontiguousarray(features[slate]))
    driver.learn(slate, [examined - 1] if clicks.any() else None, request=shown)
    reference.learn(step, slate, clicks, examined)
    return slate


def check_posterior(driver, reference):
    state, (m, b) = driver.state, reference.posterior()
    np.testing.assert_allclose(state.precision, m, rtol=1e-7, atol=1e-8 * np.abs(m).max())
    np.testing.assert_allclose(state.factor.T @ state.factor, m, rtol=1e-7, atol=1e-8 * np.abs(m).max())
    np.testing.assert_allclose(state.moment, b, rtol=1e-7, atol=1e-8 * np.abs(b).max())
    held = driver.estimate(range(len(driver.catalog.rows)))
    np.testing.assert_allclose(held, reference.estimates(), rtol=1e-7, atol=1e-10)


def table(kind, n_items=19):
    draw = np.random.default_rng(5)
    features = draw.normal(size=(n_items, 4)) * [1.0, 0.6, 0.3, 0.1] + [0.5, 0.0, 0.0, 2.0]
    if kind == "unlike units":
        features *= [1e4, 1.0, 1e-3, 40.0]
    if kind == "copies":
        features[:, 3] = features[:, 0]
        features[5] = features[6]
    if kind == "constant":
        features[:, 2] = 7.0
    if kind == "categories":
        features[:, 1:] = draw.random((n_items, 3)) < [0.5, 0.2, 0.1]
        features[3, 1:] = 1.0
    return features[:, :0] if kind == "none" else features


def attractions(features):
    draw = np.random.default_rng(6)
    explained = (
        features @ draw.normal(size=features.shape[1]) if features.shape[1] else np.zeros(len(features))
    )
    mixed = explained / max(explained.std(), 1e-9) + draw.normal(size=len(features))
    return np.asarray(0.3 / (1 + np.exp(-mixed)))


@pytest.mark.parametrize("kind", ["like units", "unlike units", "copies", "constant", "categories", "none"])
def test_slates_equal_those_of_the_reference(kind):
    features = table(kind)
    chances, draw = attractions(features), np.random.default_rng(7)
    driver, reference = Driver("cascade-mixed", features, k=K), MixedReference(features)
    for step in range(300):
        play(driver, reference, step, chances, draw)
    looks = driver.state.totals[0]
    assert driver.state.refit[DONE] == sum(16 * 1.5**j * 1.25 <= looks for j in range(40))
    check_posterior(driver, reference)


@pytest.mark.long
def test_features_of_requests_and_items_added_later_equal_the_reference():
    features = table("unlike units", 23)
    draw = np.random.default_rng(11)
    driver, reference = Driver("cascade-mixed", features[:19], k=K), MixedReference(features[:19])
    n_items, chances = 19, np.full(23, 0.3)
    for step in range(300):
        if step == 30:
            grown = driver.policy.grow(driver.state, 23)
            driver, old = Driver("cascade-mixed", features, k=K), driver
            driver.state, driver._key = grown, old._key
            reference.add(features[19:])
            n_items = 23
        own = features[:n_items] * draw.uniform(0.5, 2, (n_items, 4)) if step % 3 == 0 else None
        if own is not None and step % 2 == 0:
            own[:, 2] *= 1e9  # It is learned as if it were near.
        play(driver, reference, step, chances, draw, own)
    check_posterior(driver, reference)


@pytest.mark.parametrize("kind", ["unlike units", "categories", "none"])
def test_slates_after_a_warm_start_equal_those_of_the_reference(kind):
    features = table(kind)
    chances, draw = attractions(features), np.random.default_rng(21)
    driver, reference = Driver("cascade-mixed", features, k=K), MixedReference(features)
    n_items = len(features)

    def warm_start(rows, looks, held):
        examined, hits = np.zeros(n_items), np.zeros(n_items)
        examined[rows] = looks + np.arange(len(rows))
        hits[rows] = draw.binomial(examined[rows].astype(int), held[rows])
        blank = driver.policy.initial_state(n_items, features.shape[1], K)
        past = driver.policy.with_counts(blank, examined, hits, looks)
        state = driver.policy.with_log(driver.state, past, nothing_known=False)
        driver.state = driver.policy.refitted(state, driver.catalog)
        driver.catalog = driver.policy.shortcuts(driver.catalog)
        reference.warm_start(examined, hits)

    warm_start([1, 4, 6, 7], 200, chances)
    drifts = [reference.at.drift]
    for step in range(250):
        if step == 120:
            warm_start([4, 9], 3000, 1 - chances)  # A log that is wrong, in the middle.
        scan = driver.recommend(step, request(range(n_items)))
        assert play(driver, reference, step, chances, draw) == scan, "a search is a scan"
        drifts.append(reference.at.drift)
    assert max(drifts) > 4 * drifts[0], "the wrong log was believed"
    assert driver.state.live_examined.tolist() == reference.examined.tolist()
    np.testing.assert_allclose([driver.state.examined, driver.state.hits], reference.known(), rtol=1e-12)
    check_posterior(driver, reference)


def test_luck_is_the_normal_number_of_a_hash():
    draw = np.random.default_rng(1)
    given = np.r_[draw.integers(0, 2**64, 300, np.uint64), 0, 2**64 - 1, 2**63, 2**40, 2**64 - 2**40].astype(
        np.uint64
    )
    for hashed in given:
        share = (int(hashed >> np.uint64(12)) + 0.5) / 2**52
        assert luck(hashed) == pytest.approx(NormalDist().inv_cdf(share), rel=1e-14, abs=1e-15)


@pytest.mark.parametrize("seed", range(6))
def test_the_fit_is_that_of_an_optimiser_but_for_the_grid(seed):
    """scipy finds the (tau, beta) of largest marginal likelihood anywhere. Half a step of the grid, 0.26 in
    the logarithm of a standard deviation, costs 24 rates at most 24/2 times 0.26^2 = 0.8 for each of the
    two."""
    draw = np.random.default_rng([3, seed])
    features = draw.normal(size=(24, 3)) * [1.0, 0.5, 0.2]
    explained, own = 0.06 * features @ draw.normal(size=3), 0.04 * draw.normal(size=24)
    chances = np.clip(0.25 + explained + own, 0.01, 0.9)
    examined = draw.integers(20, 400, 24).astype(float)
    hits = draw.binomial(examined.astype(int), chances).astype(float)

    driver = Driver("cascade-mixed", features)
    totals = np.array([examined.sum(), hits.sum()])
    state = driver.policy.refitted(
        driver.state._replace(examined=examined, hits=hits, totals=totals), driver.catalog
    )
    p, shape = state.scale[P], int(state.refit[SHAPE])
    reference = MixedReference(features)
    centre, deviation, in_units = measured(features)
    at = Setting(p, 0.0, centre, deviation, in_units, np.empty(0), state.level)
    z = standardised(at, features)
    past = Refit(totals[0], p, examined, hits, [])

    def loss(logs):
        tau, beta = np.exp(logs)
        likely = reference.evidence(past, at, z, variances(at, z), beta * p, prior_of(at, tau, shape))
        return float(0.5 * (logs[0] / 1.5) ** 2 + 0.5 * ((logs[1] - np.log(0.25)) / 1.5) ** 2 - likely)

    chosen = np.log([state.refit[TAU], max(np.sqrt(state.scale[BETA2]) / p, 1e-9)])
    found = minimize(loss, np.log([1.0, 0.25]), method="Nelder-Mead", options={"maxiter": 2000})
    assert found.fun <= loss(chosen) + 1e-6, "the grid cannot be better than the optimum"
    assert loss(chosen) <= found.fun + 2 * 24 / 2 * (0.75 * np.log(2) / 2) ** 2


def test_one_absurd_request_does_not_spoil_what_is_known():
    features = table("like units")
    draw = np.random.default_rng(4)
    plain, spoiled = Driver("cascade-mixed", features, k=K), Driver("cascade-mixed", features, k=K)
    chances = attractions(features)
    for step in range(800):
        slate = draw.permutation(len(features))[:K].tolist()
        clicks = np.flatnonzero(draw.random(K) < chances[slate])
        for driver in (plain, spoiled):
            driver.learn(slate, int(clicks[0]) if len(clicks) else None)
        if step == 20:
            spoiled.learn([0, 1], None, request=NO_LIMITS._replace(features=np.full((2, 4), 1e60)))
    rows = list(range(len(features)))
    error = [np.sqrt(np.mean((driver.estimate(rows)[0] - chances) ** 2)) for driver in (plain, spoiled)]
    assert error[1] < 2 * error[0] + 0.01
    assert spoiled.state.refit[DONE] == plain.state.refit[DONE]


def test_refits_with_many_features_begin_when_there_are_enough_looks():
    few, many = (
        Driver("cascade-mixed", np.random.default_rng(1).normal(size=(40, d)), k=K) for d in (4, 150)
    )
    for step in range(20):
        for driver in (few, many):
            driver.learn([step, step + 1, step + 2], None)
    assert few.state.refit[DONE] > 0
    assert cost_of_refit(many.state) > MOST_A_LOOK * DELAY * 16
    assert many.state.refit[DONE] == 0
    while many.state.refit[STAGE] == 0:
        many.learn([1, 2, 3], None)
    assert cost_of_refit(many.state) <= MOST_A_LOOK * DELAY * many.state.totals[0]


def with_features(driver, rows, features):
    """The driver after these rows got the features that they have here."""
    changed = Driver("cascade-mixed", features, k=K)
    changed._key = driver._key
    changed.state = driver.policy.with_changed_features(
        driver.state, changed.catalog, np.array(rows), driver.catalog.features[rows]
    )
    return changed


def test_items_whose_features_change_keep_their_clicks():
    features = table("unlike units")
    chances, draw = attractions(features), np.random.default_rng(12)
    driver, reference = Driver("cascade-mixed", features, k=K), MixedReference(features)
    changes = 0
    for step in range(300):
        # While a refit is under way, what it finds depends on how far it is.
        if step >= 10 * (changes + 1) ** 2 and driver.state.refit[STAGE] == 0:
            changes += 1
            rows = [2, 5, 11, 2 + changes]
            features = features.copy()
            features[rows] = features[rows][:, ::-1] * [1.0, 1e-4, 1e4, 1.0] + draw.random((4, 4))
            driver = with_features(driver, rows, features)
            reference.features = features
        play(driver, reference, step, chances, draw)
    assert changes >= 4


def test_features_that_change_during_a_refit_are_those_it_ends_with():
    features = table("like units")
    chances, draw = attractions(features), np.random.default_rng(13)
    driver, changed = Driver("cascade-mixed", features, k=K), False
    while not (changed and driver.state.refit[STAGE] == 0):
        if not changed and driver.state.refit[DONE] > 1 and driver.state.refit[STAGE] == FITS + 1:
            features = features + draw.random(features.shape)
            driver = with_features(driver, list(range(len(features))), features)
            changed = True
        slate = driver.recommend(0)
        clicks = draw.random(K) < chances[slate]
        driver.learn(slate, [int(np.argmax(clicks))] if clicks.any() else None)
    state = driver.state
    z = np.c_[np.ones(len(features)), (features - state.columns[0]) * state.columns[1]]
    q = np.clip(z @ state.level, 0.25 * state.scale[P], 1 - 0.25 * state.scale[P])
    weights = state.examined / (q * (1 - q) + state.examined * state.scale[BETA2])
    rest = state.precision - (z.T * weights) @ z
    # What is left is the prior: on the diagonal alone.
    np.testing.assert_allclose(rest, np.diag(np.diag(rest)), atol=1e-9 * np.abs(state.precision).max())
