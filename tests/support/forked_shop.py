"""A shop in which everything happens, and the same told to a new model of any policy: what a fork must be."""

from copy import copy

import numpy as np

from firstclick.catalog.item import Item
from firstclick.online.feedback import examined_of
from firstclick.registry import make_policy
from firstclick.serve.log.events import (
    KIND_OF,
    Availability,
    Event,
    ItemsWithdrawn,
    Kind,
    ListPut,
    RolledBack,
    SettingsChanged,
    full_payload,
    packed,
    read_feedback,
)
from firstclick.serve.model.model import Model
from firstclick.serve.model.new_events import first_event, items_changed
from firstclick.streams import stream
from tests.support import seam

N_ITEMS, K = 12, 3
IDS = [f"i{row}" for row in range(N_ITEMS)]
# Prices, shares and counts: of different units, far from norm 1, and written with few digits.
FEATURES = (stream(3, "features").random((N_ITEMS, 3)) * [90.0, 1.0, 7.0]).round(3)


def first_items(table=FEATURES):
    rows = [None] * N_ITEMS if table is None else table.tolist()
    return [
        Item(item, f"item {item}", "odd" if row % 2 else "even", rows[row]) for row, item in enumerate(IDS)
    ]


class Shop:
    """A model of a service, and what was told to it: each entry makes the event in the log of a new model."""

    def __init__(self, service, policy, *, name="shop", table=FEATURES):
        self.service, self.name, self.table = service, name, table
        self.policy = make_policy(policy)
        self.items = first_items(table)
        service.create(name, policy=policy, k=K, items=self.items, seed=5)
        self.told = []

    def called(self, name, policy):
        """A fork of it that has this name, and goes on by itself."""
        shop = copy(self)
        shop.name, shop.policy, shop.told = name, make_policy(policy), list(self.told)
        return shop

    def play(self, steps, seed):
        """Requests and clicks of all sorts."""
        draw = stream(seed, "play")
        n_context = self.policy.n_context
        for step in range(steps):
            asked = {}
            if n_context:
                asked["context"] = draw.normal(size=n_context).round(2).tolist()
            own = {}
            if step % 5 == 1:
                asked |= {"candidates": IDS[:8], "exclude": ["i1"]}
                if self.policy.takes_features and self.table is not None:
                    asked["features"] = (draw.random((8, 3)) * [45.0, 0.5, 3.5]).round(2).tolist()
                    own = dict(zip(IDS, asked["features"], strict=False))
            if step % 5 == 2:
                asked |= {"pinned": {1: "i6"}, "k": 2}
            if step % 5 == 3:
                asked |= {"at_most": {"odd": 1}}
            slate = self.service.recommend(self.name, **asked)
            n = len(slate.items)
            said = {"click": (None, 0, n - 1)[step % 3]}
            if step % 4 == 3:
                said = {"clicks": [0, n - 1], "examined": n}
            if step % 11 == 10:
                said = {"click": 0, "examined": 2}
            self.service.feedback(self.name, slate, **said)
            event = self.event(seam.model(self.service, self.name).seq)
            rows = np.array(read_feedback(event.payload).rows, "<u4").tobytes()
            features = [own[item] for item in slate.items] if own else []
            self.told.append(_told_feedback(rows, said, asked.get("context", []), features, slate.items))

    def event(self, seq):
        model = self.service.model(self.name)
        ((event,),) = self.service.store.events(model.id, seq - 1, seq)
        return event

    def put(self, *items):
        self.service.put_items(self.name, items)
        self.told.append(lambda model: items_changed(model, items))

    def withdraw(self, *ids):
        self.service.withdraw_items(self.name, ids)
        self.told.append(lambda model: ItemsWithdrawn(list(ids)))

    def set_available(self, on, off):
        self.service.set_available(self.name, on=on, off=off)
        self.told.append(lambda model: Availability(on, off))

    def put_list(self, name, items):
        self.service.put_list(self.name, name, items)
        self.told.append(lambda model: ListPut(name, items))

    def set_explore(self, share):
        self.service.set_explore(self.name, share)
        self.told.append(lambda model: SettingsChanged(share))

    def roll_back(self, seq):
        self.service.roll_back(self.name, seq)
        self.told.append(lambda model: RolledBack(seq))

    def live(self):
        """A while in which everything happens."""
        features = self.table is not None
        self.play(22, 1)
        self.put(
            Item("n0", "new", "odd", [9.5, 0.25, 3.0] if features else None),
            Item("n1", group="even", features=[12.0, 0.5, 1.0] if features else None, available=False),
        )
        self.put_list("half", IDS[:6])
        self.set_available([], ["i5"])
        self.play(12, 2)
        if features:
            self.put(Item("i6", features=[33.3, 0.125, 6.0]), Item("i7", "renamed"))
        self.withdraw("i2")
        self.set_explore(0.2)
        self.play(12, 3)
        self.roll_back(20)
        self.set_available(["n1"], ["i4"])
        self.play(12, 4)
        return self

    def anew(self, policy):
        """A new model of another policy with the same items, which was told the same."""
        first = first_event(
            "new", policy=make_policy(policy).with_context(self.policy.n_context), k=K, items=self.items,
            seed=6, feature_names=(), scale=True, encoder=None,
        )  # fmt: skip
        events = [Event(1, Kind.CREATED, bytes(16), packed(first), 0.0)]

        def known_at(seq):
            model = Model(0, "new", first)
            model.apply(events[1:seq], known_at)
            return model.known()

        model = Model(0, "new", first)
        for seq, tell in enumerate(self.told, 2):
            said = tell(model)
            kind, payload = (
                (Kind.FEEDBACK, said) if isinstance(said, bytes) else (KIND_OF[type(said)], packed(said))
            )
            events.append(Event(seq, kind, seq.to_bytes(16, "big"), payload, float(seq)))
            model.apply(events[-1:], known_at)
        return model


def _told_feedback(rows, said, context, features, items):
    def payload(model):
        policy = model.engine.policy
        clicks = said.get("clicks") or [one for one in [said.get("click")] if one is not None]
        first_alone = policy.wants_all_clicks and "clicks" not in said
        examined = examined_of(len(items), clicks, said.get("examined"), first_alone=first_alone)
        table = model.engine.encoded(features, items) if features and policy.takes_features else np.empty(0)
        return full_payload(
            clicks, 999, rows, examined=examined, features=table.astype("<f8").tobytes(),
            context=np.array(context if policy.n_context else [], "<f8").tobytes(),
        )  # fmt: skip

    return payload


def assert_same(found, wanted):
    """Both know the same, bit for bit."""
    for mine, its in zip(found.engine.state, wanted.engine.state, strict=True):
        assert mine.dtype == its.dtype
        assert mine.tobytes() == its.tobytes()
    np.testing.assert_array_equal(found.engine.features, wanted.engine.features)
    assert found.catalog.items == wanted.catalog.items
    assert found.catalog.hidden.tolist() == wanted.catalog.hidden.tolist()
    assert (found.items.names, found.catalog.group_of) == (wanted.items.names, wanted.catalog.group_of)
    assert {name: list(its) for name, its in found.items.lists.items()} == {
        name: list(its) for name, its in wanted.items.lists.items()
    }
    assert found.explorer.share == wanted.explorer.share
    assert found.engine.numbers == wanted.engine.numbers
    assert found.engine.scale == wanted.engine.scale
    assert found.click_stats.slates == wanted.click_stats.slates
    assert found.click_stats.skipped == wanted.click_stats.skipped == 0
