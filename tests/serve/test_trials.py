"""Trials in the service: which unit is shown which arm, what is counted, and that all of it survives."""

import json
import threading
from collections import Counter

import numpy as np
import pytest

from firstclick.errors import FirstclickError
from firstclick.serve import Item
from firstclick.serve.log.drawn import Assigned
from tests.faults.oracle import recounted
from tests.support import logs
from tests.support.clock import Clock
from tests.support.refusals import check_refused
from tests.support.serving import a_site
from tests.support.shop import LIST, K

HALF = {"policy": 0.5, "baseline": 0.5}


@pytest.fixture
def shop(open_shop):
    return open_shop(features=False, baseline=LIST, clock=Clock())


def is_holdout(slate):
    return slate.reasons[0] == "holdout"


def holdout(shop, n=400):
    """Whether each of these units is in the holdout."""
    return [is_holdout(shop.recommend(unit=f"u{number}")) for number in range(n)]


def counted(shop):
    """Pages, clicks and corrected pages of each arm."""
    arms = shop.trial_report().answer.arms
    return [arm.pages for arm in arms], [arm.clicks for arm in arms], [arm.corrected for arm in arms]


# Who is shown what


def test_a_unit_has_one_arm_and_shares_are_as_asked(shop):
    shop.start_trial()
    first = holdout(shop)
    assert first == holdout(shop)
    assert 15 <= sum(first) <= 70, "a tenth of 400"
    for unit in (shop.unit_in(1), 7, "7"):
        assert len({is_holdout(logs.answer(shop, 0, unit=unit)) for _ in range(9)}) == 1
    buckets = [event["bucket"] for event in logs.feedback_of(shop)[9:]]
    assert len(set(buckets)) == 1, "7 and '7' are one unit"


def test_the_holdout_is_shown_the_list_and_others_the_policy_as_the_guardrail_allows(shop):
    shop.set_baseline(LIST, 0.3)
    shop.start_trial(HALF)
    for _ in range(10):
        held = shop.recommend(unit=shop.unit_in(1))
        assert (held.items, held.reasons) == (LIST[:K], ("holdout",) * K)
    # Positions for which the list has no item are the policy's.
    held = shop.recommend(unit=shop.unit_in(1), candidates=["i0", "i2", "i5"], pinned={1: "i5"})
    assert held.reasons == ("holdout", "pinned", "policy")
    others = Counter(shop.recommend(unit=shop.unit_in(0)).reasons[0] for _ in range(200))
    assert set(others) == {"floor", "policy"}
    without_unit = Counter(shop.recommend().reasons[0] for _ in range(200))
    assert set(without_unit) == {"holdout", "floor", "policy"}
    assert 70 < without_unit["holdout"] < 130


def test_units_keep_their_arm_over_restart_import_and_a_change_of_shares(shop, open_shop, tmp_path):
    shop.start_trial({"policy": 0.7, "baseline": 0.3})
    first = holdout(shop)
    shop.snapshot()
    file = b"".join(shop.export())
    shop.restart()
    assert holdout(shop) == first
    shop.change_trial_shares(HALF)
    second = holdout(shop)
    assert all(now or not before for before, now in zip(first, second, strict=True))
    assert 40 <= sum(second) - sum(first) <= 120, "a fifth of 400"
    shop.put_items([Item("new")])
    check_refused(lambda: shop.set_baseline(["new", *LIST]), "baseline", "conflict")
    shop.roll_back(2)
    assert holdout(shop) == second
    other = open_shop(tmp_path / "other.db")
    other.service.import_model("twin", file)
    assert holdout(other.model("twin")) == first


def test_no_byte_of_the_store_contains_a_unit(shop, tmp_path):
    shop.set_no_click_after(60.0)
    shop.start_trial()
    for number in range(30):
        slate = shop.recommend(unit=f"MARKER-{number}", request_id=f"page {number}")
        assert "MARKER" not in slate.token
        if number % 2:
            shop.feedback(slate, None)
    shop.service.clock.move(61)
    shop.run_background()
    shop.snapshot()
    assert b"MARKER" not in b"".join(shop.export())
    assert shop.describe()["timed_out"] == 15
    shop.close()
    for file in tmp_path.iterdir():
        assert b"MARKER" not in file.read_bytes(), file


def test_a_repeated_request_is_one_page_of_one_unit(shop):
    shop.start_trial(HALF)
    one, two = shop.unit_in(0), shop.unit_in(1)
    for unit in ("", b"me"):
        check_refused(lambda unit=unit: shop.recommend(unit=unit, request_id="page"), "unit")
    first = shop.recommend(unit=one, request_id="page")
    assert shop.recommend(unit=one, request_id="page").token == first.token
    check_refused(lambda: shop.recommend(unit=two, request_id="page"), "request_id", "conflict")
    shop.feedback(first, 0)
    assert shop.feedback(first, 0).status == "duplicate"
    assert counted(shop)[0] == [1, 0]


# What is counted


def run_eventful_trial(shop, pages=240, seed=2):
    """Pages with and without a unit, other shares, lists and items, late pages, timeouts, a rollback."""
    rng = np.random.default_rng(seed)
    late = []
    shop.start_trial({"policy": 0.6, "baseline": 0.4}, last_pages=100)
    for page in range(pages):
        if page == 60:
            shop.change_trial_shares({"policy": 0.3, "baseline": 0.7})
        if page == 100:
            shop.set_explore(0.3)
            shop.set_baseline(LIST, 0.5)
        if page == 120:
            shop.roll_back(30)
        if page == 150:
            shop.set_no_click_after(3600.0)
        if page == 180:
            shop.change_trial_shares({"policy": 1.0, "baseline": 0.0})
        unit = f"u{rng.integers(40)}" if page % 5 else None
        slate = shop.recommend(unit=unit, k=int(rng.integers(1, K + 1)))
        click = None if rng.random() < 0.6 else 0
        if page % 7 == 3:
            late.append((slate, click))
        elif page % 7 != 5:
            shop.feedback(slate, click)
        if page == 200:
            shop.feedback_batch([*late, (slate, 99), ("nonsense", 0)])
    shop.service.clock.move(3601)
    shop.run_background()
    for click in (0, None):
        logs.answer(shop, click, unit="u7")


def test_the_counts_of_a_trial_equal_a_recount_of_the_log(shop, tmp_path):
    run_eventful_trial(shop)
    assert shop.describe()["timed_out"] > 5
    shop.set_no_click_after(0)
    wanted = recounted(logs.raw_events(shop))
    assert shop.trial_report().waiting == wanted.waiting > 0
    assert counted(shop)[:2] == (wanted.pages, wanted.clicks)
    assert sum(wanted.pages) > 100
    assert min(wanted.pages) > 20
    assert shop.trial_report().answer.periods == 3
    choices = [page["choice"] for page in logs.feedback_of(shop) if page["arm"] == 0]
    decided = shop.trial_report().decided["policy"]
    assert decided == pytest.approx(1 - choices.count("floor") / len(choices))
    logs.check_replays(shop, 31)
    assert logs.reproduce(shop).equal == len(logs.feedback_of(shop))
    # Without its first events too.
    digest = shop.digest()
    logs.move_to_archive(shop, 200, tmp_path / "old")
    assert {logs.replay(shop), logs.replay(shop, use_snapshots=True)} == {digest}
    assert logs.audit_of_store(shop).equal
    shop.restart()
    assert counted(shop)[:2] == (wanted.pages, wanted.clicks)


def test_a_page_counts_when_its_time_has_passed_and_corrections_are_separate(shop):
    shop.set_no_click_after(1.0)
    shop.start_trial(HALF)
    logs.answer(shop, 0, unit=shop.unit_in(0))
    late = shop.recommend(unit=shop.unit_in(1))
    assert shop.trial_report().waiting == 1
    assert counted(shop)[0] == [0, 0]
    shop.service.clock.move(1.01)
    shop.run_background()
    assert shop.trial_report().waiting == 0
    assert counted(shop) == ([1, 1], [1, 0], [0, 0])
    shop.feedback(late, 0)
    assert counted(shop) == ([1, 1], [1, 0], [0, 1]), "it counted once, without a click"


def test_pages_of_other_trials_and_arms_are_not_counted(shop):
    """As slates of a history that the store has lost."""
    shop.start_trial(HALF)
    logs.answer(shop, 0, unit="me")
    (page,) = logs.feedback_of(shop)
    trial, arm, bucket = page["trial"], page["arm"], page["bucket"]
    launch = shop.internals.launch
    before = counted(shop)
    for other in (
        Assigned(trial ^ 1, 0, arm, bucket), Assigned(trial, 1, arm, bucket),
        Assigned(trial, 0, 1 - arm, bucket), Assigned(trial, 0, 7, None),
    ):  # fmt: skip
        launch.running.count(other, True, 0, 1)
    assert counted(shop) == before
    launch.running.count(Assigned(trial, 0, arm, bucket), True, 0, 1)
    assert sum(counted(shop)[0]) == 2


# Starting, changing, stopping


def test_shares_change_99_times_and_more_never_break_the_model(shop):
    shop.start_trial()
    for number in range(99):
        share = 0.5 if number % 2 else 0.4
        shop.change_trial_shares({"policy": share, "baseline": 1 - share})
    check_refused(lambda: shop.change_trial_shares({"policy": 0.1, "baseline": 0.9}), "arms")
    # Another process may not know yet.
    logs.append_unchecked(shop, "TrialShares", shop.internals.launch.running.id, [0.0, 1.0])
    assert logs.answer(shop, 0, unit="u").items
    assert 100 < sum(holdout(shop)) < 300, "the last shares count: 0.4 and 0.6"


def test_a_stopped_trial_shows_what_was_asked_and_counts_late_pages(shop):
    shop.start_trial(HALF)
    late = shop.recommend(unit=shop.unit_in(1))
    shop.stop_trial(show="baseline")
    slate = shop.recommend()
    assert (slate.items, slate.reasons) == (LIST[:K], ("baseline",) * K)
    assert shop.recommend(candidates=["i0", "i2", "i5"]).reasons == ("baseline", "policy", "policy")
    assert shop.recommend(candidates=["i0", "i1", "i5"]).reasons == ("policy",) * K
    shop.feedback(late, 0)
    report = shop.trial_report()
    assert (report.running, report.shown_since, report.stopped_because) == (False, "baseline", "asked")
    assert counted(shop)[1] == [0, 1]
    check_refused(lambda: shop.stop_trial(show="baseline"), "model", "unknown")
    shop.stop_trial(show="policy")
    assert {shop.recommend().reasons[0] for _ in range(200)} == {"floor", "policy"}
    shop.start_trial(HALF)
    assert counted(shop)[1] == [0, 0]


def test_a_list_that_another_process_removes_leaves_the_policy(shop):
    shop.start_trial(HALF, stop_if_worse=True)
    unit = shop.unit_in(1)
    logs.append_unchecked(shop, "BaselineSet", [], 0.05)
    slate = logs.answer(shop, 0, unit=unit)
    assert slate.reasons == ("policy",) * K
    assert counted(shop)[0] == [0, 0], "it belongs to no arm"
    shop.run_background()


# Replicas


@pytest.fixture
def two(postgresql_url, open_shop):
    """Two processes on one store; nothing runs in the background."""
    clock = Clock()
    return [
        open_shop(postgresql_url, features=False, baseline=LIST, max_loss=1.0, clock=clock) for _ in range(2)
    ]


def follow(shops):
    for shop in shops:
        shop.run_background()
    assert len({shop.digest() for shop in shops}) == 1


def test_replicas_give_a_unit_one_arm_and_count_alike(two):
    one, other = two
    one.start_trial(HALF)
    follow(two)
    assert holdout(one, 100) == holdout(other, 100)
    rng = np.random.default_rng(1)
    for page in range(60):
        shows, learns = two[page % 2], two[rng.integers(2)]
        slate = shows.recommend(unit=f"u{rng.integers(20)}")
        learns.feedback(slate, None if rng.random() < 0.5 else 0)
        if page == 30:
            other.change_trial_shares({"policy": 0.2, "baseline": 0.8})
    follow(two)
    pages = recounted(logs.raw_events(one)).pages
    assert sum(pages) == 60
    assert counted(one) == counted(other)
    assert counted(one)[0] == pages


def test_replicas_start_one_trial_and_stop_it_by_one_event(two):
    one, other = two
    one.start_trial(HALF, stop_if_worse=True)
    # The other has not followed yet, and starts one too.
    with pytest.raises(FirstclickError, match="started at the same time"):
        other.start_trial()
    follow(two)
    slates = [one.recommend(unit=f"u{page}") for page in range(200)]
    pages = [(slate, 0 if page % 9 == 0 or is_holdout(slate) else None) for page, slate in enumerate(slates)]
    # Both know them all before either has compared the arms.
    one.feedback_batch(pages[:-1])
    other.feedback_batch(pages[-1:])
    threads = [threading.Thread(target=shop.service.stop_if_worse, args=[shop.internals]) for shop in two * 3]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    follow(two)
    assert [event["kind"] for event in one.events()].count("trial-stopped") == 1
    for shop in two:
        assert shop.recommend().reasons == ("baseline",) * K
        assert shop.trial_report().stopped_because == "worse"


# HTTP


def test_a_trial_over_http_keeps_its_key(tmp_path):
    with a_site(tmp_path) as site:
        path = "/v1/models/shop/trial"
        for where in (path, "/v1/models/none/trial"):
            assert site.ask("GET", where).status_code == 404
        site.ask("PUT", "/v1/models/shop/baseline", {"items": ["tea", 7, "cake"]})
        for body in ({"arms": {"policy": "0.9", "baseline": 0.1}}, {"arms": ["policy"]}, {"shares": {}}):
            assert site.ask("POST", path, body).status_code == 422
        assert site.ask("POST", path, {"arms": HALF}).status_code == 200
        for unit, code in (("x" * 256, 200), ([], 422), ("x" * 10_000_000, 413)):
            answered = site.ask("POST", "/v1/models/shop/recommend", {"unit": unit})
            assert (answered.status_code, len(answered.text) < 2000) == (code, True)
        report = site.ask("GET", path).json()
        assert (report["running"], report["model"]) == (True, "shop")
        assert "key" not in json.dumps(report), "with the key, the bucket of a unit could be computed"
