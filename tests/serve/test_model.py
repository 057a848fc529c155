"""A model is the fold of its log: however it is folded, it comes to the same, bit for bit."""

import numpy as np
import pytest

from firstclick.catalog.item import Item
from firstclick.errors import WorkFailed
from firstclick.online.engine import PolicyEngine
from firstclick.serve.log.codec import SKIPPED, fold
from firstclick.serve.log.events import feedback_payload, read_feedback
from firstclick.serve.log.snapshot import BadSnapshot
from firstclick.serve.model.model import Model
from tests.support.made_log import K, Log, made_items
from tests.support.policies import policies

# The others are in test_every_policy.
POLICIES = policies(["cascade-lin-ts", "ranked-lin-ts", "cascade-ts", "random"])


def restored(log, content):
    return Model.restored(1, "made", content, log.created)


@pytest.mark.parametrize("policy", POLICIES)
def test_one_by_one_and_all_at_once_come_to_the_same(policy):
    log = Log(policy).eventful()
    assert log.model_at(len(log.events)).digest() == log.model.digest()


@pytest.mark.parametrize("policy", POLICIES)
def test_a_snapshot_at_any_event_goes_on_as_if_nothing_had_been(policy):
    log = Log(policy).eventful()
    for seq in (1, 2, 41, 42, 43, 74, 75, 100, 176, 177, 178, 199, 200, len(log.events)):
        at, content = log.model_at(seq).snapshot()
        assert at == seq
        model = restored(log, content)
        assert model.digest() == log.model_at(seq).digest()
        model.apply(log.events[seq:], log.known_at)
        assert model.digest() == log.model.digest()


def test_feedback_is_learned_by_the_rows_that_were_shown_however_the_items_changed():
    log, plain = Log(), Log()
    log.put([Item("i4", "another name"), *made_items(1, first=50)])
    log.withdraw("i5")
    for one in (log, plain):
        one.feedback([4, 5, 6], 1)
    for mine, its in zip(log.model.engine.state, plain.model.engine.state, strict=True):
        np.testing.assert_array_equal(mine, its)


def test_equal_features_keep_the_row_and_what_was_counted():
    log = Log("cascade-ts")
    log.feedback([4, 5, 6], 1)
    log.withdraw("i5")
    assert 5 not in log.model.recommend(0, candidates=["i4", "i5", "i6"]).rows
    log.put([made_items()[5]._replace(name="back again")])
    assert log.model.catalog.row_of("i5") == 5
    assert log.model.items.names["i5"] == "back again"
    assert log.model.engine.state.hits[5] == 1


def test_a_rollback_knows_what_was_known_then_and_rows_are_never_given_twice():
    log = Log("cascade-ts")
    log.feedback([0, 1, 2], 0)
    then = log.model_at(len(log.events))
    log.put(made_items(1, first=50))
    row = log.model.catalog.row_of("i50")
    log.withdraw("i3")
    log.feedback([0, 1, 2], 0)
    log.roll_back(2)
    assert log.model.engine.state.hits[:13].tolist() == then.engine.state.hits.tolist()
    assert log.model.items.is_shown("i3")
    assert not log.model.items.is_shown("i50")
    # A click on a slate from before the rollback is still about the item that was shown.
    log.feedback([row, 1], 0)
    assert log.model.engine.state.hits[row] == 1
    log.put(made_items(1, first=60))
    assert log.model.catalog.row_of("i60") == row + 1
    assert log.model.click_stats.slates == 3  # what happened has happened


def test_the_compiled_fold_is_the_policy_learning_one_slate_at_a_time():
    log = Log().eventful()
    payloads = [event.payload for event in log.events if event.kind == 1]
    many, one = (PolicyEngine("cascade-lin-ts", log.model.catalog, k=K) for _ in range(2))
    clicks = fold(many, payloads)
    for payload, click in zip(payloads, clicks, strict=True):
        said = read_feedback(payload)
        assert click == (-1 if said.click is None else said.click)
        clicks = np.array([position == said.click for position in range(len(said.rows))], np.uint8)
        one.learn_rows(np.array(said.rows, np.int64), clicks)
    for mine, its in zip(many.state, one.state, strict=True):
        np.testing.assert_array_equal(mine, its)


def rows_of(*rows):
    return np.array(rows, "<u4").tobytes()


@pytest.mark.parametrize(
    "payload",
    [
        feedback_payload(None, 0, rows_of(0, 13)),  # no such row
        feedback_payload(None, 0, rows_of(2**32 - 1)),
        feedback_payload(2, 0, rows_of(0, 1)),  # no such position
        feedback_payload(-2, 0, rows_of(0, 1)),
        feedback_payload(None, 0, rows_of(0, 1, 2, 3)),  # more than k
        feedback_payload(None, 0, rows_of(0, 1))[:-1],
        b"\x00",
    ],
)
def test_feedback_that_cannot_be_is_passed_over_and_what_comes_after_it_is_learned(payload):
    log, plain = Log(), Log()
    good = feedback_payload(0, 0, rows_of(0, 1))
    assert fold(log.model.engine, [good, payload, good]).tolist() == [0, SKIPPED, 0]
    assert fold(plain.model.engine, [good, good]).tolist() == [0, 0]
    for mine, its in zip(log.model.engine.state, plain.model.engine.state, strict=True):
        np.testing.assert_array_equal(mine, its)


def test_a_log_with_feedback_that_cannot_be_is_the_same_for_all_who_fold_it():
    log = Log()
    log.feedback([0, 1, 2], 1)
    log.feedback([0, 99], 1)
    log.feedback([2, 1, 0], None)
    assert (log.model.seq, log.model.click_stats.slates, log.model.click_stats.skipped) == (4, 2, 1)
    assert log.model_at(4).digest() == log.model.digest()
    assert restored(log, log.model.snapshot()[1]).digest() == log.model.digest()


def test_the_request_decides_the_slate():
    log = Log().eventful()
    model = log.model
    assert model.recommend(5).items == log.model_at(model.seq).recommend(5).items
    assert len({tuple(model.recommend(number).items) for number in range(50)}) > 5
    only = model.recommend(0, candidates=["i1", "i4", "i7", "i8", "i9"], exclude=["i4", "never heard of"])
    assert set(only.items) == {"i1", "i8", "i9"}, "i7 is not available"
    assert model.recommend(0, k=1, candidates=[]).items == []


def test_slates_made_ahead_are_what_their_numbers_recommend_and_none_outlives_an_event():
    log = Log().eventful()
    model = log.model
    seen = set()
    for event in range(6):
        for _ in range(40):
            number, ranked = model.next_slate()
            assert number not in seen
            seen.add(number)
            again = model.recommend(number)
            assert (ranked.items, ranked.scores, ranked.seq) == (again.items, again.scores, model.seq)
            assert ranked.rows.tolist() == again.rows.tolist()
        assert model._at_once > 1  # so some were really made ahead
        if event % 2:
            log.withdraw(ranked.items[0])
            assert all(ranked.items[0] not in model.next_slate()[1].items for _ in range(30))
        else:
            log.feedback(ranked.rows.tolist(), 0)


def test_what_is_made_ahead_is_little_where_feedback_comes_after_every_slate():
    log = Log()
    for _ in range(30):
        log.feedback(log.model.next_slate()[1].rows.tolist(), None)
    assert log.model._at_once == 1


def test_a_slate_may_be_empty():
    log = Log()
    log.withdraw(*(f"i{row}" for row in range(13)))
    assert log.model.recommend(0).items == []
    assert len(log.model.best_rows(K)) == 0
    log.feedback([], None)
    assert log.model.click_stats.slates == 1


def test_scores_are_estimates_or_nothing():
    model = Log().eventful().model
    slate = model.recommend(0)
    means, _ = model.engine.estimates(slate.rows)
    assert slate.scores == means.tolist()
    assert Log("random").model.recommend(0).scores == [None] * K
    best = model.best_rows(K)
    shown = np.flatnonzero(model.catalog.hidden == 0)
    assert sorted(best, key=lambda row: -model.engine.estimates(np.array([row]))[0][0]) == best.tolist()
    assert model.engine.estimates(best)[0].min() >= np.sort(model.engine.estimates(shown)[0])[-K]


def test_any_damage_to_a_snapshot_is_noticed():
    log = Log().eventful()
    _, content = log.model.snapshot()
    assert restored(log, content).digest() == log.model.digest()
    draw = np.random.default_rng(3)
    for _ in range(200):
        broken = bytearray(content)
        broken[draw.integers(len(content))] ^= 1 << int(draw.integers(8))
        with pytest.raises(BadSnapshot):
            restored(log, bytes(broken))
    for cut in (0, 5, 11, 40, len(content) - 1):
        with pytest.raises(BadSnapshot):
            restored(log, content[:cut])


def test_events_come_in_order_or_not_at_all():
    log = Log().eventful()
    model = log.model_at(10)
    before = model.digest()
    with pytest.raises(WorkFailed, match="event 11 comes next in the log, got 12"):
        model.apply(log.events[11:], log.known_at)
    model.apply(log.events[5:10], log.known_at)  # folded already
    assert model.digest() == before
    model.apply(log.events[7:], log.known_at)
    assert model.digest() == log.model.digest()
