"""`firstclick log --explain`, and what the log has of a model with a baseline, a trial and timeouts."""

import json
import random
import sys
import threading

import polars as pl
import pytest

from firstclick.cli import main
from firstclick.serve.model.explained import NO_BEST_SLATE
from firstclick.serve.model.model import Model
from firstclick.serve.model.sources import ARCHIVED, OTHER_ARM
from tests.support import logs
from tests.support.clock import Clock
from tests.support.shop import LIST, K


@pytest.fixture
def shop(open_shop):
    return open_shop(clock=Clock())


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


def play(shop, steps, seed):
    """What the answer for each slate explained, in the order of the feedback."""
    slates = logs.play(shop, steps, seed, explain=True)
    return [[*slate.without_exploring] for slate in slates]


def explained(lines):
    return [line["without_exploring"] for line in lines if line["kind"] == "feedback"]


def test_each_slate_is_explained_as_the_answer_was(shop, log):
    answers = play(shop, 60, 1)
    shop.withdraw_items(["i1"])
    shop.set_explore(0.3)
    answers += play(shop, 40, 2)
    shop.set_baseline(LIST, 0.3)
    answers += play(shop, 60, 3)
    shop.roll_back(40)
    answers += play(shop, 40, 4)
    lines, notes = log()
    assert (explained(lines), notes) == (answers, "")
    assert [line["seq"] for line in lines] == [*range(1, len(lines) + 1)]
    values = [value for answer in answers for value in answer]
    assert 50 < sum(values) < len(values) - 50, "both happen, or the test could not fail"
    reasons = {reason for line in lines for reason in line.get("reasons", ())}
    assert reasons == {"policy", "explored", "pinned", "floor"}
    assert "without_exploring" not in lines[0]


def test_a_part_of_a_log_is_explained_from_a_snapshot_and_only_that(shop, log, monkeypatch):
    answers = play(shop, 50, 1)
    shop.snapshot()
    snapshot = shop.seq
    answers += play(shop, 50, 2)
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
    answers = play(shop, 40, 1)
    keys = shop.service.keys
    token = keys.read(shop.recommend().token, shop.internals.id, days=1)
    shop.feedback(keys.sign(token._replace(fields=b"")), 0)
    lines, notes = log("--last", 3)
    assert explained(lines) == [*answers[-2:], None]
    assert notes == "note: 1 of 3 slates are not explained: 1 the log does not say what it was drawn from\n"
    logs.move_to_archive(shop, shop.seq - 3, tmp_path / "old")
    lines, notes = log()
    n_archived = explained(lines).count(None) - 1
    assert explained(lines)[-1] is None
    assert not n_archived or f"{n_archived} {ARCHIVED}" in notes
    assert explained(log("--archive", tmp_path / "old", "--after", 3)[0]) == [*answers[1:], None]


def test_slates_of_a_fork_are_explained_by_the_model_that_drew_them(shop, log):
    answers = play(shop, 40, 1)
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


def test_only_feedback_can_be_explained(shop, log):
    lines, error = log("--kind", "created", code=2)
    assert lines == []
    assert "--explain is of feedback" in error


def test_the_log_names_the_arms_of_a_trial_in_lines_and_in_parquet(shop, log, tmp_path):
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
