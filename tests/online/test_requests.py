"""What a request brings (context, features, subsets, groups), learned late and after saving."""

import copy

import numpy as np
import pytest

from firstclick import Catalog, Ranker
from tests.online.rankers import refusal, state_of
from tests.support.policies import OTHERS, policies

N_ITEMS, N_FEATURES, K = 12, 3, 4
ITEMS = [f"item {i}" for i in range(N_ITEMS)]
FEATURES = np.random.default_rng(3).random((N_ITEMS, N_FEATURES))
GROUPS = ["tea", "tea", None, "coffee", "tea", "", "coffee", 7, "tea", 7, None, "coffee"]


def new_ranker(policy="cascade-lin-ts", *, k=K, seed=1, **catalog):
    return Ranker(Catalog(ITEMS, FEATURES, **catalog), k=k, policy=policy, seed=seed)


@OTHERS
def test_waiting_slates_keep_their_contexts_and_features_in_a_file(tmp_path):
    ranker, own = (
        new_ranker("context-lin-ts:context=2"),
        np.random.default_rng(4).normal(size=(3, N_FEATURES)),
    )
    contexts = [np.array([1.0, -0.5]), [0.25, 3], (0.0, 2.0), [1, 1]]
    requests = [
        {},
        {"candidates": [ITEMS[row] for row in (9, 2, 5)], "features": own},
        {},
        {"candidates": []},
    ]
    slates = [
        ranker.recommend(context=context, **request)
        for context, request in zip(contexts, requests, strict=True)
    ]
    contexts[0][:] = own[:] = 99.0  # What the caller does with arrays afterwards does not matter.
    ranker.save(tmp_path / "r.npz")
    again = Ranker.load(tmp_path / "r.npz")
    for one in (ranker, again):
        one.learn(slates[0], click=2)
    # By its own context: the item that was clicked is the only one with a moment.
    clicked = ranker._engine.features[ranker.catalog.row_of(slates[0].items[2])]
    np.testing.assert_allclose(ranker.state.moment, np.kron([1.0, -0.5], clicked))
    for one in (ranker, again):
        for slate in reversed(slates[1:]):
            one.learn(slate, click=1 if len(slate) else None)
    assert state_of(ranker) == state_of(again)


@pytest.mark.parametrize("policy", policies(["cascade-mixed", "cascade-lin-ts", "cascade-ucb1", "random"]))
def test_a_subset_follows_its_catalog_as_ids_do(policy):
    by_subset, by_ids = new_ranker(policy), new_ranker(policy)
    ids = [ITEMS[row] for row in (7, 2, 2, 5, 0, 9, 11, 7)]
    subset, other = by_subset.catalog.subset(ids), by_subset.catalog.subset(ITEMS[1:3])
    own = np.random.default_rng(4).random((6, N_FEATURES))
    takes = by_subset.policy.takes_features
    changes = {
        10: lambda ranker: ranker.withdraw_items([ITEMS[2], ITEMS[7], ITEMS[3]]),
        15: lambda ranker: ranker.add_items([ITEMS[2], "new"], [[0.3] * 3, [0.4] * 3]),  # in another row
        20: lambda ranker: ranker.catalog.show_again([ITEMS[7]]),
        25: lambda ranker: ranker.catalog.show_as(np.zeros(N_ITEMS, np.uint8)),  # as a rollback does
        30: lambda ranker: ranker.withdraw_items([ITEMS[2]]),  # Its older row stood for it.
        35: lambda ranker: ranker.withdraw_items([ITEMS[row] for row in (7, 5, 0, 9, 11)]),
    }
    for step in range(40):
        for ranker in (by_subset, by_ids):
            changes.get(step, id)(ranker)
        features = {"features": own} if takes and step % 3 == 2 else {}
        slate = by_subset.recommend(candidates=subset, exclude=other if step % 2 else (), **features)
        same = by_ids.recommend(
            candidates=subset.items if features else ids, exclude=other.items if step % 2 else (), **features
        )
        assert slate.items == same.items, step
        assert set(slate.items) <= set(ids)
        for ranker, one in ((by_subset, slate), (by_ids, same)):
            ranker.learn(one, click=0 if len(one) and step % 2 else None)
    assert state_of(by_subset) == state_of(by_ids)
    assert slate.items == ()
    assert len(by_subset.recommend(exclude=by_subset.catalog.subset([]))) == K
    assert by_subset.recommend(candidates=by_subset.catalog.subset([])).items == ()


def test_a_subset_is_of_one_catalog(tmp_path):
    ranker = new_ranker()
    subset = ranker.catalog.subset([*ITEMS[:5], ITEMS[0]])
    assert (len(subset), list(subset), repr(subset)) == (5, ITEMS[:5], "Subset(5 items)")
    ranker.save(tmp_path / "r.npz")
    for other in (new_ranker(), Ranker.load(tmp_path / "r.npz"), ranker.merge(new_ranker(seed=2))):
        for argument in ("candidates", "exclude"):
            error = refusal(other.recommend, **{argument: subset})
            assert f"{argument} is a subset of another catalog" in str(error)
    error = refusal(ranker.recommend, candidates=subset, features=np.ones((4, N_FEATURES)))
    assert "features must have one row for each of the 5 items, got 4" in str(error)
    # Two rankers may share a catalog, and a copy of both goes together.
    twin = Ranker(ranker.catalog, k=K, seed=9)
    assert set(twin.recommend(candidates=subset).items) <= set(subset)
    copied, its_subset = copy.deepcopy((ranker, subset))
    copied.withdraw_items(ITEMS[:4])
    assert copied.recommend(candidates=its_subset).items == (ITEMS[4],)
    assert len(ranker.recommend(candidates=subset)) == K


def test_groups_outlive_saving_merging_and_new_items(tmp_path):
    one, two = (new_ranker(groups=GROUPS, seed=seed) for seed in (1, 2))
    for ranker in (one, two):
        ranker.withdraw_items(ITEMS[:4])
        ranker.add_items(["new", "newer"], [[0.5] * 3, [0.4] * 3], groups=["cocoa", "tea"])
        ranker.add_items(["newest"], [[0.3] * 3])
    one.save(tmp_path / "r.npz")
    for ranker in (one, Ranker.load(tmp_path / "r.npz"), one.merge(two)):
        assert ranker.catalog.groups == [group or None for group in GROUPS] + ["cocoa", "tea", None]
        asked = {"candidates": ["new", ITEMS[4], "newer", "newest"], "at_most": {"cocoa": 0, "tea": 1}}
        slate = ranker.recommend(**asked)
        assert len(slate) == 2
        assert "newest" in slate.items
