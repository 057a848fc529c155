"""What a request may bring (context, features, caps), and what a page may tell (clicks, examined)."""

import copy

import numpy as np
import pytest

from firstclick import Catalog, Ranker
from firstclick.errors import InvalidInput, UnknownName
from firstclick.online.engine import PolicyEngine
from firstclick.streams import stream
from tests.support.policies import OTHERS, policies

N_ITEMS, N_FEATURES, K = 12, 3, 4
ITEMS = [f"item {i}" for i in range(N_ITEMS)]
FEATURES = stream(3, "test features").random((N_ITEMS, N_FEATURES))
GROUPS = ["tea", "tea", None, "coffee", "tea", "", "coffee", 7, "tea", 7, None, "coffee"]


def new_ranker(policy="cascade-lin-ts", *, k=K, seed=1, **catalog):
    return Ranker(Catalog(ITEMS, FEATURES, **catalog), k=k, policy=policy, seed=seed)


def bytes_of(ranker):
    """All that a refusal must leave as it was."""
    waiting = [(slate, *(part.tobytes() for part in shown[:3])) for slate, shown in ranker.pending.items()]
    catalog = ranker.catalog
    state = [array.tobytes() for array in ranker.state]
    return state, ranker.requests, waiting, list(catalog.items), catalog.hidden.tobytes(), catalog.groups


def refusal(call, *args, error=InvalidInput, **kwargs):
    with pytest.raises(error) as caught:
        call(*args, **kwargs)
    return str(caught.value)


# Contexts


@OTHERS
def test_a_slate_is_learned_with_the_context_it_was_asked_for_in_any_order_and_after_loading(tmp_path):
    ranker = new_ranker("context-lin-ts:context=2,sigma=0.5")
    contexts = [np.array([1.0, -0.5]), [0.25, 3], (0.0, 2.0)]
    slates = [ranker.recommend(context=context) for context in contexts]
    contexts[0][:] = 99.0  # What the caller does with his array afterwards is his own affair.
    ranker.save(tmp_path / "r.npz")
    size = 2 * (N_FEATURES + 1)
    precision, moment = np.eye(size), np.zeros(size)
    for at, context in enumerate([(1.0, -0.5), (0.25, 3.0), (0.0, 2.0)]):
        for position, row in enumerate(ranker.catalog.rows(slates[at].items)[: at + 1]):
            z = np.kron(context, ranker._engine.features[row])
            precision += np.outer(z, z) / 0.5**2
            moment += z * (position == at)
    for one in (ranker, Ranker.load(tmp_path / "r.npz")):
        for at in (2, 0, 1):
            one.learn(slates[at], click=at)
        np.testing.assert_allclose(one.state.precision, precision, rtol=1e-12)
        np.testing.assert_allclose(one.state.moment, moment, rtol=1e-12)


# Features of a request


def test_features_of_a_request_stand_in_for_those_of_the_catalog_when_shown_and_when_learned(tmp_path):
    order = [9, 2, 5, 0, 7, 11, 4]
    candidates = [ITEMS[row] for row in order]
    own = stream(4, "own").normal(size=(len(order), N_FEATURES))
    changed = FEATURES.copy()
    changed[order] = own
    asked = new_ranker()
    told = Ranker(Catalog(ITEMS, changed), k=K, policy="cascade-lin-ts", seed=1)
    told._engine = PolicyEngine("cascade-lin-ts", told.catalog, k=K, scale=asked._engine.scale)
    asked.withdraw_items([ITEMS[5]])  # Its row of features goes with it.
    waiting = []
    for step in range(30):
        slate = asked.recommend(candidates=candidates, features=own)
        same = told.recommend(candidates=candidates, exclude=[ITEMS[5]])
        assert slate.items == same.items
        waiting.append((slate, same))
        if step % 3 == 2:
            for slate, same in reversed(waiting):
                asked.learn(slate, click=step % K)
                told.learn(same, click=step % K)
            waiting.clear()
        if step == 13:
            asked.save(tmp_path / "r.npz")
            asked = Ranker.load(tmp_path / "r.npz")
    assert [a.tobytes() for a in asked.state] == [b.tobytes() for b in told.state]
    # One slate with features of its own, one without, one empty: each keeps what is its own.
    empty = asked.recommend(candidates=[], features=[])
    slates = asked.recommend(candidates=candidates[:3], features=own[:3]), asked.recommend(), empty
    asked.save(tmp_path / "r.npz")
    again = Ranker.load(tmp_path / "r.npz")
    for ranker in (asked, again):
        for slate in slates:
            ranker.learn(slate, click=None)
    assert [a.tobytes() for a in asked.state] == [b.tobytes() for b in again.state]


# Pinned items, and fewer places


# A set of candidates that is used again


@pytest.mark.parametrize("policy", policies(["cascade-mixed", "cascade-lin-ts", "cascade-ucb1", "random"]))
def test_a_subset_gives_the_slates_that_its_ids_give_while_items_come_and_go(policy):
    by_subset, by_ids = new_ranker(policy), new_ranker(policy)
    ids = [ITEMS[row] for row in (7, 2, 2, 5, 0, 9, 11, 7)]
    subset, other = by_subset.catalog.subset(ids), by_subset.catalog.subset(ITEMS[1:3])
    assert (len(subset), list(subset), repr(subset)) == (6, list(dict.fromkeys(ids)), "Subset(6 items)")
    own = stream(4, "own").random((6, N_FEATURES))
    takes = by_subset.policy.takes_features
    for step in range(40):
        for ranker in (by_subset, by_ids):
            if step == 10:
                ranker.withdraw_items([ITEMS[2], ITEMS[7], ITEMS[3]])
            if step == 15:
                ranker.add_items([ITEMS[2], "new"], [[0.3] * 3, [0.4] * 3])  # in another row
            if step == 20:
                ranker.catalog.show_again([ITEMS[7]])
            if step == 25:  # As a rollback does.
                ranker.catalog.show_as(np.zeros(N_ITEMS, np.uint8))
            if step == 30:  # Its older row stood for it.
                ranker.withdraw_items([ITEMS[2]])
            if step == 35:
                ranker.withdraw_items([ITEMS[row] for row in (7, 5, 0, 9, 11)])
        features = {"features": own} if takes and step % 3 == 2 else {}
        slate = by_subset.recommend(candidates=subset, exclude=other if step % 2 else (), **features)
        same = by_ids.recommend(
            candidates=subset.items if features else ids, exclude=other.items if step % 2 else (), **features
        )
        assert slate.items == same.items, step
        assert set(slate.items) <= set(ids)
        for ranker, one in ((by_subset, slate), (by_ids, same)):
            ranker.learn(one, click=0 if len(one) and step % 2 else None)
    assert bytes_of(by_subset)[0] == bytes_of(by_ids)[0]
    assert slate.items == ()
    empty = by_subset.catalog.subset([])
    assert by_subset.recommend(candidates=empty).items == ()
    assert len(by_subset.recommend(exclude=empty)) == K


def test_a_subset_is_of_one_catalog_and_of_items_that_it_has(tmp_path):
    ranker = new_ranker()
    subset = ranker.catalog.subset(ITEMS[:5])
    sentence = "candidates is a subset of another catalog; make one with `subset` of the catalog that is used"
    ranker.save(tmp_path / "r.npz")
    for other in (new_ranker(), Ranker.load(tmp_path / "r.npz"), ranker.merge(new_ranker(seed=2))):
        before = bytes_of(other)
        assert refusal(other.recommend, candidates=subset).startswith(sentence)
        assert refusal(other.recommend, exclude=subset).startswith(sentence.replace("candidates", "exclude"))
        assert bytes_of(other) == before
        assert set(other.recommend(candidates=subset.items).items) <= set(subset)
    assert "got 'x'" in refusal(ranker.catalog.subset, ["x"], error=UnknownName)
    assert "got the text 'item 1'" in refusal(ranker.catalog.subset, "item 1")
    rows = FEATURES[:4]
    assert "one row for each of the 5 items, got 4" in refusal(
        ranker.recommend, candidates=subset, features=rows
    )
    # Two rankers may share a catalog, and a copy of both goes together.
    twin = Ranker(ranker.catalog, k=K, seed=9)
    assert set(twin.recommend(candidates=subset).items) <= set(subset)
    copied, its_subset = copy.deepcopy((ranker, subset))
    copied.withdraw_items(ITEMS[:4])
    assert copied.recommend(candidates=its_subset).items == (ITEMS[4],)
    assert len(ranker.recommend(candidates=subset)) == K


# Caps


def test_groups_are_kept_by_saving_loading_merging_and_adding(tmp_path):
    one, two = (new_ranker(groups=GROUPS, seed=seed) for seed in (1, 2))
    for ranker in (one, two):
        ranker.withdraw_items(ITEMS[:4])
        ranker.add_items(["new", "newer"], [[0.5] * 3, [0.4] * 3], groups=["cocoa", "tea"])
        ranker.add_items(["newest"], [[0.3] * 3])
    one.save(tmp_path / "r.npz")
    for ranker in (one, Ranker.load(tmp_path / "r.npz"), one.merge(two)):
        assert ranker.catalog.groups == [group or None for group in GROUPS] + ["cocoa", "tea", None]
        slate = ranker.recommend(
            candidates=["new", ITEMS[4], "newer", "newest"], at_most={"cocoa": 0, "tea": 1}
        )
        assert len(slate) == 2
        assert "newest" in slate.items
    other = new_ranker(groups=["tea"] * N_ITEMS, seed=2)
    assert "the same items, features and groups" in refusal(new_ranker(groups=GROUPS).merge, other)


# Several clicks
