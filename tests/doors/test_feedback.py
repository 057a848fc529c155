"""Feedback and what it teaches, at every door."""

import numpy as np
import pytest

from firstclick import FirstclickError
from tests.support.doors import SERVED, status_of
from tests.support.policies import OTHERS
from tests.support.shop import K

SHOWN = ["i2", "i4", "i6"]


@pytest.fixture
def counting(open_door):
    """A door to a policy that counts: the score of an item is (clicks + 1) / (examined + 2)."""
    return open_door(policy="cascade-ts", features=False)


@pytest.mark.parametrize(
    ("report", "examined", "clicked"),
    [
        ({"click": None}, (1, 1, 1), (0, 0, 0)), ({"click": 0}, (1, 0, 0), (1, 0, 0)),
        ({"click": 1}, (1, 1, 0), (0, 1, 0)), ({"click": 2}, (1, 1, 1), (0, 0, 1)),
        ({"click": None, "examined": 1}, (1, 0, 0), (0, 0, 0)),
        ({"click": None, "examined": 0}, (0, 0, 0), (0, 0, 0)),
        ({"click": None, "examined": 3}, (1, 1, 1), (0, 0, 0)),
        ({"click": 0, "examined": 1}, (1, 0, 0), (1, 0, 0)),
        ({"click": 1, "examined": 3}, (1, 1, 1), (0, 1, 0)),
        ({"click": 0, "examined": 2}, (1, 1, 0), (1, 0, 0)),
        ({"clicks": []}, (1, 1, 1), (0, 0, 0)), ({"clicks": [1]}, (1, 1, 0), (0, 1, 0)),
        ({"clicks": [2, 1]}, (1, 1, 0), (0, 1, 0)), ({"clicks": [0, 2], "examined": 3}, (1, 1, 1), (1, 0, 1)),
        ({"clicks": [1, 0], "examined": 2}, (1, 1, 0), (1, 1, 0)),
        ({"clicks": [], "examined": 2}, (1, 1, 0), (0, 0, 0)),
        ({"clicks": (2, 0, 1), "examined": 3}, (1, 1, 1), (1, 1, 1)),
    ],
    ids=str,
)  # fmt: skip
def test_feedback_teaches_what_was_examined_and_clicked(counting, report, examined, clicked):
    slate = counting.recommend(candidates=SHOWN)
    assert counting.feedback(slate.handle, **report) == "accepted"
    scores = counting.scores(SHOWN)
    for item, n, clicks in zip(slate.items, examined, clicked, strict=True):
        assert scores[item] == pytest.approx((clicks + 1) / (n + 2)), item


def test_positions_may_be_numbers_of_numpy(open_at):
    for name in ("ranker", "service", "client"):
        door = open_at(name, policy="cascade-ts", features=False)
        reports = [
            {"click": np.int64(1)}, {"clicks": np.array([2, 0]), "examined": np.int32(3)},
            {"clicks": iter([0])},
        ]  # fmt: skip
        for report in reports:
            assert door.feedback(door.recommend().handle, **report) == "accepted"


@OTHERS
def test_a_policy_that_wants_all_clicks_learns_only_down_to_the_first_where_one_is_reported(open_door):
    door = open_door(policy="dcm-lin-ts")
    learned = []
    for report in (
        {"clicks": [2, 0]},
        {"click": 1},
        {"click": None, "examined": 1},
        {"click": None},
        {"clicks": []},
    ):
        before = float(door.state()["observations"][0])
        door.feedback(door.recommend().handle, **report)
        learned.append(door.state()["observations"][0] - before)
    assert learned == [K, 2, 1, K, K]


def test_feedback_counts_once_in_any_order(counting):
    slates = [counting.recommend() for _ in range(4)]
    reports = list(zip(reversed(slates), (None, 2, 0, 1), strict=True))
    for slate, click in reports:
        assert counting.feedback(slate.handle, click=click) == "accepted"
    after = counting.facts()
    for slate, click in reports:
        assert counting.feedback(slate.handle, click=click) == "duplicate"
    assert counting.facts() == after
    if "slates" in after:
        assert (after["slates"], after["clicks"], after["seq"]) == (4, 3, 5)


@pytest.mark.parametrize("name", SERVED)
def test_feedback_that_says_the_same_in_other_words_is_a_duplicate(open_at, name):
    door = open_at(name, policy="cascade-ts", features=False)
    for first, second in (
        ({"click": 1}, {"clicks": [1]}),
        ({"click": None}, {"clicks": []}),
        ({"clicks": [0, 2]}, {"clicks": [2, 0]}),
    ):
        slate = door.recommend()
        assert door.feedback(slate.handle, **first) == "accepted"
        assert door.feedback(slate.handle, **second) == "duplicate"


@pytest.mark.parametrize("name", SERVED)
def test_the_first_feedback_stays(open_at, name):
    door = open_at(name, policy="cascade-ts", features=False)
    slate = door.recommend(candidates=SHOWN)
    door.feedback(slate.handle, click=0)
    before = door.facts()
    for report in ({"click": 1}, {"click": None}, {"clicks": [2, 0]}, {"click": 0, "examined": 2}):
        with pytest.raises(FirstclickError) as caught:
            door.feedback(slate.handle, **report)
        assert status_of(caught.value) == "conflict"
    assert door.facts() == before


@pytest.mark.parametrize("name", SERVED)
def test_each_entry_of_a_batch_has_its_outcome_in_order(open_at, name):
    door = open_at(name, policy="cascade-ts", features=False)
    first, second, third = (door.recommend().handle for _ in range(3))
    token = getattr(first, "token", first)
    entries = [
        (first, {"click": 0}), ("forged", {"click": 0}), (second, {"click": 99}), (first, {"click": 0}),
        (third, {"click": None}), (first, {"click": 1}), (token, {"clicks": [0]}),
        (second, {"clicks": [2, 1]}),
    ]  # fmt: skip
    outcomes = door.feedback_batch(entries)
    words = [outcome if isinstance(outcome, str) else status_of(outcome) for outcome in outcomes]
    assert words == [
        "accepted", "unknown", "malformed", "duplicate", "accepted", "conflict", "duplicate", "accepted",
    ]  # fmt: skip
    assert [outcomes[at].argument for at in (1, 2, 5)] == ["token", "click", "token"]
    assert "99" in str(outcomes[2])
    facts = door.facts()
    assert (facts["slates"], facts["clicks"], facts["seq"]) == (3, 2, 4)
    assert door.feedback_batch([]) == []


def test_entries_of_a_batch_that_are_none_are_refused_one_by_one(open_at):
    door = open_at("service")
    slate = door.service.recommend(door.model)
    outcomes = door.service.feedback_batch(
        door.model, [5, None, slate.token, (slate.token,), slate, (slate, 1)]
    )
    assert [outcome.argument for outcome in outcomes[:5]] == ["entries"] * 5
    assert outcomes[5].status == "accepted"


def test_a_slate_is_learned_after_its_items_are_gone(counting):
    slate = counting.recommend(candidates=SHOWN)
    counting.withdraw(SHOWN[:2])
    counting.set_available(off=SHOWN[2:])
    assert counting.feedback(slate.handle, click=0) == "accepted"
    counting.set_available(on=SHOWN[2:])
    expected = {True: 2 / 3, False: 1 / 2}
    assert counting.scores(["i6"])["i6"] == pytest.approx(expected[slate.items[0] == "i6"])
