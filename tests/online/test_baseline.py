"""A ranker with a baseline: what of the list is shown, why, and how often."""

from math import sqrt

import numpy as np
import pytest

from firstclick import Catalog, Ranker
from tests.online.rankers import refusal, rewritten

ITEMS = ["a", "b", "c", "d", "e", "f", "g"]
GROUPS = ["x", "x", "x", "y", "y", "x", "y"]
LIST = ["f", "b", "d", "a"]


def new_ranker(max_loss=0.05, *, baseline=LIST, seed=3, **more):
    return Ranker(
        Catalog(ITEMS, groups=GROUPS), k=3, policy="cascade-ts", seed=seed, baseline=baseline,
        max_loss=None if baseline is None else max_loss, **more,
    )  # fmt: skip


def slate_of_the_list(ranker, **asked):
    """The items and reasons of the next slate that the list decides."""
    slates = (ranker.recommend(**asked) for _ in range(100))
    slate = next(slate for slate in slates if slate.chosen.choice.name == "FLOOR")
    return slate.items, slate.reasons


# What is shown


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
    """`items` are pins and items of the list; further positions are the policy's."""
    words = {"F": "floor", "p": "pinned"}
    shown, reasons = slate_of_the_list(new_ranker(), **asked)
    listed = [(item, reason) for item, reason in zip(shown, reasons, strict=True) if reason != "policy"]
    assert listed == list(zip(items, [words[letter] for letter in why], strict=True))
    allowed = set(asked.get("candidates", ITEMS)) | set(asked.get("pinned", {}).values())
    allowed -= set(asked.get("exclude", ()))
    assert set(shown) <= allowed
    if "at_most" not in asked:
        assert len(shown) == min(asked.get("k", 3), len(allowed))


def test_positions_without_an_item_of_the_list_are_the_policys():
    ranker = new_ranker()
    items, reasons = slate_of_the_list(ranker, candidates=["e", "a", "g"])
    assert (items[0], reasons) == ("a", ("floor", "policy", "policy"))
    assert set(items) == {"a", "e", "g"}
    ranker.withdraw_items(["f"])
    ranker.set_available(["d"], False)
    items, reasons = slate_of_the_list(ranker)
    assert (items[:2], reasons) == (("b", "a"), ("floor", "floor", "policy"))
    ranker.set_available(["d"], True)
    assert slate_of_the_list(ranker)[0] == ("b", "d", "a")


def test_each_position_has_a_reason():
    ranker = new_ranker(0.5, explore=0.5)
    reasons = {ranker.recommend(pinned={1: "c"}).reasons for _ in range(60)}
    assert reasons == {(word, "pinned", word) for word in ("floor", "policy", "explored")}


# How often


def test_without_evidence_the_policy_shows_max_loss_of_the_slates():
    """5 standard deviations: a wrong share of 0.15 is found; a right one fails once in 10^6."""
    ranker, n = new_ranker(0.1), 3000
    slates = [ranker.recommend() for _ in range(n)]
    assert {slate.chosen.share for slate in slates} == {0.1}
    by_policy = sum(slate.reasons == ("policy",) * 3 for slate in slates)
    assert abs(by_policy - 0.1 * n) < 5 * sqrt(n * 0.1 * 0.9)


def test_a_loss_of_1_never_shows_the_list():
    free, without = new_ranker(1.0), new_ranker(baseline=None)
    for click in (0, None, 2) * 30:
        one, other = free.recommend(), without.recommend()
        assert one.items == other.items
        assert one.reasons == ("policy",) * 3
        assert one.chosen.share == 1.0
        assert other.chosen is None
        free.learn(one, click=click)
        without.learn(other, click=click)


def test_a_policy_that_is_clicked_takes_over():
    ranker = new_ranker(0.1)
    for _ in range(600):
        slate = ranker.recommend()
        ranker.learn(slate, click=0 if slate.chosen.by_policy else None)
    assert slate.chosen.share == 1.0
    report = ranker.floor.report()
    assert report.policy_clicks == report.policy_pages > 400
    assert report.baseline_clicks == 0


# Saved, merged, changed


def play(ranker, n, seed=0):
    """Slates of which every third waits; each with its reasons."""
    draw = np.random.default_rng(seed)
    seen = []
    for step in range(n):
        slate = ranker.recommend()
        seen.append((slate.items, slate.reasons, slate.chosen))
        if step % 3:
            ranker.learn(slate, click=int(draw.integers(3)) if draw.random() < 0.6 else None)
    return seen


def test_a_loaded_ranker_with_a_list_goes_on_bit_for_bit(tmp_path):
    ranker = new_ranker(0.2, explore=0.1)
    play(ranker, 200)
    ranker.save(tmp_path / "ranker.npz")
    loaded = Ranker.load(tmp_path / "ranker.npz")
    assert (loaded.baseline, loaded._out) == (ranker.baseline, ranker._out)
    assert ranker._out > 0, "slates that wait have taken some room"
    waiting = list(ranker.pending)[::2]
    for one in (ranker, loaded):
        for slate in waiting:
            one.learn(slate, click=1)
    assert play(ranker, 200, 2) == play(loaded, 200, 2)
    assert ranker.floor.array.tobytes() == loaded.floor.array.tobytes()
    first, second = ({slate.chosen for slate in one.pending.values()} for one in (ranker, loaded))
    assert first == second
    for floor in (np.zeros(3), np.full(10, np.nan), np.full(10, -1.0)):
        path = rewritten(tmp_path / "ranker.npz", lambda _, arrays, floor=floor: arrays.update(floor=floor))
        assert "damaged" in str(refusal(Ranker.load, path))


def test_a_merged_ranker_has_the_list_of_the_first_and_a_new_floor():
    one, other = new_ranker(0.2), new_ranker(0.3, seed=4, baseline=["a", "b", "c"])
    play(one, 90)
    play(other, 60)
    both = one.merge(other)
    assert both.baseline == tuple(LIST)
    assert (both.floor.max_loss, both.floor.report().pages, both.floor.share()) == (0.2, 0, 0.2)
    for slate in list(both.pending):
        both.learn(slate, click=0)
    assert both.floor.report().pages == 0, "slates of before the merge say nothing of it"
    assert slate_of_the_list(both)[0] == ("f", "b", "d")
    assert new_ranker(baseline=None).merge(new_ranker(seed=4)).floor is None


def test_another_list_starts_a_new_floor_and_another_loss_does_not():
    ranker = new_ranker(0.1)
    play(ranker, 90)
    pages = ranker.floor.report().pages
    ranker.set_baseline(LIST, 0.4)
    assert (ranker.floor.max_loss, ranker.floor.report().pages) == (0.4, pages)
    shares = [slate.chosen.share for slate in ranker.pending.values()]
    assert ranker._out == pytest.approx(sum(max(share - 0.4, 0) for share in shares))
    ranker.set_baseline(["a", "b", "c"], 0.4)
    assert (ranker.floor.report().pages, ranker._out, ranker.floor.share()) == (0, 0.0, 0.4)
    for slate in list(ranker.pending):
        ranker.learn(slate, click=0)
    assert ranker.floor.report().pages == 0, "slates of the old list say nothing of the new one"
    ranker.set_baseline(None)
    assert ranker.recommend().chosen is None
    assert (ranker.baseline, ranker.floor) == ((), None)


def test_a_forgotten_slate_takes_no_room_any_more():
    ranker = new_ranker(0.1, max_pending=5)
    for _ in range(300):
        slate = ranker.recommend()
        ranker.learn(slate, click=0 if slate.chosen.by_policy else None)
    for _ in range(50):
        ranker.recommend()
    assert ranker._out <= 5 * 0.9 + 1e-9
    assert len(ranker.pending) == 5
