"""Slates that can be drawn again: from which event, for which request, by which build."""

import json
import random
import sys

import numpy as np
import pytest

from firstclick.catalog.item import Item
from firstclick.cli import main
from firstclick.online import request as request_module
from firstclick.serve.log.drawn import NOT_RECORDED, TOO_MANY_CANDIDATES, read_drawn
from firstclick.serve.log.events import Build, Kind, read_feedback
from firstclick.serve.model import build as build_module
from firstclick.serve.model import model as model_module
from firstclick.serve.model import slates as slates_module
from firstclick.serve.model.archive import ArchivedLog, archive, opened_archives
from firstclick.serve.model.export import export_model, import_model
from firstclick.serve.model.fork import fork
from firstclick.serve.model.slates import audit_slates
from firstclick.serve.model.sources import ARCHIVED, LOST
from firstclick.serve.service import open_service
from firstclick.serve.store import open_store
from firstclick.wire.errors import Malformed, Unknown
from tests.support import seam
from tests.support.made_log import N_FEATURES, K, made_items
from tests.support.policies import policies

N = 30
IDS = [f"i{row}" for row in range(N)]


@pytest.fixture
def place(tmp_path):
    return str(tmp_path / "shop.db")


@pytest.fixture
def service(place):
    with open_service(place) as service:
        service.create("shop", policy="cascade-lin-ts", k=K, items=made_items(N), seed=5)
        yield service


def drawn_again(store, name="shop"):
    return audit_slates(store, next(stored for stored in store.models() if stored.name == name))


def asked(draw, *, features=False):
    """A request with anything that a request may have."""
    some = draw.sample(IDS, draw.randint(1, N - 1))
    choices = [
        {},
        {},
        {},
        {"candidates": some},
        {"exclude": some},
        {"candidates": some, "exclude": IDS[:5]},
        {"candidates": "half"},
        {"candidates": "half", "exclude": IDS[:3], "k": 2},
        {"exclude": "half"},
        {"pinned": {1: "i5", 2: "i6"}, "exclude": ["i6"]},
        {"at_most": 1},
        {"at_most": {"odd": 1}, "pinned": {0: "i3"}, "candidates": some},
        {"request_id": str(draw.random())},
        {"k": 1},
    ]
    if features:
        table = [[1.0, draw.random(), draw.random(), 0.5] for _ in some]
        choices.append({"candidates": some, "features": table})
    return draw.choice(choices)


def play(service, steps, seed=0, *, features=False):
    """Slates whose feedback comes late and in any order."""
    draw = random.Random(seed)
    waiting = []
    for _ in range(steps):
        waiting.append(service.recommend("shop", **asked(draw, features=features)))
        if draw.random() < 0.8:
            slate = waiting.pop(draw.randrange(len(waiting)))
            service.feedback("shop", slate, draw.choice([None, *range(len(slate.items))]))


def test_every_slate_is_drawn_again_through_all_that_can_happen(service, place):
    service.put_list("shop", "half", IDS[: N // 2])
    play(service, 80, 1, features=True)
    service.withdraw_items("shop", ["i1"])
    service.set_available("shop", off=["i2", "i20"])
    play(service, 60, 2, features=True)
    service.set_explore("shop", 0.3)
    play(service, 100, 3, features=True)
    service.roll_back("shop", 40)
    service.put_list("shop", "half", IDS[10:])
    service.put_items("shop", [Item("new", "new", "odd", [1.0, 0.1, 0.2, 0.3])])
    play(service, 60, 4, features=True)
    service.put_items("shop", [Item("i9", features=[1.0, -0.1, 0.2, 0.3])])
    play(service, 40, 5, features=True)
    service.close()
    with open_service(place) as again:
        play(again, 40, 6, features=True)
        found = drawn_again(again.store)
        n_feedback = sum(event.kind == Kind.FEEDBACK for chunk in again.store.events(1, 0) for event in chunk)
        assert found.equal == n_feedback > 280
        assert (found.differing, found.other_build, found.not_evaluable) == (0, 0, {})
        assert again.audit("shop").equal


@pytest.mark.parametrize(
    "policy", policies(["cascade-mixed", "cascade-ts", "cascade-ucb1", "vac2-ucb", "ranked-lin-ts"])
)
def test_any_policy(place, policy):
    with open_service(place) as service:
        service.create("shop", policy=policy, k=K, items=made_items(N), seed=5, explore=0.1)
        service.put_list("shop", "half", IDS[: N // 2])
        play(service, 150)
        found = drawn_again(service.store)
        assert found.equal > 100
        assert found.differing == found.other_build == 0


def test_slates_made_ahead_are_drawn_from_when_they_were_made(service):
    made = [service.recommend("shop") for _ in range(40)]
    assert len({slate.seq for slate in made}) == 1
    for slate in made[::3]:
        service.feedback("shop", slate, 0)
        service.feedback("shop", service.recommend("shop"), None)
    assert drawn_again(service.store).equal == 28


def test_an_imported_model_says_the_same_and_those_of_a_relearned_one_are_its_origins(service, tmp_path):
    service.put_list("shop", "half", IDS[: N // 2])
    play(service, 50)
    store = service.store
    stored = store.models()[0]
    n = drawn_again(store).equal
    import_model(store, "copy", b"".join(export_model(store, stored)))
    assert drawn_again(store, "copy")._replace(name="shop", seconds=0) == drawn_again(store)._replace(
        seconds=0
    )
    fork(store, store, stored, "again")
    found = drawn_again(store, "again")
    assert (found.equal, found.differing, found.not_evaluable) == (n, 0, {})
    assert found.by_origin == {"shop (cascade-lin-ts)": n}


def test_a_fault_is_told_and_another_build_is_none(service, monkeypatch):
    service.put_list("shop", "half", IDS[: N // 2])
    play(service, 60)
    usual = drawn_again(service.store)
    assert usual.equal > 30
    right = request_module.with_pinned
    monkeypatch.setattr(request_module, "with_pinned", lambda free, pinned: right(free, pinned)[::-1])
    wrong = drawn_again(service.store)
    assert 0 < wrong.differing < usual.equal
    assert wrong.equal + wrong.differing == usual.equal
    assert "and what it was drawn from, event" in wrong.told[0]
    other = Build("0.0.1", "0", "0", "abacus")
    monkeypatch.setattr(slates_module, "this_build", lambda policy: other)
    found = drawn_again(service.store)
    assert (found.differing, found.other_build, found.told) == (0, wrong.differing, ())


def test_a_start_of_another_build_is_in_the_log_once(place, monkeypatch):
    with open_service(place) as service:
        service.create("shop", policy="cascade-ts", k=2, items=made_items(5))
        assert seam.model(service, "shop").seq == 1, "the creation says which build made it"
        service.feedback("shop", service.recommend("shop"), 0)
    other = Build("9.9", "0", "0", "abacus")
    for _ in range(2):
        with monkeypatch.context() as patched:
            for module in (model_module, build_module):
                patched.setattr(module, "this_build", lambda policy: other)
            patched.setattr("firstclick.serve.service.this_build", lambda policy: other)
            with open_service(place) as service:
                assert (seam.model(service, "shop").seq, service.model("shop").build) == (3, 1)
                slate = service.recommend("shop")
    with open_service(place) as service:
        model = service.model("shop")
        assert (model.seq, model.build, len(model.builds)) == (3, 0, 2)
        service.feedback("shop", slate, 0)
        (event,) = service.store.events_at(1, [4])
        drawn = read_drawn(read_feedback(event.payload).fields)
        assert drawn is not None
        assert (drawn.seq, drawn.build) == (3, 1)
        assert service.audit("shop").equal


def test_a_slate_of_a_lost_history_is_not_evaluable(service):
    service.feedback("shop", service.recommend("shop"), 0)
    slates = [service.recommend("shop"), service.recommend("shop")]
    service.feedback("shop", service.recommend("shop"), 1)
    later = service.recommend("shop")
    file = service.store._database
    with file.transaction() as connection:
        connection.execute("DELETE FROM event WHERE seq > 1")
        connection.execute("UPDATE model SET head = 1")
    service.close()
    with open_service(str(file.path)) as again:
        again.feedback("shop", again.recommend("shop"), 0)
        for slate in (*slates, later):
            again.feedback("shop", slate, 0)
        found = drawn_again(again.store)
    assert found.not_evaluable == {LOST: 3}
    assert (found.equal, found.differing) == (1, 0)


def test_too_many_candidates_are_told_at_once_and_in_the_log(place):
    items = [Item(f"i{row}", "", "") for row in range(100_000)]
    with open_service(place) as service:
        service.create("shop", policy="cascade-ts", k=2, items=items)
        some = random.Random(1).sample([str(item.id) for item in items], 9_000)
        slate = service.recommend("shop", candidates=some)
        assert slate.not_evaluable == TOO_MANY_CANDIDATES
        service.feedback("shop", slate, 0)
        service.put_list("shop", "some", some)
        by_name = service.recommend("shop", candidates="some")
        assert by_name.not_evaluable == ""
        assert len(by_name.token) < 130
        service.feedback("shop", by_name, 1)
        found = drawn_again(service.store)
        assert (found.equal, found.not_evaluable) == (1, {TOO_MANY_CANDIDATES: 1})


def test_tokens_of_earlier_versions_are_taken_and_count_as_not_evaluable(service):
    slate = service.recommend("shop")
    token = service.keys.read(slate.token, 1, days=1)
    service.feedback("shop", service.keys.sign(token._replace(fields=b"")), 0)
    service.feedback("shop", slate, 0)
    found = drawn_again(service.store)
    assert (found.equal, found.not_evaluable) == (0, {NOT_RECORDED: 1})


# -- lists


def test_a_list_is_changed_removed_and_kept_over_a_restart(service, place):
    service.put_list("shop", "a", ["i1", "i2", "i3", "i1"])
    service.put_list("shop", "b", ["i4"])
    assert set(service.recommend("shop", candidates="a").items) == {"i1", "i2", "i3"}
    service.put_list("shop", "a", ["i4", "i5", "i6"])
    assert set(service.recommend("shop", candidates="a", exclude="b").items) == {"i5", "i6"}
    service.withdraw_items("shop", ["i5"])
    service.roll_back("shop", 2)
    service.remove_list("shop", "b")
    seam.model(service, "shop").snapshot()
    service.close()
    with open_service(place) as again:
        assert again.model("shop").restored_from > 1
        assert set(again.recommend("shop", candidates="a").items) == {"i4", "i5", "i6"}, "not rolled back"
        with pytest.raises(Malformed, match=r"exclude must be ids or the name of a list \('a'\), got 'b'"):
            again.recommend("shop", exclude="b")
        with pytest.raises(Unknown, match="list_name must be a list of model 'shop', got 'b'"):
            again.remove_list("shop", "b")
        assert again.audit("shop").equal


# -- what people see


@pytest.fixture
def lines(monkeypatch, capsys):
    """`lines("audit", "--store", place)`: what that command prints."""

    def lines(*arguments):
        monkeypatch.setattr(sys, "argv", ["firstclick", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        assert not ended.value.code
        return capsys.readouterr().out.splitlines()

    return lines


def test_the_log_tells_the_request_in_ids(service, place, lines):
    service.put_list("shop", "half", IDS[: N // 2])
    service.set_explore("shop", 1.0)
    service.feedback(
        "shop", service.recommend("shop", candidates="half", exclude=["i3"], pinned={0: "i7"}, k=2), 0
    )
    service.feedback("shop", service.recommend("shop", candidates=["i5", "i4"], at_most={"odd": 1}), None)
    service.close()
    told = [json.loads(line) for line in lines("log", "shop", "--store", place)]
    assert [line["kind"] for line in told] == ["created", "list-put", "settings", "feedback", "feedback"]
    assert told[0]["build"]["firstclick"]
    assert told[1]["items"] == IDS[: N // 2]
    assert told[2]["explore"] == 1.0
    first, second = told[3:]
    words = ("drawn_from", "build", "k", "candidates", "exclude", "pinned")
    assert [first[word] for word in words] == [3, 0, 2, "half", ["i3"], {"0": "i7"}]
    assert first["explored"] is True
    assert first["explore_propensities"] == [1.0, 1 / 13]
    assert (second["candidates"], second["at_most"]) == (["i4", "i5"], {"odd": 1})
    assert "exclude" not in second


def test_audit_tells_of_slates(service, place, lines):
    for _ in range(3):
        service.feedback("shop", service.recommend("shop"), 0)
    token = service.keys.read(service.recommend("shop").token, 1, days=1)
    service.feedback("shop", service.keys.sign(token._replace(fields=b"")), 0)
    service.close()
    assert f"shop: 3 slates drawn again equal, 0 differ, 1 not evaluable (1 {NOT_RECORDED})" in lines(
        "audit", "--slates", "--store", place
    )
    (found,) = json.loads("\n".join(lines("audit", "--slates", "--json", "--store", place)))["slates"]
    assert (found["equal"], found["differing"]) == (3, 0)


def test_features_of_a_request_are_part_of_it(service):
    """With other features the same request would give another slate."""
    table = np.eye(N_FEATURES)[[0, 1, 2, 3, 1, 2]] * 3
    service.feedback("shop", service.recommend("shop", candidates=IDS[5::-1], features=table), 0)
    (event,) = service.store.events_at(1, [2])
    drawn = read_drawn(read_feedback(event.payload).fields)
    assert drawn is not None
    assert drawn.features is not None
    assert isinstance(drawn.candidates, np.ndarray)
    assert list(drawn.candidates) == [0, 1, 2, 3, 4, 5]
    assert drawn_again(service.store).equal == 1


def test_a_store_that_is_read_only_is_audited(service, place):
    play_steps = 5
    for _ in range(play_steps):
        service.feedback("shop", service.recommend("shop"), 0)
    with open_store(place, read_only=True) as store:
        assert drawn_again(store).equal == play_steps


def test_archived_slates_are_drawn_again_with_the_archive(service, tmp_path):
    service.put_list("shop", "half", IDS[: N // 2])
    play(service, 80)
    store = service.store
    (stored,) = store.models()
    before = drawn_again(store)
    archive(store, stored, 40, tmp_path / "old", token_days=0)
    rest = drawn_again(store)
    n_left = sum(event.kind == Kind.FEEDBACK for event in store.events_at(1, range(40, stored.head + 1)))
    assert rest.not_evaluable[ARCHIVED] + rest.equal == n_left < before.equal
    assert rest.differing == rest.other_build == 0
    with opened_archives([tmp_path / "old"]) as files:
        both = audit_slates(ArchivedLog(store, stored, files), stored)
    assert both._replace(seconds=0) == before._replace(seconds=0)
