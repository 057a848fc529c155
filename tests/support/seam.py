"""The methods of the future `Model`, on the service of today.

    model = seam.model(service, "shop")
    model.recommend(); model.feedback(token, click=0); model.describe(); model.events()

Only this file and `doors.py` call internals of the service on behalf of tests of its behaviour.
"""

from itertools import chain

from firstclick.cli.stores import _words
from firstclick.serve import Tuning, open_service
from firstclick.serve.log.events import Kind, TrialStarted, as_json, unpacked

# Nothing runs in the background: a test moves the clock and calls `service.run_background()`.
BY_HAND = Tuning(background_threads=False)
# Methods of `Service` whose first argument is the name of a model.
METHODS = {
    "audit", "change_items", "change_settings", "change_trial_shares", "describe", "export", "feedback",
    "feedback_batch", "put_items", "put_list", "recommend", "remove_baseline", "remove_list", "roll_back",
    "set_available", "set_baseline", "set_explore", "set_no_click_after", "start_trial", "stop_trial",
    "trial_report", "warm_start", "withdraw_items",
}  # fmt: skip


class Model:
    """One model of a service."""

    def __init__(self, service, name):
        self.service, self.name = service, name

    def __getattr__(self, method):
        if method not in METHODS:
            raise AttributeError(method)
        return lambda *arguments, **more: getattr(self.service, method)(self.name, *arguments, **more)

    @property
    def seq(self):
        return self.service.model(self.name).seq

    def digest(self):
        return self.service.model(self.name).digest()

    def events(self, after=0):
        """The events of the log, as `firstclick log` prints them."""
        model = self.service.model(self.name)
        events = list(chain.from_iterable(self.service.store.events(model.id, 0, model.seq)))
        started = [unpacked(event, TrialStarted) for event in events if event.kind == Kind.TRIAL_STARTED]
        arms = {trial.id: [arm.name for arm in trial.arms] for trial in started}
        words = _words(model.created, model.catalog, arms)
        return [as_json(event, words) for event in events[after:]]

    def snapshot(self):
        """Write a snapshot now."""
        self.service.maintenance.snapshot(self.service.model(self.name))

    def state(self):
        """All arrays that the policy has learned."""
        arrays = self.service.model(self.name).engine.state._asdict()
        return {name: array.copy() for name, array in arrays.items()}


def model(service, name="shop"):
    return Model(service, name)


def open_by_hand(store, clock, *, tuning=BY_HAND, **settings):
    """Open a service in which time passes only by the clock, and nothing runs by itself."""
    return open_service(store, clock=clock, tuning=tuning, **settings)
