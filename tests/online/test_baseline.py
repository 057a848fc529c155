"""A ranker with a baseline: what of the list is shown, why, and how often; and what explains a slate."""

from math import sqrt

import numpy as np
import pytest

from firstclick import Catalog, Ranker
from firstclick.errors import InvalidInput
from firstclick.files.arrays import read_arrays, write_arrays
from firstclick.online.baseline import Choice, Chosen, check_baseline, reasons
from firstclick.online.engine import PolicyEngine
from firstclick.online.file import FORMAT
from firstclick.online.request import read_request, without_exploring
from firstclick.registry import make_policy

ITEMS = ["a", "b", "c", "d", "e", "f", "g"]
GROUPS = ["x", "x", "x", "y", "y", "x", "y"]
LIST = ["f", "b", "d", "a"]


def ranker(max_loss=0.05, *, baseline=LIST, seed=3, **more):
    return Ranker(
        Catalog(ITEMS, groups=GROUPS), k=3, policy="cascade-ts", seed=seed, baseline=baseline,
        max_loss=None if baseline is None else max_loss, **more,
    )  # fmt: skip


def shown_by_the_floor(some, **asked):
    """The next slate that the list decides."""
    for _ in range(100):
        slate = some.recommend(**asked)
        assert slate.chosen is not None
        if slate.chosen.choice == Choice.FLOOR:
            return slate.items, slate.reasons
    raise AssertionError("the list decided none of 100 slates")


# -- what is shown


@pytest.mark.parametrize(
    ("asked", "items", "why"),
    [
        ({}, "fbd", "FFF"),
        ({"k": 2}, "fb", "FF"),
        ({"exclude": ["b"]}, "fda", "FFF"),
        ({"candidates": ["a", "d", "b", "c"]}, "bda", "FFF"),
        ({"pinned": {0: "c"}}, "cfb", "pFF"),
        ({"pinned": {1: "b"}}, "fbd", "FpF"),
        ({"pinned": {1: "b"}, "exclude": ["b"]}, "fda", "FFF"),
        ({"at_most": 1}, "fd", "FF"),
        ({"at_most": {"x": 1}}, "fd", "FF"),
        ({"at_most": {"x": 1}, "pinned": {2: "c"}}, "dc", "Fp"),
        ({"candidates": ["e", "g"]}, "", ""),
        ({"candidates": []}, "", ""),
        ({"candidates": [], "pinned": {0: "e"}}, "e", "p"),
    ],
    ids=str,
)
def test_the_list_is_shown_in_its_order_as_far_as_the_request_allows(asked, items, why):
    """`items` are pins and items of the list; further places are the policy's."""
    words = {"F": "floor", "p": "pinned"}
    got, said = shown_by_the_floor(ranker(), **asked)
    listed = [(item, reason) for item, reason in zip(got, said, strict=True) if reason != "policy"]
    assert listed == list(zip(items, [words[letter] for letter in why], strict=True))
    allowed = set(asked.get("candidates", ITEMS)) | set(asked.get("pinned", {}).values())
    allowed -= set(asked.get("exclude", ()))
    assert set(got) <= allowed
    if "at_most" not in asked:
        assert len(got) == min(asked.get("k", 3), len(allowed) if asked.get("candidates") != [] else len(got))


def test_the_policy_fills_the_places_for_which_the_list_has_nothing_left():
    items, why = shown_by_the_floor(ranker(), candidates=["e", "a", "g"])
    assert (items[0], why) == ("a", ("floor", "policy", "policy"))
    assert set(items) == {"a", "e", "g"}


def test_items_that_are_withdrawn_or_sold_out_are_left_out_and_come_back():
    some = ranker()
    some.withdraw_items(["f"])
    some.set_available(["d"], False)
    items, why = shown_by_the_floor(some)
    assert (items[:2], why) == (("b", "a"), ("floor", "floor", "policy"))
    some.set_available(["d"], True)
    assert shown_by_the_floor(some)[0] == ("b", "d", "a")


@pytest.mark.parametrize(
    ("chosen", "explored", "told"),
    [
        (None, False, ("policy", "pinned", "policy")),
        (None, True, ("explored", "pinned", "explored")),
        (Chosen(Choice.POLICY, 0.5), False, ("policy", "pinned", "policy")),
        (Chosen(Choice.POLICY, 0.5), True, ("explored", "pinned", "explored")),
        (Chosen(Choice.FLOOR, 0.5, 2), False, ("floor", "pinned", "floor")),
        (Chosen(Choice.HOLDOUT, 0.0, 1), False, ("holdout", "pinned", "policy")),
        (Chosen(Choice.BASELINE, 0.0, 0), False, ("policy", "pinned", "policy")),
    ],
)
def test_each_place_has_a_reason(chosen, explored, told):
    assert reasons([4, 7, 2], [7], chosen, explored) == told


# -- what is refused


@pytest.mark.parametrize("policy", ["top-rank", "bubble-rank"])
def test_a_policy_that_arranges_its_own_slates_takes_no_list(policy):
    with pytest.raises(InvalidInput, match=f"baseline is not for {policy}, which learns from slates that it"):
        Ranker(Catalog(ITEMS), k=3, policy=policy, baseline=LIST)


def test_the_ids_and_rows_of_a_list_are_those_of_the_catalog():
    assert check_baseline(iter(LIST), Catalog(ITEMS), 3, make_policy("cascade-ts")) == (LIST, [5, 1, 3, 0])


# -- how often


def test_without_evidence_the_policy_shows_max_loss_of_the_slates():
    """5 standard deviations: a wrong share of 0.15 is found; a right one fails once in 10^6."""
    some, n = ranker(0.1), 3000
    slates = [some.recommend() for _ in range(n)]
    shares = {slate.chosen.share for slate in slates if slate.chosen is not None}
    assert shares == {0.1}
    by_policy = sum(slate.reasons == ("policy",) * 3 for slate in slates)
    assert abs(by_policy - 0.1 * n) < 5 * sqrt(n * 0.1 * 0.9)


def test_with_a_loss_of_1_the_list_is_never_shown_and_slates_are_those_of_no_list():
    free, without = ranker(1.0), ranker(baseline=None)
    for click in (0, None, 2) * 30:
        one, other = free.recommend(), without.recommend()
        assert one.items == other.items
        assert one.reasons == ("policy",) * 3
        assert one.chosen == Chosen(Choice.POLICY, 1.0)
        assert other.chosen is None
        free.learn(one, click=click)
        without.learn(other, click=click)


def test_a_policy_that_is_clicked_takes_over():
    some = ranker(0.1)
    for _ in range(600):
        slate = some.recommend()
        assert slate.chosen is not None
        some.learn(slate, click=0 if slate.chosen.by_policy else None)
    assert slate.chosen.share == 1.0
    assert some.floor is not None
    report = some.floor.report()
    assert report.policy_clicks == report.policy_pages > 400
    assert report.baseline_clicks == 0


# -- saved, merged, changed


def play(some, n, seed=0):
    """Slates of which every third waits; each with its reasons."""
    draw = np.random.default_rng(seed)
    seen = []
    for step in range(n):
        slate = some.recommend()
        seen.append((slate.items, slate.reasons, slate.chosen))
        if step % 3:
            some.learn(slate, click=int(draw.integers(3)) if draw.random() < 0.6 else None)
    return seen


def test_a_loaded_ranker_goes_on_bit_for_bit(tmp_path):
    some = ranker(0.2, explore=0.1)
    play(some, 200)
    some.save(tmp_path / "ranker")
    loaded = Ranker.load(tmp_path / "ranker")
    assert (loaded.baseline, loaded._out) == (some.baseline, some._out)
    assert some._out > 0, "slates that wait have taken some room"
    waiting = list(some.pending)[::2]
    for one in (some, loaded):
        for slate in waiting:
            one.learn(slate, click=1)
    assert play(some, 200, 2) == play(loaded, 200, 2)
    assert some.floor is not None
    assert loaded.floor is not None
    assert some.floor.array.tobytes() == loaded.floor.array.tobytes()
    assert {slate.chosen for slate in some.pending.values()} == {
        slate.chosen for slate in loaded.pending.values()
    }


@pytest.mark.parametrize("floor", [np.zeros(3), np.full(10, np.nan), np.full(10, -1.0)])
def test_a_damaged_floor_is_refused(tmp_path, floor):
    ranker().save(tmp_path / "ranker")
    page, arrays = read_arrays(tmp_path / "ranker", FORMAT)
    write_arrays(tmp_path / "ranker", page, arrays | {"floor": floor})
    with pytest.raises(InvalidInput, match="damaged, or not written by this version"):
        Ranker.load(tmp_path / "ranker")


def test_a_merged_ranker_has_the_list_of_the_first_and_a_floor_that_starts_anew():
    one, other = ranker(0.2), ranker(0.3, seed=4, baseline=["a", "b", "c"])
    play(one, 90)
    play(other, 60)
    both = one.merge(other)
    assert both.baseline == tuple(LIST)
    assert both.floor is not None
    assert (both.floor.max_loss, both.floor.report().pages, both.floor.share()) == (0.2, 0, 0.2)
    for slate in list(both.pending):
        both.learn(slate, click=0)
    assert both.floor.report().pages == 0, "slates of before the merge say nothing of it"
    assert shown_by_the_floor(both)[0] == ("f", "b", "d")
    assert ranker(baseline=None).merge(ranker(seed=4)).floor is None


def test_another_list_starts_anew_and_another_loss_does_not():
    some = ranker(0.1)
    play(some, 90)
    assert some.floor is not None
    pages = some.floor.report().pages
    some.set_baseline(LIST, 0.4)
    assert (some.floor.max_loss, some.floor.report().pages) == (0.4, pages)
    waits = [slate.chosen.share for slate in some.pending.values() if slate.chosen is not None]
    assert some._out == pytest.approx(sum(max(share - 0.4, 0) for share in waits))
    some.set_baseline(["a", "b", "c"], 0.4)
    assert (some.floor.report().pages, some._out, some.floor.share()) == (0, 0.0, 0.4)
    for slate in list(some.pending):
        some.learn(slate, click=0)
    assert some.floor.report().pages == 0, "slates of the old list say nothing of the new one"
    some.set_baseline(None)
    assert some.recommend().chosen is None
    assert (some.baseline, some.floor) == ((), None)


def test_a_slate_that_is_forgotten_takes_no_room_any_more():
    some = ranker(0.1, max_pending=5)
    for _ in range(300):
        slate = some.recommend()
        assert slate.chosen is not None
        some.learn(slate, click=0 if slate.chosen.by_policy else None)
    for _ in range(50):
        some.recommend()
    assert some.floor is not None
    assert some._out <= 5 * 0.9 + 1e-9
    assert len(some.pending) == 5


# -- what the policy would show without exploring


def brute_force(engine, asked, table=None):
    """The items of the highest estimates that the request allows, one by one."""
    pinned = {
        place: item for place, item in asked.get("pinned", {}).items() if item not in asked.get("exclude", ())
    }
    names = list(asked.get("candidates", ITEMS))
    rows = np.array([ITEMS.index(name) for name in names], np.int64)
    means, _ = engine.estimates(rows) if table is None else engine.estimates(rows, features=table)
    order = sorted(range(len(names)), key=lambda place: (-means[place], ITEMS.index(names[place])))
    caps = asked.get("at_most")
    free = []
    for name in (names[place] for place in order):
        group = GROUPS[ITEMS.index(name)]
        cap = caps if isinstance(caps, int) else (caps or {}).get(group, 99)
        there = [GROUPS[ITEMS.index(other)] for other in (*free, *pinned.values())].count(group)
        hidden = name in pinned.values() or name in asked.get("exclude", ())
        if not hidden and there < cap and len(free) < asked.get("k", 3) - len(pinned):
            free.append(name)
    for place, item in sorted(pinned.items()):
        free.insert(place, item)
    return free


REQUESTS = [
    {},
    {"k": 1},
    {"candidates": ["g", "c", "a"]},
    {"candidates": ["g", "c", "a"], "exclude": ["c"]},
    {"exclude": ["a", "d", "e"]},
    {"at_most": 1},
    {"at_most": {"x": 1}},
    {"pinned": {1: "c"}},
    {"pinned": {0: "d"}, "at_most": 1, "exclude": ["e"]},
    {"pinned": {0: "a", 2: "g"}, "exclude": ["g"]},
    {"pinned": {0: "a"}, "at_most": {"x": 2}, "candidates": ["b", "c", "d"]},
]


@pytest.mark.parametrize("asked", REQUESTS, ids=str)
@pytest.mark.parametrize("policy", ["cascade-ts", "cascade-lin-ts"])
def test_without_exploring_the_highest_estimates_are_shown(policy, asked):
    draw = np.random.default_rng(4)
    some = Ranker(Catalog(ITEMS, draw.random((7, 2)), groups=GROUPS), k=3, policy=policy, seed=2)
    for _ in range(60):
        some.learn(some.recommend(), click=int(draw.integers(3)) if draw.random() < 0.7 else None)
    engine = some._engine
    best = without_exploring(engine, read_request(engine, **asked))
    assert best is not None
    assert [ITEMS[row] for row in best] == brute_force(engine, asked)


def test_features_of_the_request_decide_what_would_be_shown():
    draw = np.random.default_rng(5)
    some = Ranker(Catalog(ITEMS, draw.random((7, 2))), k=2, policy="cascade-lin-ts", seed=2)
    for _ in range(60):
        slate = some.recommend()
        clicked = [place for place, item in enumerate(slate) if item in ("a", "e")]
        some.learn(slate, click=clicked[0] if clicked else None)
    engine, names = some._engine, ["g", "b", "d", "e"]
    seen = set()
    for _ in range(20):
        table = draw.random((4, 2))
        asked = {"candidates": names, "k": 2, "exclude": ["d"]}
        best = without_exploring(engine, read_request(engine, **asked, features=table))
        assert best is not None
        wanted = brute_force(engine, asked, engine.encoded(table, names))
        assert [ITEMS[row] for row in best] == wanted
        seen.add(tuple(wanted))
    assert len(seen) > 2


@pytest.mark.parametrize("policy", ["random", "context-lin-ts:context=1"])
def test_nobody_knows_what_a_policy_would_show_that_has_no_estimates_or_ranks_for_a_user(policy):
    engine = PolicyEngine(policy, Catalog(ITEMS, np.eye(7)), k=3)
    context = {"context": [1.0]} if engine.policy.n_context else {}
    assert without_exploring(engine, read_request(engine, **context)) is None
