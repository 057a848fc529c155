"""Requests and the slates that they get, at every door."""

import numpy as np
import pytest

from tests.support.policies import OTHERS
from tests.support.shop import FEATURES, GROUPS, IDS, K, new_item

N = len(IDS)
CLICKS = (None, 0, 1, 2)


def teach(*doors, n=24):
    """Show and report the same slates at each door."""
    for step in range(n):
        for door in doors:
            slate = door.recommend(draw=("taught", step), k=K)
            door.feedback(slate.handle, click=CLICKS[step % 4])


def pick(ranking, *, k=K, candidates=None, exclude=(), pinned=None, at_most=None):
    """The slate of a request, picked one by one from the ranking of all items that can be shown."""
    held = {
        position: item for position, item in (pinned or {}).items() if item in ranking and item not in exclude
    }
    caps = dict.fromkeys(GROUPS, at_most) if isinstance(at_most, int) else dict(at_most or {})
    groups = dict(zip(IDS, GROUPS, strict=True))
    for item in held.values():
        if caps.get(groups[item]) is not None:
            caps[groups[item]] -= 1
    free = []
    for item in [] if candidates == [] else ranking:
        cap = caps.get(groups[item])
        allowed = candidates is None or item in candidates
        if len(free) < k - len(held) and allowed and item not in exclude and item not in held.values():
            if cap is not None and cap <= 0:
                continue
            if cap is not None:
                caps[groups[item]] -= 1
            free.append(item)
    slate, waiting = [], iter(free)
    for position in range(len(free) + len(held)):
        item = held.pop(position) if position in held else next(waiting, None)
        slate += [] if item is None else [item]
    return slate + [item for _, item in sorted(held.items())]


REQUESTS = [
    {}, {"k": 1}, {"k": 2}, {"candidates": ["i1", 7, "i9", "Grüße"]},
    {"candidates": ["i9", "i1", "i1"], "k": 2},
    {"candidates": []}, {"candidates": ["i4"]}, {"exclude": ["i1", 7, "never there", 99]}, {"exclude": IDS},
    {"candidates": ["i1", 7], "exclude": ["i1"]}, {"pinned": {1: "i9"}},
    {"pinned": {0: "i9", 2: "i5"}, "exclude": ["i9"]},
    {"pinned": {2: "i1", 0: 7}}, {"pinned": {0: "i1", 1: 7, 2: "i4"}}, {"pinned": {0: "i0"}},
    {"pinned": {1: "i2"}},
    {"pinned": {2: "i9"}, "candidates": ["i1"]}, {"pinned": {2: "i9"}, "candidates": []},
    {"pinned": {0: "i9"}, "k": 1},
    {"at_most": 1}, {"at_most": 0}, {"at_most": {"odd": 1}}, {"at_most": {"odd": 0}},
    {"at_most": {"odd": 9, "even": 0}},
    {"at_most": 2, "k": 3}, {"at_most": 1, "pinned": {0: "i1"}},
    {"at_most": {"odd": 1}, "pinned": {1: "i1", 2: 7}},
    {"at_most": {"odd": 1}, "pinned": {0: "i1"}, "exclude": ["i1"]},
    {"at_most": {"odd": 1}, "pinned": {0: "i1"}, "k": 2},
    {"at_most": {"even": 1}, "candidates": ["i0", "i4", "i6", "i8"]},
    {"at_most": 1, "candidates": ["i1", 7, "i5", "i7"]},
    {"at_most": 2**50},
    {"candidates": ["i1", "i2", "i5"], "exclude": ["i5"], "pinned": {0: "i8"}, "at_most": {"odd": 1}},
]  # fmt: skip


@pytest.mark.parametrize("policy", ["cascade-lin-ts", "cascade-ts"])
def test_a_slate_is_picked_one_by_one_from_the_ranking(open_door, policy):
    """One model is asked for its whole ranking, its twin for slates by request."""
    whole, twin = open_door(policy=policy, k=N), open_door(policy=policy, k=N)
    teach(whole, twin)
    for door in (whole, twin):
        door.withdraw(["i0", "i10"])
        door.set_available(off=["i2"])
    for step, request in enumerate(REQUESTS):
        ranking = whole.recommend(draw=step).items
        assert len(ranking) == N - 3
        assert not {"i0", "i2", "i10"} & set(ranking)
        slate = twin.recommend(**{"draw": step, "k": K} | request)
        assert slate.items == pick(ranking, **request), request
        gone = {"i0", "i2", "i10", *request.get("exclude", ())}
        pins = [item for _, item in sorted(request.get("pinned", {}).items())]
        assert slate.skipped_pins == tuple(item for item in pins if item in gone)
        assert slate.reasons == tuple("pinned" if item in pins else "policy" for item in slate.items)
    assert len({tuple(whole.recommend(draw=step).items) for step in range(20)}) > 10


def test_a_request_may_have_any_collection_of_ids(open_at):
    for name in ("ranker", "service", "client"):
        door, twin = open_at(name), open_at(name)
        forms = [("i1", 7, "i9"), ["i1", 7, "i9"], {"i1": 0, 7: 0, "i9": 0}, np.array(["i1", "i9"])]
        for step, candidates in enumerate([*forms, iter(forms[0])]):
            ids = ["i1", "i9"] if step == 3 else ["i1", 7, "i9"]
            slate = door.recommend(draw=step, candidates=candidates, exclude={"i9"})
            assert slate.items == twin.recommend(draw=step, candidates=ids, exclude=["i9"]).items


def test_an_empty_catalog_gives_empty_slates(door):
    door.withdraw(IDS)
    slate = door.recommend()
    assert slate.items == []
    assert door.feedback(slate.handle, click=None) == "accepted"
    assert door.recommend(pinned={0: "i1"}).skipped_pins == ("i1",)


# Features of a request


def test_features_of_a_request_stand_in_for_those_of_the_catalog(open_door):
    """A door with these features in its catalog gives the same slates and learns the same."""
    door, twin = open_door(), open_door()
    ids, own = ["i9", "i1", 7, "i4", "Grüße"], np.random.default_rng(4).normal(size=(5, 4)) / 3
    twin.put([new_item(id, features=row) for id, row in zip(ids, own, strict=True)])
    for step in range(9):
        order = np.random.default_rng(step).permutation(5)
        request = {"candidates": [ids[at] for at in order], "features": own[order].tolist()}
        slate = door.recommend(draw=step, **request)
        same = twin.recommend(draw=step, candidates=ids)
        assert slate.items == same.items
        door.feedback(slate.handle, click=CLICKS[step % 4])
        twin.feedback(same.handle, click=CLICKS[step % 4])
    for name, array in door.state().items():
        np.testing.assert_array_equal(array, twin.state()[name])
    # A pinned item outside the candidates keeps the features of the catalog, and a hidden one is left out.
    twin.put([new_item("i5", features=FEATURES[5])])
    pinned = {"pinned": {0: "i5"}, "k": 2, "draw": 90}
    slate = door.recommend(candidates=ids, features=own.tolist(), **pinned)
    same = twin.recommend(candidates=ids, **pinned)
    assert slate.items == same.items
    for side, shown in ((door, slate), (twin, same)):
        side.feedback(shown.handle, clicks=[0, 1])
        side.withdraw(["i4"])
    for name, array in door.state().items():
        np.testing.assert_array_equal(array, twin.state()[name])
    assert set(door.recommend(candidates=ids[3:], features=own[3:].tolist()).items) == {"Grüße"}


# Contexts


@OTHERS
def test_a_slate_is_learned_with_its_own_context(open_door):
    door = open_door(policy="context-lin-ts:context=2,sigma=0.5")
    contexts = [[1.0, 0.0], (0.0, 1.0), [1.0, 0.0]]
    slates = [door.recommend(context=context, candidates=["i2"]) for context in contexts]
    for slate, click in zip(reversed(slates), (0, None, 0), strict=True):
        door.feedback(slate.handle, click=click)
    assert door.scores(["i2"], context=[1.0, 0.0])["i2"] > 0.05
    assert abs(door.scores(["i2"], context=[0.0, 1.0])["i2"]) < 1e-9
    assert len(door.recommend(context=[1e50, -1e50]).items) == K


@OTHERS
def test_the_largest_numbers_leave_the_state_finite(open_door):
    door = open_door(policy="context-lin-ts:context=2")
    huge = np.full((3, 4), 1e99).tolist()
    for click in (0, None, 2):
        slate = door.recommend(context=[1e50, -1e50], candidates=["i1", "i2", "i4"], features=huge)
        door.feedback(slate.handle, click=click)
    assert all(np.isfinite(array).all() for array in door.state().values())
    assert len(door.recommend(context=[1, 1]).items) == K


# Exploration


def test_an_explored_slate_is_drawn_uniformly_from_what_the_request_allows(open_door):
    door = open_door(explore=1.0)
    teach(door, n=8)
    seen = dict.fromkeys(["i1", 7, "i5", "i8"], 0)
    for step in range(200):
        slate = door.recommend(draw=step, k=1, candidates=["i1", 7, "i5", "i8", "i9"], exclude=["i9"])
        assert (slate.explored, slate.reasons) == (True, ("explored",))
        seen[slate.items[0]] += 1
    # 50 each on average, with a standard deviation of 6.
    assert min(seen.values()) > 25
    slate = door.recommend(pinned={1: "i6"}, at_most={"odd": 0})
    assert slate.reasons == ("explored", "pinned", "explored")
    assert not {"i1", 7, "i5", "i7", "i9", "i11"} & set(slate.items)


def test_the_share_of_explored_slates_is_the_one_asked_for(open_door):
    door, plain = open_door(explore=0.3), open_door()
    explored = [door.recommend(draw=step, exclude=["i1"]).explored for step in range(200)]
    assert 30 < sum(explored) < 90
    assert sum(door.recommend(exclude=["i1"]).explored for _ in range(100)) > 5
    for step in range(50):
        slate, same = (side.recommend(draw=step, exclude=["i1"]) for side in (door, plain))
        assert slate.explored == explored[step]
        assert slate.explored or slate.items == same.items
        assert not same.explored


def test_exploration_learns_as_any_slate(open_door):
    door = open_door(policy="cascade-ts", features=False, explore=1.0)
    slate = door.recommend(candidates=["i2"])
    door.feedback(slate.handle, click=0)
    assert door.scores(["i2"]) == {"i2": pytest.approx(2 / 3)}


# Scores


def test_scores_are_those_of_the_items_whatever_the_request(open_door):
    door = open_door()
    teach(door)
    scores = door.scores(IDS)
    assert door.scores(["i1", 7]) == pytest.approx({"i1": scores["i1"], 7: scores[7]}, rel=1e-12)


@pytest.mark.parametrize("policy", ["cascade-ts", "cascade-lin-ts"])
def test_explain_says_what_the_policy_would_show_without_exploring(open_at, policy):
    """The highest estimates that the request allows."""
    door = open_at("service", policy=policy, explore=0.5)
    teach(door)
    scores = door.scores(IDS)
    asked = [(scores, request) for request in REQUESTS]
    ids = ["i9", "i1", 7, "i4", "Grüße"]
    for seed in range(5 if policy == "cascade-lin-ts" else 0):
        own = dict(zip(ids, np.random.default_rng(seed).normal(size=(5, 4)) / 3, strict=True))
        given = {item: door.scores([item], features=[row])[item] for item, row in own.items()}
        asked.append((given, {"candidates": ids, "features": [*own.values()], "k": 2}))
    for scores, request in asked:
        ranking = sorted(scores, key=lambda item: -scores[item])
        best = pick(ranking, **{name: value for name, value in request.items() if name != "features"})
        for _ in range(3):
            slate = door.call("recommend", explain=True, **request)
            assert slate.without_exploring == tuple(item in best for item in slate.items), request


@OTHERS
@pytest.mark.parametrize("policy", ["random", "context-lin-ts:context=1"])
def test_explain_reports_nothing_without_estimates_or_for_a_user(open_at, policy):
    door, context = open_at("service", policy=policy), {"context": [1.0]} if "context" in policy else {}
    assert door.call("recommend", explain=True, **context).without_exploring is None


# Ids of requests


@pytest.mark.parametrize("name", ["service", "http", "client"])
def test_a_repeated_request_gets_the_same_slate(open_at, name):
    door = open_at(name, policy="cascade-ts", features=False)
    first, again = (door.recommend(request_id="visit", exclude=["i1"]) for _ in range(2))
    assert (first.items, first.handle) == (again.items, again.handle)
    assert door.feedback(first.handle, click=1) == "accepted"
    later = door.recommend(request_id="visit", exclude=["i1"])
    assert later.items == first.items
    assert door.feedback(later.handle, click=1) == "duplicate"
    # What was withdrawn since is not shown again.
    door.withdraw(first.items[:1])
    assert first.items[0] not in door.recommend(request_id="visit", exclude=["i1"]).items


def test_named_lists_stand_for_their_ids(open_at):
    for name in ("service", "http", "client"):
        door = open_at(name)
        door.put_list("hits", ["i1", 7, "i9"])
        assert set(door.recommend(candidates="hits").items) == {"i1", 7, "i9"}
        for _ in range(5):
            assert not {"i1", 7, "i9"} & set(door.recommend(exclude="hits").items)
        door.put_list("hits", ["i4"])
        assert door.recommend(candidates="hits").items == ["i4"]
        door.remove_list("hits")
        with pytest.raises(Exception, match="candidates must be ids or the name of a list"):
            door.recommend(candidates="hits")
