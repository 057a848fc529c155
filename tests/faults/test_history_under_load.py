"""Stores that lose their last commits while many clients write, and servers that go on by themselves."""

import time
from contextlib import ExitStack, closing
from urllib.request import urlopen

import pytest

from firstclick.serve.store import open_store
from tests.faults.clients import REFUSALS, LoadClients
from tests.faults.crash import ServerUnderTest, finish_all
from tests.faults.oracle import ClientHistory
from tests.faults.second_history import copied, replaced
from tests.faults.two_servers import Pair
from tests.support.clock import wait_for

# Real servers: minutes, not seconds.
pytestmark = pytest.mark.long


def diverge_under_load(servers, keep, diverge, seconds):
    """`keep` is what the store will fall back to, some time before `diverge` is called."""
    history, pids = ClientHistory(), [server.start_ready() for server in servers]
    with LoadClients([server.port for server in servers], history, clients=3 * len(servers) + 3) as load:
        time.sleep(seconds)
        keep()
        time.sleep(seconds)
        heads = known(servers)
        diverge()
        moment = time.monotonic()
        wait_for(lambda: all("set_back" in server.ask("GET", "/health/ready").body for server in servers), 60)
        # Past the old head, where one could be taken for the other.
        wait_for(lambda: all(known(servers)[name] > heads[name] for name in ("shop", "cafe")), 60)
        for server in servers:
            server.wait_until(200, seconds=30)
            server.audit(history)
    for server in servers:
        assert lost_events(server, "shop") > 0
    history.forget_before(moment)
    result = finish_all(servers, pids, history)
    assert load.codes <= REFUSALS, load.codes
    assert result.acked > 30, str(result)
    # A restart comes to the same.
    with open_store(servers[0].url) as store:
        heads = {stored.name: stored.head for stored in store.models()}
    pid = servers[0].start_ready()
    assert known(servers[:1]) == heads
    assert servers[0].stop(pid) == 0


def known(servers):
    """Return the last event of each model that any server knows."""
    found = {}
    for server in servers:
        for model in server.ask("GET", "/v1/models").body["models"]:
            found[model["name"]] = max(found.get(model["name"], 0), model["seq"])
    return found


def lost_events(server, model):
    with urlopen(f"http://127.0.0.1:{server.port}/metrics") as answer:
        lines = answer.read().decode().splitlines()
    (line,) = (line for line in lines if line.startswith(f'firstclick_lost_events_total{{model="{model}"'))
    return float(line.split()[-1])


@pytest.mark.parametrize("n", [1, 2])
def test_store_that_gets_back_an_older_copy(zygote, tmp_path, request, n):
    """Two servers are on PostgreSQL."""
    url, copies = str(tmp_path / "shop.db"), []
    if n > 1:
        url = request.getfixturevalue("postgresql").new_database()
    with ExitStack() as opened:
        diverge_under_load(
            [opened.enter_context(ServerUnderTest(zygote, url, tmp_path)) for _ in range(n)],
            keep=lambda: copies.append(copied(url, tmp_path)),
            diverge=lambda: replaced(url, copies[0]),
            seconds=0.5,
        )


@pytest.mark.parametrize("is_standby", [True, False])
def test_failover_without_the_last_commits(zygote, tmp_path, is_standby):
    with ExitStack() as opened:
        pair = opened.enter_context(closing(Pair()))
        if is_standby:
            pair.start_standby()

        def keep():
            if not is_standby:
                pair.start_standby()
            pair.stop_following()

        diverge_under_load(
            [
                opened.enter_context(ServerUnderTest(zygote, pair.url, tmp_path))
                for _ in range(2 + is_standby)
            ],
            keep=keep,
            diverge=pair.exchange,
            seconds=2.0,
        )
