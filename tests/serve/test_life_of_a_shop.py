"""The whole life of a shop: its catalog comes, sells out, changes every night, is rolled back and moves.

What must be there is kept in a plain dict beside the service, and compared after every step.
"""

import copy
import random
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from firstclick.catalog.item import Item
from firstclick.not_given import NOT_GIVEN
from firstclick.serve.config import Settings
from firstclick.serve.service import open_service
from firstclick.serve.startup import open_for
from tests.support import seam

K, N_ITEMS, NIGHTS = 4, 36, 30
COLUMNS = ("Price", "Brand", "Organic", "Released")
GROUPS = ("tea", "coffee", "cocoa", "cups", "pots", "gifts")
BRANDS = ("Acme", "Bolt", "Crux", "Dune")


@dataclass(frozen=True)
class Ware:
    """An item as its owner thinks of it."""

    name: str
    group: str
    values: dict[str, Any]
    available: bool = True
    withdrawn: bool = False


@dataclass
class Shop:
    """What must be true: every item by id, and how things stood after events that may be gone back to."""

    wares: dict[str, Ware] = field(default_factory=dict)
    past: dict[int, dict[str, Ware]] = field(default_factory=dict)

    def change(self, item, **facts):
        self.wares[item] = replace(self.wares[item], **facts)

    def note(self, seq):
        self.past[seq] = copy.deepcopy(self.wares)

    def roll_back(self, seq):
        """All as it was then, but availability; what came later is withdrawn."""
        then = self.past[seq]
        self.wares = {
            item: replace(then[item], available=ware.available)
            if item in then
            else replace(ware, withdrawn=True)
            for item, ware in self.wares.items()
        }

    def shown(self):
        return {item for item, ware in self.wares.items() if ware.available and not ware.withdrawn}


def price(draw):
    """As a German spreadsheet writes it."""
    return f"{draw.uniform(1, 90):.2f} €".replace(".", ",")


def first_wares(draw):
    wares = {}
    for row in range(N_ITEMS):
        values = {
            "Price": price(draw) if row % 9 else "n/a",
            "Brand": draw.choice(BRANDS),
            "Organic": draw.choice(("yes", "no")),
            "Released": f"{draw.randint(1, 28):02d}.{draw.randint(1, 12):02d}.{draw.randint(2019, 2024)}",
        }
        wares[f"{row:03d}"] = Ware(
            f"Thing №{row}", GROUPS[row % len(GROUPS)], values, available=row % 12 != 5
        )
    return wares


def write_file(path, wares, *, say_available):
    """A table as people have them: byte order mark, semicolons, blanks, and columns of no use."""
    lines = ["\ufeffID;Name;Group;Available;Price;Brand;Organic;Released;EAN;Currency"]
    for item, ware in wares.items():
        available = ("yes" if ware.available else "0") if say_available else ""
        cells = [item, f'"{ware.name}"', ware.group, available]
        cells += [f" {ware.values[column] or ''} " for column in COLUMNS]
        lines.append(";".join([*cells, f"40{item}99{item}11", "EUR"]))
    path.write_text("\r\n".join(lines) + "\r\n", encoding="utf-8")


def opened(url, catalog):
    return open_for(Settings(store=url, catalog=catalog, policy="cascade-mixed", k=K, seed=3, name="shop"))


def check(service, shop, step, name="shop"):
    """Compare the model with what must be, and its log with what is served; the digest."""
    model = service.model(name)
    catalog, items = model.catalog, model.items
    assert len(catalog.items) == len(set(catalog.items)) == len(shop.wares), step
    there = [item for item, ware in shop.wares.items() if not ware.withdrawn]
    assert {item for item in catalog.items if catalog.has(item)} == set(there), step
    for item in there:
        ware, row = shop.wares[item], catalog.row_of(item)
        assert row is not None
        (values,) = catalog.features_as_given(np.array([row]))
        held = (items.names[item], items.group(item), values, item not in catalog.unavailable)
        assert held == (ware.name, ware.group, ware.values, ware.available), (step, item)
    assert catalog.encoder is not None
    rows, _ = catalog.encoder.encode([catalog.values[item] for item in catalog.items])
    scaled = rows if catalog.scale is None else catalog.scale.apply(rows)
    np.testing.assert_array_equal(catalog.table, scaled, step)
    for number in range(50):
        shown = service.recommend(name, request_id=f"{step} {number}", at_most=1).items
        assert len(shown) == K, step
        assert shop.shown().issuperset(shown), step
        assert len({shop.wares[str(item)].group for item in shown}) == K, step
        plain = service.recommend(name) if number % 2 else service.recommend(name, request_id=f"{number}")
        assert len(plain.items) == K, step
        assert shop.shown().issuperset(plain.items), step
    for group in {shop.wares[item].group for item in shop.shown()}:
        own = [item for item in shop.shown() if shop.wares[item].group == group]
        assert len(service.recommend(name, candidates=own, at_most=1).items) == 1, (step, group)
    facts = model.describe()
    assert facts["items"] == len(shop.shown()), step
    assert facts["withdrawn"] == len(shop.wares) - len(there), step
    assert facts["unavailable"] == sum(not shop.wares[item].available for item in there), step
    audit = service.audit(name)
    assert audit.equal, (step, audit.differing)
    return audit.digest


def play(service, times, draw):
    """Some users, who click now and then."""
    for _ in range(times):
        shown = service.recommend("shop", at_most=1)
        click = draw.randrange(K + 2)
        service.feedback("shop", shown, click if click < K else None)


def put(service, shop, items):
    """Put items, and write down what that must come to."""
    seq = service.put_items("shop", items)
    for item in items:
        facts = {"withdrawn": False}
        for word in ("name", "group", "available"):
            if (told := getattr(item, word)) is not NOT_GIVEN:
                facts[word] = told
        old = shop.wares.setdefault(str(item.id), Ware("", "", dict.fromkeys(COLUMNS)))
        if isinstance(item.features, dict):
            facts["values"] = old.values | item.features
        shop.change(str(item.id), **facts)
    return seq


def test_the_whole_life_of_a_shop(store_url, tmp_path):
    draw, file = random.Random(7), tmp_path / "shop.csv"
    shop = Shop(first_wares(draw))
    write_file(file, shop.wares, say_available=True)

    service, told, _ = opened(store_url, file)
    assert told
    encoder = service.model("shop").catalog.encoder
    assert encoder is not None
    assert encoder.inputs == COLUMNS
    check(service, shop, "created")
    play(service, 30, draw)

    sold_out = ["000", "001", "007", "013", "019"]
    service.set_available("shop", off=sold_out)
    for item in sold_out:
        shop.change(item, available=False)
    check(service, shop, "sold out")
    play(service, 20, draw)

    service.set_available("shop", on=sold_out[:3])
    for item in sold_out[:3]:
        shop.change(item, available=True)
    check(service, shop, "restocked")

    counts = service.model("shop").click_stats.slates
    put(service, shop, [Item("002", "Ünder new näme"), Item("013", group="gifts"), Item("014", group="pots")])
    check(service, shop, "renamed")
    play(service, 20, draw)
    assert service.model("shop").click_stats.slates == counts + 20
    shop.note(seam.model(service, "shop").seq)
    renamed = seam.model(service, "shop").seq

    assert service.model("shop").describe()["notes"] == []
    new = {"Price": "19,90 €", "Brand": "Zephyr", "Organic": "yes", "Released": "01.06.2024"}
    put(service, shop, [Item("new", "New", "cups", new), Item("bare", "Bare", "pots", {"Brand": "Acme"})])
    (note,) = service.model("shop").describe()["notes"]
    assert note.startswith("Brand: 50 % of new items have a level the model does not know"), note
    check(service, shop, "new brand")
    put(service, shop, [Item("008", features={"Organic": None, "Price": "7,77 €"})])
    check(service, shop, "two columns of one item")
    play(service, 20, draw)

    service.withdraw_items("shop", ["003", "004"])
    for item in ("003", "004"):
        shop.change(item, withdrawn=True)
    check(service, shop, "withdrawn")

    for night in range(NIGHTS):
        for item, ware in shop.wares.items():
            if not ware.withdrawn:
                shop.change(item, values=ware.values | {"Price": price(draw)})
        shop.change("bare", values={**new, "Brand": "Bolt", "Price": price(draw)})
        if night % 10 == 9:
            # The server starts anew with the file, which says nothing of what is in stock.
            write_file(file, shop.wares, say_available=False)
            service.close()
            service, told, notes = opened(store_url, file)
            assert not told
            assert any(note.startswith("2 items of the catalog were withdrawn and stay so") for note in notes)
        else:
            items = [
                Item(item, ware.name, ware.group, dict(ware.values))
                for item, ware in shop.wares.items()
                if not ware.withdrawn
            ]
            put(service, shop, items)
        if night % 5 == 4:
            check(service, shop, f"night {night}")
        play(service, 5, draw)
    # 3 nights by the file and 27 by puts, with brands that are rare and none that is new.
    assert service.model("shop").items.oddities.n_rows == 2
    check(service, shop, "30 nights")

    service.roll_back("shop", renamed)
    shop.roll_back(renamed)
    check(service, shop, "rolled back")
    play(service, 20, draw)
    service.set_available("shop", off=["006"], on=["013", "new"])
    for item, available in (("006", False), ("013", True)):
        shop.change(item, available=available)
    put(service, shop, [Item("new", "New again"), Item("002", available=False)])
    digest = check(service, shop, "after the rollback")

    for step in ("killed", "closed"):
        if step == "closed":
            seam.model(service, "shop").snapshot()
        service.close()
        service = opened(store_url, None).service
        assert check(service, shop, step) == digest
        assert service.model("shop").restored_from == (
            seam.model(service, "shop").seq if step == "closed" else 0
        )

    content = b"".join(service.export("shop"))
    service.import_model("copy", content)
    assert check(service, shop, "imported", "copy") == digest
    service.close()
    with open_service(str(tmp_path / "elsewhere.db")) as elsewhere:
        elsewhere.import_model("shop", content)
        assert check(elsewhere, shop, "moved") == digest
        put(elsewhere, shop, [Item("moved", "Moved", "tea", new)])
        check(elsewhere, shop, "moved on")
