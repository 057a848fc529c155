"""Any table, and anything that can happen to a model made of it: what is listed and learned from stays right.

Beside the service is a plain dict with what was put. After every step the raw values must be those of the
dict, and the row of each item must be what the encoder makes of them.
"""

import math
import shutil
import tempfile
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

import hypothesis.strategies as st
import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from firstclick.catalog.item import Item
from firstclick.not_given import NOT_GIVEN
from firstclick.serve.service import open_service
from firstclick.wire.errors import Malformed
from tests.support import seam

K, N_IDS = 3, 14
MISSING = st.sampled_from([None, "", "  ", "n/a", float("nan"), "-"])
LETTERS = st.characters(exclude_categories=())  # half surrogate pairs too
DAYS = st.dates(date(1990, 1, 1), date(2030, 12, 31))
FLOATS = st.floats(-1e6, 1e6)
KINDS = {
    "words": st.sampled_from(["tea", " Tea", "Kaffee", "čaj", "お茶", "other", "yes"]),
    "texts": st.text(LETTERS, max_size=12) | st.text("ab", min_size=190, max_size=215),
    "whole numbers": st.integers(-50, 50) | st.sampled_from([2**62, -(10**30), 10**400]),
    "numbers": FLOATS | st.sampled_from([1e300, -1e300, math.inf, 0.0, -0.0, 5e-324]),
    "decimal commas": FLOATS.map(lambda number: f"{number:.2f} €".replace(".", ",")),
    "numbers as text": FLOATS.map(lambda number: f"{number:,.1f}"),
    "flags": st.booleans() | st.sampled_from(["yes", "no", "0", 1]),
    "dates": DAYS | DAYS.map(date.isoformat) | DAYS.map(lambda day: f"{day:%d.%m.%Y}"),
    # Minus zero is kept as zero.
    "vectors": st.lists(st.floats(-9, 9).map(lambda number: number + 0.0), min_size=3, max_size=3),
}
ANY = st.one_of(*KINDS.values())
# Mostly what the column is about.
CELLS = {kind: st.one_of(cells, cells, cells, cells, MISSING, ANY) for kind, cells in KINDS.items()}
WORDS = st.text(LETTERS.filter(lambda one: not "\ud800" <= one <= "\udfff"), max_size=5)


def kept(cell):
    """What a cell must be listed as; lists are looked at elsewhere."""
    if isinstance(cell, str):
        text = cell.strip()
        if len(text) > 200:
            text = text[:201]
        return text.encode("utf-8", "replace").decode() or None
    if isinstance(cell, date):
        return cell.isoformat()
    if isinstance(cell, float) and not math.isfinite(cell):
        return None if math.isnan(cell) else str(cell)
    if type(cell) is int and abs(cell) >= 2**63:
        return str(cell) if abs(cell) < 2**511 else "inf"
    return cell


class Ware(NamedTuple):
    """An item as it must be."""

    name: str
    group: str
    values: dict[str, Any]
    withdrawn: bool = False


def told(value):
    """As it is, with its type: 1, 1.0 and True differ."""
    return type(value), value


class AnyTable(RuleBasedStateMachine):
    """A service with a model of some table."""

    @initialize(data=st.data(), kinds=st.lists(st.sampled_from(list(KINDS)), min_size=1, max_size=5))
    def begin(self, data, kinds):
        self.folder = Path(tempfile.mkdtemp(prefix="firstclick-"))
        self.service = open_service(str(self.folder / "shop.db"))
        self.kinds = {f"{kind} {place}": kind for place, kind in enumerate(kinds)}
        n_items = data.draw(st.integers(5, 9))
        table = [self.line(data, list(self.kinds)) for _ in range(n_items)]
        if data.draw(st.integers(0, 5), "with features"):
            # Columns that are surely features: random tables often have none.
            self.kinds |= {"size": "whole numbers", "drink": "words"}
            table = [
                line | {"size": row * row, "drink": ("tea", "Kaffee")[row % 2]}
                for row, line in enumerate(table)
            ]
        available = data.draw(st.lists(st.booleans(), min_size=n_items, max_size=n_items))
        items = [
            Item(self.id_of(row), f"Name {row}", "ab"[row % 2], table[row], available[row])
            for row in range(n_items)
        ]
        try:
            self.service.create("shop", policy="cascade-lin-ts", k=K, items=items, seed=1)
        except Malformed as refusal:
            if "needs features" not in str(refusal):
                raise
            self.service.create("shop", policy="cascade-ts", k=K, items=items, seed=1)
        encoder = self.service.model("shop").catalog.encoder
        assert encoder is not None
        self.encoder = encoder
        self.wares = {
            item.id: Ware(str(item.name), str(item.group), self.stored(line))
            for item, line in zip(items, table, strict=True)
        }
        self.off = {item.id for item in items if not item.available}
        self.past = {1: dict(self.wares)}
        self.copies = 0

    def teardown(self):
        if hasattr(self, "service"):
            audit = self.service.audit("shop")
            self.service.close()
            shutil.rmtree(self.folder)
            assert audit.equal

    @staticmethod
    def id_of(number):
        """Texts, whole numbers, and the same digits as both."""
        return number // 2 if number % 2 else str(number // 2)

    def line(self, data, columns):
        return {name: data.draw(CELLS[self.kinds[name]], name) for name in columns}

    def stored(self, line):
        """What must be listed of the columns that are features."""
        return {name: self._stored(name, line.get(name)) for name in self.encoder.inputs}

    def _stored(self, name, cell):
        (column,) = [column for column in self.encoder.columns if column.name == name]
        if column.kind == "embedding":
            if isinstance(cell, list):
                return cell
            return kept(cell) if kept(cell) in (None, "n/a", "-") else "no list"
        return str(cell) if isinstance(cell, list) else kept(cell)

    def happened(self, seq):
        self.past[seq] = dict(self.wares)
        assert seq == seam.model(self.service, "shop").seq

    @rule(data=st.data(), numbers=st.lists(st.integers(0, N_IDS - 1), min_size=1, max_size=4, unique=True))
    def put(self, data, numbers):
        items = []
        for number in numbers:
            item = self.id_of(number)
            name = data.draw(st.just(NOT_GIVEN) | st.none() | WORDS, "name")
            group = data.draw(st.just(NOT_GIVEN) | st.none() | st.sampled_from("abc"), "group")
            available = data.draw(st.just(NOT_GIVEN) | st.booleans(), "available")
            how = data.draw(st.sampled_from(["object", "part", "list", "null", "nothing"]), "features")
            old = self.wares.get(item, Ware("", "", self.stored({})))
            features, values = self._features(data, how, old)
            items.append(Item(item, name, group, features, available))
            self.wares[item] = Ware(
                old.name if name is NOT_GIVEN else name or "",
                old.group if group is NOT_GIVEN else group or "",
                values,
            )
            if available is not NOT_GIVEN:
                self.off = self.off - {item} if available else self.off | {item}
        self.happened(self.service.put_items("shop", items))

    @rule(data=st.data(), number=st.integers(0, N_IDS - 1), how=st.sampled_from(["object", "part", "list"]))
    def put_features(self, data, number, how):
        item = self.id_of(number)
        old = self.wares.get(item, Ware("", "", self.stored({})))
        features, values = self._features(data, how, old)
        self.wares[item] = Ware(old.name, old.group, values)
        self.happened(self.service.put_items("shop", [Item(item, features=features)]))

    def _features(self, data, how, old):
        """What is sent, and what must be there then."""
        inputs = list(self.encoder.inputs)
        if how == "nothing":
            return NOT_GIVEN, old.values
        if how == "null":
            return None, self.stored({})
        if how == "list":
            line = self.line(data, inputs)
            return [line[name] for name in inputs], self.stored(line)
        columns = list(self.kinds)
        if how == "part":
            columns = data.draw(st.lists(st.sampled_from(columns), unique=True), "columns")
        line = self.line(data, columns)
        changed = {name: self._stored(name, line[name]) for name in columns if name in inputs}
        return line, old.values | changed

    @rule(data=st.data())
    def withdraw(self, data):
        item = data.draw(st.sampled_from(list(self.wares)))
        self.wares[item] = self.wares[item]._replace(withdrawn=True)
        self.happened(self.service.withdraw_items("shop", [item]))

    @rule(data=st.data(), on=st.booleans())
    def set_available(self, data, on):
        items = data.draw(st.lists(st.sampled_from(list(self.wares)), min_size=1, unique=True))
        self.off = self.off.difference(items) if on else self.off.union(items)
        self.happened(self.service.set_available("shop", **{"on" if on else "off": items}))

    @rule(data=st.data())
    def roll_back(self, data):
        to = data.draw(st.sampled_from(sorted(self.past)))
        gone = {item: ware._replace(withdrawn=True) for item, ware in self.wares.items()}
        self.wares = gone | self.past[to]
        self.happened(self.service.roll_back("shop", to))

    @rule(click=st.none() | st.integers(0, K - 1))
    def play(self, click):
        shown = self.service.recommend("shop")
        there = {item for item, ware in self.wares.items() if not ware.withdrawn} - self.off
        assert there.issuperset(shown.items)
        assert len(shown.items) == min(K, len(there))
        clicked = click if click is not None and click < len(shown.items) else None
        self.happened(self.service.feedback("shop", shown, clicked).seq)

    @rule()
    def snapshot(self):
        seam.model(self.service, "shop").snapshot()

    @rule()
    def restart(self):
        digest, notes = self._digest(), self.service.model("shop").describe()["notes"]
        self.service.close()
        self.service = open_service(str(self.folder / "shop.db"))
        assert self._digest() == digest
        assert self.service.model("shop").describe()["notes"] == notes

    @rule()
    def snapshot_and_restart(self):
        self.snapshot()
        self.restart()
        model = self.service.model("shop")
        assert model.restored_from == model.seq

    @precondition(lambda self: self.copies < 2)
    @rule()
    def export_and_import(self):
        self.copies += 1
        copy = self.service.import_model(f"copy{self.copies}", b"".join(self.service.export("shop")))
        assert copy.digest() == self._digest()

    def _digest(self):
        return seam.model(self.service, "shop").digest()

    @invariant()
    def is_listed_as_it_was_put(self):
        if not hasattr(self, "past"):
            return
        model = self.service.model("shop")
        catalog = model.catalog
        assert len(catalog.items) == len(set(catalog.items)) == len(self.wares)
        assert catalog.unavailable == self.off
        for item, ware in self.wares.items():
            row = catalog.row_of(item)
            assert row is not None
            (values,) = catalog.features_as_given(np.array([row]))
            assert {name: told(value) for name, value in values.items()} == {
                name: told(value) for name, value in ware.values.items()
            }
            held = model.items.names[item], model.items.group(item), not catalog.has(item)
            assert held == (ware.name, ware.group, ware.withdrawn)

    @invariant()
    def rows_are_what_the_encoder_makes_of_the_values(self):
        if not hasattr(self, "past") or not self.encoder.n_features:
            return
        catalog = self.service.model("shop").catalog
        raw = [[self.wares[item].values[name] for name in self.encoder.inputs] for item in catalog.items]
        rows, _ = self.encoder.encode(raw)
        assert catalog.scale is not None
        np.testing.assert_array_equal(catalog.table, catalog.scale.apply(rows))


TestAnyTable = AnyTable.TestCase
TestAnyTable.settings = settings(
    max_examples=25, stateful_step_count=20, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
