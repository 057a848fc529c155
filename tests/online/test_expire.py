"""Slates of a ranker that nobody reports are no clicks after a while; a late click takes their place."""

import time
from datetime import timedelta

import numpy as np
import pytest

from firstclick import Catalog, Ranker
from firstclick.errors import DuplicateFeedback, InvalidInput, UnknownSlate
from firstclick.online import ranker as ranker_module

ITEMS = [f"i{n}" for n in range(12)]
FEATURES = np.random.default_rng(4).normal(size=(12, 3))


class Clock:
    """The time of day, which a test sets."""

    def __init__(self):
        self.now = 1_700_000_000.0

    def time(self):
        return self.now


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(ranker_module, "time", clock)
    return clock


def made(policy="cascade-ts", **settings):
    return Ranker(Catalog(ITEMS), k=3, policy=policy, seed=3, **settings)


def test_slates_that_waited_too_long_are_learned_as_no_click(clock):
    ranker = made()
    old = [ranker.recommend() for _ in range(3)]
    ranker.learn(old[1], click=0)
    clock.now += 1000
    young = ranker.recommend()
    assert ranker.expire(older_than=1001) == 0
    assert ranker.expire(older_than=timedelta(seconds=1000)) == 2
    assert ranker.expire(older_than="16m") == 0, "once"
    assert list(ranker.pending) == [young.id]
    assert int(ranker.state.examined.sum()) == 1 + 2 * 3
    assert int(ranker.state.hits.sum()) == 1


@pytest.mark.parametrize("policy", ["cascade-ts", "cascade-mixed"])
def test_a_late_click_takes_the_place_of_none(clock, policy, tmp_path):
    late, prompt = made(policy), made(policy)
    slates = [(late.recommend(), prompt.recommend()) for _ in range(4)]
    for one, other in slates:
        prompt.learn(other, click=1 if one is slates[2][0] else None)
    clock.now += 100
    assert late.expire(older_than=60) == 4
    late.save(tmp_path / "ranker")
    late = Ranker.load(tmp_path / "ranker")
    late.learn(slates[2][0], click=1)
    for name in ("examined", "hits", "time"):
        assert getattr(late.state, name).tolist() == getattr(prompt.state, name).tolist(), name
    with pytest.raises(DuplicateFeedback):
        late.learn(slates[2][0], click=1)
    with pytest.raises(DuplicateFeedback):
        late.learn(slates[0][0], click=None)
    with pytest.raises(InvalidInput, match="must be a position of the slate"):
        late.learn(slates[0][0], click=7)
    late.learn(slates[0][0].id, click=0)


def test_a_policy_that_cannot_take_back_refuses_the_late_click(clock):
    ranker = Ranker(Catalog(ITEMS, FEATURES), k=3, policy="cascade-lin-ts", seed=3)
    slate = ranker.recommend()
    assert ranker.expire(older_than=0) == 1
    with pytest.raises(DuplicateFeedback, match="it was learned already"):
        ranker.learn(slate, click=0)


def test_what_a_request_brought_cannot_be_taken_back(clock):
    ranker = Ranker(Catalog(ITEMS, FEATURES), k=3, seed=3)
    slate = ranker.recommend(candidates=ITEMS[:4], features=FEATURES[:4])
    assert ranker.expire(older_than=0) == 1
    with pytest.raises(DuplicateFeedback):
        ranker.learn(slate, click=0)


def test_a_file_keeps_the_ages_of_slates(clock, tmp_path):
    ranker = made()
    ranker.recommend()
    ranker.save(tmp_path / "r.npz")
    clock.now += 100
    assert Ranker.load(tmp_path / "r.npz").expire(older_than=101) == 0
    assert Ranker.load(tmp_path / "r.npz").expire(older_than=60) == 1


def test_expired_slates_are_merged_and_bounded(clock):
    one, other = made(max_pending=2), Ranker(Catalog(ITEMS), k=3, policy="cascade-ts", seed=4)
    first = [one.recommend() for _ in range(2)]
    theirs = other.recommend()
    one.expire(older_than=0)
    other.expire(older_than=0)
    both = one.merge(other)
    both.learn(theirs, click=2)
    both.learn(first[0], click=0)
    assert int(both.state.hits.sum()) == 2
    more = one.recommend()
    one.expire(older_than=0)
    with pytest.raises(DuplicateFeedback):
        one.learn(first[0], click=0)
    one.learn(more, click=0)


def test_a_slate_of_another_ranker_is_refused(clock):
    ranker = made()
    slate = ranker.recommend()
    ranker.expire(older_than=0)
    with pytest.raises(UnknownSlate):
        ranker.learn(type(slate)(slate.id, slate.items[::-1]), click=0)


@pytest.mark.parametrize(
    ("given", "rule"), [(-1, "must not be negative"), ("soon", "must be a number of seconds")]
)
def test_what_is_no_time_is_refused(given, rule):
    with pytest.raises(InvalidInput, match=f"older_than {rule}"):
        made().expire(older_than=given)


def test_the_log_of_a_service_is_learned_with_its_corrections():
    lines = [
        {"seq": 2, "kind": "feedback", "items": ["i0", "i1", "i2"], "click": None},
        {"seq": 3, "kind": "feedback", "items": ["i3", "i4", "i5"], "click": None},
        {"seq": 4, "kind": "correction", "corrects": 2, "items": ["i0", "i1", "i2"], "click": 0},
        {"seq": 5, "kind": "correction", "corrects": 3, "items": ["i3", "i4", "i5"], "click": 1},
        {"seq": 6, "kind": "recommended", "process": "p", "since": 0.0, "slates": {"0": 2}},
        {"seq": 7, "kind": "rolled-back", "to": 4},
    ]
    ranker = made()
    assert ranker.warm_start(lines) == 2
    assert ranker.state.examined[:6].tolist() == [1, 0, 0, 1, 1, 1]
    assert ranker.state.hits[:6].tolist() == [1, 0, 0, 0, 0, 0]


def test_time_is_that_of_the_wall():
    ranker = made()
    ranker.recommend()
    (waiting,) = ranker.pending.values()
    assert waiting.made is not None
    assert abs(waiting.made - time.time()) < 60
