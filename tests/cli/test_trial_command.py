"""`firstclick trial`: start, look, change and stop, in a store and through a running server."""

import json

import pytest

from firstclick.catalog.item import Item
from firstclick.serve.config import Settings
from firstclick.serve.http.server import Server
from firstclick.serve.service import open_service

ITEMS = [Item("tea"), Item("bun"), Item(7), Item("pie"), Item("cake")]


@pytest.fixture
def shop(folder):
    """A store with a model that has a list; no server has it open."""
    with open_service("shop.db") as service:
        service.create("shop", policy="cascade-ts", k=3, items=ITEMS, seed=4, baseline=["pie", 7, "tea"])
        service.create("bare", policy="cascade-ts", k=3, items=ITEMS, seed=4)
    return folder / "shop.db"


@pytest.fixture
def live(shop):
    with open_service(str(shop)) as service, Server(service, Settings(port=0)) as server:
        yield service, server.address


def pages(service, n=40):
    for number in range(n):
        slate = service.recommend("shop", unit=f"u{number % 9}" if number % 4 else None)
        service.feedback("shop", slate, 0 if number % 3 else None)


def test_a_trial_from_start_to_end_in_a_store(run, shop):
    done = run("trial", "start", "shop", "--store", shop)
    assert (done.code, done.out) == (0, "")
    assert done.err.splitlines()[0] == "shop: the trial starts with event 2: policy 0.9, baseline 0.1"
    done = run("trial", "shares", "shop", "--arm", "policy=60%", "--arm", "baseline=0.4", "--store", shop)
    assert done.err == "shop: from event 3 on policy 0.6, baseline 0.4\n"
    with open_service(str(shop)) as service:
        pages(service)
    text = run("trial", "report", "shop", "--store", shop).out
    assert "Trial of shop, since 20" in text
    assert ": running" in text
    told = json.loads(run("trial", "report", "shop", "--store", shop, "--json").out)
    assert (told["model"], told["running"], told["answer"]["periods"]) == ("shop", True, 2)
    arms = {arm["name"]: arm for arm in told["answer"]["arms"]}
    assert {name: arm["share"] for name, arm in arms.items()} == {"policy": 0.6, "baseline": 0.4}
    assert sum(arm["pages"] for arm in arms.values()) == 40
    done = run("trial", "stop", "shop", "--show", "baseline", "--store", shop)
    assert done.err == "shop: no trial is running; from event 44 on the baseline is shown\n"
    assert (
        "stopped, because somebody asked for it; the baseline is shown since"
        in run("trial", "report", "shop", "--store", shop).out
    )


def test_a_trial_from_start_to_end_through_a_server(run, live, shop):
    service, url = live
    done = run("trial", "start", "shop", "--arm", "policy=0.5", "--arm", "baseline=0.2", "--server", url)
    assert done.code == 2
    assert "shares must add up to 1, got 0.7" in done.err
    done = run(
        "trial", "start", "shop", "--arm", "policy=0.5", "--arm", "baseline=0.5", "--stop-if-worse",
        "--last-pages", 200, "--learn-from", "all", "--server", url,
    )  # fmt: skip
    assert done.code == 0, done.err
    assert service.model("shop").launch.running is not None
    pages(service)
    assert (
        run("trial", "shares", "shop", "--arm", "policy=1", "--arm", "baseline=0", "--server", url).code == 0
    )
    here = run("trial", "report", "shop", "--store", shop)
    there = run("trial", "report", "shop", "--server", url)
    assert (here.code, here.out) == (0, there.out)
    assert json.loads(run("trial", "report", "shop", "--server", url, "--json").out) == json.loads(
        run("trial", "report", "shop", "--store", shop, "--json").out
    )
    # The file is the server's.
    done = run("trial", "stop", "shop", "--store", shop)
    assert done.code == 2
    assert done.err.count("\n") == 1
    assert run("trial", "stop", "shop", "--server", url).code == 0
    assert service.model("shop").launch.running is None
    assert run("trial", "stop", "shop", "--server", url).code == 2


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["report", "shop"], "model 'shop' had no trial"),
        (["stop", "shop"], "model 'shop' has no running trial"),
        (["shares", "shop"], "say the share of each arm: --arm policy=0.5 --arm baseline=0.5"),
        (["shares", "shop", "--arm", "policy=1"], "model 'shop' has no running trial"),
        (["start", "bare"], "arms have 'baseline', and model 'bare' has none"),
        (["start", "none"], "no model 'none'"),
        (["start", "shop", "--arm", "policy"], "--arm must be ARM=SHARE, such as policy=0.9, got 'policy'"),
        (["start", "shop", "--arm", "policy=x"], "--arm must be ARM=SHARE"),
        (["start", "shop", "--arm", "policy=0.5", "--arm", "policy=0.5"], "--arm policy is given twice"),
        (["start", "shop", "--arm", "policy=0.5", "--arm", "what=0.5"], "arms must be 'policy'"),
        (["start", "shop", "--last-pages", "5"], "--last-pages must be at least 100"),
        (["start", "shop", "--learn-from", "some"], "learn-from"),
        (["stop", "shop", "--show", "both"], "show"),
    ],
)
def test_mistakes_are_one_line(run, shop, words, sentence):
    done = run("trial", *words, "--store", shop)
    assert (done.code, done.out) == (2, "")
    assert sentence in " ".join(done.err.split())
    assert "Traceback" not in done.err
