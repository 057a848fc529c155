"""What a request may bring (context, features, caps), and what a page may tell (clicks, examined)."""

import copy
from datetime import timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from awkward import short_id
from firstclick import Catalog, Ranker
from firstclick.catalog.groups import caps_by_group
from firstclick.errors import InvalidInput, UnknownName
from firstclick.online.engine import PolicyEngine
from firstclick.online.request import read_request
from firstclick.streams import stream
from tests.support.policies import OTHERS, policies

N_ITEMS, N_FEATURES, K = 12, 3, 4
ITEMS = [f"item {i}" for i in range(N_ITEMS)]
FEATURES = stream(3, "test features").random((N_ITEMS, N_FEATURES))
GROUPS = ["tea", "tea", None, "coffee", "tea", "", "coffee", 7, "tea", 7, None, "coffee"]


def new_ranker(policy="cascade-lin-ts", *, k=K, seed=1, **catalog) -> Ranker:
    return Ranker(Catalog(ITEMS, FEATURES, **catalog), k=k, policy=policy, seed=seed)


def taught(ranker, steps=25, **request):
    draw = stream(ranker.seed, "clicks")
    for _ in range(steps):
        ranker.learn(ranker.recommend(**request), click=int(draw.integers(K)))
    return ranker


def bytes_of(ranker):
    """All that a refusal must leave as it was."""
    waiting = [(slate, *(part.tobytes() for part in shown[:3])) for slate, shown in ranker.pending.items()]
    catalog = ranker.catalog
    state = [array.tobytes() for array in ranker.state]
    return state, ranker.requests, waiting, list(catalog.items), catalog.hidden.tobytes(), catalog.groups


def refusal(call, *args, error=InvalidInput, **kwargs) -> str:
    with pytest.raises(error) as caught:
        call(*args, **kwargs)
    return str(caught.value)


# Contexts


@OTHERS
def test_the_largest_context_and_the_largest_features_leave_all_finite():
    ranker = new_ranker("context-lin-ts:context=2")
    huge = np.full((K, N_FEATURES), 1e100)
    for click in (0, None, 2):
        slate = ranker.recommend(context=[1e50, -1e50], candidates=ITEMS[:K], features=huge)
        ranker.learn(slate, click=click)
    assert all(np.isfinite(array).all() for array in ranker.state)
    assert len(ranker.recommend(context=[1, 1])) == K


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


@pytest.mark.parametrize(
    ("policy", "context", "part"),
    [
        ("context-lin-ts:context=2", None, "wants a context of 2 numbers with each request"),
        ("context-lin-ts:context=2", 1.0, "wants a context of 2 numbers, got 1"),
        ("context-lin-ts:context=2", [1, 2, 3], "wants a context of 2 numbers, got 3"),
        ("context-lin-ts:context=2", [[1, 2]], "wants a context of 2 numbers, got an array of shape (1, 2)"),
        ("context-lin-ts:context=2", [1, np.nan], "context must be finite numbers, got nan at place 1"),
        ("context-lin-ts:context=2", [-np.inf, 1], "context must be finite numbers, got -inf at place 0"),
        ("context-lin-ts:context=2", [1, 1e51], "context must be at most 1e+50 in size, got 1e+51"),
        (
            "context-lin-ts:context=2",
            [1, 10**400],
            "context must be at most 1e+50 in size, got a whole number",
        ),
        ("context-lin-ts:context=2", 10**5000, "a whole number of about 5,001 digits; scale them down"),
        (
            "context-lin-ts:context=2",
            np.ma.array([1.0, 2.0], mask=[0, 1]),
            "context must not be masked, got a masked value at place 1; fill it first",
        ),
        (
            "context-lin-ts:context=2",
            np.array(["2026-11-16", "2026-11-17"], "datetime64[us]"),
            "context must be numbers, got dates or times (datetime64[us]); convert them first",
        ),
        (
            "context-lin-ts:context=2",
            [1, timedelta(2)],
            "context must be numbers, got dates or times (datetime.",
        ),
        ("context-lin-ts:context=2", ["a", 1], "context must be a list of numbers, got ['a', 1]"),
        ("context-lin-ts:context=2", {"age": 1}, "context must be a list of numbers, got {'age': 1}"),
        ("cascade-lin-ts", [1.0], "cascade-lin-ts takes no context"),
    ],
    ids=short_id,
)
def test_a_context_that_does_not_fit_is_refused_and_uses_up_no_slate(policy, context, part):
    ranker = new_ranker(policy)
    before = bytes_of(ranker)
    for candidates in (None, [], ITEMS[:5]):
        assert part in refusal(ranker.recommend, context=context, candidates=candidates)
    assert bytes_of(ranker) == before


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


@pytest.mark.parametrize(
    ("policy", "request_", "part"),
    [
        (
            "cascade-lin-ts",
            {"features": FEATURES},
            "features are those of candidates, a row for each; give candidates too",
        ),
        (
            "cascade-ts",
            {"candidates": ITEMS[:2], "features": FEATURES[:2]},
            "cascade-ts takes no features with a request",
        ),
        (
            "cascade-lin-ts",
            {"candidates": ITEMS[:2], "features": FEATURES[:3]},
            "features must have one row for each of the 2 items, got 3",
        ),
        (
            "cascade-lin-ts",
            {"candidates": ITEMS[:2], "features": FEATURES[:2, :2]},
            "an item has 3 features here (f1, f2, f3), got 2",
        ),
        (
            "cascade-lin-ts",
            {"candidates": ITEMS[:2], "features": [[1, 2, 3], [1, np.inf, 3]]},
            "features must be finite, got inf in row 1, column 1",
        ),
        ("cascade-lin-ts", {"candidates": ITEMS[:2], "features": [[1, 2, 3], None]}, "must be numbers"),
        (
            "cascade-lin-ts",
            {"candidates": ITEMS[:1], "features": [[1, 2, 10**400]]},
            "features must be at most 1e+100 in size, got a whole number of about 401 digits in row 0, ",
        ),
        (
            "cascade-lin-ts",
            {"candidates": ITEMS[:1], "features": np.ma.array([[1.0, 2.0, 3.0]], mask=[[0, 0, 1]])},
            "features must not be masked, got a masked value in row 0, column 2",
        ),
        (
            "cascade-lin-ts",
            {"candidates": ITEMS[:1], "features": np.array([["2026"] * 3], "datetime64[ns]")},
            "features must be numbers, got dates or times (datetime64[ns])",
        ),
        (
            "cascade-lin-ts",
            {"candidates": [ITEMS[0], ITEMS[1], ITEMS[0]], "features": FEATURES[:3]},
            "candidate 'item 0' is given twice; with features give each once",
        ),
        ("cascade-lin-ts", {"candidates": "item 1", "features": FEATURES[:1]}, "got the text 'item 1'"),
        (
            "cascade-lin-ucb:c=theory,horizon=9",
            {"candidates": ITEMS[:1], "features": [[9.0, 9.0, 9.0]]},
            "c=theory was set up for features of norm at most",
        ),
    ],
)
def test_features_that_do_not_fit_the_request_are_refused(policy, request_, part):
    ranker = new_ranker(policy)
    before = bytes_of(ranker)
    assert part in refusal(ranker.recommend, **request_)
    assert bytes_of(ranker) == before
    with pytest.raises(UnknownName, match="no item 'x' in the catalog"):
        ranker.recommend(candidates=["x"], features=[[1, 2, 3]] if ranker.policy.takes_features else None)


# Pinned items, and fewer places


@pytest.mark.parametrize("policy", ["cascade-lin-ts", "cascade-ts"])
def test_pinned_items_stand_where_they_were_asked_for_and_are_learned(policy):
    ranker, plain = taught(new_ranker(policy)), taught(new_ranker(policy))
    for step in range(20):
        slate = ranker.recommend(pinned={1: ITEMS[7]})
        others = plain.recommend(exclude=[ITEMS[7]], k=K - 1)
        assert slate.items == (others.items[0], ITEMS[7], *others.items[1:])
        plain.pending[others.id] = ranker.pending[slate.id]
        for one, shown in ((ranker, slate), (plain, others.id)):
            one.learn(shown, click=step % K)
    assert bytes_of(ranker)[0] == bytes_of(plain)[0]
    # Where too few items are left, a pinned one moves up.
    assert ranker.recommend(candidates=ITEMS[:1], pinned={3: ITEMS[9]}).items == (ITEMS[0], ITEMS[9])
    assert len(ranker.recommend(k=1)) == 1


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"k": 0}, "k must be at least 1, got 0"),
        ({"k": 5}, "k must be at most 4, the k that it was created with, got 5"),
        ({"k": 2.0}, "k must be a whole number, got 2.0"),
        ({"pinned": {4: ITEMS[0]}}, "pinned: a position must be at most 3, got 4"),
        ({"k": 2, "pinned": {2: ITEMS[0]}}, "pinned: a position must be at most 1, got 2"),
        ({"pinned": {0: "x"}}, "pinned: item 'x' is not in the catalog; add it first, or leave it out"),
        ({"pinned": {0: ITEMS[0], 1: ITEMS[0]}}, "pinned: item 'item 0' has two positions; give it one"),
        ({"pinned": ["item 0"]}, "pinned must say the item for each position, as in {0: 'tea'}"),
    ],
)
def test_pinned_items_and_a_k_that_cannot_be_are_refused(asked, sentence):
    ranker = new_ranker()
    before = bytes_of(ranker)
    assert refusal(ranker.recommend, **asked).startswith(sentence)
    assert bytes_of(ranker) == before


@pytest.mark.parametrize("policy", ["cascade-lin-ts", "cascade-ts"])
def test_a_pin_that_is_excluded_or_withdrawn_is_skipped_and_the_policy_fills_its_place(policy):
    ranker, plain = taught(new_ranker(policy)), taught(new_ranker(policy))
    for one in (ranker, plain):
        one.withdraw_items([ITEMS[3]])
    for pinned, exclude, skipped in (
        ({0: ITEMS[7], 2: ITEMS[5]}, [ITEMS[7]], (ITEMS[7],)),
        ({0: ITEMS[3], 2: ITEMS[5]}, [], (ITEMS[3],)),
        ({2: ITEMS[5], 1: ITEMS[3], 0: ITEMS[7]}, [ITEMS[7], "never heard of"], (ITEMS[7], ITEMS[3])),
        ({0: ITEMS[7], 2: ITEMS[5]}, ranker.catalog.subset([ITEMS[7]]), (ITEMS[7],)),
    ):
        slate = ranker.recommend(pinned=pinned, exclude=exclude)
        same = plain.recommend(pinned={2: ITEMS[5]}, exclude=list(exclude))
        assert slate.items == same.items
        assert (len(slate), slate.items[2]) == (K, ITEMS[5])
        assert not set(skipped) & set(slate.items)
        assert (slate.skipped_pins, same.skipped_pins) == (skipped, ())
        ranker.learn(slate, click=0)
        plain.learn(same, click=0)
    assert bytes_of(ranker)[0] == bytes_of(plain)[0]
    everything = ranker.recommend(pinned={position: ITEMS[position] for position in range(K)}, exclude=ITEMS)
    assert (everything.items, everything.skipped_pins) == ((), tuple(ITEMS[:K]))
    # A pin outside the candidates stays.
    slate = ranker.recommend(candidates=ITEMS[:2], pinned={0: ITEMS[9]})
    assert (slate.items[0], set(slate.items[1:]), slate.skipped_pins) == (ITEMS[9], set(ITEMS[:2]), ())
    # An item that is back is shown again.
    ranker.catalog.show_again([ITEMS[3]])
    slate = ranker.recommend(pinned={1: ITEMS[3]})
    assert (slate.items[1], slate.skipped_pins) == (ITEMS[3], ())


def test_a_skipped_pin_does_not_use_up_the_cap_of_its_group():
    ranker = new_ranker(groups=GROUPS)
    coffees = [item for item, group in zip(ITEMS, GROUPS, strict=True) if group == "coffee"]
    for asked in ({"exclude": coffees[:1]}, {}):
        slate = ranker.recommend(candidates=coffees, at_most={"coffee": 1}, pinned={0: coffees[0]}, **asked)
        assert len(slate) == 1
        assert (slate.items[0] == coffees[0]) == (slate.skipped_pins == ())


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
    assert refusal(ranker.catalog.subset, ["x"], error=UnknownName) == "no item 'x' in the catalog"
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


@pytest.mark.parametrize("policy", policies(["cascade-lin-ts", "cascade-ucb1"]))
@settings(max_examples=80)
@given(data=st.data())
def test_caps_give_what_picking_one_by_one_from_the_whole_ranking_gives(policy, data):
    groups = data.draw(
        st.lists(st.sampled_from(["a", "b", "c", 5, "", None]), min_size=N_ITEMS, max_size=N_ITEMS)
    )
    named = sorted({group for group in groups if group not in ("", None)}, key=str)
    caps = data.draw(st.integers(0, 3) | st.dictionaries(st.sampled_from(named or ["a"]), st.integers(0, 3)))
    asked = data.draw(st.none() | st.lists(st.sampled_from(ITEMS), min_size=1))
    excluded = data.draw(st.sets(st.sampled_from(ITEMS), max_size=6))
    ranker = new_ranker(policy, groups=groups, seed=data.draw(st.integers(0, 99)))
    if not named:
        assert "no item has one" in refusal(ranker.recommend, at_most=caps)
        return
    draw = stream(ranker.seed, "state")
    if policy == "cascade-lin-ts":
        ranker.state.moment[:] = draw.normal(size=N_FEATURES + 1)
    else:  # Few different counts: ties are many.
        ranker.state.examined[:] = draw.integers(1, 3, N_ITEMS)
        ranker.state.hits[:] = draw.integers(0, 2, N_ITEMS)
        ranker.state.time[:] = 9
    ranker.withdraw_items([ITEMS[int(draw.integers(N_ITEMS))]])
    request, free, _, _ = read_request(ranker._engine, candidates=asked, exclude=excluded)
    ranking = []
    if free:
        ((ranking, _),) = ranker._engine.recommend_many(
            ranker._key, [ranker.requests], N_ITEMS, request, scored=False
        )
    picked = []
    for row in ranking:
        group = groups[row]
        cap = caps.get(group, N_ITEMS) if isinstance(caps, dict) else caps
        if group in ("", None) or sum(groups[other] == group for other in picked) < cap:
            picked.append(row)
    slate = ranker.recommend(candidates=asked, exclude=excluded, at_most=caps)
    assert list(slate.items) == [ITEMS[row] for row in picked[:K]]
    ranker.learn(slate, click=None)


def caps_of(groups, at_most):
    """The group of each row, and the cap of each group."""
    names, rows = Catalog(range(len(groups)), groups=groups).numbered_groups()
    return rows, caps_by_group(names, at_most, len(rows))


@pytest.mark.parametrize(
    ("at_most", "sentence"),
    [
        (-1, "at_most must be at least 0, got -1"),
        (1.0, "at_most must be a whole number, got 1.0"),
        (True, "at_most must be a whole number, got True"),
        ("tea", "at_most must be a whole number, got 'tea'"),
        ({"tea": -2}, "at_most of group 'tea' must be at least 0, got -2"),
        ({"tea": 1, "coffee": None}, "at_most of group 'coffee' must be a whole number, got None"),
        ({"cofee": 1}, "at_most: no item is of group 'cofee'; did you mean 'coffee'?"),
        ({"": 1}, "at_most: no item is of group ''"),
        ({None: 1}, "at_most: no item is of group None"),
        ({"7": 1}, "at_most: no item is of group '7'"),
    ],
)
def test_caps_that_cannot_be_are_refused(at_most, sentence):
    ranker = new_ranker(groups=GROUPS)
    before = bytes_of(ranker)
    assert refusal(ranker.recommend, at_most=at_most) == sentence
    assert refusal(caps_of, GROUPS, at_most) == sentence
    assert bytes_of(ranker) == before
    assert refusal(new_ranker().recommend, at_most=1) == (
        "at_most is about groups, and no item has one; give items a group"
    )


def test_caps_are_numbers_for_kernels_and_may_be_larger_than_any():
    group_of, caps = caps_of(GROUPS, {"coffee": 2**70, 7: 0})
    assert group_of.tolist() == [1, 1, 0, 2, 1, 0, 2, 3, 1, 3, 0, 2]
    assert caps.tolist() == [12, 12, 12, 0]
    assert caps_of(GROUPS, 1)[1].tolist() == [12, 1, 1, 1]
    assert (group_of.dtype, caps.dtype) == (np.int32, np.int64)


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


@pytest.mark.parametrize(
    ("groups", "sentence"),
    [
        (["tea"], "groups must have a name for each of the 2 items, or None, got 1"),
        ("te", "groups must be a list with a name for each item, got the text 'te'"),
        (["tea", 1.5], "a group must be a text or a whole number, or None for no group, got 1.5"),
        (["tea", True], "a group must be a text or a whole number, or None for no group, got True"),
    ],
)
def test_groups_that_do_not_fit_are_refused_and_nothing_is_added(groups, sentence):
    ranker = new_ranker(groups=GROUPS)
    before = bytes_of(ranker)
    assert refusal(ranker.add_items, ["new", "newer"], FEATURES[:2], groups=groups) == sentence
    assert bytes_of(ranker) == before
    assert list(ranker.catalog.numbered_groups()[0]) == ["tea", "coffee", 7]


def test_a_policy_without_room_for_further_items_refuses_them_before_the_catalog_changes():
    ranker = new_ranker("recur-rank")
    assert "takes no items later" in refusal(ranker.add_items, ["new"], [[0.1, 0.1, 0.1]])
    assert ranker.catalog.items == ITEMS
    ranker.catalog.add(["new"], [[0.1, 0.1, 0.1]])
    assert "takes no items later" in refusal(ranker.recommend)


# Several clicks


def counted(**feedback):
    """What a counting policy counts for each position of one slate."""
    ranker = new_ranker("cascade-ts")
    slate = ranker.recommend()
    ranker.learn(slate, **feedback)
    rows = ranker.catalog.rows(slate.items)
    assert ranker.state.time[0] == 1
    return ranker.state.examined[rows].tolist(), ranker.state.hits[rows].tolist()


def test_a_policy_of_a_cascade_takes_the_first_click_unless_the_page_knows_what_was_examined():
    assert counted(clicks=[3, 1]) == counted(click=1) == ([1, 1, 0, 0], [0, 1, 0, 0])
    assert counted(clicks=()) == counted(click=None) == ([1, 1, 1, 1], [0, 0, 0, 0])
    assert counted(clicks=iter([np.int64(3), 1]), examined=4) == ([1, 1, 1, 1], [0, 1, 0, 1])
    assert counted(click=1, examined=np.int32(3)) == ([1, 1, 1, 0], [0, 1, 0, 0])
    assert counted(click=None, examined=2) == ([1, 1, 0, 0], [0, 0, 0, 0])
    assert counted(clicks=[], examined=0) == ([0, 0, 0, 0], [0, 0, 0, 0])


@pytest.mark.parametrize(
    ("feedback", "part"),
    [
        ({}, "click is missing; give it, None (in JSON null) if nothing was clicked, or give clicks"),
        ({"clicks": None, "examined": 2}, "click is missing"),
        ({"click": 1, "clicks": [1]}, "click and clicks are both given"),
        ({"click": None, "clicks": []}, "click and clicks are both given"),
        ({"clicks": [1, 2, 1]}, "clicks must name a position once, got 1 twice"),
        ({"clicks": [4]}, "click must be a position of the slate, 0 to 3, got 4"),
        ({"clicks": [0, -1]}, "click must be a position of the slate, 0 to 3, got -1"),
        ({"clicks": [True]}, "each of clicks must be a position, got True"),
        ({"clicks": [1.0]}, "each of clicks must be a position, got 1.0"),
        ({"clicks": [None]}, "each of clicks must be a position, got None"),
        ({"clicks": [...]}, "each of clicks must be a position, got Ellipsis"),
        ({"clicks": "01"}, "clicks must be a list of positions, got '01'"),
        ({"clicks": 1}, "clicks must be a list of positions, got 1"),
        (
            {"clicks": [1, 3], "examined": 3},
            "position 3 was clicked, so that examined must be at least 4, got 3",
        ),
        ({"click": 0, "examined": 0}, "position 0 was clicked, so that examined must be at least 1, got 0"),
        ({"click": None, "examined": 5}, "examined must be at most 4, the length of the slate, got 5"),
        ({"click": None, "examined": -1}, "examined must be at least 0, got -1"),
        ({"click": None, "examined": 2.0}, "examined must be a whole number, got 2.0"),
        ({"click": None, "examined": True}, "examined must be a whole number, got True"),
    ],
)
def test_contradictory_feedback_is_refused_and_the_slate_still_waits(feedback, part):
    ranker = taught(new_ranker())
    slate = ranker.recommend()
    before = bytes_of(ranker)
    assert part in refusal(ranker.learn, slate, **feedback)
    assert bytes_of(ranker) == before
    ranker.learn(slate, clicks=[0, 2])
