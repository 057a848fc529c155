"""PostgreSQL that restarts, drops connections, goes away, or commits without saying so."""

import time

import pytest

from tests.faults.clients import REFUSALS, LoadClients
from tests.faults.crash import ServerUnderTest
from tests.faults.oracle import ClientHistory
from tests.support.clock import wait_for
from tests.support.stores import LOSE_ANSWER, Relay

RECOMMEND, FEEDBACK = "/v1/models/shop/recommend", "/v1/models/shop/feedback"


@pytest.fixture
def server(zygote, postgresql_url, tmp_path):
    with ServerUnderTest(zygote, postgresql_url, tmp_path) as made:
        yield made


@pytest.mark.parametrize("happens", [pytest.param("restarts", marks=pytest.mark.long), "ended connections"])
def test_database_that_comes_and_goes_under_load(server, postgresql, happens):
    history, pid = ClientHistory(), server.start_ready()
    with LoadClients([server.port], history) as load:
        if happens == "restarts":
            for how in ("fast", "immediate"):
                time.sleep(0.5)
                postgresql.stop(how)
                postgresql.start()
                server.wait_until(200, seconds=30)
        else:
            for _ in range(8):
                time.sleep(0.1)
                postgresql.kill_connections()
        time.sleep(0.5)
    assert load.codes <= REFUSALS, load.codes
    assert server.finish(pid, history).acked > 50


@pytest.mark.parametrize(
    "broken",
    [
        pytest.param([], id="right"),
        pytest.param(["retry_with_a_new_nonce"], id="mutant", marks=pytest.mark.long),
    ],
)
def test_connection_cut_between_commit_and_answer(server, postgresql, postgresql_url, broken):
    cuts = []

    def at_commit(number):
        # Not a later one: psycopg calls by another name what it has sent five times.
        if number == 4:
            cuts.append(number)
        return LOSE_ANSWER if number == 4 else ""

    relay, history = Relay(postgresql.folder), ClientHistory()
    relay.at_commit = at_commit
    # Models are made on a way that holds: among the first four commits are those of their creation.
    assert server.stop(server.start_ready()) == 0, server.said()
    server.url = relay.address_of(postgresql_url)
    pid = server.start_ready(broken=broken)
    cuts.clear()
    with LoadClients([server.port], history, twice=False) as load:
        time.sleep(1.5)
    if not broken:  # The mutant answers 503 too: its fault is in the log, not in the codes.
        assert load.codes <= {200, 201, 404, 422}, load.codes
    server.audit(history)
    assert len(cuts) > 5
    assert server.stop(pid) == 0, server.said()
    server.url = postgresql_url
    result = server.check(history)
    relay.close()
    assert result.acked > 50
    if broken:
        assert any("feedback that nobody sent" in sentence for sentence in result.complaints), str(result)
    else:
        assert not result.complaints, str(result)
        # The second try found what the first had done: a duplicate to the client, and counted once.
        assert history.statuses["duplicate"] > 5


@pytest.mark.long
def test_reads_outlive_the_database(server, postgresql):
    history, pid = ClientHistory(), server.start_ready()
    with LoadClients([server.port], history, changes=False):
        time.sleep(0.5)
    shown = server.ask("POST", RECOMMEND, {})
    feedback = {"token": shown.body["token"], "click": 0}
    assert "firstclick-age" not in shown.headers
    postgresql.stop()
    try:
        answer = server.wait_until(503)
        assert "the store has not answered for" in answer.body["error"]["message"]

        def aged():
            reply = server.ask("POST", RECOMMEND, {})
            assert (reply.code, len(reply.body["items"])) == (200, 3)
            return reply if "firstclick-age" in reply.headers else None

        reply = wait_for(aged)
        assert float(reply.headers["firstclick-age"]) >= 1
        refused = server.ask("POST", FEEDBACK, feedback)
        assert (refused.code, refused.body["error"]["status"]) == (503, "unavailable")
        assert "retry-after" in refused.headers
        assert server.ask("GET", "/health/live").code == 200
    finally:
        postgresql.start()
    server.wait_until(200, seconds=30)
    # What was refused was not kept for later either.
    history.record_sent("shop", feedback["token"], 0)
    reply = server.ask("POST", FEEDBACK, feedback)
    assert (reply.code, reply.body["status"]) == (201, "accepted")
    history.record_answer(feedback["token"], 0, "accepted", reply.body["seq"])
    server.finish(pid, history)


def test_server_stops_in_time_while_the_database_is_away(server, postgresql):
    pid = server.start_ready()
    postgresql.stop()
    try:
        server.wait_until(503)
        assert server.stop(pid) == 0, server.said()
    finally:
        postgresql.start()
