"""The data of the dashboard: what is shown of a model, its clicks over time, its list and its trial."""

import json
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firstclick.policies.cascade_lin_ts import CascadeLinTS
from firstclick.serve import ClickReport
from firstclick.serve.model.click_stats import DAY, TIERS, ClickStats
from tests.support.clock import Clock
from tests.support.seam import BY_HAND, Model
from tests.support.serving import ITEMS, a_site

LIST = ["cake", 7, "tea", "espresso"]


class ShopViews(Model):
    """The shop, with its view over HTTP."""

    def __init__(self, site, clock):
        super().__init__(site.service, "shop")
        self.site, self.clock = site, clock

    def view(self, name="shop"):
        answer = self.site.ask("GET", f"/v1/models/{name}/view")
        assert answer.status_code == 200
        return answer.json()

    def visit(self, n, *, click=None, units=0):
        """So many slates, each with this outcome."""
        slates = [self.recommend(unit=number % units if units else None) for number in range(n)]
        self.feedback_batch([(slate, click) for slate in slates])

    def deciders(self):
        return {decider["by"]: decider["slates"] for decider in self.view()["deciders"]}


def fields(facts, *names):
    return tuple(facts[name] for name in names)


@pytest.fixture
def shop(tmp_path):
    clock = Clock()
    with a_site(tmp_path, of_service={"clock": clock, "tuning": BY_HAND}) as site:
        yield ShopViews(site, clock)


def test_the_view_has_the_facts_of_the_dashboard(shop):
    empty = shop.view()
    nothing_yet = ("since", "start", "lately", "exploring", "against_list", "trial")
    assert fields(empty, *nothing_yet) == (None,) * 6
    assert fields(empty, "clickthrough", "recent", "deciders", "positions") == ([], [], [], [0, 0, 0])
    for number in range(10):
        slate = shop.site.recommend()
        shop.site.feedback(slate["token"], click=1 if number < 9 else None)
    shop.site.feedback("forged", click=0)
    view = shop.view()
    assert set(view) == {
        "model", "policy", "k", "seq", "now", "items", "since", "totals", "clickthrough", "start", "lately",
        "positions", "best", "recent", "estimates", "exploring", "feedback", "process", "replicas",
        "outcomes", "deciders", "against_list", "trial",
    }  # fmt: skip
    assert view["totals"] == {"slates": 10, "clicks": 9}
    assert view["items"] == {"shown": 4, "withdrawn": 0, "unavailable": 0}
    assert view["positions"] == [0, 9, 0]
    assert sum(span["slates"] for span in view["clickthrough"]) == 10
    assert [slate["click"] for slate in view["recent"]] == [None] + [1] * 7
    assert set(view["recent"][0]["items"]) <= {"Espresso", "Tea", "Seven", "<b>Cake</b>"}
    assert view["feedback"].keys() == {
        "accepted", "duplicate", "conflict", "unknown", "expired", "malformed", "too-large", "overloaded",
        "unavailable", "corrected", "late",
    }  # fmt: skip
    assert (view["feedback"]["accepted"], view["feedback"]["unknown"]) == (10, 1)
    means = [estimate["mean"] for estimate in view["estimates"]]
    assert len(means) == 4
    assert all(before >= after for before, after in pairwise(means))
    ids = [estimate["id"] for estimate in view["estimates"]]
    assert [item["id"] for item in view["best"]["items"]] == ids[:3]
    assert view["exploring"]["of"] == 3  # of ten slates the first, the fifth and the ninth
    assert fields(view["process"], "recommended", "store", "durability") == (10, "sqlite", "full")
    assert [replica["self"] for replica in view["replicas"]] == [True]
    # A withdrawn item leaves at once.
    shop.withdraw_items(["cake"])
    view = shop.view()
    assert "cake" not in [estimate["id"] for estimate in view["estimates"]]
    assert view["items"] == {"shown": 3, "withdrawn": 1, "unavailable": 0}


def test_estimates_that_do_not_give_the_best_slate_show_none(shop, monkeypatch):
    monkeypatch.setattr(CascadeLinTS, "best_by_estimates", False)
    shop.visit(1)
    view = shop.view()
    assert fields(view, "best", "exploring") == (None, None)
    assert all(item["mean"] is not None for item in view["estimates"])
    shop.internals.wants_context = True
    assert all(item["mean"] is None for item in shop.view()["estimates"])


def test_a_policy_without_estimates_has_no_best_slate_and_no_numbers(shop):
    shop.service.create("chance", policy="random", k=2, items=[ITEMS[at]._replace(id=at) for at in range(3)])
    view = shop.view("chance")
    assert view["best"] == {"items": []}
    estimates = [(item["id"], item["mean"], item["deviation"]) for item in view["estimates"]]
    assert estimates == [(0, None, None), (1, None, None), (2, None, None)]


def test_the_start_is_compared_with_lately_by_slates_and_later_by_days(shop):
    def start_and_lately():
        view = shop.view()
        return [part and tuple(part.values()) for part in (view["start"], view["lately"])]

    shop.visit(199, click=0)
    assert start_and_lately() == [None, None]
    shop.clock.move(5)
    shop.visit(50)
    first = ("first 200 slates", 200, 199)
    assert start_and_lately() == [first, None]
    shop.clock.move(5)
    shop.visit(70)
    assert start_and_lately() == [first, ("last 120 slates", 120, 0)]
    # Three quiet days later there is nothing of the last day to compare with.
    shop.clock.move(3 * DAY)
    assert start_and_lately()[0] == first
    shop.visit(200, click=0)
    assert start_and_lately() == [("first day", 319, 199), ("last 24 hours", 200, 200)]


def test_the_slates_of_the_policy_and_of_the_list_are_counted_separately(shop):
    shop.visit(5, click=1)
    shop.set_baseline(LIST, max_loss=0.25)
    before = shop.view()["against_list"]
    assert (before["policy_slates"], before["list_slates"], before["at_least"]) == (0, 0, 1.0)
    for number in range(120):
        slate = shop.recommend()
        shop.feedback(slate, 0 if slate.reasons[0] == "policy" and number % 2 else None)
    view, facts = shop.view(), shop.site.ask("GET", "/v1/models/shop/baseline").json()
    beside = view["against_list"]
    assert (beside["items"], beside["listed"]) == (["<b>Cake</b>", "Seven", "Tea"], 4)
    assert beside["policy_slates"] + beside["list_slates"] == 120
    assert beside["policy_slates"] == facts["policy_pages"] > 10
    assert (beside["policy_clicks"], beside["list_clicks"]) == (facts["policy_clicks"], 0)
    assert beside["rate_low"] <= 0 < beside["rate_high"] < 1
    assert fields(beside, "max_loss", "confidence", "at_least") == (0.25, 0.95, facts["at_least"])
    assert "click rate is constant" in beside["assumed"]
    # The five slates before the list came are not counted.
    assert shop.deciders() == {"policy": beside["policy_slates"], "floor": beside["list_slates"]}
    # Another list, and all of it begins again.
    shop.set_baseline(LIST[::-1], max_loss=0.25)
    assert shop.deciders() == {}


def test_the_deciders_of_the_last_200_slates_are_shown(shop):
    shop.set_baseline(LIST, max_loss=1.0)
    shop.start_trial({"policy": 0.7, "baseline": 0.3})
    shop.visit(60, units=60)
    by = shop.deciders()
    assert by.keys() == {"policy", "holdout"}
    assert by["policy"] > by["holdout"] > 5
    shop.stop_trial(show="baseline")
    exploring = shop.view()["exploring"]
    shop.visit(150, units=60)
    view = shop.view()
    trial = fields(view["trial"], "running", "shown_since", "stopped_because")
    assert trial == (False, "baseline", "asked")
    # Of the first 60 slates, ten are forgotten.
    assert sum(shop.deciders().values()) == 200
    assert list(shop.deciders().items())[-1] == ("baseline", 150)
    assert {tuple(slate["reasons"]) for slate in view["recent"]} == {("baseline",) * 3}
    # Slates that the policy did not decide are not counted as exploring.
    assert view["exploring"] == exploring


def test_an_arm_of_another_model_decides_under_its_own_name(shop):
    shop.service.create("other", policy="cascade-lin-ts", k=3, items=ITEMS, seed=2)
    shop.start_trial({"policy": 0.5, "model:other": 0.5})
    shop.visit(40, units=40)
    view = shop.view()
    arms = ["policy", "model:other"]
    assert list(shop.deciders()) == arms
    assert {why for slate in view["recent"] for why in slate["reasons"]} == set(arms)
    assert [arm["name"] for arm in view["trial"]["answer"]["arms"]] == arms


def test_a_slate_has_the_reason_of_each_item(shop):
    shop.set_baseline(LIST, max_loss=0.05)
    shop.feedback_batch([ClickReport(shop.recommend(pinned={1: "espresso"}), 0)])
    reasons = shop.view()["recent"][0]["reasons"]
    assert reasons[1] == "pinned"
    assert set(reasons[::2]) <= {"policy", "floor"}
    # Damaged ones have none.
    recent = shop.internals.recent
    for fields in (b"", b"\x01\xff"):
        received, feedback = recent[-1]
        recent[-1] = received, feedback._replace(fields=fields)
        assert shop.view()["recent"][0]["reasons"] == []


# Slates and clicks over time

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
