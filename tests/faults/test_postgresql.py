"""PostgreSQL that restarts, drops connections, goes away, or commits without saying so."""

import time

import pytest

from tests.faults.clients import REFUSALS, Crowd
from tests.faults.crash import Stage
from tests.faults.oracle import Ledger
from tests.support.stores import LOSE_ANSWER, Relay

RECOMMEND, FEEDBACK = "/v1/models/shop/recommend", "/v1/models/shop/feedback"


@pytest.fixture
def stage(zygote, postgresql_url, tmp_path):
    with Stage(zygote, postgresql_url, tmp_path) as made:
        yield made


@pytest.mark.parametrize("happens", [pytest.param("restarts", marks=pytest.mark.long), "ended connections"])
def test_database_that_comes_and_goes_under_load(stage, postgresql, happens):
    ledger, pid = Ledger(), stage.start_ready()
    with Crowd([stage.port], ledger) as crowd:
        if happens == "restarts":
            for how in ("fast", "immediate"):
                time.sleep(0.5)
                postgresql.stop(how)
                postgresql.start()
                stage.wait_until(200, seconds=30)
        else:
            for _ in range(8):
                time.sleep(0.1)
                postgresql.kill_connections()
        time.sleep(0.5)
    assert crowd.codes <= REFUSALS, crowd.codes
    assert stage.finish(pid, ledger).acked > 50


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param([], id="right"),
        pytest.param(["retry_with_a_new_nonce"], id="mutant", marks=pytest.mark.long),
    ],
)
def test_a_connection_that_is_cut_between_commit_and_its_answer(stage, postgresql, postgresql_url, broken):
    cuts = []

    def at_commit(number):
        # Not a later one: psycopg calls by another name what it has sent five times.
        if number == 4:
            cuts.append(number)
        return LOSE_ANSWER if number == 4 else ""

    relay, ledger = Relay(postgresql.folder), Ledger()
    relay.at_commit = at_commit
    # Models are made on a way that holds: among the first four commits are those of their creation.
    assert stage.stop(stage.start_ready()) == 0, stage.said()
    stage.url = relay.address_of(postgresql_url)
    pid = stage.start_ready(broken=broken)
    cuts.clear()
    with Crowd([stage.port], ledger, twice=False) as crowd:
        time.sleep(1.5)
    if not broken:  # The mutant answers 503 too: its fault is in the log, not in the codes.
        assert crowd.codes <= {200, 201, 404, 422}, crowd.codes
    stage.audit(ledger)
    assert len(cuts) > 5
    assert stage.stop(pid) == 0, stage.said()
    stage.url = postgresql_url
    verdict = stage.judge(ledger)
    relay.close()
    assert verdict.acked > 50
    if broken:
        assert any("feedback that nobody sent" in sentence for sentence in verdict.complaints), str(verdict)
    else:
        assert not verdict.complaints, str(verdict)
        # The second try found what the first had done: a duplicate to the client, and counted once.
        assert ledger.statuses["duplicate"] > 5


@pytest.mark.long
def test_reads_outlive_the_database(stage, postgresql):
    ledger, pid = Ledger(), stage.start_ready()
    with Crowd([stage.port], ledger, changes=False):
        time.sleep(0.5)
    shown = stage.ask("POST", RECOMMEND, {})
    feedback = {"token": shown.body["token"], "click": 0}
    assert "firstclick-age" not in shown.headers
    postgresql.stop()
    try:
        answer = stage.wait_until(503)
        assert "the store has not answered for" in answer.body["error"]["message"]
        until = time.monotonic() + 10
        while "firstclick-age" not in (reply := stage.ask("POST", RECOMMEND, {})).headers:
            assert time.monotonic() < until
            assert reply.code == 200
            time.sleep(0.05)
        assert (reply.code, len(reply.body["items"])) == (200, 3)
        assert float(reply.headers["firstclick-age"]) >= 1
        refused = stage.ask("POST", FEEDBACK, feedback)
        assert (refused.code, refused.body["error"]["status"]) == (503, "unavailable")
        assert "retry-after" in refused.headers
        assert stage.ask("GET", "/health/live").code == 200
    finally:
        postgresql.start()
    stage.wait_until(200, seconds=30)
    # What was refused was not kept for later either.
    ledger.send("shop", feedback["token"], 0)
    reply = stage.ask("POST", FEEDBACK, feedback)
    assert (reply.code, reply.body["status"]) == (201, "accepted")
    ledger.hear(feedback["token"], 0, "accepted", reply.body["seq"])
    stage.finish(pid, ledger)


def test_a_server_that_stops_while_the_database_is_away_ends_in_time(stage, postgresql):
    pid = stage.start_ready()
    postgresql.stop()
    try:
        stage.wait_until(503)
        assert stage.stop(pid) == 0, stage.said()
    finally:
        postgresql.start()
