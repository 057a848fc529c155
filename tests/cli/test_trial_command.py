"""`firstclick trial`: start, look, change and stop, in a store and through a running server."""

import json

import pytest

from firstclick.serve import Item, Tuning, open_service
from firstclick.serve.config import Settings
from firstclick.serve.http.server import Server

ITEMS = [Item("tea"), Item("bun"), Item(7), Item("pie"), Item("cake")]


@pytest.fixture
def shop(folder):
    """shop.db with a model that has a list; no server has it open."""
    with open_service("shop.db") as service:
        service.create("shop", policy="cascade-ts", k=3, items=ITEMS, seed=4, baseline=["pie", 7, "tea"])
    return folder / "shop.db"


def play(service, n=40):
    for number in range(n):
        slate = service.recommend("shop", unit=f"u{number % 9}" if number % 4 else None)
        service.feedback("shop", slate, 0 if number % 3 else None)


def test_trial_from_start_to_end_in_a_store(run, shop):
    def trial(command, *words):
        return run("trial", command, "shop", *words, "--store", shop)

    seen = trial("start")
    assert (seen.code, seen.out) == (0, "")
    assert seen.err.splitlines()[0] == "shop: the trial starts with event 2: policy 0.9, baseline 0.1"
    seen = trial("shares", "--arm", "policy=60%", "--arm", "baseline=0.4")
    assert seen.err == "shop: from event 3 on policy 0.6, baseline 0.4\n"
    # No counts are written in the background, on however slow a machine.
    with open_service("shop.db", tuning=Tuning(background_threads=False)) as service:
        play(service)
    assert ": running" in trial("report").out
    report = json.loads(trial("report", "--json").out)
    assert (report["model"], report["running"], report["answer"]["periods"]) == ("shop", True, 2)
    arms = {arm["name"]: arm for arm in report["answer"]["arms"]}
    assert {name: arm["share"] for name, arm in arms.items()} == {"policy": 0.6, "baseline": 0.4}
    assert sum(arm["pages"] for arm in arms.values()) == 40
    seen = trial("stop", "--show", "baseline")
    assert seen.err == "shop: no trial is running; from event 44 on the baseline is shown\n"
    assert "; the baseline is shown since" in trial("report").out


def test_trial_from_start_to_end_through_a_server(run, shop):
    with open_service("shop.db") as service, Server(service, Settings(port=0)) as server:

        def trial(command, *words):
            return run("trial", command, "shop", *words, "--server", server.address)

        seen = trial("start", "--arm", "policy=0.5", "--arm", "baseline=0.2")
        assert (seen.code, "shares must add up to 1, got 0.7" in seen.err) == (2, True)
        arms = ("--arm", "policy=0.5", "--arm", "baseline=0.5")
        seen = trial("start", *arms, "--stop-if-worse", "--last-pages", 200, "--learn-from", "all")
        assert seen.code == 0, seen.err
        play(service)
        assert trial("shares", "--arm", "policy=1", "--arm", "baseline=0").code == 0
        report = trial("report")
        assert report.code == 0
        assert report.out == run("trial", "report", "shop", "--store", shop).out
        as_json = run("trial", "report", "shop", "--store", shop, "--json").out
        assert json.loads(trial("report", "--json").out) == json.loads(as_json)
        # The file is the server's.
        seen = run("trial", "stop", "shop", "--store", shop)
        assert (seen.code, seen.err.count("\n")) == (2, 1)
        assert trial("stop").code == 0
        assert not json.loads(trial("report", "--json").out)["running"]
        assert trial("stop").code == 2
