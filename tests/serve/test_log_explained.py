"""`firstclick log --explain`, and what the log tells of a model with a baseline, a trial and timeouts."""

import json
import random
import sys
import threading
from collections.abc import Callable
from typing import Any

import polars as pl
import pytest

from firstclick.cli import main
from firstclick.serve.model.archive import archive
from firstclick.serve.model.explained import NO_BEST_SLATE, ExplainedSlates
from firstclick.serve.model.slates import audit_slates
from firstclick.serve.model.sources import ARCHIVED, OTHER_ARM
from firstclick.serve.service import open_service
from tests.support import seam
from tests.support.clock import Clock
from tests.support.made_log import made_items

N = 30
IDS = [f"i{row}" for row in range(N)]
LIST = ["i9", "i4", "i17", "i2", "i25"]

Answers = dict[str, tuple[bool, ...] | None]


@pytest.fixture
def place(tmp_path):
    return str(tmp_path / "shop.db")


@pytest.fixture
def service(place):
    with seam.open_by_hand(place, Clock()) as service:
        service.create("shop", policy="cascade-ts", k=3, items=made_items(N), seed=5)
        yield service


Log = Callable[..., tuple[list[dict[str, Any]], str]]


@pytest.fixture
def log(monkeypatch, capsys, place):
    """`log("--last", "5")`: the lines that `firstclick log shop --explain --last 5` prints, and its notes."""

    def log(*words, model="shop"):
        monkeypatch.setattr(sys, "argv", ["firstclick", "log", model, "--store", place, "--explain", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        assert not ended.value.code, said.err
        return [json.loads(line) for line in said.out.splitlines()], said.err

    return log


def play(service, steps, seed=0, **asked):
    """Slates with any request whose feedback comes late and in any order; what each answer explained, by the
    nonce."""
    draw = random.Random(seed)
    some = [
        {}, {}, {"candidates": draw.sample(IDS, 8)}, {"exclude": IDS[:9]}, {"at_most": 1, "k": 2},
        {"pinned": {1: "i5"}}, {"pinned": {0: "i3"}, "at_most": {"odd": 1}, "candidates": IDS[2:20]},
    ]  # fmt: skip
    waiting, answers = [], {}
    for _ in range(steps):
        waiting.append(service.recommend("shop", explain=True, **draw.choice(some), **asked))
        if draw.random() < 0.8:
            slate = waiting.pop(draw.randrange(len(waiting)))
            service.feedback("shop", slate, draw.choice([None, *range(len(slate.items))]))
            nonce = service.keys.read(slate.token, service.model("shop").id, days=1).nonce
            answers[nonce.hex()] = slate.without_exploring
    return answers


def as_answered(lines, answers):
    """Whether each line explains as the answer did at that time."""
    told = {line["nonce"]: line["without_exploring"] for line in lines if line["kind"] == "feedback"}
    return told == {
        nonce: answer and list(answer) for nonce, answer in answers.items() if nonce in told
    } and bool(told)


def test_each_slate_is_explained_as_the_answer_was(service, log):
    answers = play(service, 60, 1)
    service.withdraw_items("shop", ["i1"])
    service.set_explore("shop", 0.3)
    answers |= play(service, 40, 2)
    service.set_baseline("shop", LIST, 0.3)
    answers |= play(service, 60, 3)
    service.roll_back("shop", 40)
    answers |= play(service, 40, 4)
    lines, notes = log()
    feedback = [line for line in lines if line["kind"] == "feedback"]
    assert (len(feedback), notes) == (len(answers), "")
    assert as_answered(lines, answers)
    assert [line["seq"] for line in lines] == [*range(1, len(lines) + 1)]
    anyway = [any(line["without_exploring"]) for line in feedback]
    assert 20 < sum(anyway) < len(anyway) - 20, "both happen, or the test could not fail"
    assert {reason for line in feedback for reason in line.get("reasons", ())} == {
        "policy", "explored", "pinned", "floor"
    }  # fmt: skip
    assert "without_exploring" not in lines[0]


def test_a_part_of_a_log_is_explained_from_a_snapshot_and_only_that(service, log, monkeypatch):
    answers = play(service, 50, 1)
    seam.model(service, "shop").snapshot()
    snapshot = seam.model(service, "shop").seq
    answers |= play(service, 50, 2)
    asked = []
    right = service.model("shop").explained.__func__

    def counted(model, *slate):
        asked.append(model.seq)
        assert model.restored_from in (0, snapshot)
        return right(model, *slate)

    monkeypatch.setattr("firstclick.serve.model.model.Model.explained", counted)
    for words, n in (
        (("--last", "7"), 7),
        (("--last", "7", "--kind", "feedback"), 7),
        (("--after", str(snapshot + 5)), seam.model(service, "shop").seq - snapshot - 5),
    ):
        asked.clear()
        lines, _ = log(*words)
        assert len(lines) == len(asked) == n, words
        assert as_answered(lines, answers)


def test_slates_that_nobody_can_explain_are_null_and_a_note_says_why(service, log, tmp_path):
    answers = play(service, 40, 1)
    slate = service.recommend("shop")
    token = service.keys.read(slate.token, 1, days=1)
    service.feedback("shop", service.keys.sign(token._replace(fields=b"")), 0)
    head = seam.model(service, "shop").seq
    lines, notes = log("--last", "3")
    assert lines[-1]["without_exploring"] is None
    assert lines[-2]["without_exploring"] is not None
    assert notes == ("note: 1 of 3 slates are not explained: 1 the log does not say what it was drawn from\n")
    archive(service.store, service.store.models()[0], head - 3, tmp_path / "old", token_days=0)
    lines, notes = log()
    late = [line["without_exploring"] is None for line in lines if line["kind"] == "feedback"]
    assert late[-1]
    assert f"{sum(late) - 1} {ARCHIVED}" in notes or sum(late) == 1
    assert as_answered(log("--archive", str(tmp_path / "old"), "--after", "2")[0][:-1], answers)


def test_a_fork_is_explained_by_who_drew_its_slates(service, log):
    answers = play(service, 40, 1)
    service.fork("shop", "cascade-lin-ts", "fork")
    service.feedback("fork", service.recommend("fork"), 0)
    lines, notes = log(model="fork")
    assert notes == ""
    copied = [line for line in lines if "origin" in line]
    assert len(copied) == len(answers)
    assert as_answered(copied, answers)
    assert len(lines[-1]["without_exploring"]) == 3


def test_a_policy_without_a_best_slate_has_no_answer(place, log):
    with open_service(place) as service:
        service.create("shop", policy="random", k=2, items=made_items(6), seed=5)
        slate = service.recommend("shop", explain=True)
        assert slate.without_exploring is None
        service.feedback("shop", slate, 0)
    (_, line), notes = log()
    assert line["without_exploring"] is None
    assert NO_BEST_SLATE in notes


def test_only_feedback_is_explained(service, place, monkeypatch, capsys):
    words = ["firstclick", "log", "shop", "--store", place, "--explain", "--kind", "created"]
    monkeypatch.setattr(sys, "argv", words)
    with pytest.raises(SystemExit):
        main()
    assert "--explain is of feedback; leave --kind out, or say --kind feedback" in capsys.readouterr().err


def test_a_trial_is_told_by_the_names_of_its_arms_in_lines_and_in_parquet(service, log, tmp_path):
    # The trial's key is random: with these shares some slates are the other model's, but for one run in 10^4.
    service.set_baseline("shop", LIST, 0.9)
    service.set_no_click_after("shop", 60)
    service.fork("shop", "cascade-lin-ts", "other")
    service.start_trial("shop", {"policy": 0.2, "baseline": 0.1, "model:other": 0.7})
    draw = random.Random(3)
    slates = [
        service.recommend("shop", unit=f"user {draw.randrange(9)}", explain=True, pinned={1: "i5"})
        for _ in range(30)
    ]
    slates += [service.recommend("shop") for _ in range(10)]
    for slate in slates[:-3]:
        service.feedback("shop", slate, draw.choice([None, 0]))
    service.clock.move(100)
    service.run_background()
    assert service.describe("shop")["timed_out"] == 3
    service.feedback("shop", slates[-1], 0)
    lines, notes = log()
    started = next(line for line in lines if line["kind"] == "trial-started")
    assert "key" not in started
    pages = [line for line in lines if line["kind"] == "feedback"]
    # The floor shows the list in each arm; that is this model's slate.
    others = [line for line in pages if line["arm"] == 2 and line["choice"] == "policy"]
    assert f"note: {len(others)} of 40 slates are not explained: {len(others)} {OTHER_ARM}\n" == notes
    for line in pages:
        assert (line["trial"], line["period"]) == (started["trial"], 0)
        assert line["arm_name"] == ["policy", "baseline", "model:other"][line["arm"]]
        assert (line["without_exploring"] is None) == (line in others)
        assert line["choice"] == {1: "holdout"}.get(line["arm"], line["choice"])
        assert ("bucket" in line) == (line in pages[:30])
    by_reasons = {slate.reasons for slate in slates}
    assert {tuple(line.get("reasons", ["policy"] * 3)) for line in pages} == by_reasons
    assert all("pinned" in line["reasons"] for line in others if "bucket" in line)
    assert [line["click"] for line in lines if line["kind"] == "correction"] == [0]
    assert sum("timed_out" in line for line in pages) == 3

    file = tmp_path / "log.parquet"
    log("--out", str(file))
    table = pl.read_parquet(file).to_dicts()
    for row, line in zip(table, lines, strict=True):
        if line["kind"] in ("feedback", "correction"):
            plain = {word: value for word, value in row.items() if value is not None}
            told = {word: value for word, value in line.items() if value is not None}
            assert plain.pop("pinned", "null") == json.dumps(told.pop("pinned", None))
            assert plain == told
        else:
            assert json.loads(row["change"]).items() <= line.items()


def test_pins_are_told_as_reasons_even_if_the_slate_cannot_be_drawn_again(place, log):
    items = made_items(20_000)
    with open_service(place) as service:
        service.create("shop", policy="cascade-ts", k=3, items=items, baseline=LIST, max_loss=0.001)
        some = random.Random(1).sample([str(item.id) for item in items], 6_000)
        slate = service.recommend("shop", candidates=[*some, *LIST], pinned={1: "i3"})
        assert slate.not_evaluable
        assert slate.reasons == ("floor", "pinned", "floor")
        service.feedback("shop", slate, 0)
    line = log()[0][-1]
    assert (line["reasons"], line["pinned"]) == (["floor", "pinned", "floor"], {"1": "i3"})
    assert line["without_exploring"] is None


def test_the_walk_holds_little_and_both_visitors_see_the_same_slates(service):
    play(service, 60, 1)
    stored = service.store.models()[0]
    explained, audited = ExplainedSlates(service.store, stored), audit_slates(service.store, stored)
    assert len(explained) == audited.equal > 40
    assert explained.of(1) is None
    assert explained.of(10**9) is None


def test_a_list_that_is_removed_meanwhile_does_not_change_a_slate_that_was_decided(service, monkeypatch):
    service.set_baseline("shop", LIST, 0.001)
    launch = service.model("shop").launch
    right, removing = launch.decide, threading.Thread(target=service.remove_baseline, args=("shop",))

    def decide(*asked, **more):
        decision = right(*asked, **more)
        removing.start()
        removing.join(0.3)
        return decision

    monkeypatch.setattr(launch, "decide", decide)
    slate = service.recommend("shop")
    assert (slate.items, slate.reasons) == (LIST[:3], ("floor",) * 3)
    removing.join()
    assert launch.baseline is None
