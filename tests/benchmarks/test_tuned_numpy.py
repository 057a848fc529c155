"""The tuned NumPy transcriptions are the same policies: as the slow reference learns and ranks."""

import numpy as np
import pytest

import reference
from benchmarks.bench.tuned_numpy import TUNED, best, kl_bound
from firstclick.registry import make_policy
from firstclick.studies.paper.plain_numpy import TRANSCRIBED, divergence
from rounds import FEATURES, ITEMS, D, K, rounds


@pytest.fixture
def features():
    return FEATURES.copy()


def both(name, features, slow, table=TUNED):
    """A tuned policy and a reference that learned from the same clicks, at every step."""
    policy = make_policy(name)
    tuned = table[policy.name](features, K, policy)
    for slate, click in rounds():
        yield tuned
        tuned.learn(slate, click)
        slow.learn(slate.tolist(), None if click == K else click)
    yield tuned


NO_NOISE = type("Draw", (), {"standard_normal": staticmethod(np.zeros)})()


def test_lin_ts_has_the_reference_posterior(features):
    slow = reference.LinTS(features, 0.7)
    for tuned in both("cascade-lin-ts:sigma=0.7", features, slow):
        mean = np.linalg.solve(slow.M, slow.B) / 0.7**2
        np.testing.assert_allclose(tuned.posterior.sample(NO_NOISE), mean, atol=1e-10)
    draw = np.random.default_rng(1)
    thetas = np.array([tuned.posterior.sample(draw) for _ in range(20_000)])
    # 20,000 draws: a variance is known to 1 %, so 6 % is out of reach of chance.
    np.testing.assert_allclose(np.cov(thetas.T), np.linalg.inv(slow.M), atol=0.06 / np.diag(slow.M).min())
    assert list(tuned.recommend(NO_NOISE)) == slow.recommend(np.zeros(D), np.zeros(ITEMS), range(ITEMS), K)


def test_ranked_lin_ts_ranks_as_the_reference(features):
    slow = reference.RankedLinTS(features, 0.7, K)
    for tuned in both("ranked-lin-ts:sigma=0.7", features, slow):
        if all(ranker.B.any() for ranker in slow.rankers):
            expected = slow.recommend(np.zeros(K * D), np.zeros(ITEMS), range(ITEMS), K)
            assert tuned.recommend(NO_NOISE) == expected


@pytest.mark.parametrize("table", [TUNED, TRANSCRIBED], ids=["tuned", "plain"])
def test_lin_ucb_ranks_as_the_reference(features, table):
    slow = reference.LinUCB(features, 0.7, 1.3)
    for tuned in both("cascade-lin-ucb:sigma=0.7,c=1.3", features, slow, table):
        bounds = features @ np.linalg.solve(slow.M, slow.B) / 0.7**2
        bounds += 1.3 * np.sqrt([x @ np.linalg.solve(slow.M, x) for x in features])
        assert list(tuned.recommend(None)) == np.argsort(-bounds)[:K].tolist()


def test_lin_ucb_computes_its_widths_anew_after_a_while(features):
    tuned = TUNED["cascade-lin-ucb"](features, K, make_policy("cascade-lin-ucb"))
    tuned.inverse += 0.01  # as if digits had been lost
    for slate, click in 3 * rounds():
        tuned.learn(slate, click)
    assert tuned.observed > 1000
    inverse = np.linalg.inv(tuned.M)
    np.testing.assert_allclose(tuned.squares, np.einsum("ij,ij->i", features @ inverse, features))


@pytest.mark.parametrize("table", [TUNED, TRANSCRIBED], ids=["tuned", "plain"])
@pytest.mark.parametrize("name", ["cascade-ucb1", "cascade-kl-ucb"])
def test_counting_policies_rank_as_the_reference(features, name, table):
    """The references count from t = 0 and pretend one observation; the transcriptions have made it."""
    slow = reference.UCB1(ITEMS, 1.5, True) if name == "cascade-ucb1" else reference.KLUCB(ITEMS, True)
    for step, tuned in enumerate(both(name, features, slow, table)):
        if step < 20:
            continue  # many ties
        slow.t = tuned.time if name == "cascade-ucb1" else tuned.time - 1
        scores = np.array([slow.index(slow.S[e], slow.T[e] + 1) for e in range(ITEMS)])
        found = tuned.recommend(None)
        # Of equal counts any may come first.
        np.testing.assert_allclose(scores[found], np.sort(scores)[::-1][:K], atol=1e-9)
        assert len(set(found)) == K


def test_the_kl_bound_is_that_of_the_reference():
    examined = np.array([1.0, 2, 5, 30, 1000, 1e5])
    for hits in (0 * examined, examined // 2, examined - 1):
        for budget in (1e-6, 0.1, 1.0, 5.0, 15.0):
            expected = [reference.kl_bound(h / n, budget / n) for h, n in zip(hits, examined, strict=True)]
            np.testing.assert_allclose(kl_bound(hits / examined, budget / examined), expected, atol=1e-8)


def test_divergence_of_certain_events():
    np.testing.assert_allclose(divergence(np.array([0.0, 1.0]), np.array([0.5, 0.5])), np.log(2))


def test_the_best_are_the_largest_in_order():
    scores = np.random.default_rng(3).normal(size=50)
    for k in (1, 7, 50):
        assert best(scores, k).tolist() == np.argsort(-scores)[:k].tolist()
