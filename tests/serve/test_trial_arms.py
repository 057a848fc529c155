"""Arms that other models decide: their slates, what each model learns, and models that are deleted."""

import threading

import numpy as np
import pytest

from firstclick.errors import FirstclickError
from firstclick.policies.cascade_ts import CascadeTS
from firstclick.serve import Item, trial_arms
from tests.faults.oracle import recounted
from tests.support.clock import Clock
from tests.support.logs import answer, check_taught, feedback_of, raw_events, reproduce
from tests.support.refusals import check_refused
from tests.support.shop import LIST, K, items

THIRDS = {"policy": 0.4, "model:rival": 0.4, "baseline": 0.2}
POLICY, RIVAL, HELD = range(3)
CREATED = {"policy": "cascade-ts", "k": K, "seed": 8}


def add_rival(shop, name="rival", **more):
    """Another model with the same items in another order of rows."""
    shop.service.create(name, items=items(features=False)[::-1], **CREATED | more)
    return shop.model(name)


@pytest.fixture
def shop(open_shop):
    return open_shop(features=False, baseline=LIST, max_loss=1.0, clock=Clock())


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
