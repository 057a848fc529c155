"""Three servers on one PostgreSQL: one log, one count, one model, whichever is asked, stopped or killed."""

import os
import random
import signal
import threading
import time
from contextlib import ExitStack

import pytest

from tests.faults.clients import MODELS, REFUSALS, Caller, LoadClients
from tests.faults.crash import ServerUnderTest, finish_all
from tests.faults.oracle import ClientHistory
from tests.support.clock import wait_for
from tests.support.stores import at_once

N = 3


@pytest.fixture
def servers(zygote, postgresql, tmp_path):
    url = postgresql.new_database()
    with ExitStack() as opened:
        yield [opened.enter_context(ServerUnderTest(zygote, url, tmp_path)) for _ in range(N)]


def started(servers, **spec):
    return [server.start_ready(**spec) for server in servers]


def test_one_token_a_thousand_times_on_three_servers(servers):
    pids = started(servers)
    history = ClientHistory()
    token = servers[0].ask("POST", "/v1/models/shop/recommend", {}).body["token"]
    history.record_sent("shop", token, 1)
    begin = threading.Barrier(20)

    def send(number):
        caller = Caller(servers[number % N].port)
        begin.wait()
        for _ in range(50):
            reply = caller.post("/v1/models/shop/feedback", {"token": token, "click": 1})
            history.record_answer(token, 1, reply.body["status"], reply.body["seq"])
        caller.close()

    at_once([lambda number=number: send(number) for number in range(20)])
    assert history.statuses == {"accepted": 1, "duplicate": 999}
    # Another click is refused by all of them.
    for server in servers:
        assert server.ask("POST", "/v1/models/shop/feedback", {"token": token, "click": 0}).code == 409
    assert finish_all(servers, pids, history).events == len(MODELS) + 1


@pytest.mark.long
@pytest.mark.parametrize(
    ("seconds", "rounds", "spec"),
    [(3.0, 1, {}), (3.0, 2, {"wait": 0.3, "launched": True}), (30.0, 3, {})],
    ids=["briefly", "with trials", "for half a minute"],
)
def test_one_paused_and_one_killed_under_load(servers, seconds, rounds, spec):
    draw, history = random.Random(4), ClientHistory()
    pids = started(servers, **spec)
    how = {"late": 2 * spec.get("wait", 0.0), "launched": spec.get("launched", False)}
    with LoadClients([server.port for server in servers], history, clients=9, **how) as load:
        for _ in range(rounds):
            stopped, killed = draw.sample(range(N), 2)
            os.kill(pids[stopped], signal.SIGSTOP)
            time.sleep(seconds / 2)
            servers[killed].kill(pids[killed])
            pids[killed] = servers[killed].start(**spec)
            time.sleep(seconds / 2)
            os.kill(pids[stopped], signal.SIGCONT)
            for server in servers:
                server.wait_until(200, seconds=30)
                server.audit(history)
        time.sleep(0.5)
    result = finish_all(servers, pids, history)
    assert load.codes <= REFUSALS, load.codes
    assert result.acked > 100


def test_item_withdrawn_on_one_server_is_soon_gone_on_all(servers):
    pids = started(servers)
    first, *others = servers
    assert first.ask("DELETE", "/v1/models/shop/items/i3").code == 200

    def is_shown(server):
        return server.ask("POST", "/v1/models/shop/recommend", {"candidates": ["i3"]}).body["items"]

    wait_for(lambda: not any(map(is_shown, others)))
    for server, pid in zip(servers, pids, strict=True):
        server.stop(pid)
