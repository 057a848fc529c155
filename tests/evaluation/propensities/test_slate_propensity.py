"""Probabilities of slates against the slates that the engine really draws."""

from collections import Counter

import numpy as np
import pytest

from firstclick.catalog.catalog import Catalog
from firstclick.evaluation.propensities.slate_propensity import says_its_law, slate_propensity
from firstclick.kernels.hashing import fill_normal, mix
from firstclick.online.engine import PolicyEngine
from firstclick.online.request import read_request, with_pinned
from firstclick.policies.cascade_lin_ts import CascadeLinTS
from firstclick.policies.score_laws import GaussianScores, PlaceScores
from firstclick.registry import make_policy, policy_class
from tests.support.policies import OTHERS, policies

IDS = [f"i{row}" for row in range(8)]
K = 3
# With 10,000 draws and bounds of 4.5 standard errors, one comparison in 100,000 is a false alarm.
DRAWN = 10_000


def taught(policy, *, features, ties=True):
    """An engine that has learned a little. With `ties` rows 5 and 6 have the same features."""
    draw = np.random.default_rng(3)
    table = draw.normal(size=(8, 3)) / 2
    if ties:
        table[6] = table[5]
    groups = ["odd" if row % 2 else "even" for row in range(8)]
    engine = PolicyEngine(policy, Catalog(IDS, table if features else None, groups=groups), k=K)
    context = np.ones(engine.policy.n_context) if engine.policy.n_context else None
    kernel = read_request(engine, context=context).kernel
    for step in range(40):
        ((rows, _),) = engine.recommend_many(np.uint64(5), [step], K, kernel, scored=False)
        clicks = np.zeros(K, np.uint8)
        if (click := draw.integers(0, K + 2)) < K:
            clicks[click] = 1
        engine.learn_rows(rows.copy(), clicks, context=kernel.context)
    return engine


def drawn(engine, request, n=DRAWN):
    slates = engine.recommend_many(np.uint64(99), range(n), request.free, request.kernel, scored=False)
    return Counter(tuple(with_pinned(rows, request.rows.pinned).tolist()) for rows, _ in slates)


def check(engine, request, n=DRAWN, most=3):
    """The commonest slates, and one seldom seen, come as often as their probabilities say."""
    seen = drawn(engine, request, n)
    methods = set()
    for slate in [*[one for one, _ in seen.most_common(most)], min(seen, key=lambda one: (seen[one], one))]:
        found = slate_propensity(engine, request, np.array(slate), relative_error=0.03, seed=1)
        methods.add(found.method)
        assert (np.diff(found.chances) <= 0).all()
        for j in range(1, len(slate) + 1):
            share = sum(times for one, times in seen.items() if one[:j] == slate[:j]) / n
            chance = found.chances[j - 1]
            error = np.hypot(found.errors[j - 1], np.sqrt(max(chance * (1 - chance), 1 / n) / n))
            assert abs(share - chance) < 4.5 * error, (slate[:j], share, chance)
    return methods


@pytest.mark.parametrize(
    ("policy", "features", "method"),
    [
        ("random", False, "exact"), ("cascade-ts", False, "quadrature"),
        pytest.param("cascade-ucb1", False, "redrawn", marks=OTHERS), ("cascade-lin-ts", True, "monte carlo"),
        ("cascade-mixed", True, "monte carlo"), ("cascade-mixed", False, "monte carlo"),
    ],
)  # fmt: skip
def test_as_the_engine_draws(policy, features, method):
    engine = taught(policy, features=features)
    n = 5_000 if policy == "cascade-lin-ts" else DRAWN
    assert check(engine, read_request(engine), n) == {method}


LINEAR = [
    "cascade-lin-ts", "lin-ts-cascade", "logistic-ts", "segment-lin-ts:segments=2", "dcm-lin-ts",
    "context-lin-ts:context=2", "discounted-lin-ts", "ts-cascade", "cascade-mixed", "ranked-lin-ts",
]  # fmt: skip


@pytest.mark.parametrize("policy", policies(LINEAR))
def test_a_law_gives_the_slates_of_the_engine_for_the_same_noise(policy):
    engine = taught(policy, features=policy != "ts-cascade", ties=False)
    context = np.ones(engine.policy.n_context) if engine.policy.n_context else None
    request, rows = read_request(engine, context=context), np.arange(8)
    law = engine.policy.score_law(engine.numbers, engine.state, engine.arrays(), request.kernel, rows)
    slates = engine.recommend_many(np.uint64(99), range(30), K, request.kernel, scored=False)
    noise = np.empty(engine.policy.noise_size(K, engine.features.shape[1]))
    for number, (slate, _) in enumerate(slates):
        fill_normal(np.uint64(mix(np.uint64(99), np.uint64(number))), noise)
        if isinstance(law, PlaceScores):
            wanted = []
            for place, one in enumerate(law.places):
                scores = one.means + one.loads @ noise.reshape(K, -1)[place]
                scores[wanted] = -np.inf
                wanted.append(int(np.argmax(scores)))
            assert slate.tolist() == wanted
        else:
            assert isinstance(law, GaussianScores)
            g = np.roll(noise, len(noise) // 2) if policy.startswith("segment") else noise
            scores = law.means + law.loads @ g[: law.loads.shape[1]]
            # ts-cascade has rows that tie.
            np.testing.assert_allclose(scores[slate], -np.sort(-scores)[:K], rtol=1e-9)


REQUESTS = [
    {"candidates": ["i6", "i1", "i2", "i5", "i4"], "k": 2},
    {"exclude": ["i0", "i3"], "pinned": {1: "i7"}},
    {"at_most": {"odd": 1}},
    {"at_most": 1, "candidates": ["i0", "i1", "i2", "i3"]},
    {"pinned": {0: "i2", 2: "i4"}, "at_most": {"even": 2}},
]


@pytest.mark.parametrize("policy", ["random", "cascade-ts", "cascade-mixed"])
def test_with_what_a_request_allows(policy):
    for features in [False, True] if policy == "cascade-mixed" else [False]:
        engine = taught(policy, features=features)
        for request in REQUESTS:
            check(engine, read_request(engine, **request), n=6_000, most=1)
    if policy == "cascade-mixed":
        # Features that come with the request.
        own = np.random.default_rng(4).normal(size=(5, 3))
        check(engine, read_request(engine, candidates=IDS[1:6], features=own), n=6_000)


def test_slate_that_the_request_does_not_allow_has_no_chance():
    engine = taught("cascade-ts", features=False)
    for request, slate, first in [
        ({"exclude": ["i3"]}, [0, 3, 1], 1),
        ({"pinned": {1: "i7"}}, [0, 1, 7], 1),
        ({"at_most": {"odd": 1}}, [1, 3, 0], 1),
        ({"k": 2}, [0, 1, 2], 2),
        ({}, [4, 4, 4], 1),
    ]:
        found = slate_propensity(engine, read_request(engine, **request), np.array(slate))
        assert (found.chances[:first] > 0).all()
        np.testing.assert_array_equal(found.chances[first:], 0.0)
    # Pins are certain.
    request = read_request(engine, pinned={0: "i5", 1: "i2"})
    found = slate_propensity(engine, request, np.array([5, 2, 0]))
    np.testing.assert_array_equal(found.chances[:2], 1.0)
    assert 0 < found.chances[2] < 1


@OTHERS
def test_the_draw_of_a_logged_slate_counts():
    """So that weights are unbiased: the mean of (n + 1) / (hits + 1) is (1 - (1 - p)^(n + 1)) / p."""
    engine = taught("cascade-ucb1", features=False)
    (slate,) = drawn(engine, read_request(engine), 1)
    probability = slate_propensity(engine, read_request(engine), np.array(slate), drew_it=True)
    others = slate_propensity(engine, read_request(engine), np.array(slate[::-1]), drew_it=True)
    assert probability.chances[0] == 1
    assert probability.errors[0] > 0
    assert others.chances[2] == pytest.approx(1 / (others.draws + 1))
    assert slate_propensity(engine, read_request(engine), np.array(slate[::-1])).chances[2] == 0


def test_a_law_belongs_to_the_draw_of_its_class():
    # Without a name of its own: a named policy would be known to all tests of this process.
    class Bold(CascadeLinTS):
        @staticmethod
        def recommend(numbers, state, catalog, request, key, noise, slate):
            return CascadeLinTS.recommend(numbers, state, catalog, request, key, 3.0 * noise, slate)

    assert says_its_law(CascadeLinTS)
    assert says_its_law(policy_class("dcm-lin-ts"))
    assert not says_its_law(Bold)
    assert not make_policy("cascade-ucb1").score_law(None, None, None, None, None)
