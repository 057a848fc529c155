"""Replicas that start at once on an empty database, and replicas that change one item at once."""

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from firstclick import InvalidInput
from firstclick.serve import Item, service, startup
from firstclick.serve.config import Settings
from firstclick.serve.startup import Opened, open_for
from tests.support import seam
from tests.support.clock import Clock
from tests.support.stores import raised

HEADER = "id,name,group,price,brand"
ROWS = [{"price": row * 7 % 11 + 0.5, "brand": "XYZ"[row % 3]} for row in range(12)]
LINES = [f"i{n},Item {n},{'ab'[n % 2]},{row['price']},{row['brand']}" for n, row in enumerate(ROWS)]
ITEMS = [Item(f"i{n}", f"Item {n}", "ab"[n % 2], row) for n, row in enumerate(ROWS)]


def check_same(*shops):
    """All follow the log, learned the same and show the same."""
    for shop in shops:
        shop.run_background()
        assert shop.audit().equal
    assert len({shop.digest() for shop in shops}) == 1
    for number in range(20):
        slates = [shop.recommend(request_id=f"user {number}").items for shop in shops]
        assert slates[0] == slates[1]


# Replicas that start at once


def write(path, lines=LINES, header=HEADER):
    path.write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")
    return path


@pytest.fixture
def _one_is_second(monkeypatch):
    """Both see that there is no model before either makes one; the one with `second.csv` is second."""
    meeting, made, create = threading.Barrier(2, timeout=60), threading.Event(), startup._create

    def both(service, settings, file):
        meeting.wait()
        if file.name == "second.csv":
            assert made.wait(60)
        try:
            return create(service, settings, file)
        finally:
            made.set()

    monkeypatch.setattr(startup, "_create", both)


def start_at_once(url, *settings):
    """The outcomes of servers that are started at once; the one that made the model comes first."""
    common = {"store": url, "name": "shop", "policy": "cascade-lin-ts", "k": 3, "seed": 1}
    with ThreadPoolExecutor(len(settings)) as pool:
        outcomes = list(pool.map(lambda own: raised_or(lambda: open_for(Settings(**common | own))), settings))
    return sorted(outcomes, key=lambda outcome: not (isinstance(outcome, Opened) and outcome.catalog))


def raised_or(call):
    try:
        return call()
    except InvalidInput as error:
        return error


def check_both_serve(first, second):
    with seam.model(first.service) as one, seam.model(second.service) as other:
        assert first.catalog
        assert not second.catalog, "both say that they made the model"
        for shop in (one, other):
            item = shop.items()["i4"]
            assert (shop.seq, item.name, item.features) == (1, "Item 4", {"price": "6.5", "brand": "Y"})
        check_same(one, other)
        assert other.feedback(one.recommend(), 0).status == "accepted"
        check_same(one, other)


@pytest.mark.usefixtures("_one_is_second")
@pytest.mark.parametrize("second_file", ["shop.csv", "second.csv"])
def test_two_replicas_with_one_file_both_come_up(postgresql_url, tmp_path, second_file):
    files = write(tmp_path / "shop.csv"), write(tmp_path / second_file)
    first, second = start_at_once(postgresql_url, *({"catalog": file} for file in files))
    assert not any("another process" in note for note in (*first.notes, *second.notes))
    check_both_serve(first, second)


@pytest.mark.usefixtures("_one_is_second")
@pytest.mark.parametrize(
    ("difference", "words"),
    [
        (lambda lines: [*lines[:4], "i4,Item 4,a,99.5,Y", *lines[5:]], "1 of 12 items differ"),
        (lambda lines: [line.replace("Item 4", "Item four") for line in lines], "1 of 12 items differ"),
        (lambda lines: [*lines, "i99,Item 99,a,3.5,Y"], "1 of 13 items differ"),
        (lambda lines: lines[:-1], "1 of its items is not in the file"),
        (lambda lines: [f"{line},{line[1]}" for line in lines], "it has no column 'colour'"),
        (lambda lines: [line.rpartition(",")[0] for line in lines], "the file has no column 'brand'"),
    ],
    ids=["a price", "a name", "an item more", "an item less", "a column more", "a column less"],
)
def test_with_another_file_the_second_serves_what_is_stored(difference, words, postgresql_url, tmp_path):
    lines = difference(LINES)
    header = ",".join([*HEADER.split(","), "colour"][: lines[0].count(",") + 1])
    files = write(tmp_path / "second.csv", lines, header), write(tmp_path / "first.csv")
    first, second = start_at_once(postgresql_url, *({"catalog": file} for file in files))
    assert not any("another process" in note for note in first.notes)
    (note,) = [note for note in second.notes if "another process" in note]
    assert words in note
    check_both_serve(first, second)


@pytest.mark.usefixtures("_one_is_second")
@pytest.mark.parametrize(
    ("asked", "words"),
    [({"policy": "cascade-ts"}, "policy cascade-ts is asked for"), ({"k": 5}, "k 5 is asked for")],
)
def test_with_another_policy_or_k_the_second_is_refused(asked, words, postgresql_url, tmp_path):
    first, second = start_at_once(
        postgresql_url,
        {"catalog": write(tmp_path / "first.csv")},
        {"catalog": write(tmp_path / "second.csv")} | asked,
    )
    assert isinstance(second, InvalidInput)
    assert words in str(second)
    with first.service:
        assert first.service.names() == ["shop"]
        assert len(seam.model(first.service).recommend().items) == 3


@pytest.mark.usefixtures("_one_is_second")
def test_other_names_make_two_models(postgresql_url, tmp_path):
    file = write(tmp_path / "shop.csv")
    outcomes = start_at_once(postgresql_url, {"catalog": file}, {"catalog": file, "name": "bar"})
    for outcome in outcomes:
        assert outcome.catalog
        outcome.service.run_background()
        assert outcome.service.names() == ["bar", "shop"]
    for outcome in outcomes:
        outcome.service.close()


def test_an_sqlite_file_has_one_server_and_the_second_is_refused(tmp_path):
    settings = Settings(store=str(tmp_path / "shop.db"), catalog=write(tmp_path / "shop.csv"))
    with open_for(settings).service:
        second = raised(lambda: open_for(settings))
    assert isinstance(second, InvalidInput)
    assert "shop.db" in str(second)


# Replicas that change one item at once


@pytest.fixture
def replicas(open_shop, postgresql_url):
    return [open_shop(postgresql_url, policy="cascade-lin-ts", items=ITEMS, clock=Clock()) for _ in range(2)]


@pytest.fixture
def at_once(replicas, monkeypatch):
    """`at_once(call, call)`: each replica writes after both have read the catalog as it was."""
    meeting = threading.Barrier(2, timeout=60)
    for make in (service.items_changed, service.availability):

        def make_and_meet(*arguments, make=make):
            body = make(*arguments)
            meeting.wait()
            return body

        monkeypatch.setattr(service, make.__name__, make_and_meet)

    def run(*calls):
        with ThreadPoolExecutor(2) as pool:
            seqs = list(pool.map(lambda call, shop: call(shop), calls, replicas))
        assert sorted(seqs) == [2, 3]
        check_same(*replicas)
        assert {shop.seq for shop in replicas} == {3}

    return run


@pytest.mark.parametrize(
    ("one", "other", "both"),
    [
        (
            Item("i4", "New name"), Item("i4", features={"price": 99.5, "brand": "Z"}),
            Item("i4", "New name", "a", {"price": 99.5, "brand": "Z"}, True),
        ),
        (
            Item("i4", features={"price": 99.5}), Item("i4", features={"brand": "Z"}),
            Item("i4", "Item 4", "a", {"price": 99.5, "brand": "Z"}, True),
        ),
        (
            Item("i4", group="c"), Item("i4", available=False),
            Item("i4", "Item 4", "c", {"price": 6.5, "brand": "Y"}, False),
        ),
        (
            Item("new", "New", features={"price": 3.5}), Item("new", group="b", features={"brand": "X"}),
            Item("new", "New", "b", {"price": 3.5, "brand": "X"}, True),
        ),
        (
            Item("new", "New"), Item("new", features={"price": 3.5, "brand": "X"}),
            Item("new", "New", "", {"price": 3.5, "brand": "X"}, True),
        ),
    ],
    ids=["name and features", "two columns", "group and stock", "halves of a new item", "a new item"],
)  # fmt: skip
def test_changes_that_two_replicas_make_at_once_are_there_on_both(one, other, both, replicas, at_once):
    at_once(lambda shop: shop.put_items([one]), lambda shop: shop.put_items([other]))
    for shop in replicas:
        assert shop.items()[both.id] == both
        np.testing.assert_array_equal(*shop.rows())


def test_availability_outlives_a_put_at_the_same_time(replicas, at_once):
    item = Item("i4", "New name", features={"price": 1.5})
    at_once(lambda shop: shop.put_items([item]), lambda shop: shop.set_available(off=["i4"]))
    for shop in replicas:
        assert shop.items()["i4"] == Item("i4", "New name", "a", {"price": 1.5, "brand": "Y"}, False)
        assert shop.recommend(candidates=["i4"]).items == []
