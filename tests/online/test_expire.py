"""Slates of a ranker without feedback are no clicks after a while; a late click takes their place."""

import time
from datetime import timedelta

import pytest

from firstclick import DuplicateFeedback, InvalidInput, Ranker, UnknownSlate
from tests.online.rankers import FEATURES, ITEMS, new_ranker, refusal
from tests.support.clock import Clock


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr("firstclick.online.ranker.time", clock)
    return clock


def test_slates_that_waited_too_long_are_learned_as_no_click(clock, tmp_path):
    ranker = new_ranker("cascade-ts")
    old = [ranker.recommend() for _ in range(3)]
    ranker.learn(old[1], click=0)
    clock.move(1000)
    young = ranker.recommend()
    ranker.save(tmp_path / "r.npz")
    for one in (ranker, Ranker.load(tmp_path / "r.npz")):
        assert one.expire(older_than=1001) == 0
        assert one.expire(older_than=timedelta(seconds=1000)) == 2
        assert one.expire(older_than="16m") == 0, "once"
        assert list(one.pending) == [young.id]
        assert int(one.state.examined.sum()) == 1 + 2 * 3
        assert int(one.state.hits.sum()) == 1
    for older_than in (-1, "soon"):
        assert refusal(ranker.expire, older_than=older_than).argument == "older_than"


@pytest.mark.parametrize("policy", ["cascade-ts", "cascade-mixed"])
def test_a_late_click_takes_the_place_of_none(clock, policy, tmp_path):
    late, prompt = new_ranker(policy), new_ranker(policy)
    slates = [(late.recommend(), prompt.recommend()) for _ in range(4)]
    for one, other in slates:
        prompt.learn(other, click=1 if one is slates[2][0] else None)
    clock.move(100)
    assert late.expire(older_than=60) == 4
    late.save(tmp_path / "ranker")
    late = Ranker.load(tmp_path / "ranker")
    late.learn(slates[2][0], click=1)
    for name in ("examined", "hits", "time"):
        assert getattr(late.state, name).tolist() == getattr(prompt.state, name).tolist(), name
    first = slates[0][0]
    refusal(late.learn, slates[2][0], click=1, error=DuplicateFeedback)
    refusal(late.learn, first, click=None, error=DuplicateFeedback)
    refusal(late.learn, type(first)(first.id, first.items[::-1]), click=0, error=UnknownSlate)
    assert refusal(late.learn, first, click=7, error=InvalidInput).argument == "click"
    late.learn(first.id, click=0)


@pytest.mark.parametrize(
    ("policy", "request_"),
    [("cascade-lin-ts", {}), ("cascade-mixed", {"candidates": ITEMS[:4], "features": FEATURES[:4]})],
)
def test_a_late_click_is_refused_where_nothing_can_be_taken_back(clock, policy, request_):
    ranker = new_ranker(policy)
    slate = ranker.recommend(**request_)
    assert ranker.expire(older_than=0) == 1
    refusal(ranker.learn, slate, click=0, error=DuplicateFeedback)


def test_expired_slates_are_merged_and_bounded(clock):
    one, other = new_ranker("cascade-ts", max_pending=2), new_ranker("cascade-ts", seed=4)
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
    refusal(one.learn, first[0], click=0, error=DuplicateFeedback)
    one.learn(more, click=0)


def test_time_is_that_of_the_wall():
    ranker = new_ranker("cascade-ts")
    ranker.recommend()
    (waiting,) = ranker.pending.values()
    assert abs(waiting.made - time.time()) < 60
