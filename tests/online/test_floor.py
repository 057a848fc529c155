"""The floor: its promise, what slates that are out and replicas do to it, and its words."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firstclick.kernels.floor import MOST, room
from firstclick.online.floor import Floor
from tests.online.rankers import refusal


def spent_beyond(floor):
    """By how many pages without a click the promise is overspent."""
    return max(-room(floor.array, floor.max_loss), 0.0)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2**32), st.floats(0.01, 0.3), st.integers(1, 50))
def test_slates_that_are_out_never_overspend_the_room_of_one_process(seed, max_loss, longest):
    """Slates are answered late and in any order, and those of the policy never by a click after page 300. The
    list's always are: so what is known of its rate does not change."""
    rng, floor = np.random.default_rng(seed), Floor(max_loss)
    out = []
    for page in range(600):
        share = floor.share(sum(floor.taken(each) for each, _ in out))
        assert max_loss - 1e-9 <= share <= 1
        out.append((share, bool(rng.random() < share)))
        while out and (len(out) >= longest or rng.random() < 0.5):
            share, by_policy = out.pop(int(rng.integers(len(out))))
            chance = 1.0 if not by_policy else 0.5 if page < 300 else 0.0
            floor.observe(share, by_policy, bool(rng.random() < chance))
            assert spent_beyond(floor) < 1e-9


def replicas_in_trouble(seed, n, *, lag):
    """n replicas see the log `lag` events late, and have much out; the policy's slates get no more clicks.

    The largest room, how far it was overspent, and how many slates were out or unseen at most.
    """
    rng, floor = np.random.default_rng(seed), Floor(0.05)
    for page in range(1000):
        floor.observe(0.5, page % 2 == 0, rng.random() < (0.8 if page % 2 == 0 else 0.25))
    largest = room(floor.array, 0.05)
    log = []
    views = [Floor(0.05, array=floor.array.copy()) for _ in range(n)]
    seen, own = [0] * n, [[] for _ in range(n)]  # own: slates that the replica's view does not have
    unreported = [[] for _ in range(n)]
    worst = elsewhere = 0.0
    for _ in range(2500):
        i = int(rng.integers(n))
        while seen[i] < len(log) - (lag if i else 0):
            maker, share, by_policy = log[seen[i]]
            views[i].observe(share, by_policy, not by_policy and seen[i] % 4 == 0)
            seen[i] += 1
            if maker == i:
                own[i].remove(share)
        largest = max(largest, room(views[i].array, 0.05))
        share = views[i].share(sum(map(views[i].taken, own[i])), n)
        slate = (i, share, bool(rng.random() < share))
        own[i].append(share)
        unreported[i].append(slate)
        # The first replica reports at once; others by and by, or, without a lag, never.
        while unreported[i] and (i == 0 or (len(unreported[i]) > 300 and lag)):
            _, share, by_policy = unreported[i].pop(0)
            floor.observe(share, by_policy, not by_policy and len(log) % 4 == 0)
            log.append((i, share, by_policy))
        elsewhere = max(elsewhere, sum(map(len, own)))
    for slates in unreported:
        for _, share, by_policy in slates:
            floor.observe(share, by_policy, False)
            worst = max(worst, spent_beyond(floor))
    return largest, worst, elsewhere


@pytest.mark.parametrize(("n", "lag"), [(2, 0), (4, 0), (4, 200)])
def test_replicas_overspend_by_no_more_than_is_stated(n, lag):
    for seed in range(2):
        largest, worst, elsewhere = replicas_in_trouble(seed, n, lag=lag)
        assert worst > 0.05 * largest
        assert worst <= (1 - 1 / n) * largest + 1e-9
        assert worst <= 0.95 * elsewhere


def test_one_replica_of_n_may_spend_its_part_of_the_room():
    floor = Floor(0.1)
    for _ in range(8):
        floor.observe(0.0, False, False)  # 0.8 of a page
    assert floor.share() == pytest.approx(0.9)
    assert floor.share(replicas=4) == pytest.approx(0.3)
    assert floor.share(out=0.15, replicas=4) == pytest.approx(0.15)
    # No less than max_loss: it takes nothing of the room.
    assert floor.share(out=0.5, replicas=4) == pytest.approx(0.1)


def test_what_was_overspent_is_won_back():
    floor = Floor(0.1)
    floor.observe(0.5, True, False)
    assert floor.share() == 0.0
    for _ in range(4):
        floor.observe(floor.share(), False, False)
    assert floor.share() == pytest.approx(0.1)
    floor.observe(floor.share(), False, False)
    assert floor.share() == pytest.approx(0.1)


def test_a_report_says_what_is_promised_and_assumed_and_where_it_stands():
    rng, floor = np.random.default_rng(2), Floor(0.05)
    assert "No page was reported yet." in str(floor.report())
    for _ in range(5000):
        share = floor.share()
        by_policy = bool(rng.random() < share)
        floor.observe(share, by_policy, bool(rng.random() < (0.2 if by_policy else 0.15)))
    report = floor.report()
    assert report.pages == 5000 == report.policy_pages + report.baseline_pages
    assert report.baseline_rate_low < 0.15 < report.baseline_rate_high == floor.array[MOST]
    assert 0.95 <= report.at_least < 1.3
    # The room is what is between the promise and what is certain.
    assert report.room == pytest.approx((report.at_least - 0.95) * 5000)
    assert report.share == floor.share()
    for part in ("95% confidence", "at least 95% of what the baseline", "click rate is constant", "5,000"):
        assert part in str(report)


def test_confidence_is_between_0_and_1():
    assert refusal(Floor, 0.05, confidence=1).argument == "confidence"
