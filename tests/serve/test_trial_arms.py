"""Arms that other models decide: their slates, what each model learns, and models that go away."""

import threading
import time
from contextlib import ExitStack

import numpy as np
import pytest

from firstclick.catalog.item import Item
from firstclick.policies.cascade_ts import CascadeTS
from firstclick.serve import trial_arms
from firstclick.serve.log.drawn import timed_out
from firstclick.serve.log.events import Event, Kind, feedback_payload, read_feedback
from firstclick.serve.log.token import number_in
from firstclick.serve.model.model import Model
from firstclick.serve.model.slates import audit_slates
from firstclick.serve.model.sources import OTHER_ARM
from firstclick.serve.service import open_service
from firstclick.serve.trial_arms import nonce_in_arm
from firstclick.wire.errors import Conflict, Malformed, Refused
from tests.faults.oracle import recounted
from tests.support import seam
from tests.support.clock import Clock
from tests.support.launching import LIST, SHOP, a_shop, answered, drawn_of, events_of, slates_of, unit_in
from tests.support.made_log import K, bare, made_items

THIRDS = {"policy": 0.4, "model:rival": 0.4, "baseline": 0.2}
POLICY, RIVAL, HELD = range(3)


def with_rival(service, name="rival", **more):
    """The same items in another order of rows, learned by a model of its own."""
    if name not in service.names():
        service.create(name, items=bare(made_items())[::-1], **SHOP | {"seed": 8} | more)
    return service


@pytest.fixture
def shop(tmp_path):
    with a_shop(tmp_path / "shop.db", baseline=LIST, max_loss=1.0) as service:
        yield with_rival(service)


def stored(service, name):
    return next(one for one in service.store.models() if one.name == name)


def pages(service, n=60, seed=1):
    """Pages of all arms, in batches of one and of several."""
    rng, pocket = np.random.default_rng(seed), []
    for _ in range(n):
        unit = unit_in(service, int(rng.integers(3))) if rng.random() < 0.8 else None
        pocket.append((service.recommend("shop", unit=unit), None if rng.random() < 0.5 else 0))
        if rng.random() < 0.5:
            for outcome in service.feedback_batch("shop", pocket):
                assert not isinstance(outcome, Refused)
            pocket = []
    service.feedback_batch("shop", pocket)


def taught(model, lessons):
    """A model that is given just these slates, of items, in their order."""
    anew = Model(0, model.name, model.created)
    for seq, (items, click) in enumerate(lessons, 2):
        rows = np.array(anew.catalog.rows_of(items), "<u4").tobytes()
        event = Event(seq, Kind.FEEDBACK, seq.to_bytes(16, "big"), feedback_payload(click, 0, rows), 0.0)
        anew.apply([event], lambda seq: anew.known())
    return anew


def assert_same_state(model, other):
    for name, array in model.engine.state._asdict().items():
        np.testing.assert_array_equal(array, getattr(other.engine.state, name), err_msg=name)


@pytest.mark.parametrize("learn_from", ["own", "all"])
def test_each_model_learns_what_it_should_and_nothing_else(shop, learn_from):
    shop.set_baseline("shop", LIST, 0.5)  # so that the floor shows the list in all arms
    shop.start_trial("shop", THIRDS, learn_from=learn_from)
    pages(shop, 120)
    model, lessons = shop.model("shop"), ([], [])
    by_arm = [0, 0, 0]
    for event in slates_of(shop):
        said, drawn = read_feedback(event.payload), drawn_of(event)
        assert drawn.assigned is not None
        by_arm[drawn.assigned.arm] += 1
        lesson = [model.catalog.items[row] for row in said.rows], said.click
        by_list = drawn.chosen is not None and not drawn.chosen.by_policy
        for arm in (POLICY, RIVAL):
            if learn_from == "all" or by_list or drawn.assigned.arm == arm:
                lessons[arm].append(lesson)
    assert min(by_arm) > 15
    for arm, name in ((POLICY, "shop"), (RIVAL, "rival")):
        served = shop.model(name)
        assert_same_state(served, taught(served, lessons[arm]))
        assert shop.audit(name).equal
    counted = recounted(events_of(shop))
    trial = model.launch.running
    assert trial is not None
    assert trial.tally.pages == counted.pages == by_arm
    assert len(slates_of(shop, "rival")) == len(lessons[RIVAL])


def test_slates_of_another_model_can_be_drawn_again_from_its_own_log(shop):
    shop.set_explore("rival", 0.3)
    shop.start_trial("shop", THIRDS)
    pages(shop, 60)
    found = audit_slates(shop.store, stored(shop, "shop"))
    its = sum(drawn_of(event).arm_fields is not None for event in slates_of(shop))
    assert its > 5
    assert found.not_evaluable == {OTHER_ARM: its}
    assert found.equal == len(slates_of(shop)) - its
    found = audit_slates(shop.store, stored(shop, "rival"))
    assert (found.equal, found.differing) == (its, 0), found


def test_feedback_stands_in_both_logs_under_one_number(shop):
    shop.start_trial("shop", THIRDS)
    slate = answered(shop, 1, unit=unit_in(shop, RIVAL))
    (event,), (copy,) = slates_of(shop), slates_of(shop, "rival")
    trial = shop.model("shop").launch.running
    assert trial is not None
    assert copy.nonce == nonce_in_arm(event.nonce, trial.id) != event.nonce
    assert number_in(copy.nonce) == number_in(event.nonce)
    items = shop.model("rival").catalog.items
    assert [items[row] for row in read_feedback(copy.payload).rows] == slate.items
    assert shop.feedback("shop", slate, 1).status == "duplicate"
    assert len(slates_of(shop, "rival")) == 1


def test_a_page_that_asks_both_models_by_one_request_id_is_counted_by_both(shop):
    shop.start_trial("shop", THIRDS)
    one = shop.recommend("shop", unit=unit_in(shop, RIVAL), request_id="page 7")
    two = shop.recommend("rival", request_id="page 7")
    assert shop.feedback("shop", one, 0).status == "accepted"
    assert shop.feedback("rival", two, 1).status == "accepted"
    assert [read_feedback(event.payload).click for event in slates_of(shop, "rival")] == [0, 1]


def test_requests_of_all_kinds_in_an_arm(shop):
    shop.put_list("shop", "few", ["i1", "i2", "i3", "i4"])
    shop.start_trial("shop", THIRDS)
    unit = unit_in(shop, RIVAL)
    ask = lambda **more: answered(shop, 0, unit=unit, **more)  # noqa: E731
    assert set(ask(candidates="few").items) <= {"i1", "i2", "i3", "i4"}
    assert "i1" not in ask(candidates=["i1", "i2", "i3", "i5"], exclude=["i1"]).items
    assert ask(pinned={0: "i9"}).items[0] == "i9"
    assert len(ask(k=np.int64(2)).items) == 2
    assert ask(explain=True).without_exploring is not None
    n = len(slates_of(shop, "rival"))
    assert n == 5, "each of them was a slate of the rival"


@pytest.mark.parametrize("k", [4, 0, -1, "2"])
def test_a_request_that_is_refused_without_a_trial_is_refused_in_an_arm(tmp_path, k):
    with a_shop(tmp_path / "shop.db", baseline=LIST, max_loss=1.0) as shop:
        with_rival(shop, k=6)
        shop.start_trial("shop", THIRDS)
        with pytest.raises(Malformed, match="k must be"):
            shop.recommend("shop", unit=unit_in(shop, RIVAL), k=k)


# Late, and corrected


def test_slates_that_time_out_and_late_clicks_reach_both_models(tmp_path):
    clock = Clock()
    with a_shop(tmp_path / "shop.db", clock, baseline=LIST, max_loss=1.0, no_click_after=60.0) as shop:
        with_rival(shop)
        shop.start_trial("shop", THIRDS)
        slates = [shop.recommend("shop", unit=unit_in(shop, arm)) for arm in (POLICY, RIVAL, HELD)]
        clock.move(61)
        shop.run_background()
        assert shop.describe("shop")["timed_out"] == 3
        copies = slates_of(shop, "rival")
        assert len(copies) == 2, "its own, and that of the list"
        assert all(timed_out(read_feedback(copy.payload).fields) for copy in copies)
        for slate in slates:
            assert shop.feedback("shop", slate, 1).status == "corrected"
        trial = shop.model("shop").launch.running
        assert trial is not None
        assert trial.tally.corrected == [1, 1, 1]
        shop.put_list("rival", "x", ["i1"])  # What was written before is folded by now.
        clicked = [(slate.items, 1) for slate in slates]
        assert_same_state(shop.model("shop"), taught(shop.model("shop"), [clicked[POLICY], clicked[HELD]]))
        assert_same_state(shop.model("rival"), taught(shop.model("rival"), [clicked[RIVAL], clicked[HELD]]))
        assert shop.model("rival").reports.corrected == 2


@pytest.mark.parametrize("learn_from", ["own", "all"])
def test_a_slate_of_an_earlier_trial_is_corrected_as_it_was_learned(tmp_path, learn_from):
    clock = Clock()
    with a_shop(tmp_path / "shop.db", clock, baseline=LIST, max_loss=1.0, no_click_after=60.0) as shop:
        with_rival(shop)
        shop.start_trial("shop", THIRDS, learn_from=learn_from)
        slate = shop.recommend("shop", unit=unit_in(shop, RIVAL))
        clock.move(61)
        shop.run_background()
        shop.stop_trial("shop")
        shop.start_trial("shop", learn_from="all" if learn_from == "own" else "own")
        assert shop.feedback("shop", slate, 0).status == "corrected"
        lessons = [(slate.items, 0)] if learn_from == "all" else []
        assert_same_state(shop.model("shop"), taught(shop.model("shop"), lessons))
        digest = seam.model(shop, "shop").digest()
        seam.model(shop, "shop").snapshot()
        assert shop.audit("shop").equal
    with a_shop(tmp_path / "shop.db") as shop:
        assert seam.model(shop, "shop").digest() == digest


# Models that go away


def test_an_arm_cannot_be_deleted_while_its_trial_runs(shop):
    shop.start_trial("shop", THIRDS)
    with pytest.raises(Conflict, match="model 'rival' is an arm of the trial that runs on 'shop'"):
        shop.delete("rival")
    late = shop.recommend("shop", unit=unit_in(shop, RIVAL))
    shop.stop_trial("shop")
    shop.delete("rival")
    assert shop.feedback("shop", late, 0).status == "accepted"
    assert shop.trial_report("shop").answer.arms[RIVAL].clicks == 1


def test_an_arm_that_is_deleted_elsewhere_takes_nothing_down(shop):
    with_rival(shop, "third")
    arms = {"policy": 0.3, "model:rival": 0.3, "model:third": 0.2, "baseline": 0.2}
    shop.start_trial("shop", arms, learn_from="all")
    units = [unit_in(shop, arm) for arm in range(4)]
    out = [shop.recommend("shop", unit=unit) for unit in units for _ in range(2)]
    # As by another process, of which this one has not heard yet.
    shop.store.delete(shop.model("rival").id)
    told = shop.feedback_batch("shop", [(slate, 0) for slate in out[::2]])
    assert [outcome.status for outcome in told] == ["accepted"] * 4
    assert len(slates_of(shop, "third")) == 4, "an arm that is there still learns"
    until = time.monotonic() + 10
    while "rival" in shop.names():
        assert time.monotonic() < until
        time.sleep(0.02)
    told = shop.feedback_batch("shop", [(slate, 0) for slate in out[1::2]])
    assert [outcome.status for outcome in told] == ["accepted"] * 4
    assert len(slates_of(shop, "third")) == 8
    trial = shop.model("shop").launch.running
    assert trial is not None
    assert trial.tally.pages == [2, 2, 2, 2]
    # Its units see this model's slates from now on, which belong to no arm.
    assert answered(shop, 0, unit=units[1]).reasons == ("policy",) * K
    assert trial.tally.pages == [2, 2, 2, 2]
    assert shop.no_clicks._counts["shop"][-1] == 1
    # Another model of this name is not the arm.
    with_rival(shop, seed=9)
    assert answered(shop, 0, unit=units[1]).reasons == ("policy",) * K
    assert slates_of(shop, "rival") == []
    assert shop.audit("shop").equal


def test_an_arm_whose_items_have_drifted_apart_is_left_out(shop):
    shop.start_trial("shop", THIRDS)
    unit = unit_in(shop, RIVAL)
    shop.put_items("shop", [Item("new")])
    shop.withdraw_items("shop", ["i3"])
    shop.set_available("shop", off=["i4"])
    rival = shop.model("rival")
    assert rival.items.is_shown("new")
    assert not rival.items.is_shown("i3")
    assert not rival.items.is_shown("i4")
    shop.withdraw_items("rival", [f"i{n}" for n in range(11)])
    shop.withdraw_items("shop", ["i11", "i12"])
    assert not rival.items.is_shown("i12")
    slate = answered(shop, 0, unit=unit)
    assert len(slate.items) in (1, K)
    shop.put_items("rival", [Item("its own")])
    shop.withdraw_items("rival", ["new"])
    slate = answered(shop, 0, unit=unit)
    assert "its own" not in slate.items


def test_an_arm_with_share_0_gets_no_pages_and_may_get_some_later(shop):
    shop.start_trial("shop", {"policy": 0.5, "model:rival": 0.0, "baseline": 0.5})
    for number in range(60):
        answered(shop, 0, unit=f"u{number}")
        answered(shop, 0)
    trial = shop.model("shop").launch.running
    assert trial is not None
    assert trial.tally.pages[1] == 0
    shop.trial_report("shop").text()
    shop.change_trial_shares("shop", {"policy": 0.0, "model:rival": 1.0, "baseline": 0.0})
    for number in range(20):
        answered(shop, 0, unit=f"u{number}")
    assert trial.tally.pages[1] == 20
    shop.trial_report("shop").text()


# Who may be an arm


def test_models_that_cannot_be_an_arm(shop, monkeypatch):
    shop.create("short", items=bare(made_items()), **SHOP | {"k": 2})
    shop.create("fewer", items=bare(made_items())[1:], **SHOP)
    for name, said in (
        ("short", "model 'short' has k=2; an arm of 'shop' needs k=3"),
        ("fewer", "must have the same items, and 'shop' has 'i0', which 'fewer' has not"),
    ):
        with pytest.raises(Malformed, match=said):
            shop.start_trial("shop", {"policy": 0.5, f"model:{name}": 0.5})
    with monkeypatch.context() as patched:
        patched.setattr(CascadeTS, "learns_from_others", False)
        with pytest.raises(
            Malformed, match="cascade-ts, the policy of model 'rival', which learns only from slates"
        ):
            shop.start_trial("shop", THIRDS)
    shop.set_baseline("rival", LIST)
    shop.start_trial("rival")
    with pytest.raises(Malformed, match="model 'rival' has a trial of its own that is running"):
        shop.start_trial("shop", THIRDS)
    shop.stop_trial("rival")
    shop.start_trial("shop", THIRDS)
    with pytest.raises(Conflict, match="model 'rival' is an arm of the trial that runs on 'shop'"):
        shop.start_trial("rival")


def test_another_policy_starts_from_a_fork(shop):
    for _ in range(10):
        answered(shop, 0)
    shop.start_trial("shop", {"policy": 0.5, "policy:cascade-ts": 0.5})
    assert shop.names() == ["rival", "shop", "shop.cascade-ts"]
    its = shop.model("shop.cascade-ts")
    assert_same_state(its, shop.model("shop"))
    assert answered(shop, 0, unit=unit_in(shop, 1)).items
    assert its.click_stats.slates == 11
    shop.stop_trial("shop")
    with pytest.raises(Conflict, match=r"arms need a new model 'shop\.cascade-ts', .* use 'model:"):
        shop.start_trial("shop", {"policy": 0.5, "policy:cascade-ts": 0.5})
    shop.start_trial("shop", {"policy": 0.5, "model:shop.cascade-ts": 0.5})


def test_a_fork_of_a_model_with_a_trial_has_none_and_learns_from_all_its_slates(shop):
    shop.start_trial("shop", THIRDS)
    pages(shop, 40)
    made = shop.fork("shop", "cascade-ts", "made")
    assert made.launch.trial is None
    assert made.launch.baseline is not None
    lessons = [
        ([made.catalog.items[row] for row in said.rows], said.click)
        for said in (read_feedback(event.payload) for event in slates_of(shop))
    ]
    assert_same_state(made, taught(made, lessons))
    assert shop.audit("made").equal
    assert answered(shop, 0, "made", unit="u").items


def test_models_and_their_trial_go_to_another_store(shop, tmp_path):
    shop.start_trial("shop", THIRDS)
    pages(shop, 30)
    unit = unit_in(shop, RIVAL)
    files = {name: b"".join(shop.export(name)) for name in ("shop", "rival")}
    with open_service(str(tmp_path / "other.db")) as other:
        for name, file in files.items():
            assert other.import_model(name, file).digest() == seam.model(shop, name).digest()
        before = len(slates_of(other, "rival"))
        answered(other, 0, unit=unit)
        assert len(slates_of(other, "rival")) == before + 1
        # Under another name it is not the arm.
        answered(other.import_model("alone", files["shop"]) and other, 0, "alone", unit=unit)
        assert len(slates_of(other, "rival")) == before + 2


def test_two_threads_and_two_trials_do_not_wait_for_each_other_for_ever(shop, monkeypatch):
    """Each an arm of the other, as two processes could make them; each asked by who holds its lock."""
    monkeypatch.setattr(trial_arms, "PATIENCE", 0.05)
    shop.set_baseline("rival", LIST, 1.0)
    shop.start_trial("shop", THIRDS)
    monkeypatch.setattr(trial_arms, "check_arm", lambda model, other: None)
    other = shop.model("shop").launch.trial
    shop.stop_trial("shop")
    shop.start_trial("rival", {"policy": 0.1, "model:shop": 0.9})
    shop.model("shop").launch.trial.stopped = None
    assert shop.model("shop").launch.running is other
    done = []

    def ask(name):
        for number in range(40):
            with shop.model(name).lock:
                done.append(shop.recommend(name, unit=f"u{number}"))

    threads = [threading.Thread(target=ask, args=[name], daemon=True) for name in ("shop", "rival")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert len(done) == 80
    shop.put_items("shop", [Item("new")])  # which tells arms, and they nobody
    assert shop.model("rival").items.is_shown("new")


# Replicas


def test_an_arm_learns_from_feedback_that_reaches_a_process_that_has_not_heard_of_it(
    postgresql_url,
):
    with ExitStack() as opened:
        one = opened.enter_context(a_shop(postgresql_url, baseline=LIST, max_loss=1.0))
        late = opened.enter_context(open_service(postgresql_url, poll_seconds=600.0))
        with_rival(one)
        one.start_trial("shop", THIRDS)
        slates = [one.recommend("shop", unit=unit_in(one, arm)) for arm in (POLICY, RIVAL, HELD)]
        assert late.model("shop").launch.trial is None
        for slate in slates:
            assert late.feedback("shop", slate, 0).status == "accepted"
        until = time.monotonic() + 10
        while any(seam.model(one, name).seq < seam.model(late, name).seq for name in ("rival", "shop")):
            assert time.monotonic() < until
            time.sleep(0.02)
        assert len(slates_of(one, "rival")) == 2
        for name in ("shop", "rival"):
            assert seam.model(one, name).digest() == seam.model(late, name).digest()
