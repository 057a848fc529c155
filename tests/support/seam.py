"""The methods of the future `Model`, on the service of today.

    shop = open_shop()                       # tests/support/shop.py
    shop.recommend(); shop.feedback(slate, click=0); shop.describe(); shop.events(); shop.service.names()

Tests of behaviour call the service through this file and `doors.py`; what they still ask of the model behind
it they ask by `Model.internals`.
"""

from itertools import chain

import numpy as np

from firstclick.cli.stores import _words
from firstclick.serve import Item, Tuning
from firstclick.serve.log.events import Kind, TrialStarted, as_json, unpacked
from firstclick.trials.assignment import bucket_of

# Nothing runs in the background: a test moves the clock and calls `shop.run_background()`.
BY_HAND = Tuning(background_threads=False)
# Methods of `Service` whose first argument is the name of a model.
METHODS = {
    "audit", "change_items", "change_settings", "change_trial_shares", "delete", "describe", "export",
    "feedback", "feedback_batch", "put_items", "put_list", "recommend", "remove_baseline", "remove_list",
    "roll_back", "set_available", "set_baseline", "set_explore", "set_no_click_after", "start_trial",
    "stop_trial", "trial_report", "warm_start", "withdraw_items",
}  # fmt: skip


class Model:
    """One model of a service."""

    def __init__(self, service, name, reopen=None):
        self.service, self.name, self._reopen = service, name, reopen

    def __getattr__(self, method):
        if method not in METHODS:
            raise AttributeError(method)
        return lambda *arguments, **more: getattr(self.service, method)(self.name, *arguments, **more)

    def __enter__(self):
        return self

    def __exit__(self, *exception):
        self.close()

    def close(self):
        """Close the service; a second time does nothing."""
        if self.service is not None:
            self.service.close()
            self.service = None

    def restart(self):
        """Close the service and open its store again, with the same settings."""
        self.close()
        self.service = self._reopen().service

    def run_background(self):
        self.service.run_background()

    def model(self, name):
        """Another model of the same service; it is not created."""
        return Model(self.service, name)

    def fork(self, policy, name, **how):
        self.service.fork(self.name, policy, name, **how)
        return self.model(name)

    @property
    def internals(self):
        """The object behind the model, for the few tests that look into it."""
        return self.service.model(self.name)

    @property
    def seq(self):
        return self.internals.seq

    def digest(self):
        return self.internals.digest()

    def events(self, after=0):
        """The events of the log, as `firstclick log` prints them."""
        model = self.internals
        events = list(chain.from_iterable(self.service.store.events(model.id, 0, model.seq)))
        started = [unpacked(event, TrialStarted) for event in events if event.kind == Kind.TRIAL_STARTED]
        arms = {trial.id: [arm.name for arm in trial.arms] for trial in started}
        words = _words(model.created, model.catalog, arms)
        return [as_json(event, words) for event in events[after:]]

    def snapshot(self):
        """Write a snapshot now."""
        self.service.maintenance.snapshot(self.internals)

    def items(self):
        """Return each item that is not withdrawn, by id."""
        model = self.internals
        catalog = model.catalog
        features = catalog.features_as_given(np.arange(len(catalog.items)))
        return {
            id: Item(id, model.items.names[id], model.items.group(id), row, id not in catalog.unavailable)
            for id, row in zip(catalog.items, features, strict=True)
            if catalog.has(id)
        }

    def unit_in(self, arm, *, other_than=""):
        """A unit to which the running trial shows this arm."""
        trial = self.internals.launch.running
        units = (f"unit-{number}" for number in range(100_000))
        return next(
            unit
            for unit in units
            if unit != other_than and trial.tally.owner[bucket_of(unit, trial.body.key)] == arm
        )

    def state(self):
        """All arrays that the policy has learned."""
        arrays = self.internals.engine.state._asdict()
        return {name: array.copy() for name, array in arrays.items()}

    def columns(self):
        """The kind of each column that is a feature."""
        encoder = self.internals.catalog.encoder
        return (
            {column.name: column.kind for column in encoder.columns if column.name in encoder.inputs}
            if encoder
            else {}
        )

    def rows(self):
        """Return the rows that the policy reads of a table, and those of the values of the items."""
        catalog = self.internals.catalog
        rows, _ = catalog.encoder.encode([catalog.values[id] for id in catalog.items])
        return catalog.table, rows if catalog.scale is None else catalog.scale.apply(rows)


def model(service, name="shop"):
    return Model(service, name)
