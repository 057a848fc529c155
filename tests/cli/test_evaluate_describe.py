"""`firstclick evaluate describe`: text, JSON and page, of files and of our own logs."""

import json
from pathlib import Path

import pytest

from firstclick.catalog.item import Item
from firstclick.serve.service import open_service

CSV = "ranking,pos,who\ntea|milk|jam,1,q1\nmilk|tea|jam,3,q2\njam|tea|milk,,q1\njam|jam|tea,1,q1\n"


@pytest.fixture
def clicks(folder):
    path = folder / "clicks.csv"
    path.write_text(CSV)
    return path


@pytest.fixture
def shop(folder):
    with open_service("shop.db") as service:
        items = [Item("tea"), Item("bun"), Item(7), Item("pie")]
        service.create("shop", policy="random", k=2, items=items, seed=4)
        for click in (0, None, 1):
            service.feedback("shop", service.recommend("shop").token, click=click)
        service.create("new", policy="random", k=2, items=items, seed=4)
    return folder / "shop.db"


def test_a_file_is_described_in_words(run, clicks):
    done = run("evaluate", "describe", clicks, "--column", "click=pos", "--column", "segment=who")
    assert done.code == 0
    assert done.out.startswith("clicks.csv: 3 slates of up to 3 of 3 items\n")
    assert "  - clicks in 'pos' are positions that count from 1\n" in done.out
    assert "  - 1 with an item twice (row 3)\n" in done.out
    assert "What can be evaluated\n" in done.out


def test_json_and_a_page(run, clicks, folder):
    done = run("evaluate", "describe", clicks, "--column", "click=pos", "--json", "--page", "log.html")
    told = json.loads(done.out)
    assert (told["slates"], told["clicks"], told["distinct_slates"]) == (3, 2, 3)
    assert [one["clicks"] for one in told["positions"]] == [1, 0, 1]
    page = (folder / "log.html").read_text()
    assert "Click-through by position" in page
    assert "with an item twice (row 3)" in page
    assert "<script" not in page
    assert 'href="http' not in page
    assert run("evaluate", "describe", clicks, "--page", "log.txt").err == (
        "error: --page must end in .html or .htm, got 'log.txt'\n"
    )
    seen = run("evaluate", "describe", clicks, "--page", "no/log.html")
    assert (seen.code, seen.out) == (2, "")
    assert seen.err == "error: --page no/log.html: there is no folder no\n"


def test_a_model_in_a_store_is_described(run, shop, folder):
    done = run("evaluate", "describe", shop, "--model", "shop")
    assert done.out.startswith("shop: 3 slates of up to 2 of 4 items\n")
    assert "firstclick evaluate propensities shop --store STORE --out slates.parquet" in " ".join(
        done.out.split()
    )
    assert run("export", "shop", "--store", shop, "--out", "shop.model").code == 0
    assert run("evaluate", "describe", "shop.model").out == done.out
    assert run("evaluate", "describe", "shop.model", "--log-option", "timed-out=not-reported").code == 0


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["nowhere.csv"], "nowhere.csv: no such file"),
        (["shop.db"], "shop.db is a store; say --model, one of: shop, new"),
        (["shop.db", "--model", "shoe"], "no model 'shoe' in shop.db; there are: shop, new"),
        (["shop.db", "--model", "new"], "model 'new' has no slate with a reported outcome yet"),
        (["shop.db", "--model", "shop", "--column", "items=x"], "--column goes with a LOG that is a file"),
        (["shop.db", "--model", "shop", "--log-option", "timed-out=x"],
         "--log-option timed-out must be one of no-click, not-reported, got 'x'"),
        (["shop.db", "--model", "shop", "--log-option", "format=slates"],
         "--log-option format goes with a LOG that is a file"),
        (["clicks.csv", "--log-option", "timed-out=no-click"],
         "--log-option timed-out goes with a LOG that is a store, with --model"),
        (["clicks.csv", "--log-option", "colour=red"], "--log-option colour is not known; there are: format"),
        (["clicks.csv", "--log-option", "format"], "--log-option must be NAME=VALUE, got 'format'"),
        (["clicks.csv", "--log-option", "positions-from=2"],
         "--log-option positions-from must be 0 or 1, got '2'"),
        (["clicks.csv", "--column", "items=rank"],
         "clicks.csv has no column 'rank' for 'items'; it has: ranking, pos, who"),
        (["clicks.csv", "--column", "price=pos"], "no column is called 'price' here; there are: items, "),
        (["empty.csv"], "empty.csv is empty"),
        (["flag.csv"], "If these are positions, say --log-option clicks-as=positions"),
        (["other.csv"], "other.csv has neither a column of slates"),
    ],
)  # fmt: skip
def test_mistakes_are_told_in_a_sentence(run, shop, clicks, arguments, problem):
    Path("empty.csv").write_text("")
    Path("flag.csv").write_text("items,click\na|b|c,0\nb|c|a,1\n")
    Path("other.csv").write_text("a,b\n1,2\n")
    done = run("evaluate", "describe", *arguments)
    assert done.code == 2
    assert problem in done.err
    assert done.err.startswith("error: ")
    assert len(done.err.splitlines()) == 1
