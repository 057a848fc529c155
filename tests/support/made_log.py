"""A made-up log: items that come, change and go, slates and clicks, without any store."""

import numpy as np

from firstclick.catalog.item import Item
from firstclick.not_given import NOT_GIVEN
from firstclick.registry import policy_class
from firstclick.serve.log.events import (
    KIND_OF,
    Availability,
    Build,
    Created,
    Event,
    FirstItems,
    ItemsWithdrawn,
    Kind,
    RolledBack,
    feedback_payload,
    packed,
)
from firstclick.serve.model.model import Model
from firstclick.serve.model.new_events import items_changed

N_ITEMS, N_FEATURES, K = 13, 4, 3
OTHER_BUILD = Build("another firstclick", "another numba", "another llvmlite", "another processor")


def made_items(n=N_ITEMS, *, first=0, seed=1):
    """Items with features, the first of which is constant."""
    features = np.random.default_rng(seed).normal(size=(first + n, N_FEATURES)) / 3
    features[:, 0] = 1.0
    return [
        Item(f"i{row}", f"item {row}", "odd" if row % 2 else "even", features[row])
        for row in range(first, first + n)
    ]


def takes_features(policy):
    """Whether the policy looks at features, where there are some."""
    known = policy_class(policy)
    return known.needs_features or known.takes_features


def bare(items):
    """The items without their features."""
    return [item._replace(features=None) for item in items]


def created(policy="cascade-lin-ts", items=None):
    """The first event of a model."""
    items = made_items() if items is None else items
    if not takes_features(policy):
        items = bare(items)
    body = FirstItems.of(items)
    return Created(policy, {}, K, 5, body.n_features, body, 5, policy_class(policy).version, OTHER_BUILD)


class Log:
    """Events in a list, and the model that folds them one at a time as they come."""

    def __init__(self, policy="cascade-lin-ts", items=None):
        self.created = created(policy, items)
        self.events = []
        self._add(Kind.CREATED, packed(self.created))
        self.model = self.begin()

    def begin(self):
        return Model(1, "made", self.created)

    def _add(self, kind, payload):
        seq = len(self.events) + 1
        event = Event(seq, kind, seq.to_bytes(16, "big"), payload, 1_000_000.0 + seq / 3)
        self.events.append(event)
        return event

    def _apply(self, event):
        self.model.apply([event], self.known_at)

    def change(self, body):
        self._apply(self._add(KIND_OF[type(body)], packed(body)))

    def put(self, items):
        if not self.created.n_features:
            items = [item._replace(features=NOT_GIVEN) for item in items]
        self.change(items_changed(self.model, items))

    def set_available(self, *, on=(), off=()):
        self.change(Availability(list(on), list(off)))

    def withdraw(self, *ids):
        self.change(ItemsWithdrawn(list(ids)))

    def roll_back(self, to):
        self.change(RolledBack(to))

    def feedback(self, rows, click):
        payload = feedback_payload(click, 999, np.array(rows, "<u4").tobytes())
        self._apply(self._add(Kind.FEEDBACK, payload))

    def play(self, steps, seed=0):
        """Recommend and answer with made-up clicks."""
        draw = np.random.default_rng(seed)
        for step in range(steps):
            rows = self.model.recommend(step).rows
            click = int(draw.integers(0, K + 1))
            self.feedback(rows.tolist(), click if click < len(rows) else None)

    def model_at(self, seq):
        """All of the log up to there, folded in one go."""
        model = self.begin()
        model.apply(self.events[1:seq], self.known_at)
        return model

    def known_at(self, seq):
        return self.model_at(seq).known()

    def eventful(self):
        """A log in which everything happens."""
        self.play(40)
        self.put([*made_items(2, first=50), made_items()[3]._replace(name="renamed")])
        self.play(30, seed=1)
        self.withdraw("i2", "i50")
        self.play(20, seed=2)
        self.put([made_items(seed=9)[4], made_items()[2]])  # other features, and shown again
        self.play(80, seed=3)
        self.roll_back(60)
        self.play(20, seed=4)
        self.put(made_items(1, first=70))
        self.roll_back(len(self.events) - 3)
        self.play(10, seed=5)
        other = made_items(seed=10)
        self.put([other[5], Item("i6", "named"), *made_items(1, first=90), Item("i91", available=False)])
        self.set_available(off=("i7", "i3"))
        self.play(10, seed=6)
        self.put([*other[7:9], Item("i3", available=True)])
        self.roll_back(len(self.events) - 5)
        self.play(5, seed=7)
        return self
