"""Slates that can be reproduced and explained, and what a ranker learns from the log of a service."""

import json
import random
import sys
import threading

import msgspec
import numpy as np
import polars as pl
import pytest

from firstclick import Catalog, Ranker
from firstclick.catalog.feature_scale import FeatureScale
from firstclick.cli import main
from firstclick.online.request import with_pinned
from firstclick.serve import Item
from firstclick.serve.log.drawn import NOT_RECORDED, TOO_MANY_CANDIDATES
from firstclick.serve.log.events import Event, Kind, Words, as_json, full_payload
from firstclick.serve.model.explained import NO_BEST_SLATE
from firstclick.serve.model.model import Model
from firstclick.serve.model.sources import ARCHIVED, LOST, OTHER_ARM
from tests.support.clock import Clock
from tests.support.logs import feedback_of, move_to_archive, play, reproduce
from tests.support.policies import policies
from tests.support.refusals import check_refused
from tests.support.shop import IDS, LIST, K, new_item


@pytest.fixture
def shop(open_shop):
    return open_shop(policy="cascade-lin-ts", clock=Clock())


def forget_source(shop, slate):
    """A token of this slate without what it was drawn from."""
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


# `firstclick log --explain`


@pytest.fixture
def log(monkeypatch, capsys, tmp_path):
    """`log("--last", 5)`: the lines that `firstclick log shop --explain --last 5` prints, and its notes."""

    def log(*words, model="shop", code=0):
        words = ["firstclick", "log", model, "--store", tmp_path / "shop.db", "--explain", *words]
        monkeypatch.setattr(sys, "argv", [str(word) for word in words])
        with pytest.raises(SystemExit) as ended:
            main()
        printed = capsys.readouterr()
        assert (ended.value.code or 0) == code, printed.err
        return [json.loads(line) for line in printed.out.splitlines()], printed.err

    return log


def play_explained(shop, steps, seed):
    """What the answer for each slate explained, in the order of the feedback."""
    slates = play(shop, steps, seed, explain=True)
    return [[*slate.without_exploring] for slate in slates]


def explained(lines):
    return [line["without_exploring"] for line in lines if line["kind"] == "feedback"]


def test_each_slate_is_explained_as_the_answer_was(shop, log):
    answers = play_explained(shop, 60, 1)
    shop.withdraw_items(["i1"])
    shop.set_explore(0.3)
    answers += play_explained(shop, 40, 2)
    shop.set_baseline(LIST, 0.3)
    answers += play_explained(shop, 60, 3)
    shop.roll_back(40)
    answers += play_explained(shop, 40, 4)
    lines, notes = log()
    assert (explained(lines), notes) == (answers, "")
    assert [line["seq"] for line in lines] == [*range(1, len(lines) + 1)]
    values = [value for answer in answers for value in answer]
    assert 50 < sum(values) < len(values) - 50, "both happen, or the test could not fail"
    reasons = {reason for line in lines for reason in line.get("reasons", ())}
    assert reasons == {"policy", "explored", "pinned", "floor"}
    assert "without_exploring" not in lines[0]


def test_a_part_of_a_log_is_explained_from_a_snapshot_and_only_that(shop, log, monkeypatch):
    answers = play_explained(shop, 50, 1)
    shop.snapshot()
    snapshot = shop.seq
    answers += play_explained(shop, 50, 2)
    counted, explain = [], Model.explained

    def counting(model, *slate):
        counted.append(model.seq)
        assert model.restored_from in (0, snapshot)
        return explain(model, *slate)

    monkeypatch.setattr(Model, "explained", counting)
    for words, n in (
        (("--last", 7), 7), (("--last", 7, "--kind", "feedback"), 7),
        (("--after", snapshot + 5), shop.seq - snapshot - 5),
    ):  # fmt: skip
        counted.clear()
        lines, _ = log(*words)
        assert len(lines) == len(counted) == n, words
        assert explained(lines) == answers[-n:]


def test_slates_that_cannot_be_explained_are_null_with_a_note(shop, log, tmp_path):
    answers = play_explained(shop, 40, 1)
    shop.feedback(forget_source(shop, shop.recommend()), 0)
    assert reproduce(shop).not_evaluable == {NOT_RECORDED: 1}
    lines, notes = log("--last", 3)
    assert explained(lines) == [*answers[-2:], None]
    assert notes == "note: 1 of 3 slates are not explained: 1 the log does not say what it was drawn from\n"
    move_to_archive(shop, shop.seq - 3, tmp_path / "old")
    lines, notes = log()
    n_archived = explained(lines).count(None) - 1
    assert explained(lines)[-1] is None
    assert not n_archived or f"{n_archived} {ARCHIVED}" in notes
    assert explained(log("--archive", tmp_path / "old", "--after", 3)[0]) == [*answers[1:], None]


def test_slates_of_a_fork_are_explained_by_the_model_that_drew_them(shop, log):
    answers = play_explained(shop, 40, 1)
    forked = shop.fork("cascade-lin-ts", "fork")
    forked.feedback(forked.recommend(), 0)
    lines, notes = log(model="fork")
    assert notes == ""
    assert explained([line for line in lines if "origin" in line]) == answers
    assert len(lines[-1]["without_exploring"]) == K


def test_a_policy_without_a_best_slate_explains_none(open_shop, log):
    shop = open_shop(policy="random")
    slate = shop.recommend(explain=True)
    assert slate.without_exploring is None
    shop.feedback(slate, 0)
    lines, notes = log()
    assert explained(lines) == [None]
    assert NO_BEST_SLATE in notes


def test_the_log_names_the_arms_of_a_trial_in_lines_and_in_parquet(open_shop, log, tmp_path):
    shop = open_shop(clock=Clock())
    # The trial's key is random: with these shares some slates are the other model's, but for one run in 10^4.
    shop.set_baseline(LIST, 0.9)
    shop.set_no_click_after(60)
    shop.fork("cascade-lin-ts", "other")
    shop.start_trial({"policy": 0.2, "baseline": 0.1, "model:other": 0.7})
    draw = random.Random(3)
    slates = [
        shop.recommend(unit=f"user {draw.randrange(9)}", explain=True, pinned={1: "i5"}) for _ in range(30)
    ]
    slates += [shop.recommend() for _ in range(10)]
    for slate in slates[:-3]:
        shop.feedback(slate, draw.choice([None, 0]))
    shop.service.clock.move(100)
    shop.run_background()
    assert shop.describe()["timed_out"] == 3
    shop.feedback(slates[-1], 0)
    lines, notes = log()
    started = next(line for line in lines if line["kind"] == "trial-started")
    assert "key" not in started
    pages = [line for line in lines if line["kind"] == "feedback"]
    # The guardrail shows the list in each arm; that is this model's slate.
    others = [line for line in pages if line["arm"] == 2 and line["choice"] == "policy"]
    assert f"note: {len(others)} of 40 slates are not explained: {len(others)} {OTHER_ARM}\n" == notes
    for line in pages:
        assert (line["trial"], line["period"]) == (started["trial"], 0)
        assert line["arm_name"] == ["policy", "baseline", "model:other"][line["arm"]]
        assert (line["without_exploring"] is None) == (line in others)
        assert line["choice"] == {1: "holdout"}.get(line["arm"], line["choice"])
        assert ("bucket" in line) == (line in pages[:30])
    reasons = {tuple(line.get("reasons", ["policy"] * K)) for line in pages}
    assert reasons == {slate.reasons for slate in slates}
    assert all("pinned" in line["reasons"] for line in others if "bucket" in line)
    assert [line["click"] for line in lines if line["kind"] == "correction"] == [0]
    assert sum("timed_out" in line for line in pages) == 3

    file = tmp_path / "log.parquet"
    log("--out", file)
    for row, line in zip(pl.read_parquet(file).to_dicts(), lines, strict=True):
        if line["kind"] in ("feedback", "correction"):
            row = {word: value for word, value in row.items() if value is not None}
            line = {word: value for word, value in line.items() if value is not None}
            assert row.pop("pinned", "null") == json.dumps(line.pop("pinned", None))
            assert row == line | {"items": [str(id) for id in line["items"]]}
        else:
            assert json.loads(row["change"]).items() <= line.items()


def test_a_slate_that_was_decided_outlives_the_removal_of_the_baseline(shop, monkeypatch):
    shop.set_baseline(LIST, 0.001)
    launch = shop.internals.launch
    decide, removing = launch.decide, threading.Thread(target=shop.remove_baseline)

    def decide_and_remove(*request, **more):
        decision = decide(*request, **more)
        removing.start()
        removing.join(0.3)
        return decision

    monkeypatch.setattr(launch, "decide", decide_and_remove)
    slate = shop.recommend()
    assert (slate.items, slate.reasons) == (LIST[:K], ("floor",) * K)
    removing.join()
    assert launch.baseline is None


# What a ranker learns from the log

FEATURES = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5], [0.2, 0.8]])


def items_of(features):
    return [Item(number, features=row) for number, row in enumerate(np.array(features, float))]


def ranker_of(policy, features=FEATURES, ids=(0, 1, 2, 3)):
    return Ranker(Catalog(ids, features), k=2, policy=policy)


def check_same_state(shop, ranker):
    learned = ranker.state._asdict()
    for name, array in shop.state().items():
        np.testing.assert_array_equal(array, learned[name])


@pytest.mark.parametrize("raw", [FEATURES * 7, [[10, 1.0, 2], [10, 5, 3], [10, 9, 1], [10, 2, 8]]])
@pytest.mark.parametrize("scale", [True, False])
def test_log_has_features_as_sent_and_teaches_a_ranker_the_same(open_shop, raw, scale):
    given = np.array(raw, float)
    own = given[::-1] / 3
    shop = open_shop(policy="cascade-lin-ts", k=2, items=items_of(given), seed=1, scale=scale)
    slate = shop.recommend(candidates=[0, 1, 2, 3], features=own)
    shop.feedback(slate, click=1)
    shop.put_items([Item("late", features=given[2] + 1)])
    created, feedback, put = shop.events()
    assert created["n_features"] == given.shape[1]
    np.testing.assert_allclose([item["features"] for item in created["items"]], given, rtol=1e-14)
    np.testing.assert_allclose(put["items"][0]["features"], given[2] + 1, rtol=1e-14)
    np.testing.assert_allclose(feedback["features"], own[slate.items], rtol=1e-14)
    by_hand, from_log = (ranker_of("cascade-lin-ts", given) for _ in range(2))
    by_hand.warm_start([{"items": slate.items, "click": 1, "features": own[slate.items].tolist()}])
    assert from_log.warm_start([created, feedback, put]) == 1
    for one, other in zip(from_log.state, by_hand.state, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_what_was_rolled_back_is_learned_by_neither(open_shop, tmp_path, monkeypatch):
    shop = open_shop(policy="cascade-lin-ts", k=2, items=items_of(FEATURES), seed=1)
    # Each round is three slates and a rollback, of which some go to what others have taken back.
    for to, counted in ((3, 2), (1, 0), (4, 3), (8, 5), (12, 3), (18, 6)):
        for click in (0, None, 1):
            shop.feedback(shop.recommend(), click)
        shop.roll_back(to)
        ranker = ranker_of("cascade-lin-ts")
        assert ranker.warm_start(shop.events()) == counted, to
        check_same_state(shop, ranker)
    out = str(tmp_path / "log.parquet")
    command = ["firstclick", "log", "shop", "--store", str(tmp_path / "shop.db"), "--out", out]
    monkeypatch.setattr(sys, "argv", command)
    with pytest.raises(SystemExit):
        main()
    ranker = ranker_of("cascade-lin-ts", ids=["0", "1", "2", "3"])
    assert ranker.warm_start(pl.read_parquet(out).to_dicts()) == counted


def feedback_as_json(rows, words, **more):
    payload = full_payload([0], 0, bytes(4 * rows), **more)
    return as_json(Event(2, Kind.FEEDBACK, bytes(16), payload, 0.0), words)


def test_features_that_overflow_can_be_printed_too():
    for table in ([[1e200]], [[1.0, np.nan, 1.0, 1e300]]):
        features = np.array(table, "<f8").tobytes()
        words = Words(["a"], scale=FeatureScale(("a", "b"), 1.0, 1e200))
        assert len(feedback_as_json(1, words, features=features)["features"]) == 1


def test_one_click_is_all_clicks_for_a_policy_that_wants_all():
    all_clicks, one_click = (Words(["a"], wants_all=wants_all) for wants_all in (True, False))
    assert feedback_as_json(3, all_clicks)["clicks"] == [0]
    assert "clicks" not in feedback_as_json(3, all_clicks, examined=2)
    assert "clicks" not in feedback_as_json(3, one_click)
