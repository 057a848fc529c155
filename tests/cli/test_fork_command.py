"""`firstclick fork`, and what `log` and `audit` tell of a fork."""

import json

import polars as pl
import pytest

from firstclick import policy_classes
from firstclick.catalog.item import Item
from firstclick.cli.fork import fork
from firstclick.serve.service import open_service

ITEMS = [Item(name, features=[price]) for name, price in (("tea", 2.5), ("bun", 1.2), (7, 3.0), ("pie", 4.0))]


@pytest.fixture
def shop(folder):
    """A store with a model that learns from features; no server has it open."""
    with open_service("shop.db") as service:
        service.create("shop", policy="cascade-lin-ts", k=3, items=ITEMS, seed=4)
        for click in (0, None, 2):
            service.feedback("shop", service.recommend("shop").token, click)
        own = service.recommend("shop", candidates=["tea", "bun"], features=[[2.25], [1.0]])
        service.feedback("shop", own, 1)
        service.put_items("shop", [Item("cake", features=[5.5])])
    return folder / "shop.db"


def test_a_fork_says_what_it_is_and_whose_its_slates_are(run, shop):
    before = run("log", "shop", "--store", shop).out.splitlines()
    done = run("fork", "shop", "--policy", "cascade-ts", "--as", "shop2", "--store", shop)
    assert (done.code, done.out) == (0, "")
    assert done.err == "shop2: a new model of cascade-ts with the 6 events of shop\n"
    with open_service("shop.db") as service:
        service.feedback("shop2", service.recommend("shop2"), 1)

    audited = run("audit", "--slates", "--store", shop)
    assert audited.code == 0
    assert "shop: 4 slates drawn again equal, 0 differ\n" in audited.out
    told = "shop2: 5 slates drawn again equal, 0 differ, 4 of them of shop (cascade-lin-ts)"
    assert told in audited.out

    first, *copied, own = map(json.loads, run("log", "shop2", "--store", shop).out.splitlines())
    assert (first["policy"], first["copied"]) == ("cascade-ts", 6)
    (origin,) = first["origins"]
    assert (origin["model"], origin["upto"], origin["policy"]) == ("shop", 6, "cascade-lin-ts")
    assert "origin" not in own
    for line, was in zip(copied, map(json.loads, before[1:]), strict=True):
        origin = line.pop("origin")
        assert origin == {"model": "shop", "policy": "cascade-lin-ts", "seq": line["seq"]}
        assert line == was, "told as in the log that it comes from"
    features = dict(zip(copied[3]["items"], copied[3]["features"], strict=True))
    assert features == {"tea": [2.25], "bun": [1.0]}, "cascade-ts does not look at them, and the log has them"

    assert run("log", "shop2", "--store", shop, "--out", "slates.parquet").code == 0
    table = pl.read_parquet("slates.parquet")
    whose = [json.loads(origin)["model"] if origin else None for origin in table["origin"]]
    assert whose == [None, *["shop"] * 5, None]


def test_relearn_is_a_fork_with_the_policy_that_it_has(run, shop):
    done = run("relearn", "shop", "--name", "again", "--store", shop)
    assert done.err == "again: a new model of cascade-lin-ts with the 6 events of shop\n"
    told = run("audit", "--store", shop).out
    assert len({line.split("SHA-256 ")[1] for line in told.splitlines() if "SHA-256" in line}) == 1


def test_mistakes_are_one_line(run, shop):
    for words, sentence in (
        (["fork", "shop", "--policy", "bubble-rank", "--as", "b"], "these can: c3-ucb, cascade-kl-ucb, casc"),
        (["fork", "shop", "--policy", "cascade-ts", "--as", "shop"], "'shop' is taken by another model"),
        (["fork", "shop", "--policy", "cascade-tts", "--as", "b"], "cascade-tts"),
        (
            ["fork", "shoe", "--policy", "cascade-ts", "--as", "b"],
            "no model 'shoe' in the store",
        ),
        (["fork", "shop", "--as", "b"], "--policy"),
    ):
        done = run(*words, "--store", shop)
        assert (done.code, done.err.count("\n")) == (2, 1)
        assert done.err.startswith("error: ")
        assert sentence in done.err


def test_a_server_that_has_the_store_can_be_asked(run, shop):
    with open_service("shop.db"):
        done = run("fork", "shop", "--policy", "cascade-ts", "--as", "shop2", "--store", shop)
    assert done.code == 2
    assert done.err.endswith("; or have a running server do it: POST /v1/models/shop/fork\n")


def test_the_help_names_the_policies_that_cannot():
    cannot = sorted(name for name, known in policy_classes().items() if not known.learns_from_others)
    assert f"shuffled itself: {', '.join(cannot)};" in " ".join(str(fork.__doc__).split())
