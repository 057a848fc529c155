"""kill -9 at every named step of a real server under load: nothing acknowledged is lost or counted twice."""

import os
import random
import time
from collections import Counter
from itertools import chain

import pytest

from firstclick.kernels.mixed import DONE, STAGE
from firstclick.serve.model.replay import recover
from firstclick.serve.store import open_store
from tests.faults.clients import CODES, LoadClients
from tests.faults.crash import ServerUnderTest
from tests.faults.oracle import ClientHistory

WRITING = ("before begin", "after begin", "after insert", "after commit", "after apply", "after reply")
SELDOM = ("before snapshot", "after snapshot insert", "after snapshot", "after checkpoint")
STEPS = (*WRITING, *SELDOM, "after creation of tables")
# A store that is not there yet: its tables, then its models.
BIRTH = [("after creation of tables", 1), *((step, 1) for step in WRITING[:4])]


def steps_to_die_at(n, draw, *, checkpoints):
    """All steps in turn, a different time each."""
    steps = [step for step in (*WRITING, *SELDOM) if checkpoints or step != "after checkpoint"]
    for number in range(n):
        step = steps[number % len(steps)]
        yield step, draw.randint(1, 25 if step in WRITING else 3)


def killed(server, n, *, seed, checkpoints, wait=0.0, launched=False):
    """Kill servers on a store n times from its birth; return what the oracle counted, and where they died.

    With a `wait`, slates that nobody reports by then have no click, and clients are late at times. Models
    that are `launched` have a floor, and two have trials.
    """
    draw, history, died = random.Random(seed), ClientHistory(), Counter[str]()
    spec = {"wait": wait, "launched": launched}
    for step, times in BIRTH:
        server.kill_at(step, times, **spec)
        died[step] += 1
    steps = steps_to_die_at(n - len(BIRTH), draw, checkpoints=checkpoints)
    with LoadClients([server.port], history, seed=seed, late=2 * wait, launched=launched) as load:
        for number, (step, times) in enumerate(steps):
            if number % 10 == 9:
                pid = server.start(**spec)
                time.sleep(draw.uniform(0.05, 0.3) + 3 * wait)
                server.kill(pid)
                died["anywhere"] += 1
            # A slate is forgotten with the server that gave it: these live for a while.
            server.kill_at(step, times * (4 if wait else 1), **spec)
            died[step] += 1
        last = server.start(**spec)
        server.audit(history)
    result = server.finish(last, history)
    assert load.codes <= CODES, load.codes
    assert "Traceback" not in server.said(), server.said()
    missing = set(STEPS) - set(died) - (set() if checkpoints else {"after checkpoint"})
    assert not missing, f"no server died at {missing}"
    # Otherwise nothing was at stake.
    assert result.acked > 10 * died.total()
    assert result.unacked > 0
    return result, died


def check_refits(url):
    """The model of the default was in the middle of a refit after many events, and refits took effect."""
    with open_store(url) as store:
        (stored,) = [stored for stored in store.models() if stored.name == "cafe"]
        model, stages, done = recover(store, stored._replace(head=1)), Counter[int](), set[float]()
        for event in chain.from_iterable(store.events(stored.id, 1)):
            model.apply([event], lambda seq: recover(store, stored._replace(head=seq)).known())
            stages[int(model.engine.state.refit[STAGE])] += 1
            done.add(model.engine.state.refit[DONE])
    assert sum(stages.values()) - stages[0] >= 30, stages
    assert max(done) >= 3, done


@pytest.mark.long
@pytest.mark.parametrize(("n", "seed"), [(16, 1), (32, 1)])
def test_servers_on_sqlite(server, n, seed):
    killed(server, n, seed=seed, checkpoints=True)
    check_refits(server.url)


@pytest.mark.long
def test_servers_on_postgresql(zygote, postgresql_url, tmp_path):
    with ServerUnderTest(zygote, postgresql_url, tmp_path) as server:
        killed(server, 18, seed=2, checkpoints=False)
    check_refits(server.url)


@pytest.mark.long
def test_slates_that_time_out_and_late_clicks(zygote, store_url, tmp_path):
    on_sqlite = not store_url.startswith("postgresql")
    with ServerUnderTest(zygote, store_url, tmp_path) as server:
        killed(server, 32 if on_sqlite else 18, seed=3, checkpoints=on_sqlite, wait=0.1)
    models = recovered(store_url).values()
    # Otherwise nothing was at stake.
    assert sum(model.reports.timed_out for model in models) > 50
    assert sum(model.reports.corrected for model in models) > 10
    assert all(model.reports.recommended > 0 for model in models)


@pytest.mark.long
def test_trials_with_a_floor_arms_time_outs_and_late_clicks(zygote, store_url, tmp_path):
    on_sqlite = not store_url.startswith("postgresql")
    with ServerUnderTest(zygote, store_url, tmp_path) as server:
        result, died = killed(server, 40, seed=5, checkpoints=on_sqlite, wait=0.1, launched=True)
    print(f"\n{died.total()} kills, {result}")
    models = recovered(store_url)
    # Otherwise nothing was at stake.
    for name in ("bar", "shop"):
        trial = models[name].launch.trial
        assert min(trial.tally.pages) > 20
        # cascade-lin-ts cannot take back what a slate taught.
        assert (sum(trial.tally.corrected) > 2) == (name == "bar")
    assert len(models["bar"].launch.trial.tally.periods) > 1
    assert models["rival"].click_stats.slates > 50
    assert models["rival"].reports.corrected > 0
    for name in ("bar", "shop", "cafe"):
        assert models[name].launch.baseline.floor.report().policy_pages > 20


def recovered(url):
    with open_store(url) as store:
        return {stored.name: recover(store, stored) for stored in store.models()}


@pytest.mark.long
def test_many_kills(zygote, postgresql, tmp_path):
    """Two of three stores on SQLite, the others on PostgreSQL. `make kills N=1000` kills so many servers."""
    wanted = int(os.environ.get("FIRSTCLICK_KILLS", "60"))
    stores = max(3, wanted // 67)
    total = Counter()
    for seed in range(stores):
        on_sqlite = seed % 3 < 2
        url = str(tmp_path / f"shop-{seed}.db") if on_sqlite else postgresql.new_database()
        with ServerUnderTest(zygote, url, tmp_path) as server:
            result, died = killed(
                server, max(20, wanted // stores + 1), seed=100 + seed, checkpoints=on_sqlite
            )
        check_refits(url)
        total += died
        total.update(
            events=result.events,
            acknowledged=result.acked,
            lost=result.lost,
            doubled=result.doubled,
            committed_but_unanswered=result.unacked,
            slates_drawn_again_equal=result.redrawn,
        )
        print(f"\nstore {seed + 1} of {stores}: " + ", ".join(f"{word} {n:,}" for word, n in total.items()))
    assert sum(n for step, n in total.items() if step in {*STEPS, "anywhere"}) >= wanted
