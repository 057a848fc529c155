"""Replicas that start at once on an empty database, and replicas that change one item at once."""

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import numpy as np
import pytest

from firstclick.catalog.item import Item
from firstclick.errors import InvalidInput
from firstclick.not_given import NOT_GIVEN
from firstclick.serve import service as service_module
from firstclick.serve import startup
from firstclick.serve.config import Settings
from firstclick.serve.model.new_events import availability, items_changed
from firstclick.serve.service import open_service
from firstclick.serve.startup import Opened, open_for
from tests.support import seam
from tests.support.stores import raised

HEADER = "id,name,group,price,brand"
LINES = [f"i{row},Item {row},{'ab'[row % 2]},{(row * 7) % 11 + 0.5},{'XYZ'[row % 3]}" for row in range(12)]


def written(path, lines, header=HEADER):
    path.write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")
    return path


@pytest.fixture(autouse=True)
def _a_certain_race(monkeypatch):
    """Both see that there is no model before either makes one. Who has `second.csv` is second."""
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


def started(url, *settings):
    """What becomes of servers that are started at once."""
    begin = threading.Barrier(len(settings), timeout=60)

    def start(own):
        asked = Settings(
            **{"store": url, "name": "shop", "policy": "cascade-lin-ts", "k": 3, "seed": 1} | own
        )
        begin.wait()
        try:
            return open_for(asked)
        except Exception as error:
            return error

    with ThreadPoolExecutor(len(settings)) as pool:
        return list(pool.map(start, settings))


def in_order(outcomes):
    """Who made the model, and who came second; both are up."""
    services = [one for one in outcomes if isinstance(one, Opened)]
    assert len(services) == 2, outcomes
    first, second = sorted(services, key=lambda one: not one.catalog)
    assert first.catalog
    assert not second.catalog, "both say that they made the model"
    return first, second


def both_serve_the_same(*services):
    one, other = services
    assert one.audit("shop").digest == other.audit("shop").digest
    for number in range(20):
        slates = [service.recommend("shop", request_id=f"user {number}").items for service in services]
        assert slates[0] == slates[1]
    shown = one.recommend("shop")
    assert other.feedback("shop", shown.token, 0).status == "accepted"
    wait_for(lambda: seam.model(one, "shop").seq == seam.model(other, "shop").seq)
    assert one.audit("shop").digest == other.audit("shop").digest


def wait_for(true, seconds=10.0):
    until = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < until
        time.sleep(0.01)


def test_two_replicas_with_one_file_both_come_up(postgresql_url, tmp_path):
    file = written(tmp_path / "shop.csv", LINES)
    first, second = in_order(started(postgresql_url, {"catalog": file}, {"catalog": file}))
    with first.service, second.service:
        assert not any("another process" in note for note in (*first.notes, *second.notes))
        assert seam.model(first.service, "shop").seq == 1
        both_serve_the_same(first.service, second.service)


@pytest.mark.parametrize(
    ("difference", "says"),
    [
        ("a price", "1 of 12 items differ"),
        ("a name", "1 of 12 items differ"),
        ("an item more", "1 of 13 items differ"),
        ("an item less", "1 of its items is not in the file"),
        ("a column more", "it has no column 'colour'"),
        ("a column less", "the file has no column 'brand'"),
    ],
)
def test_with_another_file_the_second_says_so_and_serves_what_is_stored(
    difference, says, postgresql_url, tmp_path
):
    lines, header = list(LINES), HEADER
    match difference:
        case "a price":
            lines[4] = "i4,Item 4,a,99.5,Y"
        case "a name":
            lines[4] = lines[4].replace("Item 4", "Item four")
        case "an item more":
            lines.append("i99,Item 99,a,3.5,Y")
        case "an item less":
            lines.pop()
        case "a column more":
            header += ",colour"
            lines = [f"{line},{('red', 'blue')[row % 5 % 2]}" for row, line in enumerate(lines)]
        case "a column less":
            header = header.removesuffix(",brand")
            lines = [line.rpartition(",")[0] for line in lines]
    file, other = written(tmp_path / "first.csv", LINES), written(tmp_path / "second.csv", lines, header)
    first, second = in_order(started(postgresql_url, {"catalog": other}, {"catalog": file}))
    with first.service, second.service:
        assert not any("another process" in note for note in first.notes)
        (note,) = [note for note in second.notes if "another process" in note]
        assert note == (
            f"another process has just made model 'shop' of another catalog: {says}; the stored one is served"
        )
        for service in (first.service, second.service):
            assert service.model("shop").items.names["i4"] == "Item 4"
            assert service.model("shop").catalog.values["i4"] == ["6.5", "Y"]
            assert seam.model(service, "shop").seq == 1
        both_serve_the_same(first.service, second.service)


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"policy": "cascade-ts"}, "with policy cascade-lin-ts, and policy cascade-ts is asked for"),
        ({"k": 5}, "with k 3, and k 5 is asked for; say --k 3, or --name for another model"),
    ],
)
def test_with_another_policy_or_k_the_second_is_refused_in_words(asked, says, postgresql_url, tmp_path):
    file, same = written(tmp_path / "first.csv", LINES), written(tmp_path / "second.csv", LINES)
    first, second = started(postgresql_url, {"catalog": file}, {"catalog": same} | asked)
    assert isinstance(first, Opened), first
    with first.service as service:
        assert isinstance(second, InvalidInput)
        assert says in str(second)
        assert service.names() == ["shop"]
        assert len(service.recommend("shop").items) == 3


def test_other_names_make_two_models(postgresql_url, tmp_path):
    file = written(tmp_path / "shop.csv", LINES)
    for outcome in started(postgresql_url, {"catalog": file}, {"catalog": file, "name": "bar"}):
        assert isinstance(outcome, Opened), outcome
        with outcome.service as service:
            assert outcome.catalog
            wait_for(lambda names=service.names: names() == ["bar", "shop"])


def test_an_sqlite_file_has_one_server_and_the_second_is_told(tmp_path):
    file = written(tmp_path / "shop.csv", LINES)
    with open_for(Settings(store=str(tmp_path / "shop.db"))).service:
        second = raised(lambda: open_for(Settings(store=str(tmp_path / "shop.db"), catalog=file)))
    assert isinstance(second, InvalidInput)
    assert "shop.db" in str(second)


# Two replicas change one item at once.


@pytest.fixture
def replicas(postgresql_url):
    with ExitStack() as stack:
        one, other = (stack.enter_context(open_service(postgresql_url, poll_seconds=0.02)) for _ in range(2))
        features = [{"price": row * 7 % 11 + 0.5, "brand": "XYZ"[row % 3]} for row in range(12)]
        items = [Item(f"i{row}", f"Item {row}", "ab"[row % 2], features[row]) for row in range(12)]
        one.create("shop", policy="cascade-lin-ts", k=3, items=items, seed=1)
        wait_for(lambda: other.names() == ["shop"])
        yield one, other


def at_once(
    monkeypatch,
    replicas,
    items,
    *,
    door=items_changed,
):
    """Each puts one of the items, and writes after both have looked at the catalog as it was."""
    meeting = threading.Barrier(2, timeout=60)

    def looked(model, given, file_marks):
        body = door(model, given)
        meeting.wait()
        return body

    with monkeypatch.context() as patched, ThreadPoolExecutor(2) as pool:
        patched.setattr(service_module, "items_changed", looked)
        seqs = list(pool.map(lambda service, item: service.put_items("shop", [item]), replicas, items))
    assert sorted(seqs) == [2, 3]
    wait_for(lambda: all(seam.model(service, "shop").seq == 3 for service in replicas))
    for service in replicas:
        assert service.audit("shop").equal
    assert len({seam.model(service, "shop").digest() for service in replicas}) == 1


def held(service, item):
    """All that is known of an item."""
    model = service.model("shop")
    row = model.catalog.row_of(item)
    assert row is not None
    (features,) = model.catalog.features_as_given(np.array([row]))
    available = item not in model.catalog.unavailable
    return Item(item, model.items.names[item], model.items.group(item), features, available)


def encoded(service, item):
    """The features that the policy should have for what is known of the item."""
    catalog = service.model("shop").catalog
    assert catalog.encoder is not None
    assert catalog.scale is not None
    rows, _ = catalog.encoder.encode([catalog.values[item]])
    return list(catalog.scale.apply(rows)[0])


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
def test_what_two_replicas_put_at_once_is_there_on_both(one, other, both, replicas, monkeypatch):
    at_once(monkeypatch, replicas, (one, other))
    for service in replicas:
        assert held(service, str(both.id)) == both
        catalog = service.model("shop").catalog
        assert catalog.table[catalog.row_of(both.id)].tolist() == encoded(service, str(both.id))
        assert len(catalog.items) == len(set(catalog.items))


def test_a_door_that_fills_in_what_is_not_sent_would_lose_a_change(replicas, monkeypatch):
    """So the tests above can fail: this door writes down the name that it sees."""

    def resolving(model, items):
        (item,) = items
        name = model.items.names[item.id] if item.name is NOT_GIVEN else item.name
        features = dict(zip(("price", "brand"), model.catalog.values[item.id], strict=True))
        features |= {} if item.features is NOT_GIVEN else dict(item.features)
        return items_changed(model, [item._replace(name=name, features=features)])

    put = Item("i4", "New name"), Item("i4", features={"price": 99.5, "brand": "Z"})
    at_once(monkeypatch, replicas, put, door=resolving)
    found = held(replicas[0], "i4")
    assert (found.name, found.features) in (
        ("Item 4", {"price": 99.5, "brand": "Z"}),
        ("New name", {"price": 6.5, "brand": "Y"}),
    )


def test_availability_outlives_a_put_at_the_same_time(replicas, monkeypatch):
    one, other = replicas
    meeting = threading.Barrier(2, timeout=60)
    for word, door in (("items_changed", items_changed), ("availability", availability)):

        def looked(*arguments, door=door):
            body = door(*arguments)
            meeting.wait()
            return body

        monkeypatch.setattr(service_module, word, looked)
    with ThreadPoolExecutor(2) as pool:
        put = pool.submit(one.put_items, "shop", [Item("i4", "New name", features={"price": 1.5})])
        off = pool.submit(other.set_available, "shop", off=["i4"])
        assert {put.result(), off.result()} == {2, 3}
    wait_for(lambda: all(seam.model(service, "shop").seq == 3 for service in replicas))
    for service in replicas:
        assert held(service, "i4") == Item("i4", "New name", "a", {"price": 1.5, "brand": "Y"}, False)
        assert not any("i4" in service.recommend("shop").items for _ in range(20))
