"""Trials in the service: which unit is shown which arm, what is counted and learned, and what survives."""

import json
import threading
from collections import Counter

import numpy as np
import pytest

from firstclick.errors import FirstclickError
from firstclick.policies.cascade_ts import CascadeTS
from firstclick.serve import Item, trial_arms
from firstclick.serve.log.drawn import Assigned
from tests.faults.oracle import recounted
from tests.support.clock import Clock
from tests.support.logs import (
    answer,
    append_unchecked,
    audit_of_store,
    check_replays,
    check_taught,
    feedback_of,
    move_to_archive,
    raw_events,
    replay,
    reproduce,
)
from tests.support.refusals import check_refused
from tests.support.serving import a_site
from tests.support.shop import LIST, K, items

HALF = {"policy": 0.5, "baseline": 0.5}


@pytest.fixture
def shop(open_shop):
    return open_shop(features=False, baseline=LIST, max_loss=1.0, clock=Clock())


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
        assert len({is_holdout(answer(shop, 0, unit=unit)) for _ in range(9)}) == 1
    buckets = [event["bucket"] for event in feedback_of(shop)[9:]]
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
        answer(shop, click, unit="u7")


def test_the_counts_of_a_trial_equal_a_recount_of_the_log(shop, tmp_path):
    run_eventful_trial(shop)
    assert shop.describe()["timed_out"] > 5
    shop.set_no_click_after(0)
    wanted = recounted(raw_events(shop))
    assert shop.trial_report().waiting == wanted.waiting > 0
    assert counted(shop)[:2] == (wanted.pages, wanted.clicks)
    assert sum(wanted.pages) > 100
    assert min(wanted.pages) > 20
    assert shop.trial_report().answer.periods == 3
    choices = [page["choice"] for page in feedback_of(shop) if page["arm"] == 0]
    decided = shop.trial_report().decided["policy"]
    assert decided == pytest.approx(1 - choices.count("floor") / len(choices))
    check_replays(shop, 31)
    assert reproduce(shop).equal == len(feedback_of(shop))
    # Without its first events too.
    digest = shop.digest()
    move_to_archive(shop, 200, tmp_path / "old")
    assert {replay(shop), replay(shop, use_snapshots=True)} == {digest}
    assert audit_of_store(shop).equal
    shop.restart()
    assert counted(shop)[:2] == (wanted.pages, wanted.clicks)


def test_a_page_counts_when_its_time_has_passed_and_corrections_are_separate(shop):
    shop.set_no_click_after(1.0)
    shop.start_trial(HALF)
    answer(shop, 0, unit=shop.unit_in(0))
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
    answer(shop, 0, unit="me")
    (page,) = feedback_of(shop)
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
    append_unchecked(shop, "TrialShares", shop.internals.launch.running.id, [0.0, 1.0])
    assert answer(shop, 0, unit="u").items
    assert 100 < sum(holdout(shop)) < 300, "the last shares count: 0.4 and 0.6"


def test_a_stopped_trial_shows_what_was_asked_and_counts_late_pages(shop):
    shop.set_baseline(LIST, 0.3)
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
    append_unchecked(shop, "BaselineSet", [], 0.05)
    slate = answer(shop, 0, unit=unit)
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
    pages = recounted(raw_events(one)).pages
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
        assert site.ask("GET", path).status_code == 404
        site.ask("PUT", "/v1/models/shop/baseline", {"items": ["tea", 7, "cake"]})
        assert site.ask("POST", path, {"arms": HALF}).status_code == 200
        assert site.ask("POST", "/v1/models/shop/recommend", {"unit": "x" * 256}).status_code == 200
        report = site.ask("GET", path).json()
        assert (report["running"], report["model"]) == (True, "shop")
        assert "key" not in json.dumps(report), "with the key, the bucket of a unit could be computed"


# Arms that other models decide

THIRDS = {"policy": 0.4, "model:rival": 0.4, "baseline": 0.2}
POLICY, RIVAL, HELD = range(3)
CREATED = {"policy": "cascade-ts", "k": K, "seed": 8}


def add_rival(shop, name="rival", **more):
    """Another model with the same items in another order of rows."""
    shop.service.create(name, items=items(features=False)[::-1], **CREATED | more)
    return shop.model(name)


@pytest.fixture
def rival(shop):
    return add_rival(shop)


def run_pages(shop, n=60, seed=1):
    """Pages of all arms, in batches of one and of several."""
    rng, waiting = np.random.default_rng(seed), []
    for page in range(n):
        unit = shop.unit_in(int(rng.integers(3))) if rng.random() < 0.8 else None
        waiting.append((shop.recommend(unit=unit), None if rng.random() < 0.5 else 0))
        if rng.random() < 0.5 or page == n - 1:
            assert {outcome.status for outcome in shop.feedback_batch(waiting)} == {"accepted"}
            waiting = []


def pages_of(shop):
    return [arm.pages for arm in shop.trial_report().answer.arms]


@pytest.mark.parametrize("learn_from", ["own", "all"])
def test_each_model_learns_the_slates_it_should_and_no_other(shop, rival, learn_from):
    shop.set_baseline(LIST, 0.5)  # so that the guardrail shows the list in all arms
    shop.start_trial(THIRDS, learn_from=learn_from)
    run_pages(shop, 120)
    lessons, by_arm = ([], []), [0, 0, 0]
    for event in feedback_of(shop):
        by_arm[event["arm"]] += 1
        for arm in (POLICY, RIVAL):
            if learn_from == "all" or event["choice"] != "policy" or event["arm"] == arm:
                lessons[arm].append((event["items"], event["click"]))
    assert min(by_arm) > 15
    for model, taught in zip((shop, rival), lessons, strict=True):
        check_taught(model, taught)
        assert model.audit().equal
    assert pages_of(shop) == recounted(raw_events(shop)).pages == by_arm
    assert len(feedback_of(rival)) == len(lessons[RIVAL])


def test_slates_of_an_arm_are_reproduced_from_the_log_of_its_model(shop, rival):
    rival.set_explore(0.3)
    shop.start_trial(THIRDS)
    run_pages(shop)
    slates = feedback_of(shop)
    by_rival = sum(event["arm"] == RIVAL and event["choice"] == "policy" for event in slates)
    assert by_rival > 5
    audit = reproduce(shop)
    assert [*audit.not_evaluable.values()] == [by_rival]
    assert audit.equal == len(slates) - by_rival
    audit = reproduce(rival)
    assert (audit.equal, audit.differing) == (by_rival, 0)


def test_feedback_is_in_the_logs_of_both_models_once(shop, rival):
    shop.start_trial(THIRDS)
    slate = answer(shop, 1, unit=shop.unit_in(RIVAL), request_id="page 7")
    (event,), (copy,) = feedback_of(shop), feedback_of(rival)
    assert copy["nonce"] != event["nonce"]
    assert copy["items"] == event["items"] == slate.items
    assert shop.feedback(slate, 1).status == "duplicate"
    assert len(feedback_of(rival)) == 1
    # The same id at the other model is another request.
    answer(rival, 0, request_id="page 7")
    assert [event["click"] for event in feedback_of(rival)] == [1, 0]


def test_an_arm_takes_the_requests_that_its_trial_takes(shop):
    rival = add_rival(shop, k=6)
    shop.put_list("few", ["i1", "i2", "i4", "i5"])
    shop.start_trial(THIRDS)
    unit = shop.unit_in(RIVAL)
    ask = lambda **more: answer(shop, 0, unit=unit, **more)  # noqa: E731
    assert {*ask(candidates="few").items} <= {"i1", "i2", "i4", "i5"}
    assert "i1" not in ask(candidates=["i1", "i2", "i4", "i5"], exclude=["i1"]).items
    assert ask(pinned={0: "i9"}).items[0] == "i9"
    assert len(ask(k=np.int64(2)).items) == 2
    assert ask(explain=True).without_exploring is not None
    assert len(feedback_of(rival)) == 5
    for k in (4, 0, "2"):
        check_refused(lambda k=k: ask(k=k), "k")


# Late, and corrected


def test_timeouts_and_late_clicks_reach_both_models(shop, rival):
    shop.set_no_click_after(60.0)
    shop.start_trial(THIRDS)
    slates = [shop.recommend(unit=shop.unit_in(arm)) for arm in (POLICY, RIVAL, HELD)]
    shop.service.clock.move(61)
    shop.run_background()
    assert shop.describe()["timed_out"] == 3
    copies = feedback_of(rival)
    assert len(copies) == 2, "its own, and that of the list"
    assert all("timed_out" in copy for copy in copies)
    for slate in slates:
        assert shop.feedback(slate, 1).status == "corrected"
    assert [arm.corrected for arm in shop.trial_report().answer.arms] == [1, 1, 1]
    rival.put_list("x", ["i1"])  # What was written before it is learned by now.
    clicked = [(slate.items, 1) for slate in slates]
    check_taught(shop, [clicked[POLICY], clicked[HELD]])
    check_taught(rival, [clicked[RIVAL], clicked[HELD]])
    assert rival.describe()["corrected"] == 2


@pytest.mark.parametrize("learn_from", ["own", "all"])
def test_a_slate_of_an_earlier_trial_is_corrected_as_it_was_learned(shop, rival, learn_from):
    shop.set_no_click_after(60.0)
    shop.start_trial(THIRDS, learn_from=learn_from)
    slate = shop.recommend(unit=shop.unit_in(RIVAL))
    shop.service.clock.move(61)
    shop.run_background()
    shop.stop_trial()
    shop.start_trial(learn_from="all" if learn_from == "own" else "own")
    assert shop.feedback(slate, 0).status == "corrected"
    check_taught(shop, [(slate.items, 0)] if learn_from == "all" else [])
    digest = shop.digest()
    shop.snapshot()
    assert shop.audit().equal
    shop.restart()
    assert shop.digest() == digest


# Models that are deleted


def test_an_arm_cannot_be_deleted_while_its_trial_runs(shop, rival):
    shop.start_trial(THIRDS)
    check_refused(rival.delete, "model", "conflict")
    late = shop.recommend(unit=shop.unit_in(RIVAL))
    shop.stop_trial()
    rival.delete()
    assert shop.feedback(late, 0).status == "accepted"
    assert shop.trial_report().answer.arms[RIVAL].clicks == 1


def test_an_arm_that_another_process_deletes_takes_nothing_down(shop, rival):
    third = add_rival(shop, "third")
    arms = {"policy": 0.3, "model:rival": 0.3, "model:third": 0.2, "baseline": 0.2}
    shop.start_trial(arms, learn_from="all")
    units = [shop.unit_in(arm) for arm in range(4)]
    slates = [shop.recommend(unit=unit) for unit in units for _ in range(2)]
    shop.service.store.delete(shop.model("rival").internals.id)
    for n_pages, some in ((4, slates[::2]), (8, slates[1::2])):
        outcomes = shop.feedback_batch([(slate, 0) for slate in some])
        assert [outcome.status for outcome in outcomes] == ["accepted"] * 4
        assert len(feedback_of(third)) == n_pages, "an arm that is there still learns"
        shop.run_background()
        assert "rival" not in shop.service.names()
    # Its units are shown this model's slates from now on, which belong to no arm.
    assert answer(shop, 0, unit=units[1]).reasons == ("policy",) * K
    assert pages_of(shop) == [2, 2, 2, 2]
    # Another model of this name is not the arm.
    new = add_rival(shop, seed=9)
    assert answer(shop, 0, unit=units[1]).reasons == ("policy",) * K
    assert feedback_of(new) == []
    assert shop.audit().equal


def test_changes_of_items_reach_the_arms(shop, rival):
    shop.start_trial(THIRDS)
    unit = shop.unit_in(RIVAL)
    shop.put_items([Item("new")])
    shop.withdraw_items(["i5"])
    shop.set_available(off=["i4"])
    shown = {id for id, item in rival.items().items() if item.available}
    assert "new" in shown
    assert not {"i5", "i4"} & shown
    # An arm whose items have drifted apart is left out where it has none.
    rival.withdraw_items(["i0", "i1", "i2", 7, "i4", "i6", "i7", "i8", "i9", "i10"])
    shop.withdraw_items(["i11", "Grüße"])
    assert [*rival.items()] == ["new"]
    assert answer(shop, 0, unit=unit).items == ["new"]
    rival.put_items([Item("its own")])
    rival.withdraw_items(["new"])
    assert "its own" not in answer(shop, 0, unit=unit).items


def test_an_arm_with_share_0_gets_no_pages_until_it_has_a_share(shop, rival):
    shop.start_trial({"policy": 0.5, "model:rival": 0.0, "baseline": 0.5})
    for number in range(60):
        answer(shop, 0, unit=f"u{number}" if number % 2 else None)
    assert pages_of(shop)[1] == 0
    shop.trial_report().text()
    shop.change_trial_shares({"policy": 0.0, "model:rival": 1.0, "baseline": 0.0})
    for number in range(20):
        answer(shop, 0, unit=f"u{number}")
    assert pages_of(shop)[1] == 20
    shop.trial_report().text()


# Which models may be an arm


def test_models_that_cannot_be_an_arm_are_rejected(shop, rival, monkeypatch):
    add_rival(shop, "short", k=2)
    shop.service.create("fewer", items=items(features=False)[1:], **CREATED)

    def check_no_arm(name, word):
        with pytest.raises(FirstclickError, match=word) as caught:
            shop.start_trial({"policy": 0.5, f"model:{name}": 0.5})
        assert caught.value.argument == "arms"

    check_no_arm("short", "k=3 or more")
    check_no_arm("fewer", "'i0'")
    monkeypatch.setattr(CascadeTS, "learns_from_others", False)
    check_no_arm("rival", "learns only from slates that it has arranged itself")
    monkeypatch.undo()
    rival.set_baseline(LIST)
    rival.start_trial()
    check_no_arm("rival", "trial")
    rival.stop_trial()
    shop.start_trial(THIRDS)
    check_refused(rival.start_trial, "model", "conflict")


def test_an_arm_with_another_policy_is_a_new_fork(shop):
    for _ in range(10):
        answer(shop, 0)
    arms = {"policy": 0.5, "policy:cascade-ts": 0.5}
    shop.start_trial(arms)
    assert shop.service.names() == ["shop", "shop.cascade-ts"]
    fork = shop.model("shop.cascade-ts")
    check_taught(fork, [(event["items"], 0) for event in feedback_of(shop)])
    assert answer(shop, 0, unit=shop.unit_in(1)).items
    assert fork.describe()["slates"] == 11
    shop.stop_trial()
    check_refused(lambda: shop.start_trial(arms), "arms", "conflict")
    shop.start_trial({"policy": 0.5, "model:shop.cascade-ts": 0.5})


def test_a_fork_of_a_model_with_a_trial_has_none_and_learns_from_all_slates(shop, rival):
    shop.start_trial(THIRDS)
    run_pages(shop, 40)
    fork = shop.fork("cascade-ts", "made")
    check_refused(fork.trial_report, "model", "unknown")
    check_taught(fork, [(event["items"], event["click"]) for event in feedback_of(shop)])
    assert fork.audit().equal
    assert answer(fork, 0, unit="u").items


def test_models_and_their_trial_go_to_another_store(shop, rival, open_shop, tmp_path):
    shop.start_trial(THIRDS)
    run_pages(shop, 30)
    unit = shop.unit_in(RIVAL)
    other = open_shop(tmp_path / "other.db", name="other")
    for name, model in (("shop", shop), ("rival", rival), ("alone", shop)):
        other.service.import_model(name, b"".join(model.export()))
        assert other.model(name).digest() == model.digest()
    before = len(feedback_of(other.model("rival")))
    # Under another name it is not the arm's model: the copy of its feedback is the same event.
    for name, n in (("shop", 1), ("alone", 2)):
        answer(other.model(name), 0, unit=unit)
        assert len(feedback_of(other.model("rival"))) == before + n


def test_two_trials_that_are_arms_of_each_other_do_not_block(shop, rival, monkeypatch):
    """As two processes could start them; each thread asks for a slate while it holds a model's lock."""
    monkeypatch.setattr(trial_arms, "PATIENCE", 0.05)
    rival.set_baseline(LIST, 1.0)
    shop.start_trial(THIRDS)
    launch = shop.internals.launch
    running = launch.trial
    shop.stop_trial()
    rival.start_trial({"policy": 0.1, "model:shop": 0.9})
    launch.trial.stopped = None
    assert launch.running is running
    done = []

    def ask(name):
        for number in range(40):
            with shop.model(name).internals.lock:
                done.append(shop.model(name).recommend(unit=f"u{number}"))

    threads = [threading.Thread(target=ask, args=[name], daemon=True) for name in ("shop", "rival")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(done) == 80
    shop.put_items([Item("new")])  # which changes the items of its arms, and they of none
    assert "new" in rival.items()


# Replicas


def test_an_arm_learns_from_feedback_at_a_process_that_has_not_followed(postgresql_url, open_shop):
    options = {"features": False, "baseline": LIST, "max_loss": 1.0, "clock": Clock()}
    one = open_shop(postgresql_url, **options)
    add_rival(one)
    late = open_shop(postgresql_url, **options)
    one.start_trial(THIRDS)
    slates = [one.recommend(unit=one.unit_in(arm)) for arm in (POLICY, RIVAL, HELD)]
    check_refused(late.trial_report, "model", "unknown")
    for slate in slates:
        assert late.feedback(slate, 0).status == "accepted"
    one.run_background()
    assert len(feedback_of(one.model("rival"))) == 2
    for name in ("shop", "rival"):
        assert one.model(name).digest() == late.model(name).digest()
