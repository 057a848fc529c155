"""Anything may happen to a model, in any order: what it lists, shows and counts stays right.

Beside the service is a dict with the items as they were put, and what became of each slate. After every step
the model is compared with them, at the end with a replay of its log and with its copy in another store.
"""

import math
import shutil
import tempfile
from datetime import date
from pathlib import Path
from typing import Any, NamedTuple

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from firstclick.serve import Item
from tests.support.clock import Clock
from tests.support.refusals import check_refused
from tests.support.shop import K, shop_at

N_IDS = 14
MISSING = st.sampled_from([None, "", "  ", "n/a", float("nan"), "-"])
LETTERS = st.characters(exclude_categories=())  # half surrogate pairs too
WORDS = st.text(LETTERS.filter(lambda letter: not "\ud800" <= letter <= "\udfff"), max_size=5)
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
CLICKS = st.sampled_from([None, None, 0, 0, 0, 1, 2, -1, K])
WAITS = [0.0, 90.0, 1001.0]
TABLES = st.lists(st.sampled_from(list(KINDS)), min_size=1, max_size=5)


def id_of(number):
    """Texts, whole numbers, and the same digits as both."""
    return number // 2 if number % 2 else str(number // 2)


NUMBERS = st.lists(st.integers(-40, 40).map(lambda number: number / 4), min_size=4, max_size=4)
FACTS = {
    "name": st.none() | WORDS, "group": st.none() | st.sampled_from("abc"), "available": st.booleans()
}  # fmt: skip


class Ware(NamedTuple):
    """An item as it must be."""

    name: str = ""
    group: str = ""
    values: Any = None
    withdrawn: bool = False


class Report(NamedTuple):
    """The feedback of a slate, or its timeout."""

    click: int | None
    seq: int
    timed_out: bool = False
    corrected: bool = False


def with_types(values):
    """Values by column with their types, as 1, 1.0 and True are equal; numbers without rounding errors."""
    if not isinstance(values, dict):
        return None if values is None else [round(float(value), 9) + 0.0 for value in values]
    return {name: (type(value), value) for name, value in values.items()}


def form_of(cell):
    """The form in which a cell is listed."""
    if isinstance(cell, str):
        return cell.strip()[:201].encode("utf-8", "replace").decode() or None
    if isinstance(cell, list):
        return str(cell)
    if isinstance(cell, date):
        return cell.isoformat()
    if isinstance(cell, float) and not math.isfinite(cell):
        return None if math.isnan(cell) else str(cell)
    if type(cell) is int and abs(cell) >= 2**63:
        return str(cell) if abs(cell) < 2**511 else "inf"
    return cell


class AnyLife(RuleBasedStateMachine):
    """A model of any table, of lists of numbers or of no features."""

    def __init__(self, new_store=None):
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="firstclick-"))
        self.store, self.shared = (new_store(), True) if new_store else (self.folder / "shop.db", False)
        self.clock, self.shop, self.slates, self.reports = Clock(), None, {}, {}
        self.open, self.baseline, self.trial = {}, False, False

    @initialize(
        data=st.data(),
        features=TABLES | TABLES | st.sampled_from(["numbers", "none"]),
        policy=st.sampled_from(["cascade-mixed", "cascade-lin-ts", "cascade-ts"]),
        n=st.integers(5, 9),
        no_click_after=st.sampled_from(WAITS),
    )
    def begin(self, data, features, policy, n, no_click_after):
        self.columns = {}
        if features == "none" and policy == "cascade-lin-ts":
            policy = "cascade-ts"
        table = [data.draw(NUMBERS) if features == "numbers" else None for _ in range(n)]
        if isinstance(features, list):
            self.columns = {f"{kind} {position}": kind for position, kind in enumerate(features)}
            table = [self.line(data, self.columns) for _ in range(n)]
            if policy == "cascade-lin-ts" or data.draw(st.integers(0, 5), "with features"):
                # Columns that are surely features: random tables often have none.
                self.columns |= {"size": "whole numbers", "drink": "words"}
                sure = [{"size": row * row, "drink": ("tea", "Kaffee")[row % 2]} for row in range(n)]
                table = [line | more for line, more in zip(table, sure, strict=True)]
        available = data.draw(st.lists(st.booleans(), min_size=n, max_size=n))
        items = [
            Item(id_of(row), f"Name {row}", "ab"[row % 2], table[row], available[row]) for row in range(n)
        ]
        self.policy, self.features = policy, "table" if self.columns else features
        self.shop = shop_at(
            self.store, policy=policy, items=items, seed=1, clock=self.clock, no_click_after=no_click_after
        )
        self.kinds = self.shop.columns()
        self.wares = {item.id: Ware(item.name, item.group, self.forms_of(item.features)) for item in items}
        self.off = {item.id for item in items if not item.available}
        self.seq, self.past = 1, {1: dict(self.wares)}
        self.settings = {"explore": 0.0, "no_click_after": no_click_after}

    def teardown(self):
        if self.shop is not None:
            assert self.shop.audit().equal
            content, digest = b"".join(self.shop.export()), self.shop.digest()
            with shop_at(self.folder / "other.db", name="first", clock=self.clock) as other:
                assert other.service.import_model("shop", content).digest() == digest
                assert other.model("shop").audit().equal
            self.shop.close()
        shutil.rmtree(self.folder)

    # What must be true

    def line(self, data, columns):
        return {name: data.draw(CELLS[self.columns[name]], name) for name in columns}

    def forms_of(self, values):
        """The form in which an item's features are listed, of which only columns that are features are."""
        if self.features != "table":
            return values
        return {name: self.cell(name, values.get(name)) for name in self.kinds}

    def cell(self, name, cell):
        if self.kinds[name] != "embedding" or cell is None:
            return form_of(cell)
        if isinstance(cell, list):
            return cell
        return form_of(cell) if form_of(cell) in (None, "n/a", "-") else "no list"

    def present(self):
        return {id for id, ware in self.wares.items() if not ware.withdrawn} - self.off

    def note_event(self, seq):
        """Note one event more."""
        self.note_events(self.seq + 1)
        assert seq == self.seq

    def note_events(self, seq):
        for earlier in range(self.seq + 1, seq + 1):
            self.past[earlier] = dict(self.wares)
        self.seq = seq

    @invariant()
    def is_what_it_must_be(self):
        if self.shop is None:
            return
        items = self.shop.items()
        wares = {id: ware for id, ware in self.wares.items() if not ware.withdrawn}
        assert items.keys() == wares.keys()
        for id, item in items.items():
            ware = wares[id]
            assert (item.name, item.group, item.available) == (ware.name, ware.group, id not in self.off)
            assert with_types(item.features) == with_types(ware.values)
        facts = self.shop.describe()
        reports = self.reports.values()
        expected = self.settings | {
            "items": len(self.present()), "withdrawn": len(self.wares) - len(items),
            "unavailable": len(self.off & items.keys()), "seq": self.seq, "pending": len(self.open),
            "slates": len(reports), "clicks": sum(report.click is not None for report in reports),
            "timed_out": sum(report.timed_out for report in reports),
            "corrected": sum(report.corrected for report in reports),
        }  # fmt: skip
        assert {name: facts[name] for name in expected} == expected
        if self.kinds:
            np.testing.assert_array_equal(*self.shop.rows())

    # Items

    @rule(data=st.data(), numbers=st.lists(st.integers(0, N_IDS - 1), min_size=1, max_size=4, unique=True))
    def put(self, data, numbers):
        items, wares, off = [], dict(self.wares), set(self.off)
        for id in map(id_of, numbers):
            facts = data.draw(st.fixed_dictionaries({}, optional=FACTS), "facts")
            old = wares.get(id, Ware(values=self.forms_of({} if self.columns else None)))
            facts |= self.new_features(data, old, id in wares)
            values = facts.pop("listed", old.values)
            items.append(Item(id, **facts))
            wares[id] = Ware(facts.get("name", old.name) or "", facts.get("group", old.group) or "", values)
            off = off - {id} if facts.get("available", id not in off) else off | {id}
        seq = self.shop.put_items(items)
        self.wares, self.off = wares, off
        self.note_event(seq)

    def new_features(self, data, old, known):
        """The features to put, and how they must be listed then."""
        if self.features == "none":
            return data.draw(st.sampled_from([{}, {"features": None}]))
        if self.features == "numbers":
            row = data.draw(st.none() | NUMBERS if known else NUMBERS)
            return {} if row is None else {"features": row, "listed": row}
        how = data.draw(st.sampled_from(["object", "part", "list", "null", "nothing"]), "features")
        if how in ("null", "nothing"):
            return {"features": None, "listed": self.forms_of({})} if how == "null" else {}
        names = list(self.kinds) if how == "list" else list(self.columns)
        if how == "part":
            names = data.draw(st.lists(st.sampled_from(names), unique=True), "columns")
        line = self.line(data, names)
        values = old.values | {name: self.cell(name, line[name]) for name in names if name in self.kinds}
        return {"features": list(line.values()) if how == "list" else line, "listed": values}

    @rule(number=st.integers(0, N_IDS - 1))
    def withdraw(self, number):
        id = id_of(number)
        if id not in self.wares:
            check_refused(lambda: self.shop.withdraw_items([id]), "withdraw", "unknown")
        else:  # A withdrawn item is withdrawn again without harm.
            self.wares[id] = self.wares[id]._replace(withdrawn=True)
            self.note_event(self.shop.withdraw_items([id]))

    @rule(data=st.data(), on=st.booleans())
    def set_available(self, data, on):
        ids = data.draw(st.lists(st.sampled_from(list(self.wares)), min_size=1, unique=True))
        self.off = self.off.difference(ids) if on else self.off.union(ids)
        self.note_event(self.shop.set_available(**{"on" if on else "off": ids}))

    @rule(data=st.data())
    def roll_back(self, data):
        """Everything of items is as it was, but availability; what came later is withdrawn."""
        to = data.draw(st.sampled_from(sorted(self.past)))
        gone = {id: ware._replace(withdrawn=True) for id, ware in self.wares.items()}
        self.wares = gone | self.past[to]
        self.note_event(self.shop.roll_back(to))

    # Slates

    @rule(
        data=st.data(),
        k=st.integers(1, K),
        how=st.sampled_from(["", "", "exclude", "candidates", "cap", "pin"]),
        then=st.sampled_from(["wait", "answer", "answer late"]),
        clicks=st.lists(CLICKS, min_size=1, max_size=3),
    )
    def recommend(self, data, k, how, then, clicks):
        allowed, request, n = self.present(), {"k": k}, k
        ids = data.draw(st.lists(st.sampled_from(list(self.wares)), unique=True))
        if how == "exclude":
            request["exclude"], allowed = ids, allowed.difference(ids)
        if how == "candidates":
            request["candidates"], allowed = ids, allowed.intersection(ids)
        groups = [self.wares[id].group for id in allowed]
        if how == "cap":
            request["at_most"], n = 1, min(k, groups.count("") + len({*groups} - {""}))
        if how == "pin" and ids:
            request["pinned"] = {0: ids[0]}
        pending = self.shop.describe()["pending"]
        slate = self.shop.recommend(**request)
        assert set(slate.items) <= allowed
        assert len(slate.items) == min(n, len(allowed)) == len(set(slate.items))
        assert slate.seq == self.seq
        if "pinned" in request:
            assert slate.items[:1] == ids[:1] if ids[0] in allowed else slate.skipped_pins == (ids[0],)
        if how == "cap":
            capped = [self.wares[id].group for id in slate.items if self.wares[id].group]
            assert len(capped) == len(set(capped))
        self.slates[slate.token] = slate.items
        if self.settings["no_click_after"] or self.shop.describe()["pending"] > pending:
            self.open[slate.token] = self.clock.time()
        if then == "answer late":
            self.time_passes(2000)
        for click in clicks if then != "wait" else ():
            self.report(slate.token, click)

    @precondition(lambda self: self.slates)
    @rule(data=st.data(), click=CLICKS)
    def answer(self, data, click):
        self.report(data.draw(st.sampled_from(list(self.slates)[-3:])), click)

    def report(self, token, click):
        known = self.reports.get(token)
        if click is not None and not 0 <= click < len(self.slates[token]):
            return check_refused(lambda: self.shop.feedback(token, click), "click")
        if known is None:
            status, seq = "accepted", self.seq + 1
        elif known.click == click or (click is None and known.timed_out):
            status, seq = "duplicate", None
        elif known.timed_out and not known.corrected:
            status = "late" if self.policy == "cascade-lin-ts" else "corrected"
            seq = self.seq + 1
        else:
            status, seq = "conflict", None
        if status in ("conflict", "late"):
            return check_refused(lambda: self.shop.feedback(token, click), "token", status)
        receipt = self.shop.feedback(token, click)
        assert receipt.status == status
        if seq is not None:
            self.reports[token] = Report(click, seq, known is not None, known is not None)
            self.open.pop(token, None)
            self.note_event(receipt.seq)
        elif not known.timed_out:
            assert receipt.seq == known.seq
        return None

    @precondition(lambda self: self.slates)
    @rule(data=st.data(), position=st.integers(0, 200), id=st.integers(0, N_IDS - 1).map(id_of))
    def be_refused(self, data, position, id):
        token = data.draw(st.sampled_from(list(self.slates)[-3:]))
        position %= len(token)
        forged = token[:position] + ("A" if token[position] != "A" else "B") + token[position + 1 :]
        check_refused(lambda: self.shop.feedback(forged, None), "token", "unknown")
        features = 7 if self.features == "table" else [1.0] * 9
        check_refused(lambda: self.shop.put_items([Item("new"), Item(id, features=features)]), "features")

    @rule(seconds=st.sampled_from([0, 61, 700, 2000]))
    def time_passes(self, seconds):
        """The background counts slates once a minute, and slates without feedback time out."""
        self.clock.move(seconds)
        self.shop.run_background()
        wait = self.settings["no_click_after"]
        for token, since in list(self.open.items()):
            if self.clock.time() - since >= (wait or 1800):
                del self.open[token]
                if wait:
                    self.reports[token] = Report(None, self.seq, timed_out=True)
        self.note_events(self.shop.seq)

    # Settings, baseline, trial

    @rule(explore=st.sampled_from([None, 0.0, 0.5]), no_click_after=st.sampled_from(WAITS))
    def change_settings(self, explore, no_click_after):
        changed = {"no_click_after": no_click_after} | ({} if explore is None else {"explore": explore})
        self.settings |= changed
        self.note_event(self.shop.change_settings(**changed))

    @rule(data=st.data(), show=st.sampled_from(["", "policy", "baseline"]))
    def launch(self, data, show):
        """A list is shown first, a trial compares with it, and both end."""
        present = [id for id, ware in self.wares.items() if not ware.withdrawn]
        if self.trial:
            check_refused(self.shop.remove_baseline, "baseline", "conflict")
            self.note_event(self.shop.stop_trial(show=show or "policy"))
            self.trial = False
        elif not self.baseline and len(present) >= K:
            self.note_event(self.shop.set_baseline(data.draw(st.permutations(present))))
            self.baseline = True
        elif self.baseline and show:
            self.note_event(self.shop.start_trial())
            self.trial = True
        elif self.baseline:
            self.note_event(self.shop.remove_baseline())
            self.baseline = False

    # Stores

    @rule(snapshot=st.booleans())
    def restart(self, snapshot):
        self.time_passes(61)  # Else the slates that are not counted yet are, when the service closes.
        digest, notes = self.shop.digest(), self.shop.describe()["notes"]
        if snapshot:
            self.shop.snapshot()
        self.shop.restart()
        self.open.clear()
        facts = self.shop.describe()
        assert (facts["digest"], facts["notes"]) == (digest, notes)
        assert not snapshot or facts["restored_from"] == self.seq

    @precondition(lambda self: self.shared)
    @rule()
    def another_process(self):
        with shop_at(self.store, clock=self.clock) as other:
            assert other.digest() == self.shop.digest()
            slate = other.recommend()
            self.note_event(other.feedback(slate, click=None).seq)
            self.slates[slate.token], self.reports[slate.token] = slate.items, Report(None, self.seq)
        self.time_passes(0)


def run(examples, new_store=None):
    run_state_machine_as_test(
        lambda: AnyLife(new_store),
        settings=settings(
            max_examples=examples, stateful_step_count=25, suppress_health_check=[HealthCheck.too_slow]
        ),
    )


def test_whatever_happens_a_model_is_what_its_log_says():
    run(25)


@pytest.mark.long
def test_whatever_happens_a_model_is_what_its_log_says_in_many_lives():
    run(200)


@pytest.mark.long
def test_whatever_happens_two_processes_show_one_model(postgresql):
    run(30, postgresql.new_database)
