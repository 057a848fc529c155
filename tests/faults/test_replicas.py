"""Three servers on one PostgreSQL: one log, one count, one model, whichever is asked, stopped or killed."""

import os
import random
import signal
import threading
import time
from collections import Counter
from contextlib import ExitStack

import pytest

from tests.faults.clients import MODELS, REFUSALS, Caller, Crowd
from tests.faults.crash import Stage
from tests.faults.oracle import Ledger
from tests.support.stores import at_once

N = 3


@pytest.fixture
def stages(zygote, postgresql, tmp_path):
    url = postgresql.new_database()
    with ExitStack() as opened:
        yield [opened.enter_context(Stage(zygote, url, tmp_path)) for _ in range(N)]


def started(stages, **life):
    return [stage.start_ready(**life) for stage in stages]


def finish(stages, pids, ledger):
    """Stop all; what each served is what the others served, and the oracle finds nothing."""
    for stage in stages:
        stage.wait_until(200, seconds=30)
    # All have learned what any has acknowledged, without being asked.
    time.sleep(1.0)
    for stage in stages:
        stage.audit(ledger)
    last = ledger.served[-N * len(MODELS) :]
    assert len({(served.model, served.seq, served.digest) for served in last}) == len(MODELS), last
    by_seq = Counter((served.model, served.seq) for served in set(ledger.served))
    assert max(by_seq.values()) == 1, "two servers had different models after the same event"
    for stage, pid in zip(stages, pids, strict=True):
        assert stage.stop(pid) == 0, stage.said()
    verdict = stages[0].judge(ledger)
    assert not verdict.complaints, str(verdict)
    return verdict


def test_one_token_a_thousand_times_on_three_servers(stages):
    pids = started(stages)
    ledger = Ledger()
    token = stages[0].ask("POST", "/v1/models/shop/recommend", {}).body["token"]
    ledger.send("shop", token, 1)
    begin = threading.Barrier(20)

    def send(number):
        caller = Caller(stages[number % N].port)
        begin.wait()
        for _ in range(50):
            reply = caller.post("/v1/models/shop/feedback", {"token": token, "click": 1})
            ledger.hear(token, 1, reply.body["status"], reply.body["seq"])
        caller.close()

    at_once([lambda number=number: send(number) for number in range(20)])
    assert ledger.statuses == {"accepted": 1, "duplicate": 999}
    # Another click is refused by all of them.
    for stage in stages:
        assert stage.ask("POST", "/v1/models/shop/feedback", {"token": token, "click": 0}).code == 409
    assert finish(stages, pids, ledger).events == len(MODELS) + 1


@pytest.mark.long
@pytest.mark.parametrize(
    ("seconds", "rounds", "life"),
    [(3.0, 1, {}), (3.0, 2, {"wait": 0.3, "launched": True}), (30.0, 3, {})],
    ids=["briefly", "with trials", "for half a minute"],
)
def test_one_paused_and_one_killed_under_load(stages, seconds, rounds, life):
    draw, ledger = random.Random(4), Ledger()
    pids = started(stages, **life)
    how = {"late": 2 * life.get("wait", 0.0), "launched": life.get("launched", False)}
    with Crowd([stage.port for stage in stages], ledger, clients=9, **how) as crowd:
        for _ in range(rounds):
            stopped, killed = draw.sample(range(N), 2)
            os.kill(pids[stopped], signal.SIGSTOP)
            time.sleep(seconds / 2)
            stages[killed].kill(pids[killed])
            pids[killed] = stages[killed].start(**life)
            time.sleep(seconds / 2)
            os.kill(pids[stopped], signal.SIGCONT)
            for stage in stages:
                stage.wait_until(200, seconds=30)
                stage.audit(ledger)
        time.sleep(0.5)
    verdict = finish(stages, pids, ledger)
    assert crowd.codes <= REFUSALS, crowd.codes
    assert verdict.acked > 100


def test_an_item_that_is_withdrawn_on_one_is_gone_on_the_others_soon(stages):
    pids = started(stages)
    first, *others = stages
    assert first.ask("DELETE", "/v1/models/shop/items/i3").code == 200
    until = time.monotonic() + 10
    for stage in others:
        while stage.ask("POST", "/v1/models/shop/recommend", {"candidates": ["i3"]}).body["items"]:
            assert time.monotonic() < until
            time.sleep(0.02)
    for stage, pid in zip(stages, pids, strict=True):
        stage.stop(pid)
