"""A store that turns out to have another history than a server has folded: found, told, and followed."""

import time
from collections import deque
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from firstclick.serve.log.events import NewEvent
from firstclick.serve.log.history import Mark, link_of
from firstclick.serve.maintenance import Maintenance
from firstclick.serve.model import model as model_module
from firstclick.serve.model.audit import audit_stored
from firstclick.serve.model.replay import recover
from firstclick.serve.service import Service, open_service
from firstclick.serve.store.store import Appended, Store
from firstclick.serve.writer import _Waiting
from firstclick.wire.errors import OtherHistory, Unavailable
from tests.faults import mutants
from tests.faults.second_history import copied, replaced
from tests.support import seam
from tests.support.clock import wait_for
from tests.support.made_log import K, made_items
from tests.support.serving import a_site
from tests.support.stores import log_of, sql

# Events of the model before the histories part, and of the one that is lost afterwards.
COMMON, LOST = 4, 9


def create(service, *names):
    for name in names:
        service.create(name, policy="cascade-lin-ts", k=K, items=made_items(), seed=5)


def answer(service, n, click=0, name="shop"):
    for _ in range(n):
        service.feedback(name, service.recommend(name).token, click)


class DivergedStore(NamedTuple):
    """A server that has folded up to event LOST, and the copy of its store at event COMMON."""

    url: str
    service: Service
    copy: str

    def go_on_elsewhere(self, head):
        """The copy gets other events up to this one, and takes the place of the store."""
        with open_service(self.copy) as other:
            answer(other, head - COMMON, click=1)
        replaced(self.url, self.copy)

    def log(self):
        return log_of(self.service.store, 1)

    def check_followed(self):
        """The server serves what the log says, and takes feedback; return what it reports of the loss."""
        wait_for(lambda: not self.service.model("shop").set_back)
        assert served_is_logged(self.service)
        head = self.log()[-1].seq
        answer(self.service, 1)
        assert self.log()[-1].seq == head + 1
        assert served_is_logged(self.service)
        return self.service.models.set_backs["shop"][-1]


def served_is_logged(service):
    model = service.model("shop")
    (stored,) = (stored for stored in service.store.models() if stored.name == "shop")
    wanted = recover(service.store, stored, use_snapshots=False)
    return (model.seq, model.digest(), model.last) == (wanted.seq, wanted.digest(), wanted.last)


@contextmanager
def diverged_store(url, folder):
    # The service polls only when a test says so.
    with open_service(url, poll_seconds=600.0) as service:
        create(service, "shop", "bar")
        answer(service, COMMON - 1)
        copy = copied(url, folder)
        answer(service, LOST - COMMON - 1)
        service.put_items("shop", made_items(1, first=70))
        yield DivergedStore(url, service, copy)


@pytest.fixture
def diverged(store_url, tmp_path):
    with diverged_store(store_url, tmp_path) as made:
        yield made


# -- found by a poll


@pytest.mark.parametrize("head", [COMMON, COMMON + 1, LOST, LOST + 3])
def test_a_poll_finds_that_events_are_gone_wherever_the_log_ends(diverged, head, caplog):
    """Before the old head, at it with other events, and past it."""
    found = found_by_a_poll(diverged, head)
    assert (found.known, found.lost, found.exact) == (LOST, LOST - COMMON, True)
    assert f"shop: the store was set back: {found}" in caplog.text


def found_by_a_poll(diverged, head):
    diverged.go_on_elsewhere(head)
    diverged.service.run_background()
    return diverged.check_followed()


def test_longer_log_is_followed_without_a_report(diverged, tmp_path):
    copy = copied(diverged.url, tmp_path)
    with open_service(copy) as other:
        answer(other, 3)
    replaced(diverged.url, copy)
    model = diverged.service.model("shop")
    diverged.service.run_background()
    assert diverged.service.model("shop") is model
    assert model.seq == LOST + 3
    answer(diverged.service, 1)
    assert served_is_logged(diverged.service)
    assert diverged.service.models.set_backs == {}


# -- found by an append


@pytest.mark.parametrize("head", [COMMON, LOST, LOST + 3])
def test_append_to_a_diverged_log_writes_nothing_and_reloads(diverged, head):
    service = diverged.service
    token = service.recommend("shop", exclude=["i70"]).token  # Which the other history does not have.
    diverged.go_on_elsewhere(head)
    before = diverged.log()
    with pytest.raises(Unavailable, match="the store was set back"):
        service.feedback("shop", token, 0)
    assert diverged.log() == before
    # Slates are shown meanwhile, and nothing else is taken.
    assert len(service.recommend("shop").items) == K
    with pytest.raises(Unavailable, match="is being loaded again"):
        service.withdraw_items("shop", ["i3"])
    service.run_background()
    diverged.check_followed()
    assert service.feedback("shop", token, 0).status == "accepted"


def test_other_models_in_the_batch_are_written(diverged):
    service = diverged.service
    diverged.go_on_elsewhere(LOST)
    payload, outcomes = diverged.log()[1].payload, {"shop": [], "bar": []}

    def waiting(name):
        token = service.keys.read(service.recommend(name).token, service.model(name).id, days=7)
        event = NewEvent(1, token.nonce, payload, time.time())
        return _Waiting([(service.model(name), event)], outcomes[name].append)

    service.writer._commit([waiting(name) for name in ("shop", "bar", "shop", "bar")])
    assert [type(outcome) for outcome in outcomes["shop"]] == [Unavailable] * 2
    assert [appended.seq for (appended,) in outcomes["bar"]] == [2, 3]
    assert [event.seq for event in log_of(service.store, 2)] == [1, 2, 3]
    assert len(diverged.log()) == LOST
    assert seam.model(service, "bar").seq == 3


def test_appends_of_other_processes_do_not_diverge(store):
    first = NewEvent(0, bytes(16), b"born", 1.0)
    model = store.create("shop", [first]).id
    mark = store.marks(model, 1, 1)[1]
    for n in range(1, 4):
        event = NewEvent(1, bytes([n] * 16), b"clicked", 1.0)
        assert store.append([(model, event)], {model: mark}) == [Appended(n + 1, True, b"clicked")]
    with pytest.raises(OtherHistory) as raised:
        store.append([(model, first._replace(nonce=b"x" * 16))], {model: mark._replace(link=b"another.")})
    assert raised.value.models == {model}
    assert store.head(model) == 4


# -- found at a restart


@pytest.mark.parametrize("head", [COMMON, LOST, LOST + 3])
def test_restart_uses_no_snapshot_of_a_lost_history(store_url, tmp_path, head, caplog):
    found_at_a_restart(store_url, tmp_path, head)
    assert f"shop: the store was set back: at least {max(1, LOST - head)} event" in caplog.text


def found_at_a_restart(url, folder, head):
    with diverged_store(url, folder) as diverged:
        seam.model(diverged.service, "shop").snapshot()
        ((seq, snapshot),) = diverged.service.store.snapshots(1)
        diverged.go_on_elsewhere(head)
        # As a server would have left it that did not compare.
        diverged.service.store.save_snapshot(1, seq, snapshot)
    for _ in range(2):
        with open_service(url) as service:
            assert served_is_logged(service)
            assert service.store.snapshots(1) == [], "those of the lost history are removed"
    assert service.models.set_backs == {}, "it was told once"


def test_no_snapshot_of_a_lost_history_gets_into_the_store(diverged):
    diverged.go_on_elsewhere(LOST + 1)
    with pytest.raises(OtherHistory):
        seam.model(diverged.service, "shop").snapshot()
    assert diverged.service.store.snapshots(1) == []


# -- the same event at the same place, and another one before it


def same_last_event(diverged):
    """A process that lost its connection while it committed sends the same batch again, after the failover:
    the same event, to the last bit, at the same place. But another one came before it there."""
    last = diverged.log()[-1]
    with open_service(diverged.copy) as other:
        answer(other, LOST - COMMON - 1, click=1)
        folded = {1: other.model("shop").last}
        (place,) = other.store.append([(1, NewEvent(*last[1:]))], folded)
        assert place.seq == last.seq
    replaced(diverged.url, diverged.copy)
    assert diverged.log()[-1] == last


def test_event_sent_again_does_not_hide_lost_events_before_it(diverged):
    same_last_event(diverged)
    diverged.service.run_background()
    assert diverged.service.model("shop").set_back or diverged.service.models.set_backs
    found = diverged.check_followed()
    assert (found.lost, found.exact) == (LOST - COMMON, True)


def test_append_after_an_event_sent_again_is_refused(diverged):
    same_last_event(diverged)
    with pytest.raises(Unavailable, match="the store was set back"):
        answer(diverged.service, 1)


# -- how many


def test_loss_beyond_memory_is_reported_as_at_least(diverged, tmp_path, monkeypatch):
    monkeypatch.setattr(model_module, "PAST", 3)
    model = diverged.service.model("shop")
    model.past = deque(model.past, maxlen=3)
    found = found_by_a_poll(diverged, LOST + 2)
    assert (found.lost, found.exact) == (3, False)
    # To a shorter log: what is beyond its end is gone for sure.
    copy = copied(diverged.url, tmp_path)
    answer(diverged.service, 8)
    known = seam.model(diverged.service, "shop").seq
    replaced(diverged.url, copy)
    diverged.service.run_background()
    found = diverged.check_followed()
    assert (found.known, found.lost, found.exact) == (known, 8, False)


def test_events_appended_and_never_replayed_count_as_lost(diverged, monkeypatch):
    """The store is set back between a commit and the fold of what it holds, of which some is another's."""
    service, append = diverged.service, diverged.service.store.append

    def set_back_after(*given):
        append_beside(diverged.url, NewEvent(1, b"another process ", diverged.log()[1].payload, 1.0))
        done = append(*given)
        diverged.go_on_elsewhere(COMMON)
        return done

    monkeypatch.setattr(service.store, "append", set_back_after)
    answer(service, 1)
    monkeypatch.undo()
    service.run_background()
    found = diverged.check_followed()
    assert (found.known, found.lost) == (LOST + 2, LOST + 2 - COMMON)


def append_beside(url, event):
    """Append as another process would; a file of SQLite has none, and gets it by hand."""
    ((head, link),) = sql(url, "SELECT seq, link FROM {event} WHERE model = 1 ORDER BY seq DESC LIMIT 1")
    columns = "(model, seq, kind, nonce, payload, received, link)"
    row = (1, head + 1, *event, link_of(event, bytes(link)))
    sql(url, f"INSERT INTO {{event}} {columns} VALUES (?, ?, ?, ?, ?, ?, ?)", *row)
    sql(url, "UPDATE {model} SET head = ? WHERE id = 1", head + 1)


# -- told


def test_readiness_and_metrics_report_lost_events(tmp_path):
    with a_site(tmp_path, of_service={"poll_seconds": 600.0}) as site:
        place = str(tmp_path / "shop.db")
        copy = copied(place, tmp_path)
        answer(site.service, 5)
        assert site.ask("GET", "/health/ready").json() == {"status": "ready", "durability": "full"}
        feedback = {"token": site.recommend()["token"], "click": 0}
        replaced(place, copy)
        for refused in (
            site.ask("POST", "/v1/models/shop/feedback", feedback),
            site.ask("GET", "/health/ready"),
        ):
            assert refused.status_code == 503
            assert "the store was set back" in refused.json()["error"]["message"]
        assert site.ask("POST", "/v1/models/shop/recommend", {}).status_code == 200
        site.service.run_background()
        wait_for(lambda: not site.service.model("shop").set_back)
        ready = site.ask("GET", "/health/ready")
        assert ready.status_code == 200
        (report,) = ready.json()["set_back"]
        assert "model 'shop': 5 events up to event 6 are gone" in report
        metrics = site.ask("GET", "/metrics").text.splitlines()
        assert 'firstclick_set_backs_total{model="shop"} 1.0' in metrics
        assert 'firstclick_lost_events_total{model="shop"} 5.0' in metrics
        assert site.ask("POST", "/v1/models/shop/feedback", feedback).status_code == 201


def test_model_of_a_lost_history_is_not_served_under_its_number(store_url, tmp_path):
    with open_service(store_url, poll_seconds=600.0) as service:
        create(service, "shop")
        copy = copied(store_url, tmp_path)
        create(service, "late")
        number, token = service.model("late").id, service.recommend("late").token
        with open_service(copy) as other:
            create(other, "other")
            assert other.model("other").id == number
        replaced(store_url, copy)
        with pytest.raises(Unavailable, match="model 'late': the store was set back"):
            service.feedback("late", token, 0)
        assert len(log_of(service.store, number)) == 1
        service.run_background()
        wait_for(lambda: service.names() == ["other", "shop"])
        answer(service, 1, name="other")


def test_log_changed_in_place_is_served_and_reported(store_url, tmp_path, caplog):
    """Not set back: loading it again and again would help nobody."""
    with diverged_store(store_url, tmp_path) as diverged:
        one, other = diverged.log()[1:3]
    sql(store_url, "UPDATE {event} SET payload = ? WHERE model = 1 AND seq = 2", other.payload)
    assert one.payload != other.payload
    with open_service(store_url, poll_seconds=600.0) as service:
        assert "shop: events up to 9 are not what was appended" in caplog.text
        service.run_background()
        answer(service, 2)
        assert service.models.set_backs == {}
        seam.model(service, "shop").snapshot()
    with open_service(store_url) as service:
        assert service.model("shop").restored_from == LOST + 2
        (difference,) = audit_stored(service.store, service.store.models()[0]).differing
        assert "links differ" in difference


# -- servers that do not compare are found out

FORGETFUL = {
    "poll_not_inclusive": (Store, "events_after", lambda diverged: found_by_a_poll(diverged, LOST + 3)),
    "poll_sees_only_the_head": (Maintenance, "_follow", lambda diverged: found_by_a_poll(diverged, LOST)),
    "append_does_not_compare": (
        Store, "append",
        lambda diverged: test_append_to_a_diverged_log_writes_nothing_and_reloads(diverged, LOST),
    ),
    "links_are_not_compared": (
        Mark, "same", test_event_sent_again_does_not_hide_lost_events_before_it,
    ),
    "snapshot_not_checked": (
        Store, "marks",
        lambda diverged: found_at_a_restart(f"{diverged.url}-2", Path(diverged.url).parent, LOST),
    ),
}  # fmt: skip


@pytest.mark.parametrize("mutant", FORGETFUL)
def test_server_that_does_not_compare_fails(mutant, tmp_path, monkeypatch):
    owner, name, case = FORGETFUL[mutant]
    with diverged_store(str(tmp_path / "shop.db"), tmp_path) as diverged:
        monkeypatch.setattr(owner, name, getattr(owner, name))  # Put back afterwards.
        mutants.ALL[mutant]()
        with pytest.raises((AssertionError, pytest.fail.Exception)):
            case(diverged)
