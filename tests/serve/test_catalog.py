"""Items that come and change while slates are shown: by one process, by replicas at once, by a file."""

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
from tests.support.refusals import check_refused
from tests.support.shop import IDS, items, new_items

# Slates on screens are learned as shown, with the features of now


def with_other_features(ids, seed):
    """These items with other features."""
    rows = np.random.default_rng(seed).normal(size=(len(IDS), 4)) / 3
    return [items()[IDS.index(id)]._replace(features=rows[IDS.index(id)]) for id in ids]


def check_same_state(one, other):
    for mine, its in zip(one.state().values(), other.state().values(), strict=True):
        np.testing.assert_array_equal(mine, its)


@pytest.fixture
def shops(open_shop, tmp_path):
    """`shops(policy)`: two equal shops."""

    def open_two(policy):
        return [open_shop(tmp_path / f"{policy} {n}.db", policy=policy) for n in range(2)]

    return open_two


@pytest.mark.parametrize(
    "change",
    [
        lambda shop, slate: shop.withdraw_items(slate.items),
        lambda shop, slate: shop.set_available(off=slate.items),
        lambda shop, slate: shop.put_items(new_items(50)),
        lambda shop, slate: shop.put_items([items()[IDS.index(slate.items[0])]._replace(name="other")]),
    ],
    ids=["withdrawn", "sold out", "many added", "renamed"],
)
def test_a_slate_is_learned_as_it_was_shown(shops, change):
    """The same as in a service where nothing changed, bit for bit."""
    shop, quiet = shops("cascade-lin-ts")
    for each in (shop, quiet):
        slate = each.recommend(request_id="a")
        if each is shop:
            change(shop, slate)
        assert each.feedback(slate, 1).status == "accepted"
    check_same_state(shop, quiet)
    assert shop.audit().equal


@pytest.mark.parametrize("policy", ["cascade-lin-ts", "cascade-mixed"])
@pytest.mark.parametrize("seeds", [[7], [3, 4, 5], [None, 7]], ids=["once", "thrice", "after a withdrawal"])
def test_a_late_click_is_learned_with_the_features_of_now(shops, policy, seeds):
    """The same as in a service that had them when the slate was shown, bit for bit."""
    late, early = shops(policy)
    slate = late.recommend()
    for shop in (late, early):
        for seed in seeds:
            if seed is None:
                shop.withdraw_items(slate.items)
            else:
                shop.put_items(with_other_features(slate.items, seed))
    assert late.feedback(slate, 1).status == "accepted"
    same = early.recommend(pinned=dict(enumerate(slate.items)))
    assert early.feedback(same, 1).status == "accepted"
    check_same_state(late, early)
    for shop in (late, early):
        assert shop.describe()["items"] == len(IDS)
        assert shop.audit().equal


def test_slates_count_after_a_rollback_that_took_their_items_away(shops):
    shop, plain = shops("cascade-ts")
    old = shop.recommend()
    shop.put_items(new_items(1))
    new = shop.recommend(pinned={0: "i100"})
    shop.roll_back(1)
    assert shop.recommend(candidates=["i100"]).items == []
    # The row of i100 is not given to another.
    shop.put_items(new_items(1, first=101))
    for slate in (old, new):
        assert shop.feedback(slate, 0).status == "accepted"
    assert shop.recommend(candidates=["i101"]).scores == plain.recommend(candidates=["i1"]).scores
    shop.put_items(new_items(1))
    # Beta(1, 1) with one click of one.
    assert shop.recommend(candidates=["i100"]).scores == pytest.approx([2 / 3])
    assert shop.audit().equal


# Items of a table

TABLE = [
    {"brand": "Acme", "price": 9.5, "new": True}, {"brand": "Bolt", "price": 30, "new": False},
    {"brand": "Acme", "price": "12,00", "new": False}, {"brand": "Crux", "price": None, "new": True},
    {"brand": "Bolt", "price": 7, "new": True}, {"brand": "Crux", "price": 80, "new": False},
]  # fmt: skip
TABLE_ITEMS = [Item(f"t{n}", f"name {n}", "odd" if n % 2 else "even", row) for n, row in enumerate(TABLE)]


@pytest.fixture
def table(open_shop):
    """A model made of a table."""
    table = open_shop(policy="cascade-mixed", items=TABLE_ITEMS, seed=3)
    yield table
    assert table.audit().equal


def test_features_by_column_name_are_merged_and_unknown_levels_noted(table):
    table.put_items([Item("t0", features={"price": "15,50"}), Item("t1", features=["Crux", 3, True])])
    assert table.items()["t0"].features == {"brand": "Acme", "price": "15,50", "new": True}
    assert table.items()["t1"].features == {"brand": "Crux", "price": 3, "new": True}
    table.put_items([Item("t0", features=None), Item("new", features={"brand": "Zeta", "size": 3})])
    assert table.items()["t0"].features == dict.fromkeys(("brand", "price", "new"))
    assert table.items()["new"].features == {"brand": "Zeta", "price": None, "new": None}
    # Only new items are counted, not those that are put every night.
    table.put_items(TABLE_ITEMS)
    (note,) = table.describe()["notes"]
    assert note.startswith("brand: all new items have a level the model does not know")
    table.put_items([Item("t0", features={"price": "cheap"})])
    assert any(note.startswith("price: 1 cell") for note in table.describe()["notes"])
    for wrong in ([1, 2], "Acme", 7):
        check_refused(lambda wrong=wrong: table.put_items([Item("t0", features=wrong)]), "features")


def test_a_request_names_columns_and_the_rest_is_that_of_the_item(open_shop, tmp_path):
    """The same is learned as where the items themselves have these features."""
    shops = [open_shop(tmp_path / f"{n}.db", policy="cascade-lin-ts", items=TABLE_ITEMS) for n in range(2)]
    features = [{"price": 4}, ["Acme", 5, True]]
    request = {"candidates": ["t3", "t5"], "request_id": "a"}
    shops[1].put_items([Item(id, features=row) for id, row in zip(("t3", "t5"), features, strict=True)])
    for shop, own in zip(shops, ({"features": features}, {}), strict=True):
        shop.feedback(shop.recommend(**request, **own), clicks=[0, 1], examined=2)
    for mine, its in zip(*(shop.state().values() for shop in shops), strict=True):
        np.testing.assert_array_equal(mine, its)
    check_refused(lambda: shops[0].recommend(candidates=["t3"], features=[{"prise": 4}]), "features")


@pytest.mark.parametrize("policy", ["cascade-mixed", "cascade-lin-ts", "cascade-ts"])
def test_an_item_keeps_its_counts_when_its_features_change(open_shop, policy):
    shop = open_shop(policy=policy, items=TABLE_ITEMS, seed=3)
    for click in (0, 1, None, 2) * 10:
        shop.feedback(shop.recommend(), click)
    before = shop.state()
    shop.put_items([Item(f"t{n}", features=row | {"price": 10 * n}) for n, row in enumerate(TABLE)])
    after = shop.state()
    for name in ["examined", "hits"] if policy == "cascade-mixed" else before:
        np.testing.assert_array_equal(before[name], after[name])
    assert policy != "cascade-mixed" or after["precision"].tolist() != before["precision"].tolist()


def test_a_restart_reads_the_first_event_and_those_after_the_snapshot(table, monkeypatch):
    """Not the thirty nights before it."""
    for night in range(4):
        table.put_items([Item("t1", features={"price": night})])
    table.snapshot()
    snapshot = table.seq
    table.set_available(off=["t3"])
    store, reads = type(table.service.store), []
    events = store.events

    def note(self, model, after, upto=None, **more):
        reads.append((after, upto))
        return events(self, model, after, upto, **more)

    monkeypatch.setattr(store, "events", note)
    table.restart()
    assert table.describe()["restored_from"] == snapshot
    assert {after for after, _ in reads} <= {0, snapshot}
    assert all(upto == 1 for after, upto in reads if after == 0), reads


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


# A server that starts again with its file: changed lines are put, and nothing else changes

CSV = """sku;title;brand;price;available
a1;Red shoe;Acme;9,50;yes
a2;Blue shoe;Acme;12,00;yes
b1;Hat;Bolt;30,25;yes
b2;Cap;Bolt;8,00;no
c1;Scarf;Crux;7,00;yes
"""


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "products.csv"
    path.write_text(CSV)
    return path


def start(path, *given, **settings):
    """The model of a server with this file, and what the server prints."""
    opened = open_for(
        Settings(store=str(path.with_name("shop.db")), catalog=path, k=2, **settings), given=given
    )
    return seam.model(opened.service, "default"), opened.notes


def unavailable(shop):
    return {id for id, item in shop.items().items() if not item.available}


def test_a_file_that_stayed_as_it_was_undoes_nothing(path):
    shop, _ = start(path)
    with shop:
        shop.put_items([Item("a1", "Crimson shoe", features={"price": 8})])
        shop.set_available(off=["a2"], on=["b2"])
        seq = shop.seq
    for _ in range(2):
        shop, notes = start(path)
        with shop:
            assert (shop.seq, [note for note in notes if "put" in note]) == (seq, [])
            item = shop.items()["a1"]
            assert (item.name, item.features) == ("Crimson shoe", {"brand": "Acme", "price": 8})
            assert unavailable(shop) == {"a2"}
            shop.snapshot()


def test_changed_lines_of_the_file_are_put_and_others_are_not(path):
    shop, _ = start(path)
    with shop:
        shop.put_items([Item("a1", features={"price": 8}), Item("c1", features={"price": 1})])
        shop.set_available(off=["a1", "c1"])
        shop.withdraw_items(["b1"])
        shop.snapshot()
    path.write_text(CSV.replace("9,50;yes", "9,75;yes") + "d1;Belt;Acme;15,00;yes\n")
    shop, notes = start(path)
    assert any(note.startswith("2 of 6 items of the catalog are new or changed") for note in notes)
    assert any("withdrawn and stay so" in note for note in notes)
    with shop:
        items = shop.items()
        assert [items[id].features["price"] for id in ("a1", "c1", "d1")] == ["9,75", 1, "15,00"]
        assert "b1" not in items
        # The changed line of a1 has it as available.
        assert unavailable(shop) == {"b2", "c1"}
        shop.roll_back(1)
    shop, _ = start(path)
    with shop:  # The file is newer than event 1.
        assert shop.items()["a1"].features["price"] == "9,75"


def test_a_file_of_other_ids_is_refused(path):
    start(path)[0].close()
    path.write_text("item_id;sku;brand\n" + "".join(f"{n};s{n};Acme\n" for n in range(4)))
    with pytest.raises(InvalidInput, match="--id COLUMN"):
        start(path)


def test_options_that_come_too_late_are_reported(path):
    start(path)[0].close()
    shop, notes = start(path, "ignore", ignore=("brand",))
    shop.close()
    assert any(note.startswith("--ignore: model 'default' keeps") for note in notes)
