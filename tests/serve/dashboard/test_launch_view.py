"""What the dashboard tells of a launch: the list, who decides, and the trial."""

import pytest

from firstclick.serve.dashboard.data import Views
from firstclick.serve.dashboard.launch import Decider, reasons_of
from tests.support.serving import ITEMS, a_service

LIST = ["cake", 7, "tea", "espresso"]


@pytest.fixture
def service(tmp_path):
    with a_service(tmp_path) as service:
        yield service


def view(service):
    return Views(service, "full").of("shop")


def visit(service, slates, *, click=None, units=0):
    shown = [
        service.recommend("shop", unit=place % units if units else None).token for place in range(slates)
    ]
    service.feedback_batch("shop", [(token, click) for token in shown])


def test_without_a_list_it_has_only_its_own_start_to_compare_with(service):
    visit(service, 300, click=1)
    told = view(service)
    assert (told.against_list, told.trial, told.deciders) == (None, None, [])
    assert told.start is not None
    assert (told.start.label, told.start.clicks) == ("first 200 slates", 200)
    assert {tuple(slate.reasons) for slate in told.recent} == {("policy",) * 3}


def test_with_a_list_the_slates_of_both_are_counted_apart(service):
    visit(service, 5, click=1)
    service.set_baseline("shop", LIST, max_loss=0.25)
    before = view(service).against_list
    assert before is not None
    assert (before.policy_slates, before.list_slates, before.at_least) == (0, 0, 1.0)
    for number in range(120):
        slate = service.recommend("shop")
        service.feedback("shop", slate, 0 if slate.reasons[0] == "policy" and number % 2 else None)
    told = view(service)
    found, facts = told.against_list, service.model("shop").launch.facts()
    assert found is not None
    assert facts is not None
    assert (found.items, found.listed) == (["<b>Cake</b>", "Seven", "Tea"], 4)
    assert found.policy_slates + found.list_slates == 120
    assert found.policy_slates == facts["policy_pages"] > 10
    assert (found.policy_clicks, found.list_clicks) == (facts["policy_clicks"], 0)
    assert found.rate_low <= 0 < found.rate_high < 1
    assert (found.max_loss, found.confidence, found.at_least) == (0.25, 0.95, facts["at_least"])
    assert "click rate is constant" in found.assumed
    # The five slates before the list came are nobody's.
    assert told.deciders == [Decider("policy", found.policy_slates), Decider("floor", found.list_slates)]
    # Another list, and all of it begins anew.
    service.set_baseline("shop", LIST[::-1], max_loss=0.25)
    assert view(service).deciders == []


def test_who_decided_is_told_of_the_last_slates(service):
    service.set_baseline("shop", LIST, max_loss=1.0)
    service.start_trial("shop", {"policy": 0.7, "baseline": 0.3})
    visit(service, 60, units=60)
    by = {decider.by: decider.slates for decider in view(service).deciders}
    assert by.keys() == {"policy", "holdout"}
    assert by["policy"] > by["holdout"] > 5
    service.stop_trial("shop", show="baseline")
    visit(service, 150, units=60)
    told = view(service)
    assert told.trial is not None
    assert (told.trial.running, told.trial.shown_since, told.trial.stopped_because) == (
        False, "baseline", "asked",
    )  # fmt: skip
    # 200 are remembered: of the first 60, ten are forgotten.
    assert sum(decider.slates for decider in told.deciders) == 200
    assert told.deciders[-1] == Decider("baseline", 150)
    assert {tuple(slate.reasons) for slate in told.recent} == {("baseline",) * 3}


def test_an_arm_of_another_model_decides_under_its_own_name(service):
    service.create("other", policy="cascade-lin-ts", k=3, items=ITEMS, seed=2)
    service.start_trial("shop", {"policy": 0.5, "model:other": 0.5})
    visit(service, 40, units=40)
    told = view(service)
    assert [decider.by for decider in told.deciders] == ["policy", "model:other"]
    words = {why for slate in told.recent for why in slate.reasons}
    assert words == {"policy", "model:other"}
    assert told.trial is not None
    assert [arm.name for arm in told.trial.answer.arms] == ["policy", "model:other"]


def test_slates_of_others_do_not_count_as_exploring(service):
    # The list is never the best slate of a policy that has learned otherwise.
    visit(service, 200, click=2)
    known = service.exploring["shop"].share()
    service.set_baseline("shop", LIST, max_loss=1.0)
    service.start_trial("shop", {"policy": 0.5, "baseline": 0.5})
    service.stop_trial("shop", show="baseline")
    visit(service, 100)
    assert service.exploring["shop"].share() == known


def test_a_pinned_item_says_so_and_an_early_slate_says_nothing(service):
    service.set_baseline("shop", LIST, max_loss=0.05)
    service.feedback("shop", service.recommend("shop", pinned={1: "espresso"}), 0)
    model = service.model("shop")
    reasons = view(service).recent[0].reasons
    assert reasons[1] == "pinned"
    assert set(reasons[::2]) <= {"policy", "floor"}
    _, feedback = model.recent[-1]
    assert reasons_of(model, feedback._replace(fields=b"")) == []
    assert reasons_of(model, feedback._replace(fields=b"\x01\xff")) == []
