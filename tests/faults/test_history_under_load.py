"""Stores that lose their last commits while many clients write, and servers that go on by themselves."""

import time
from contextlib import ExitStack, closing
from urllib.request import urlopen

import pytest

from firstclick.serve.store import open_store
from tests.faults.clients import MODELS, REFUSALS, Crowd
from tests.faults.crash import Stage
from tests.faults.histories import copied, replaced
from tests.faults.oracle import Answer, Ledger
from tests.faults.two_servers import Pair

# Real servers: minutes, not seconds.
pytestmark = pytest.mark.long


class TimedLedger(Ledger):
    """It also knows when each thing was sent: what was told before a store was set back may not be true."""

    def __init__(self):
        super().__init__()
        self._sent = {}
        self._told = []
        self._changes_sent = 0.0
        self._changes_told = []

    def send(self, model, token, click):
        self._sent[token] = time.monotonic()
        super().send(model, token, click)

    def hear(self, token, click, status, seq):
        super().hear(token, click, status, seq)
        self._told.append((self._sent[token], token, Answer(click, status, seq)))

    def send_changes(self, changes):
        self._changes_sent = time.monotonic()  # By one client, one after the other.
        super().send_changes(changes)

    def hear_changes(self, changes, seq):
        before = len(self.changes_done)
        super().hear_changes(changes, seq)
        self._changes_told += [(self._changes_sent, change) for change in self.changes_done[before:]]

    def told_since(self, moment):
        """All that was sent, and what was told of what was sent after this moment."""
        made = Ledger()
        made.slates, made.changes_sent, made.followers = self.slates, self.changes_sent, self.followers
        made.served, made.set_back = self.served, True
        for slate in made.slates.values():
            slate.answers = []
        for sent, token, answer in self._told:
            if sent > moment:
                made.slates[token].answers.append(answer)
        made.changes_done = [change for sent, change in self._changes_told if sent > moment]
        return made


def set_back_under_load(stages, keep, set_back, seconds):
    """`keep` is what the store will fall back to, some time before `set_back` is called."""
    ledger, pids = TimedLedger(), [stage.start_ready() for stage in stages]
    with Crowd([stage.port for stage in stages], ledger, clients=3 * len(stages) + 3) as crowd:
        time.sleep(seconds)
        keep()
        time.sleep(seconds)
        heads = known(stages)
        set_back()
        moment = time.monotonic()
        told = set()
        until = moment + 60
        while len(told) < len(stages):  # All have noticed, and all are ready again.
            assert time.monotonic() < until, [stage.said() for stage in stages]
            for stage in stages:
                code, body, _ = stage.ask("GET", "/health/ready")
                if code == 200 and "set_back" in body:
                    told.add(str(stage.port))
            time.sleep(0.02)
        # Past the old head, where one could be taken for the other.
        while any(now[name] <= heads[name] for now in [known(stages)] for name in ("shop", "cafe")):
            assert time.monotonic() < until, (heads, known(stages))
            time.sleep(0.05)
        for stage in stages:
            stage.wait_until(200, seconds=30)
            stage.audit(ledger)
    time.sleep(1.0)
    for stage in stages:
        stage.wait_until(200, seconds=30)
        stage.audit(ledger)
    last = ledger.served[-len(stages) * len(MODELS) :]
    for model in MODELS:
        assert len({(said.seq, said.digest) for said in last if said.model == model}) == 1, last
    for stage in stages:
        assert lost_events(stage, "shop") > 0
    for stage, pid in zip(stages, pids, strict=True):
        assert stage.stop(pid) == 0, stage.said()
    assert crowd.codes <= REFUSALS, crowd.codes
    found = stages[0].judge(ledger.told_since(moment))
    assert not found.complaints, str(found)
    assert found.acked > 30, str(found)
    # A restart comes to the same.
    with open_store(stages[0].url) as store:
        heads = {stored.name: stored.head for stored in store.models()}
    pid = stages[0].start()
    stages[0].wait_until(200)
    assert known(stages[:1]) == heads
    assert stages[0].stop(pid) == 0


def known(stages):
    """The last event of each model that any server knows."""
    found = {}
    for stage in stages:
        for model in stage.ask("GET", "/v1/models").body["models"]:
            found[model["name"]] = max(found.get(model["name"], 0), model["seq"])
    return found


def lost_events(stage, model):
    with urlopen(f"http://127.0.0.1:{stage.port}/metrics") as answer:
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
        set_back_under_load(
            [opened.enter_context(Stage(zygote, url, tmp_path)) for _ in range(n)],
            keep=lambda: copies.append(copied(url, tmp_path)),
            set_back=lambda: replaced(url, copies[0]),
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

        set_back_under_load(
            [opened.enter_context(Stage(zygote, pair.url, tmp_path)) for _ in range(2 + is_standby)],
            keep=keep,
            set_back=pair.exchange,
            seconds=2.0,
        )
