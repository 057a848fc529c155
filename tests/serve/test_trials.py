"""Trials in the service: who sees which arm, what is counted, and what becomes of it all."""

import json
import threading
import time
from collections import Counter
from contextlib import ExitStack

import numpy as np
import pytest

from firstclick.catalog.item import Item
from firstclick.serve import service as service_module
from firstclick.serve.log.drawn import Assigned
from firstclick.serve.log.events import (
    KIND_OF,
    BaselineSet,
    Kind,
    NewEvent,
    TrialShares,
    TrialStarted,
    packed,
    unpacked,
)
from firstclick.serve.log.token import new_nonce
from firstclick.serve.model.archive import archive
from firstclick.serve.model.audit import audit_stored
from firstclick.serve.model.model import Model
from firstclick.serve.model.replay import catch_up, recover
from firstclick.serve.model.slates import audit_slates
from firstclick.serve.model.trial_events import trial_started
from firstclick.serve.service import open_service
from firstclick.trials.assignment import N_BUCKETS, bucket_of
from firstclick.wire.errors import Conflict, Malformed, Refused, Unknown
from tests.faults.oracle import recounted
from tests.support import seam
from tests.support.clock import Clock
from tests.support.launching import LIST, a_shop, answered, drawn_of, events_of, slates_of, unit_in
from tests.support.made_log import K
from tests.support.serving import a_site

HALF = {"policy": 0.5, "baseline": 0.5}


@pytest.fixture
def shop(tmp_path):
    with a_shop(tmp_path / "shop.db", Clock(), baseline=LIST) as service:
        yield service


def running(service, name="shop"):
    trial = service.model(name).launch.running
    assert trial is not None
    return trial


def stored(service, name="shop"):
    return next(one for one in service.store.models() if one.name == name)


def arms_of_units(service, name="shop", n=400):
    """The arm of each of these units, as slates of theirs have it."""
    found = []
    for number in range(n):
        fields = service.keys.read(
            service.recommend(name, unit=f"u{number}").token, service.model(name).id, days=1
        ).fields
        assigned = service_module.assigned_in(fields)
        assert assigned is not None
        found.append(assigned.arm)
    return found


# Who sees what


def test_a_unit_has_one_arm_and_shares_are_as_asked(shop):
    shop.start_trial("shop")
    first = arms_of_units(shop)
    assert first == arms_of_units(shop)
    assert 15 <= sum(first) <= 70, "a tenth of 400"
    key = running(shop).body.key
    assert [int(running(shop).tally.owner[bucket_of(f"u{n}", key)]) for n in range(400)] == first
    assert bucket_of(7, key) == bucket_of("7", key)
    for unit in (unit_in(shop, 1), 7):
        assert len({shop.recommend("shop", unit=unit).reasons[0] == "holdout" for _ in range(9)}) == 1


def test_who_is_in_the_holdout_sees_the_list_and_others_the_policy_as_the_floor_allows(shop):
    shop.set_baseline("shop", LIST, 0.3)
    shop.start_trial("shop", HALF)
    for _ in range(10):
        held = shop.recommend("shop", unit=unit_in(shop, 1))
        assert (held.items, held.reasons) == (LIST[:K], ("holdout",) * K)
    others = Counter(shop.recommend("shop", unit=unit_in(shop, 0)).reasons[0] for _ in range(200))
    assert set(others) == {"floor", "policy"}
    alone = Counter(shop.recommend("shop").reasons[0] for _ in range(200))
    assert set(alone) == {"holdout", "floor", "policy"}
    assert 70 < alone["holdout"] < 130


def test_units_stay_across_restart_import_and_a_change_of_shares(tmp_path):
    with a_shop(tmp_path / "shop.db", baseline=LIST) as service:
        service.start_trial("shop", {"policy": 0.7, "baseline": 0.3})
        first = arms_of_units(service)
        seam.model(service, "shop").snapshot()
        file = b"".join(service.export("shop"))
    with a_shop(tmp_path / "shop.db") as service:
        assert arms_of_units(service) == first
        before = running(service).tally.owner.copy()
        service.change_trial_shares("shop", HALF)
        after = running(service).tally.owner
        moved = before != after
        assert moved.sum() == N_BUCKETS * 0.2, "as few as can be"
        assert set(before[moved]) == {0}
        second = arms_of_units(service)
        key = running(service).body.key
        for number, (one, two) in enumerate(zip(first, second, strict=True)):
            assert one == two or moved[bucket_of(f"u{number}", key)]
        service.put_items("shop", [Item("new")])
        with pytest.raises(Conflict, match="stop the trial first"):
            service.set_baseline("shop", ["new", *LIST])
        service.roll_back("shop", 2)
        assert arms_of_units(service) == second
    with a_shop(tmp_path / "other.db") as service:
        service.import_model("twin", file)
        assert arms_of_units(service, "twin") == first


@pytest.mark.parametrize(
    ("unit", "said"),
    [
        ("", "unit must have 1 to 256 characters, got 0"),
        ("x" * 10_000_000, "unit must have 1 to 256 characters, got 10,000,000; send an id or a hash of it"),
        (10**4000, "unit must have 1 to 256 characters"),
        (True, "unit must be text or a whole number, got True"),
        (2.5, r"unit must be text or a whole number, got 2\.5"),
        (b"me", "unit must be text or a whole number"),
        ("\ud800", "unit must be text in UTF-8"),
    ],
)
@pytest.mark.parametrize("trial", [False, True])
def test_a_unit_that_is_none_is_told_with_a_trial_and_without(shop, unit, said, trial):
    if trial:
        shop.start_trial("shop")
    for more in ({}, {"request_id": "r1"}, {"k": 2}):
        started = time.monotonic()
        with pytest.raises(Malformed, match=said) as caught:
            shop.recommend("shop", unit=unit, **more)
        assert len(str(caught.value)) < 300
        assert time.monotonic() - started < 0.5
    assert shop.recommend("shop", unit="me", request_id="r1").items, "the id is not taken by what was refused"


def test_no_byte_of_the_store_tells_who_was_there(tmp_path):
    clock = Clock()
    with a_shop(tmp_path / "shop.db", clock, baseline=LIST, no_click_after=60.0) as service:
        service.start_trial("shop")
        for number in range(30):
            slate = service.recommend("shop", unit=f"MARKER-{number}", request_id=f"page {number}")
            assert "MARKER" not in slate.token
            if number % 2:
                service.feedback("shop", slate, None)
        clock.move(61)
        service.run_background()
        seam.model(service, "shop").snapshot()
        assert b"MARKER" not in b"".join(service.export("shop"))
        assert service.model("shop").reports.timed_out == 15
    for file in tmp_path.iterdir():
        assert b"MARKER" not in file.read_bytes(), file


def test_a_request_id_that_comes_again_is_one_page_of_one_unit(shop):
    shop.start_trial("shop", HALF)
    one, two = unit_in(shop, 0), unit_in(shop, 1)
    first = shop.recommend("shop", unit=one, request_id="page")
    assert shop.recommend("shop", unit=one, request_id="page").token == first.token
    with pytest.raises(Conflict, match="request_id belongs to another request already"):
        shop.recommend("shop", unit=two, request_id="page")
    shop.feedback("shop", first, 0)
    assert shop.feedback("shop", first, 0).status == "duplicate"
    assert running(shop).tally.pages == [1, 0]


# What is counted


def a_life(service, pages=240, seed=2):
    """Pages with and without a unit, changes of shares, lists and items, late pages, time-outs, rollbacks."""
    rng = np.random.default_rng(seed)
    late = []
    service.start_trial("shop", {"policy": 0.6, "baseline": 0.4}, last_pages=100)
    for page in range(pages):
        if page == 60:
            service.change_trial_shares("shop", {"policy": 0.3, "baseline": 0.7})
        if page == 100:
            service.set_explore("shop", 0.3)
            service.set_baseline("shop", LIST, 0.5)
        if page == 120:
            service.roll_back("shop", 30)
        if page == 150:
            service.set_no_click_after("shop", 3600.0)
        if page == 180:
            service.change_trial_shares("shop", {"policy": 1.0, "baseline": 0.0})
        unit = f"u{rng.integers(40)}" if page % 5 else None
        slate = service.recommend("shop", unit=unit, k=int(rng.integers(1, K + 1)))
        click = None if rng.random() < 0.6 else 0
        if page % 7 == 3:
            late.append((slate, click))
        elif page % 7 != 5:
            service.feedback("shop", slate, click)
        if page == 200:
            service.feedback_batch("shop", [*late, (slate, 99), ("nonsense", 0)])
    service.clock.move(3601)
    service.run_background()
    for click in (0, None):
        answered(service, click, unit="u7")


def test_the_tally_is_a_recount_of_the_log_however_it_is_folded(shop):
    a_life(shop)
    model, one = shop.model("shop"), stored(shop)
    assert model.reports.timed_out > 5
    shop.set_no_click_after("shop", 0)
    counted = recounted(events_of(shop))
    trial = running(shop)
    assert trial.n_waiting == counted.waiting > 0
    assert (trial.tally.pages, trial.tally.clicks) == (counted.pages, counted.clicks)
    assert sum(counted.pages) > 100
    assert min(counted.pages) > 20
    assert [one.shares for one in trial.tally.periods] == [(0.6, 0.4), (0.3, 0.7), (1.0, 0.0)]
    by_one = recover(shop.store, one._replace(head=1), use_snapshots=False)
    for head in range(2, seam.model(shop, "shop").seq + 1):
        catch_up(shop.store, by_one, head)
        if head % 31 == 0:
            before = by_one.digest()
            by_one = Model.restored(one.id, "shop", by_one.snapshot()[1], model.created)
            assert by_one.digest() == before
    whole = recover(shop.store, stored(shop), use_snapshots=False)
    assert model.digest() == by_one.digest() == whole.digest()
    assert audit_stored(shop.store, stored(shop)).equal
    found = audit_slates(shop.store, stored(shop))
    assert found.equal == len(slates_of(shop)), found


def test_a_page_is_counted_when_its_time_has_passed_and_corrections_are_shown_apart(tmp_path):
    clock = Clock()
    with a_shop(tmp_path / "shop.db", clock, baseline=LIST, no_click_after=1.0) as service:
        service.start_trial("shop", HALF)
        one, two = unit_in(service, 0), unit_in(service, 1)
        service.feedback("shop", service.recommend("shop", unit=one), 0)
        silent = service.recommend("shop", unit=two)
        trial = running(service)
        assert (trial.n_waiting, trial.tally.pages) == (1, [0, 0])
        assert service.trial_report("shop").waiting == 1
        clock.move(1.01)
        service.run_background()
        assert (trial.n_waiting, trial.tally.pages, trial.tally.clicks) == (0, [1, 1], [1, 0])
        service.feedback("shop", silent, 0)
        assert trial.tally.corrected == [0, 1]
        assert trial.tally.clicks[1] == 0, "it entered once, without a click"
        assert service.trial_report("shop").answer.arms[1].corrected == 1


def test_refused_entries_of_a_batch_count_nothing(shop):
    shop.start_trial("shop", HALF)
    slates = [shop.recommend("shop", unit=f"u{n}") for n in range(6)]
    told = shop.feedback_batch(
        "shop", [(slates[0], 0), ("x", 0), (slates[1], 9), (slates[0], 0), (slates[0], 1), (slates[2], None)]
    )
    refused = [isinstance(one, Refused) for one in told]
    assert refused == [False, True, True, False, True, False]
    assert sum(running(shop).tally.pages) == 2
    assert sum(running(shop).tally.clicks) == 1


# Starting, changing, stopping


def test_shares_can_be_changed_ninety_nine_times_and_never_break_the_model(shop):
    shop.start_trial("shop")
    for number in range(99):
        share = 0.5 if number % 2 else 0.4
        shop.change_trial_shares("shop", {"policy": share, "baseline": 1 - share})
    with pytest.raises(Malformed, match="arms can be changed 99 times in a trial, and were; stop it"):
        shop.change_trial_shares("shop", {"policy": 0.1, "baseline": 0.9})
    # Another process may not know yet.
    body = TrialShares(running(shop).id, [0.1, 0.9])
    shop.append(shop.model("shop"), NewEvent(KIND_OF[TrialShares], new_nonce(1), packed(body), time.time()))
    assert running(shop).tally.shares == (0.4, 0.6)
    assert answered(shop, 0, unit="u").items


def test_a_trial_that_is_over_shows_what_was_asked_and_counts_late_pages(shop):
    shop.start_trial("shop", HALF)
    late = shop.recommend("shop", unit=unit_in(shop, 1))
    shop.stop_trial("shop", show="baseline")
    slate = shop.recommend("shop")
    assert (slate.items, slate.reasons) == (LIST[:K], ("baseline",) * K)
    shop.feedback("shop", late, 0)
    report = shop.trial_report("shop")
    assert (report.running, report.shown_since, report.stopped_because) == (False, "baseline", "asked")
    assert report.answer.arms[1].clicks == 1
    with pytest.raises(Unknown, match="has no running trial"):
        shop.stop_trial("shop", show="baseline")
    shop.stop_trial("shop", show="policy")
    assert {shop.recommend("shop").reasons[0] for _ in range(200)} == {"floor", "policy"}
    shop.start_trial("shop", HALF)
    assert shop.trial_report("shop").answer.arms[1].clicks == 0


def test_of_two_trials_that_start_at_once_one_is_told_so(shop):
    model = shop.model("shop")
    told = []
    meet = threading.Barrier(4)

    def start():
        body = trial_started(
            model, HALF, shop._arm_model, learn_from="own", stop_if_worse=False, last_pages=100
        )
        meet.wait()
        place = shop._change(model, body)
        told.append(running(shop).seq == place)

    threads = [threading.Thread(target=start) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(told) == [False, False, False, True]
    starts = [event for event in events_of(shop) if event.kind == Kind.TRIAL_STARTED]
    assert len(starts) == 4
    assert running(shop).body.key == unpacked(starts[0], TrialStarted).key


def test_a_list_that_was_removed_elsewhere_when_the_trial_began_leaves_the_policy(shop):
    shop.start_trial("shop", HALF, stop_if_worse=True)
    unit = unit_in(shop, 1)
    shop._change(shop.model("shop"), BaselineSet([], 0.05))
    slate = answered(shop, 0, unit=unit)
    assert slate.reasons == ("policy",) * K
    assert running(shop).tally.pages == [0, 0], "it belongs to no arm"
    shop.stop_if_worse(shop.model("shop"))
    shop.run_background()


# Replicas


@pytest.fixture
def two(postgresql_url):
    with ExitStack() as opened:
        first = opened.enter_context(a_shop(postgresql_url, baseline=LIST))
        yield [first, opened.enter_context(open_service(postgresql_url))]


def wait_for(services, name="shop"):
    until = time.monotonic() + 10
    while len({seam.model(service, name).seq for service in services}) > 1:
        assert time.monotonic() < until
        time.sleep(0.02)


def test_two_processes_give_a_unit_one_arm_and_count_alike(two):
    one, other = two
    one.start_trial("shop", HALF)
    wait_for(two)
    assert arms_of_units(one, n=100) == arms_of_units(other, n=100)
    rng = np.random.default_rng(1)
    for page in range(60):
        shows, hears = two[page % 2], two[rng.integers(2)]
        slate = shows.recommend("shop", unit=f"u{rng.integers(20)}")
        hears.feedback("shop", slate, None if rng.random() < 0.5 else 0)
        if page == 30:
            other.change_trial_shares("shop", {"policy": 0.2, "baseline": 0.8})
    wait_for(two)
    assert seam.model(one, "shop").digest() == seam.model(other, "shop").digest()
    counted = recounted(events_of(one))
    assert running(one).tally.pages == counted.pages
    assert sum(counted.pages) == 60


def test_two_processes_stop_a_trial_by_one_event(two, monkeypatch):
    one = two[0]
    one.start_trial("shop", HALF, stop_if_worse=True)
    wait_for(two)
    monkeypatch.setattr(service_module, "policy_is_worse", lambda trial: True)
    threads = [
        threading.Thread(target=service.stop_if_worse, args=[service.model("shop")]) for service in two * 3
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    wait_for(two)
    assert sum(event.kind == Kind.TRIAL_STOPPED for event in events_of(one)) == 1
    for service in two:
        assert service.recommend("shop").reasons == ("baseline",) * K
        assert service.trial_report("shop").stopped_because == "worse"


# HTTP


def test_a_trial_over_http(tmp_path):
    with a_site(tmp_path) as site:
        path = "/v1/models/shop/trial"

        def said(method, where, body=None):
            answer = site.ask(method, where, body)
            return answer.status_code, answer.json()["error"]["message"]

        assert said("POST", path, {}) == (
            422,
            "arms have 'baseline', and model 'shop' has none; PUT the list that is shown today to "
            "/v1/models/shop/baseline first",
        )
        code, words = said("GET", path)
        assert (code, words) == (
            404,
            "model 'shop' had no trial; POST /v1/models/shop/trial starts one",
        )
        for method, where, body in (("PATCH", path, {"arms": HALF}), ("POST", path + "/stop", {})):
            code, words = said(method, where, body)
            assert (code, words.split(";")[0]) == (404, "model 'shop' has no running trial")
        assert said("GET", "/v1/models/none/trial")[0] == 404
        site.ask("PUT", "/v1/models/shop/baseline", {"items": ["tea", 7, "cake"]})
        for body, words in (
            ({"arms": {"policy": 0.9, "baseline": 0.2}}, "shares must add up to 1, got 1.1"),
            ({"arms": {"policy": "0.9", "baseline": 0.1}}, "arms.policy must be a number, got"),
            ({"arms": {"policy": 0.9, "x": 0.1}}, "arms must be 'policy', 'baseline'"),
            ({"arms": ["policy"]}, "arms must be"),
            ({"learn_from": "some"}, "learn_from must be"),
            ({"last_pages": 5}, "last_pages must be"),
            ({"shares": {}}, "shares"),
        ):
            code, told = said("POST", path, body)
            assert (code, words in told) == (422, True), (body, told)
        assert site.ask("POST", path, {"arms": HALF}).status_code == 200
        assert said("POST", path, {})[0] == 409
        assert said("DELETE", "/v1/models/shop/baseline")[0] == 409
        for unit, code in (
            ("me", 200), (7, 200), ("x" * 256, 200), ("", 422), (True, 422), (2.5, 422), ("x" * 257, 422),
            ([], 422), ("x" * 10_000_000, 413),
        ):  # fmt: skip
            answer = site.ask("POST", "/v1/models/shop/recommend", {"unit": unit})
            assert answer.status_code == code, (str(unit)[:20], answer.text[:200])
            assert len(answer.text) < 2000
        slate = site.ask("POST", "/v1/models/shop/recommend", {"unit": "me"}).json()
        site.ask("POST", "/v1/models/shop/feedback", {"token": slate["token"], "click": None})
        assert site.ask("PATCH", path, {"arms": {"policy": 0.8, "baseline": 0.2}}).status_code == 200
        assert said("PATCH", path, {"arms": {"policy": 1.0}})[1].startswith("arms must be those of the trial")
        told = site.ask("GET", path).json()
        assert (told["running"], told["model"], told["answer"]["periods"]) == (True, "shop", 2)
        assert sum(arm["pages"] for arm in told["answer"]["arms"]) == 1
        assert "key" not in json.dumps(told), "who has it could tell the bucket of a unit"
        assert said("POST", path + "/stop", {"show": "both"})[0] == 422
        assert site.ask("POST", path + "/stop", {"show": "baseline"}).status_code == 200
        assert site.recommend()["reasons"] == ["baseline"] * 3
        told = site.ask("GET", path).json()
        assert (told["running"], told["shown_since"]) == (False, "baseline")


def test_the_log_tells_the_bucket_and_the_arm(shop):
    shop.start_trial("shop", HALF)
    answered(shop, 0, unit="me")
    assigned = drawn_of(slates_of(shop)[-1]).assigned
    assert assigned is not None
    assert assigned.bucket == bucket_of("me", running(shop).body.key)


def test_a_trial_whose_first_events_are_archived_goes_on(shop, tmp_path):
    a_life(shop)
    model = shop.model("shop")
    wanted, pages = model.digest(), running(shop).tally.pages
    archive(shop.store, stored(shop), 200, tmp_path / "old", token_days=-1.0)
    for use_snapshots in (False, True):
        found = recover(shop.store, stored(shop), use_snapshots=use_snapshots)
        assert found.digest() == wanted
        assert found.launch.running is not None
        assert found.launch.running.tally.pages == pages
    assert audit_stored(shop.store, stored(shop)).equal


def test_pages_of_another_trial_of_later_shares_or_of_a_strange_arm_are_not_counted(shop):
    """As slates of what a store has lost that was set back."""
    shop.start_trial("shop", HALF)
    trial = running(shop)
    bucket = 17
    arm = int(trial.tally.owner[bucket])
    for page in (
        Assigned(trial.id ^ 1, 0, arm, bucket),
        Assigned(trial.id, 1, arm, bucket),
        Assigned(trial.id, 0, 1 - arm, bucket),
        Assigned(trial.id, 0, 7, None),
    ):
        trial.count(page, True, 0, 1)
    assert trial.tally.pages == [0, 0]
    trial.count(Assigned(trial.id, 0, arm, bucket), True, 0, 1)
    assert sum(trial.tally.pages) == 1
