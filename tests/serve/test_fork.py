"""A fork is what a new model of its policy would be, had it been told the same; copied slates are still their
origin's."""

import time

import msgspec
import numpy as np
import pytest

from firstclick import policy_classes
from firstclick.catalog.item import Item
from firstclick.registry import is_research, make_policy
from firstclick.serve import Tuning
from firstclick.serve.log.copies import creation_of, seen_by
from firstclick.serve.log.events import (
    Correction,
    Created,
    Kind,
    NewEvent,
    packed,
    read_feedback,
    unpacked,
)
from firstclick.serve.model.archive import ArchivedLog, archive, opened_archives
from firstclick.serve.model.export import export_model, import_model
from firstclick.serve.model.fork import COPIES, fork
from firstclick.serve.model.replay import recover
from firstclick.serve.model.slates import audit_slates
from firstclick.serve.model.sources import ARCHIVED, COPIED, NOT_HERE
from firstclick.serve.service import open_service
from firstclick.wire.errors import Conflict, Malformed, Unknown
from tests.support import seam
from tests.support.forked_shop import FEATURES, IDS, K, Shop, assert_same, first_items
from tests.support.made_log import Log
from tests.support.policies import COMPILED, OTHERS
from tests.support.stores import feedback, log_of

OURS = {name: cls for name, cls in policy_classes().items() if cls.__module__.startswith("firstclick.")}
ABLE = [name for name, cls in OURS.items() if cls.learns_from_others and not cls.unit_features]


@pytest.fixture
def service(tmp_path):
    # No event but those of the test, however long it takes.
    with open_service(str(tmp_path / "service.db"), tuning=Tuning(count_seconds=1e9)) as service:
        yield service


def stored_of(store, name):
    return next(stored for stored in store.models() if stored.name == name)


def drawn_again(store, name):
    return audit_slates(store, stored_of(store, name))


def n_feedback(store, name):
    return sum(event.kind == Kind.FEEDBACK for event in log_of(store, stored_of(store, name).id))


def rows_in(store, table):
    ((n,),) = store._database.rows(f"SELECT count(*) FROM {store.prefix}{table}")
    return int(n)


def pairs():
    """Origins and policies of forks: `make test` compiles three policies; others are plain Python, some of
    them for each thing that an origin may have and its fork not, or the other way round."""
    quick = {
        *(("cascade-lin-ts", policy) for policy in ABLE if not is_research(OURS[policy])),
        ("cascade-lin-ts", "pbm-ucb"),
        ("cascade-mixed", "cascade-lin-ucb"),
        ("context-lin-ts:context=2", "c3-ucb"),
        ("context-lin-ts:context=2", "cascade-ts"),
        ("dcm-lin-ts", "cascade-lin-ts"),
    }
    found = []
    for origin in ("cascade-lin-ts", "cascade-mixed", "cascade-ts", "context-lin-ts:context=2", "dcm-lin-ts"):
        for policy in ABLE:
            marks = [] if {origin, policy} <= set(COMPILED) else [OTHERS]
            if marks and (origin, policy) not in quick:
                marks.append(pytest.mark.long)
            found.append(pytest.param(origin, policy, marks=marks))
    return found


@pytest.mark.parametrize(("origin", "policy"), pairs())
def test_a_fork_is_what_a_new_model_of_its_policy_would_be(service, origin, policy):
    shop = Shop(service, origin).live()
    before = seam.model(service, "shop").digest()
    forked = service.fork("shop", policy, "shop2")
    assert forked.policy == make_policy(policy).with_context(shop.policy.n_context).label
    assert_same(forked, shop.anew(policy))
    assert seam.model(service, "shop").digest() == before
    assert (forked.seq, forked.id) == (seam.model(service, "shop").seq, 2)
    assert forked._key != service.model("shop")._key
    assert service.audit("shop2").equal
    # Its slates and those of its origin are drawn again, each by the model that drew it.
    n = n_feedback(service.store, "shop")
    context = [0.5] * forked.engine.policy.n_context or None
    for click in (0, None, 1):
        service.feedback("shop2", service.recommend("shop2", context=context), click)
    found = drawn_again(service.store, "shop2")
    assert (found.equal, found.differing, found.other_build, found.not_evaluable) == (n + 3, 0, 0, {})
    assert found.by_origin == {f"shop ({shop.policy.name})": n}


@pytest.mark.parametrize("policy", ["cascade-lin-ts", "cascade-mixed"])
def test_a_shop_without_features(service, policy):
    shop = Shop(service, "cascade-ts", table=None).live()
    if policy == "cascade-mixed":
        assert_same(service.fork("shop", policy, "shop2"), shop.anew(policy))
        return
    with pytest.raises(Malformed, match="needs features, and the items have none, so that it cannot") as told:
        service.fork("shop", policy, "shop2")
    able = str(told.value).partition("these can: ")[2].split(", ")
    assert {"cascade-mixed", "cascade-ucb1"} <= set(able)
    assert not {"cascade-lin-ucb", "bubble-rank", "batch-rank"} & set(able)


def test_a_catalog_of_columns(service):
    """Encoded again from what people gave, so that no digit is lost in a scale that is undone."""
    items = [
        Item(item, features={"price": 3.1 + row * row / 7, "brand": "Acme" if row % 3 else "Bolt"})
        for row, item in enumerate(IDS)
    ]
    later = [Item("new", features={"price": 71 / 7}), Item("i3", features={"brand": "Crux"})]
    service.create("shop", policy="cascade-lin-ts", k=K, items=items, seed=1)
    service.feedback("shop", service.recommend("shop"), 1)
    service.put_items("shop", later)
    service.feedback("shop", service.recommend("shop"), 0)
    forked = service.fork("shop", "cascade-mixed", "shop2")
    anew = service.create("anew", policy="cascade-mixed", k=K, items=items, seed=1)
    service.put_items("anew", later)
    np.testing.assert_array_equal(forked.engine.features, anew.engine.features)
    assert forked.catalog.values == anew.catalog.values
    assert forked.describe()["notes"][0] == "events up to 4 are those of shop (cascade-lin-ts)"
    # Its encoder goes on as that of the origin.
    service.put_items("shop2", [Item("more", features={"price": 9, "brand": "Acme"})])
    assert drawn_again(service.store, "shop2").equal == 2
    assert service.audit("shop2").equal


def test_a_policy_that_sees_the_same_gets_the_same_bytes(service):
    Shop(service, "cascade-lin-ts", table=FEATURES * np.pi).live()
    service.fork("shop", "cascade-lin-ts:sigma=2", "shop2")
    assert log_of(service.store, 2)[1:] == log_of(service.store, 1)[1:]


def test_a_fork_of_a_fork_knows_whose_each_slate_is(service):
    shop = Shop(service, "cascade-lin-ts").live()
    service.fork("shop", "cascade-mixed", "second")
    second = shop.called("second", "cascade-mixed")
    second.put(Item("n2", features=[5.5, 0.75, 2.0]))
    second.play(12, 7)
    forked = service.fork("second", "cascade-lin-ts", "third")
    assert_same(forked, second.anew("cascade-lin-ts"))
    service.feedback("third", service.recommend("third"), 0)
    found = drawn_again(service.store, "third")
    n = n_feedback(service.store, "shop")
    assert (found.equal, found.differing, found.not_evaluable) == (n + 13, 0, {})
    assert found.by_origin == {"shop (cascade-lin-ts)": n, "second (cascade-mixed)": 12}
    # The logs of both are in that of the third, to the last bit.
    events = {name: log_of(service.store, stored_of(service.store, name).id) for name in service.names()}
    created = unpacked(events["third"][0], Created)
    for place, name in enumerate(("shop", "second")):
        assert created.origins[place].upto == len(events[name])
        wanted = events[name]
        assert [seen_by(event, place, created) for event in events["third"][: len(wanted)]] == wanted
    # Others may get it as a file, and the origins need not be there.
    content = b"".join(service.export("third"))
    for name in ("shop", "second", "third"):
        service.delete(name)
    service.import_model("copy", content)
    assert drawn_again(service.store, "copy")[1:5] == found[1:5]


@pytest.mark.parametrize("policy", ["cascade-lin-ts", "cascade-ts"])
def test_a_shop_that_was_launched_with_a_list_a_floor_a_trial_and_time_outs(service, policy):
    items = first_items()
    model = service.create("shop", policy="cascade-mixed", k=K, items=items, seed=5, no_click_after=60.0)
    service.set_baseline("shop", IDS[:5], 0.3)
    service.start_trial("shop", {"policy": 0.5, "baseline": 0.3, "policy:cascade-ts": 0.2})
    late = []
    for step in range(60):
        slate = service.recommend("shop", unit=f"user {step % 17}")
        if step % 5:
            service.feedback("shop", slate, (None, 0, 1)[step % 3])
        else:
            late.append(slate)
    service.change_trial_shares("shop", {"policy": 0.8, "baseline": 0.1, "policy:cascade-ts": 0.1})
    assert service.no_clicks._give_up(model, time.time() + 61) == len(late)
    for slate in late[:4]:
        service.feedback("shop", slate, 1)
    service.no_clicks._append_counts(model, time.time())
    assert model.reports.recommended == 60
    wanted = drawn_again(service.store, "shop")
    assert wanted.equal > 30
    assert wanted.differing == 0

    stored = stored_of(service.store, "shop")
    forked = fork(service.store, service.store, stored, "shop2", policy)
    found = drawn_again(service.store, "shop2")
    assert found._replace(seconds=0, name="shop", by_origin={}) == wanted._replace(seconds=0)
    again = recover(service.store, forked.stored)
    assert (again.launch.trial, again.launch.baseline.items) == (None, tuple(IDS[:5]))
    assert again.launch.baseline.floor.report().pages == 0, "its own policy has shown none"
    assert (again.no_click_after, again.reports.recommended) == (60.0, 0)
    corrects = policy == "cascade-ts"
    assert (forked.late_clicks, again.reports.corrected) == ((0, 4) if corrects else (4, 0))
    assert again.click_stats.skipped == 0
    assert again.click_stats.slates == model.click_stats.slates == 60
    # Slates of other arms teach it too.
    events = log_of(service.store, stored.id)
    if corrects:
        assert again.engine.state.examined.sum() == _examined(events)


def _examined(events):
    """How many positions were examined in the end: up to the first click, or all."""
    said = {event.seq: read_feedback(event.payload) for event in events if event.kind == Kind.FEEDBACK}
    for event in events:
        if event.kind == Kind.CORRECTION:
            body = unpacked(event, Correction)
            said[body.seq] = read_feedback(body.feedback)
    return sum(len(one.rows) if one.click is None else one.click + 1 for one in said.values())


def test_tokens_that_are_out_stay_with_the_old_model(service):
    Shop(service, "cascade-lin-ts").play(3, 1)
    out = service.recommend("shop")
    service.fork("shop", "cascade-ts", "shop2")
    with pytest.raises(Unknown):
        service.feedback("shop2", out, 0)
    assert service.feedback("shop", out, 0).seq == 5
    assert seam.model(service, "shop2").seq == 4
    assert service.model("shop2").describe()["slates"] == 3


def test_policies_that_cannot_learn_from_a_log_are_told_why(service):
    Shop(service, "cascade-ts").play(3, 1)
    for policy, told in (
        ("c3-ucb:context=2", "wants 2 numbers of context with each slate, and the slates have none"),
        (
            "bubble-rank",
            "learns from slates that it has shuffled itself, so that it cannot learn from",
        ),
        ("cascade-hybrid:topics=2", "cannot learn from the log of 'shop': .*shares from 0 to 1"),
    ):
        with pytest.raises(Malformed, match=told) as error:
            service.fork("shop", policy, "shop2")
        if "these can: " in str(error.value):
            able = str(error.value).partition("these can: ")[2].split(", ")
            assert {"c3-ucb", "cascade-mixed", "cascade-lin-ts"} <= set(able)
            assert not {"cascade-hybrid", "bubble-rank"} & set(able)
    assert service.names() == ["shop"]
    assert rows_in(service.store, "event") == 4
    assert rows_in(service.store, "unfinished") == 0


def test_every_kind_of_event_has_its_way_into_a_fork():
    assert set(COPIES) == set(Kind)


@pytest.fixture(scope="module")
def log():
    return Log().eventful()


@pytest.fixture
def made(store, log):
    """A log in which everything happens, as if it were long."""
    store.tuning = Tuning(events_at_once=17, chunk_events=50)
    return store.create("made", [NewEvent(*event[1:]) for event in log.events])


def test_others_write_while_a_model_is_forked_and_do_not_see_it(store, made):
    shop = store.create("shop", [feedback(0)])
    seen = []

    def progress(done, of):
        store.append([(shop.id, feedback(done))])
        seen.append((done, of, [model.name for model in store.models()]))

    forked = fork(store, store, made, "copy", "cascade-ts", progress=progress)
    assert [done for done, _, _ in seen] == [50, 100, 150, 200, 226]
    assert {of for _, of, _ in seen} == {226}
    assert all(names == ["made", "shop"] for _, _, names in seen)
    assert (forked.policy, forked.left_out, forked.stored.head) == ("cascade-ts", 0, 226)
    assert [seq for seq, _ in store.snapshots(forked.stored.id)] == [226], "nobody has to fold it again"
    folded = recover(store, forked.stored, use_snapshots=False)
    assert folded.digest() == recover(store, forked.stored).digest()
    assert folded.catalog.items == recover(store, made).catalog.items
    assert store.check() == []
    assert rows_in(store, "unfinished") == 0


def test_a_name_that_is_taken_meanwhile_is_refused(store, made):
    def progress(done, of):
        if done == of:
            store.create("copy", [feedback(0)])

    with pytest.raises(Conflict, match="name 'copy' is taken by another model"):
        fork(store, store, made, "copy", "cascade-ts", progress=progress)
    assert rows_in(store, "event") == 227
    assert rows_in(store, "unfinished") == 0


def test_archived_events_are_part_of_a_fork(store, made, tmp_path):
    wanted = state_of(store, fork(store, store, made, "whole", "cascade-ts").stored)
    archive(store, made, 215, tmp_path / "old", token_days=7.0)
    with pytest.raises(Conflict, match="events 2 to 214 of model 'made' are archived, and the whole log is"):
        fork(store, store, made, "copy", "cascade-ts")
    with opened_archives([tmp_path / "old"]) as files:
        forked = fork(store, ArchivedLog(store, made, files), made, "copy", "cascade-ts")
    assert state_of(store, forked.stored) == wanted


def state_of(store, stored):
    return [array.tobytes() for array in recover(store, stored, use_snapshots=False).engine.state]


def test_a_fork_whose_log_is_archived_needs_the_file_to_draw_copied_slates_again(
    service, tmp_path, monkeypatch
):
    Shop(service, "cascade-lin-ts").play(20, 1)
    service.fork("shop", "cascade-ts", "shop2")
    store = service.store
    stored = stored_of(store, "shop2")
    archive(store, stored, 11, tmp_path / "old", token_days=0)
    assert audit_slates(store, stored).not_evaluable == {ARCHIVED: 11}
    with opened_archives([tmp_path / "old"]) as files:
        found = audit_slates(ArchivedLog(store, stored, files), stored)
    assert (found.equal, found.differing, found.not_evaluable) == (20, 0, {})
    # Where what drew them is not installed, or in another version, nobody can.
    monkeypatch.setattr(OURS["cascade-lin-ts"], "version", 99)
    with opened_archives([tmp_path / "old"]) as files:
        assert audit_slates(ArchivedLog(store, stored, files), stored).not_evaluable == {NOT_HERE: 20}


def test_what_an_earlier_version_has_copied_has_no_known_origin(store, service):
    Shop(service, "cascade-lin-ts").play(6, 1)
    events = log_of(service.store, 1)
    first = msgspec.structs.replace(unpacked(events[0], Created), copied=5)
    copied = [events[0]._replace(payload=packed(first)), *events[1:]]
    stored = store.create("copied", [NewEvent(*event[1:]) for event in copied])
    found = audit_slates(store, stored)
    assert (found.equal, found.not_evaluable, found.by_origin) == (2, {COPIED: 4}, {})
    found = audit_slates(store, fork(store, store, stored, "again", "cascade-ts").stored)
    assert (found.equal, found.not_evaluable) == (2, {COPIED: 4})
    assert found.by_origin == {"copied (cascade-lin-ts)": 2}


def test_a_file_that_is_learned_again_names_its_origin(service):
    Shop(service, "cascade-lin-ts").play(6, 1)
    store = service.store
    content = b"".join(export_model(store, stored_of(store, "shop")))
    again = import_model(store, "again", content, relearn=True)
    assert state_of(store, again) == state_of(store, stored_of(store, "shop"))
    assert audit_slates(store, again).by_origin == {"shop (cascade-lin-ts)": 6}


def test_feedback_that_does_not_fit_the_new_policy_keeps_what_it_was(service):
    shop = Shop(service, "cascade-lin-ts")
    shop.play(2, 1)
    service.fork("shop", "cascade-ts", "shop2")
    before, after = shop.event(3).payload, log_of(service.store, 2)[2].payload
    assert read_feedback(before).features
    assert not read_feedback(after).features
    assert read_feedback(after)._replace(fields=b"") == read_feedback(before)._replace(
        fields=b"", features=()
    )
    created = unpacked(log_of(service.store, 2)[0], Created)
    assert creation_of(created, 0) == unpacked(shop.event(1), Created)
    assert FEATURES.tolist() == service.model("shop2").catalog.features_as_given(np.arange(12))
