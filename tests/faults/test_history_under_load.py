"""Stores that lose their last commits while many clients write, and servers that go on by themselves."""

import time
from contextlib import ExitStack, closing
from urllib.request import urlopen

import pytest

from firstclick.serve.store import open_store
from tests.faults.clients import MODELS, REFUSALS, LoadClients
from tests.faults.crash import ServerUnderTest
from tests.faults.oracle import Answer, ClientHistory
from tests.faults.second_history import copied, replaced
from tests.faults.two_servers import Pair

# Real servers: minutes, not seconds.
pytestmark = pytest.mark.long


class TimedHistory(ClientHistory):
    """It also knows when each thing was sent: what was told before a store was set back may not be true."""

    def __init__(self):
        super().__init__()
        self._sent = {}
        self._told = []
        self._changes_sent = 0.0
        self._changes_told = []

    def record_sent(self, model, token, click):
        self._sent[token] = time.monotonic()
        super().record_sent(model, token, click)

    def record_answer(self, token, click, status, seq):
        super().record_answer(token, click, status, seq)
        self._told.append((self._sent[token], token, Answer(click, status, seq)))

    def record_changes_sent(self, changes):
        self._changes_sent = time.monotonic()  # By one client, one after the other.
        super().record_changes_sent(changes)

    def record_changes_done(self, changes, seq):
        before = len(self.changes_done)
        super().record_changes_done(changes, seq)
        self._changes_told += [(self._changes_sent, change) for change in self.changes_done[before:]]

    def told_since(self, moment):
        """All that was sent, and what was told of what was sent after this moment."""
        made = ClientHistory()
        made.slates, made.changes_sent, made.followers = self.slates, self.changes_sent, self.followers
        made.served, made.set_back = self.served, True
        for slate in made.slates.values():
            slate.answers = []
        for sent, token, answer in self._told:
            if sent > moment:
                made.slates[token].answers.append(answer)
        made.changes_done = [change for sent, change in self._changes_told if sent > moment]
        return made


def diverge_under_load(servers, keep, diverge, seconds):
    """`keep` is what the store will fall back to, some time before `diverge` is called."""
    history, pids = TimedHistory(), [server.start_ready() for server in servers]
    with LoadClients([server.port for server in servers], history, clients=3 * len(servers) + 3) as load:
        time.sleep(seconds)
        keep()
        time.sleep(seconds)
        heads = known(servers)
        diverge()
        moment = time.monotonic()
        told = set()
        until = moment + 60
        while len(told) < len(servers):  # All have noticed, and all are ready again.
            assert time.monotonic() < until, [server.said() for server in servers]
            for server in servers:
                code, body, _ = server.ask("GET", "/health/ready")
                if code == 200 and "set_back" in body:
                    told.add(str(server.port))
            time.sleep(0.02)
        # Past the old head, where one could be taken for the other.
        while any(now[name] <= heads[name] for now in [known(servers)] for name in ("shop", "cafe")):
            assert time.monotonic() < until, (heads, known(servers))
            time.sleep(0.05)
        for server in servers:
            server.wait_until(200, seconds=30)
            server.audit(history)
    time.sleep(1.0)
    for server in servers:
        server.wait_until(200, seconds=30)
        server.audit(history)
    last = history.served[-len(servers) * len(MODELS) :]
    for model in MODELS:
        assert len({(said.seq, said.digest) for said in last if said.model == model}) == 1, last
    for server in servers:
        assert lost_events(server, "shop") > 0
    for server, pid in zip(servers, pids, strict=True):
        assert server.stop(pid) == 0, server.said()
    assert load.codes <= REFUSALS, load.codes
    found = servers[0].check(history.told_since(moment))
    assert not found.complaints, str(found)
    assert found.acked > 30, str(found)
    # A restart comes to the same.
    with open_store(servers[0].url) as store:
        heads = {stored.name: stored.head for stored in store.models()}
    pid = servers[0].start()
    servers[0].wait_until(200)
    assert known(servers[:1]) == heads
    assert servers[0].stop(pid) == 0


def known(servers):
    """The last event of each model that any server knows."""
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
def test_failover_to_a_standby_or_an_older_backup_without_the_last_commits(zygote, tmp_path, is_standby):
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
