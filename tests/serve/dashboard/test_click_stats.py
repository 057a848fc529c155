"""Slates and clicks over time."""

import json
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firstclick.serve.model.click_stats import DAY, TIERS, ClickStats

BEGIN = 1_700_000_000.0


def history(times, clicks, chunk=10_000):
    made = ClickStats()
    for start in range(0, len(times), chunk):
        made.add(np.array(times[start : start + chunk]), np.array(clicks[start : start + chunk], np.int64))
    return made


@given(
    events=st.lists(st.tuples(st.floats(0, 3 * DAY), st.integers(-1, 4)), min_size=1, max_size=60),
    chunk=st.integers(1, 20),
)
def test_counts_do_not_depend_on_how_events_come_together(events, chunk):
    times, clicks = [BEGIN + time for time, _ in events], [click for _, click in events]
    whole = history(times, clicks)
    assert history(times, clicks, chunk).as_json() == whole.as_json()
    with pytest.MonkeyPatch.context() as patch:
        # So few buckets that they are dropped all the time.
        patch.setattr("firstclick.serve.model.click_stats.TIERS", ((1, 4), (60, 3), (3600, 5)))
        assert history(times, clicks, chunk).as_json() == history(times, clicks).as_json()
    assert (whole.slates, whole.clicks) == (len(events), sum(click >= 0 for click in clicks))
    assert whole.positions == [clicks.count(p) for p in range(max(max(clicks) + 1, 0))]
    first_day = [c for t, c in zip(times, clicks, strict=True) if t < times[0] + DAY]
    assert (whole.day_slates, whole.day_clicks) == (len(first_day), sum(c >= 0 for c in first_day))
    assert ClickStats.from_json(json.loads(json.dumps(whole.as_json()))).as_json() == whole.as_json()


@pytest.mark.parametrize("age", [5, 300, 899, 4000, 86_000, 400_000, 3e7, 2e8])
def test_buckets_hold_every_slate_of_their_time_and_are_not_many(age):
    times = np.sort(BEGIN + np.random.default_rng(1).uniform(0, age, 5000))
    times[0] = BEGIN
    made = history(times.tolist(), [0, -1] * 2500)
    buckets = made.buckets(BEGIN + age, 240)
    assert 1 <= len(buckets) <= 241
    width = buckets[0].width
    assert all(after.start - one.start == width for one, after in pairwise(buckets))
    kept = times >= buckets[0].start
    assert sum(bucket.slates for bucket in buckets) == kept.sum()
    if age < TIERS[-1][0] * TIERS[-1][1]:
        assert sum(bucket.clicks for bucket in buckets) == 2500


def test_memory_is_bounded_and_a_jumping_clock_breaks_nothing():
    made = ClickStats()
    for i in range(5000):
        made.add(np.array([BEGIN + 7 * i]), np.array([0]))
    made.add(np.array([0.0, 1e12, BEGIN]), np.array([0, -1, 2]))
    assert all(len(tier) <= 2 * kept + 3 for (_, kept), tier in zip(TIERS, made.tiers, strict=True))
    assert made.slates == 5003
    for now in (0.0, BEGIN, BEGIN + 35_000, 1e12):
        assert len(made.buckets(now, 240)) <= 241
    assert ClickStats().buckets(BEGIN, 240) == []
