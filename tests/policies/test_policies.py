"""Each policy equals its slow reference, slate by slate, with filters, sigma != 1 and ties."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import reference
from firstclick.kernels.hashing import fill_normal, mix
from firstclick.streams import stream, stream_key
from firstclick.testing import Driver, request
from tests.support.policies import OTHERS, policies, size

N_ITEMS, N_FEATURES, K = 11, 4, 3

REFERENCES = {
    "cascade-lin-ts": lambda x: reference.LinTS(x, 1.0),
    "cascade-lin-ts:sigma=0.3": lambda x: reference.LinTS(x, 0.3),
    "cascade-lin-ts:sigma=4": lambda x: reference.LinTS(x, 4.0),
    "cascade-lin-ucb": lambda x: reference.LinUCB(x, 1.0, 1.0),
    "cascade-lin-ucb:c=3,sigma=0.5": lambda x: reference.LinUCB(x, 0.5, 3.0),
    "ranked-lin-ts": lambda x: reference.RankedLinTS(x, 1.0, K),
    "ranked-lin-ts:sigma=0.6": lambda x: reference.RankedLinTS(x, 0.6, K),
    "cascade-ucb1:start=first": lambda x: reference.UCB1(len(x), 1.5),
    "cascade-ucb1:radius=0.4,start=pessimistic": lambda x: reference.UCB1(len(x), 0.4, pessimistic=True),
    "cascade-kl-ucb:start=first": lambda x: reference.KLUCB(len(x)),
    "cascade-kl-ucb:start=pessimistic": lambda x: reference.KLUCB(len(x), pessimistic=True),
    "random": lambda x: reference.Random(),
}


def noise_and_ties(driver, number):
    """What the kernels make of this step's key."""
    key = np.uint64(mix(stream_key(0, "driver"), np.uint64(number)))
    noise = np.empty(driver.policy.noise_size(driver.k, driver.catalog.features.shape[1]))
    fill_normal(key, noise)
    return noise, [mix(key, label) for label in driver.catalog.labels]


@pytest.mark.parametrize("policy", policies(REFERENCES))
def test_slates_equal_the_reference(policy):
    features = stream(1, "features").standard_normal((N_ITEMS, N_FEATURES))
    features[5] = features[2]  # a tie at every step
    driver, slow = Driver(policy, features, k=K), REFERENCES[policy](features)
    draw = stream(2, "clicks")
    for step in range(size(300, plain=150)):
        noise, ties = noise_and_ties(driver, step)
        candidates = [] if step % 3 else sorted(draw.choice(N_ITEMS, 6, replace=False).tolist())
        hidden = draw.choice(N_ITEMS, 4, replace=False).tolist() if step % 4 == 1 else []
        asked = [e for e in candidates or range(N_ITEMS) if e not in hidden]
        slate = driver.recommend(step, request(candidates, hidden, N_ITEMS))
        assert slate == slow.recommend(noise, ties, asked, K), f"step {step}"
        position = int(draw.integers(0, len(slate) + 1))
        click = position if position < len(slate) else None
        driver.learn(slate, click)
        slow.learn(slate, click)


@OTHERS
@settings(max_examples=size(40, plain=12))
@given(
    seed=st.integers(0, 2**32), sigma=st.floats(0.05, 20), n_items=st.integers(3, 600), d=st.integers(1, 9)
)
def test_linear_policies_equal_the_reference_whatever_the_sizes(seed, sigma, n_items, d):
    # Up to 600 items, so that scans run over several tiles and the last one is not full.
    features = stream(seed, "features").standard_normal((n_items, d)) * stream(seed, "scale").uniform(0, 3)
    clicks = stream(seed, "clicks").integers(0, K + 1, 12)
    for policy, slow in (
        (f"cascade-lin-ts:sigma={sigma!r}", reference.LinTS(features, sigma)),
        (f"cascade-lin-ucb:c=1.5,sigma={sigma!r}", reference.LinUCB(features, sigma, 1.5)),
        (f"ranked-lin-ts:sigma={sigma!r}", reference.RankedLinTS(features, sigma, K)),
    ):
        driver = Driver(policy, features, k=K)
        for step, position in enumerate(clicks):
            noise, ties = noise_and_ties(driver, step)
            slate = driver.recommend(step)
            assert slate == slow.recommend(noise, ties, range(n_items), K)
            click = int(position) if position < K else None
            driver.learn(slate, click)
            slow.learn(slate, click)


@pytest.mark.parametrize(
    "policy", policies(["cascade-lin-ts:sigma=0.4", "cascade-lin-ucb:sigma=2.5", "ranked-lin-ts"])
)
def test_factor_is_that_of_the_precision_from_the_first_step_on(policy):
    driver = Driver(policy)
    for step in range(size(1500, plain=200)):  # past a refresh of the factor, if compiled
        factor, precision = driver.state.factor, driver.state.precision
        np.testing.assert_allclose(np.swapaxes(factor, -1, -2) @ factor, precision, rtol=1e-10, atol=1e-10)
        assert (np.tril(factor, -1) == 0).all()
        driver.play(1, seed=step, first=step)


def test_precision_and_moment_are_sums_over_what_was_examined():
    features = stream(3, "features").standard_normal((N_ITEMS, N_FEATURES))
    driver = Driver("cascade-lin-ts:sigma=0.5", features, k=K)
    driver.learn([4, 9, 2], 1)
    x4, x9 = features[4], features[9]
    np.testing.assert_allclose(driver.state.precision, np.eye(4) + 4 * (np.outer(x4, x4) + np.outer(x9, x9)))
    np.testing.assert_allclose(driver.state.moment, x9)
    assert driver.state.observations[0] == 2
    assert driver.state.time[0] == 1


@OTHERS
def test_what_was_pretended_is_not_in_the_state():
    for start in ("pessimistic", "first"):
        driver = Driver(f"cascade-ucb1:start={start}")
        driver.learn([4, 9, 2], 1)
        assert driver.state.examined.sum() == 2
        assert driver.state.hits.sum() == 1


@OTHERS
def test_unseen_items_come_first_unless_pessimistic():
    for policy in ("cascade-ucb1", "cascade-kl-ucb"):
        driver = Driver(f"{policy}:start=first", n_items=5, k=2)
        driver.learn([0, 1], None)
        driver.learn([3, 4], 1)
        assert driver.recommend(0)[0] == 2


@OTHERS
def test_unseen_items_share_the_first_places_fairly():
    # Each of 17 items is first with probability 1/17; a share of 6 standard errors is no chance.
    driver, each = Driver("cascade-ucb1:start=first"), size(400, plain=80)
    first = np.bincount([driver.recommend(step)[0] for step in range(17 * each)], minlength=17)
    assert np.abs(first - each).max() < 6 * np.sqrt(each)


def test_beta_policy_ranks_by_posterior_draws():
    # An item with 90 of 100 beats one with 10 of 100 in every draw but one in more than 1e12.
    driver = Driver("cascade-ts", n_items=3, k=2)
    driver.state.examined[:] = 100
    driver.state.hits[:] = [10, 90, 10]
    slates = [driver.recommend(step) for step in range(500)]
    assert all(slate[0] == 1 for slate in slates)
    # The equal ones share second place: 250 each, 6 standard errors are 67.
    assert abs(sum(slate[1] == 0 for slate in slates) - 250) < 67


@OTHERS
def test_the_clip_of_lin_ucb_never_decides_by_row():
    # With a large c all bounds exceed 1: the order must still be that of the bounds.
    features = np.diag([3.0, 1.0, 4.0, 2.0, 5.0])
    driver = Driver("cascade-lin-ucb:c=50", features, k=5)
    assert driver.recommend(0) == [4, 2, 0, 3, 1]


@OTHERS
def test_theory_c_follows_the_theorem_and_features_are_rescaled_by_one_factor():
    features = stream(4, "features").standard_normal((N_ITEMS, N_FEATURES)) * 7
    driver = Driver("cascade-lin-ucb:c=theory,horizon=1000,sigma=0.5,theta_norm=2", features, k=K)
    longest = np.linalg.norm(features, axis=1).max()
    nk_over_d = 1000 * K / (N_FEATURES * 0.25)
    c = np.sqrt(N_FEATURES * np.log1p(nk_over_d) + 2 * np.log(1000 * K)) / 0.5 + 2
    assert driver.numbers.c == pytest.approx(c)
    assert driver.numbers.scale == pytest.approx(1 / longest)
    slow = reference.LinUCB(features / longest, 0.5, c)
    for step in range(200):
        slate = driver.recommend(step)
        assert slate == slow.recommend(None, noise_and_ties(driver, step)[1], range(N_ITEMS), K)
        click = step % 4 if step % 4 < K else None
        driver.learn(slate, click)
        slow.learn(slate, click)
    assert f"features multiplied by {1 / longest:.4g}" in driver.policy.notes(driver.numbers, 1000)[0]
