"""A shop with a list that is shown today, and the units that a trial puts into its arms."""

import time
from contextlib import contextmanager
from itertools import chain

from firstclick.serve.log.drawn import read_drawn
from firstclick.serve.log.events import Kind, read_feedback
from firstclick.serve.service import open_service
from firstclick.trials.assignment import bucket_of
from tests.support.made_log import K, bare, made_items

LIST = ["i7", "i2", "i9", "i4"]
SHOP = {"policy": "cascade-ts", "k": K, "seed": 5}


@contextmanager
def a_shop(place, clock=time, **more):
    """A service with the model 'shop', made if it is not there."""
    with open_service(str(place), clock=clock) as service:
        if "shop" not in service.names():
            service.create("shop", items=bare(made_items()), **SHOP | more)
        yield service


def events_of(service, name="shop"):
    """The log, for what it says of feedback see `said_of`."""
    return list(chain.from_iterable(service.store.events(service.model(name).id, 0)))


def drawn_of(event):
    """What the slate of this feedback was drawn from."""
    drawn = read_drawn(read_feedback(event.payload).fields)
    assert drawn is not None
    return drawn


def slates_of(service, name="shop"):
    return [event for event in events_of(service, name) if event.kind == Kind.FEEDBACK]


def unit_in(service, arm, *, name="shop", other_than=""):
    """A unit that the running trial shows this arm."""
    trial = service.model(name).launch.running
    assert trial is not None
    for number in range(100_000):
        unit = f"unit-{number}"
        if unit != other_than and trial.tally.owner[bucket_of(unit, trial.body.key)] == arm:
            return unit
    raise AssertionError(f"nobody is in arm {arm}")


def answered(service, click, name="shop", **asked):
    """A slate that was shown and reported."""
    slate = service.recommend(name, **asked)
    service.feedback(name, slate, click)
    return slate
