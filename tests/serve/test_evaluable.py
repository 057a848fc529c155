"""Slates that can be reproduced: from which event, for which request, by which build."""

import json
import random
import sys

import msgspec
import pytest

from firstclick.cli import main
from firstclick.online.request import with_pinned
from firstclick.serve import Item
from firstclick.serve.log.drawn import NOT_RECORDED, TOO_MANY_CANDIDATES
from firstclick.serve.model.sources import ARCHIVED, LOST
from tests.support.logs import feedback_of, move_to_archive, play, reproduce
from tests.support.policies import policies
from tests.support.refusals import check_refused
from tests.support.shop import IDS, LIST, new_item


@pytest.fixture
def shop(open_shop):
    return open_shop(policy="cascade-lin-ts")


def forget_source(shop, slate):
    """A token of this slate without what it was drawn from, as of an earlier version."""
    keys = shop.service.keys
    return keys.sign(keys.read(slate.token, shop.internals.id, days=1)._replace(fields=b""))


def test_each_slate_is_reproduced_through_all_that_can_happen(shop, tmp_path):
    play(shop, 60, 1, features=True)
    shop.withdraw_items(["i1"])
    shop.set_available(off=["i2", "i10"])
    play(shop, 40, 2, features=True)
    shop.set_explore(0.3)
    play(shop, 60, 3, features=True)
    shop.roll_back(40)
    shop.put_list("half", IDS[5:])
    shop.put_items([new_item(group="odd")])
    play(shop, 40, 4, features=True)
    shop.put_items([Item("i9", features=[1.0, -0.1, 0.2, 0.3])])
    play(shop, 40, 5, features=True)
    shop.restart()
    play(shop, 30, 6, features=True)
    audit = reproduce(shop)
    assert audit.equal == len(feedback_of(shop)) > 200
    assert (audit.differing, audit.other_build, audit.not_evaluable) == (0, 0, {})
    assert shop.audit().equal
    # From an import too, and without some events of the store as long as the archive is there.
    shop.service.import_model("copy", b"".join(shop.export()))
    assert reproduce(shop.model("copy"))._replace(name="shop") == audit
    move_to_archive(shop, 200, tmp_path / "old")
    rest = reproduce(shop)
    n_left = sum(event["seq"] >= 200 for event in feedback_of(shop))
    assert rest.not_evaluable[ARCHIVED] + rest.equal == n_left < audit.equal
    assert rest.differing == rest.other_build == 0
    assert reproduce(shop, tmp_path / "old") == audit


@pytest.mark.parametrize(
    "policy", policies(["cascade-mixed", "cascade-ts", "cascade-ucb1", "vac2-ucb", "ranked-lin-ts"])
)
def test_slates_of_any_policy_are_reproduced(open_shop, policy):
    shop = open_shop(policy=policy, explore=0.1)
    play(shop, 100)
    audit = reproduce(shop)
    assert audit.equal > 60
    assert audit.differing == audit.other_build == 0


def test_slates_made_ahead_are_reproduced_from_when_they_were_made(shop):
    slates = [shop.recommend() for _ in range(40)]
    assert len({slate.seq for slate in slates}) == 1
    for slate in slates[::3]:
        shop.feedback(slate, 0)
        shop.feedback(shop.recommend(), None)
    assert reproduce(shop).equal == 28


def test_a_slate_that_differs_is_a_fault_only_of_the_same_build(shop, monkeypatch):
    play(shop, 60)
    equal = reproduce(shop).equal
    assert equal > 30
    monkeypatch.setattr(
        "firstclick.online.request.with_pinned", lambda free, pinned: with_pinned(free, pinned)[::-1]
    )
    wrong = reproduce(shop)
    assert 0 < wrong.differing < equal
    assert wrong.equal + wrong.differing == equal
    assert "and what it was drawn from, event" in wrong.told[0]
    monkeypatch.setattr("firstclick.serve.model.slates.this_build", lambda policy: "another")
    found = reproduce(shop)
    assert (found.differing, found.other_build, found.told) == (0, wrong.differing, ())


def test_a_start_of_another_build_is_in_the_log_once(open_shop, monkeypatch):
    shop = open_shop()
    assert shop.seq == 1, "the creation says which build made it"
    shop.feedback(shop.recommend(), 0)
    other = msgspec.structs.replace(shop.internals.created.build, firstclick="9.9")
    for module in ("model.model", "model.build", "service"):
        monkeypatch.setattr(f"firstclick.serve.{module}.this_build", lambda policy: other)
    for _ in range(2):
        shop.restart()
        assert shop.seq == 3
        slate = shop.recommend()
    monkeypatch.undo()
    shop.restart()
    assert shop.seq == 3, "a build that is in the log already"
    for each in (slate, shop.recommend()):
        shop.feedback(each, 0)
    assert [event["build"] for event in feedback_of(shop)] == [0, 1, 0]
    assert shop.audit().equal


def test_a_slate_of_a_lost_history_is_not_evaluable(open_shop):
    shop = open_shop()
    shop.feedback(shop.recommend(), 0)
    slates = [shop.recommend(), shop.recommend()]
    shop.feedback(shop.recommend(), 1)
    slates.append(shop.recommend())
    with shop.service.store._database.transaction() as connection:
        connection.execute("DELETE FROM event WHERE seq > 1")
        connection.execute("UPDATE model SET head = 1")
    shop.restart()
    for slate in (shop.recommend(), *slates):
        shop.feedback(slate, 0)
    audit = reproduce(shop)
    assert (audit.equal, audit.differing, audit.not_evaluable) == (1, 0, {LOST: 3})


def test_too_many_candidates_are_not_evaluable_and_have_reasons(open_shop):
    ids = [f"i{row}" for row in range(20_000)]
    shop = open_shop(items=[Item(id) for id in ids], baseline=LIST, max_loss=0.001)
    some = [*random.Random(1).sample(ids[20:], 6_000), *LIST, "i3"]
    slate = shop.recommend(candidates=some, pinned={1: "i3"})
    assert slate.not_evaluable == TOO_MANY_CANDIDATES
    assert slate.reasons == ("floor", "pinned", "floor")
    shop.put_list("some", some)
    by_name = shop.recommend(candidates="some")
    assert by_name.not_evaluable == ""
    assert len(by_name.token) < 150
    for each in (slate, by_name):
        shop.feedback(each, 0)
    audit = reproduce(shop)
    assert (audit.equal, audit.not_evaluable) == (1, {TOO_MANY_CANDIDATES: 1})
    event = feedback_of(shop)[0]
    assert (event["reasons"], event["pinned"]) == (["floor", "pinned", "floor"], {"1": "i3"})


def test_a_list_is_changed_and_removed_and_survives_a_restart(shop):
    shop.put_list("a", ["i1", "i2", "i4", "i1"])
    shop.put_list("b", ["i4"])
    shop.put_list("a", ["i4", "i5", "i6"])
    assert {*shop.recommend(candidates="a", exclude="b").items} == {"i5", "i6"}
    shop.withdraw_items(["i5"])
    shop.roll_back(2)
    shop.remove_list("b")
    shop.snapshot()
    shop.restart()
    assert shop.describe()["restored_from"] > 1
    assert {*shop.recommend(candidates="a").items} == {"i4", "i5", "i6"}, "a list is not rolled back"
    check_refused(lambda: shop.recommend(exclude="b"), "exclude")
    assert shop.audit().equal


# What `firstclick log` and `firstclick audit` print


def test_the_log_has_the_request_in_ids(shop):
    shop.put_list("half", IDS[:7])
    shop.set_explore(1.0)
    shop.feedback(shop.recommend(candidates="half", exclude=["i4"], pinned={0: "i7"}, k=2), 0)
    shop.feedback(shop.recommend(candidates=["i5", "i4"], at_most={"odd": 1}), None)
    created, put, settings, first, second = shop.events()
    kinds = [event["kind"] for event in (created, put, settings, first, second)]
    assert kinds == ["created", "list-put", "settings", "feedback", "feedback"]
    assert created["build"]["firstclick"]
    assert (put["items"], settings["explore"]) == (IDS[:7], 1.0)
    words = ("drawn_from", "build", "k", "candidates", "exclude", "pinned")
    assert [first[word] for word in words] == [3, 0, 2, "half", ["i4"], {"0": "i7"}]
    assert first["explored"] is True
    assert first["explore_propensities"] == [1.0, 1 / 6]
    assert (second["candidates"], second["at_most"]) == (["i4", "i5"], {"odd": 1})
    assert "exclude" not in second


def test_audit_counts_slates_that_are_not_evaluable(shop, tmp_path, monkeypatch, capsys):
    for _ in range(3):
        shop.feedback(shop.recommend(), 0)
    shop.feedback(forget_source(shop, shop.recommend()), 0)
    shop.close()

    def audit(*options):
        store = str(tmp_path / "shop.db")
        monkeypatch.setattr(sys, "argv", ["firstclick", "audit", "--slates", *options, "--store", store])
        with pytest.raises(SystemExit) as ended:
            main()
        assert not ended.value.code
        return capsys.readouterr().out

    assert f"3 slates drawn again equal, 0 differ, 1 not evaluable (1 {NOT_RECORDED})" in audit()
    (found,) = json.loads(audit("--json"))["slates"]
    assert (found["equal"], found["differing"]) == (3, 0)
