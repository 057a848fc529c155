"""Operations on the log of a model, in this process: `shop` is that of `open_shop`."""

import random
from contextlib import contextmanager

import numpy as np

from firstclick.serve import Tuning
from firstclick.serve.log import events
from firstclick.serve.log.copies import seen_by
from firstclick.serve.log.drawn import read_drawn
from firstclick.serve.log.events import (
    Created,
    Event,
    Kind,
    NewEvent,
    feedback_payload,
    full_payload,
    read_feedback,
    unpacked,
)
from firstclick.serve.model.archive import ArchivedLog, archive, opened_archives
from firstclick.serve.model.audit import audit_stored
from firstclick.serve.model.export import export_model
from firstclick.serve.model.fork import fork
from firstclick.serve.model.model import Model
from firstclick.serve.model.replay import catch_up, recover
from firstclick.serve.model.slates import audit_slates
from firstclick.serve.store import open_store
from tests.support.shop import IDS

# Nothing runs in the background, and no event is written by itself.
QUIET = Tuning(background_threads=False, count_seconds=1e9)


def answer(shop, click, **request):
    """Recommend and report a slate."""
    slate = shop.recommend(**request)
    shop.feedback(slate, click)
    return slate


def play(shop, steps, seed=0, *, features=False, **each):
    """Slates of any request, whose feedback comes late and in any order; return those with feedback."""
    if "half" not in shop.service.model(shop.name).items.lists:
        shop.put_list("half", IDS[:7])
    draw, waiting, reported = random.Random(seed), [], []
    for _ in range(steps):
        some = draw.sample(IDS, draw.randint(1, 12))
        requests = [
            {}, {}, {}, {"candidates": some}, {"exclude": some}, {"candidates": some, "exclude": IDS[:3]},
            {"candidates": "half"}, {"candidates": "half", "exclude": IDS[:3], "k": 2}, {"exclude": "half"},
            {"pinned": {1: "i5", 2: "i6"}, "exclude": ["i6"]}, {"at_most": 1}, {"k": 1},
            {"at_most": {"odd": 1}, "pinned": {0: "i8"}, "candidates": some},
            {"request_id": str(draw.random())},
        ]  # fmt: skip
        if features:
            table = [[1.0, draw.random(), draw.random(), 0.5] for _ in some]
            requests.append({"candidates": some, "features": table})
        waiting.append(shop.recommend(**draw.choice(requests), **each))
        if draw.random() < 0.8:
            slate = waiting.pop(draw.randrange(len(waiting)))
            shop.feedback(slate, draw.choice([None, *range(len(slate.items))]))
            reported.append(slate)
    return reported


def entry_of(shop):
    """The entry of this model in the store."""
    return next(entry for entry in shop.service.store.models() if entry.name == shop.name)


def raw_events(shop):
    """The events as they are written."""
    return [event for chunk in shop.service.store.events(entry_of(shop).id, 0) for event in chunk]


def drawn_of(event):
    """The record of the draw of a slate."""
    return read_drawn(read_feedback(event.payload).fields)


def feedback_of(shop):
    """The events of slates, as `firstclick log` prints them."""
    return [event for event in shop.events() if event["kind"] == "feedback"]


def move_to_archive(shop, before, file, *, token_days=-10_000.0):
    """Move the events below `before` to a file, however young they are."""
    archive(shop.service.store, entry_of(shop), before, file, token_days=token_days)


@contextmanager
def whole_log(shop, archives):
    """Return the log of the store, whose earlier events are in these archives."""
    store = shop.service.store
    with opened_archives(archives) as files:
        yield ArchivedLog(store, entry_of(shop), files) if files else store


def reproduce(shop, *archives):
    """Return the result of `firstclick audit --slates`, without the time it took."""
    with whole_log(shop, archives) as log:
        return audit_slates(log, entry_of(shop))._replace(seconds=0)


def audit_of_store(shop, *archives):
    """Return the result of `firstclick audit`."""
    with whole_log(shop, archives) as log:
        return audit_stored(shop.service.store, entry_of(shop), log=log)


def export_of(shop, *archives):
    """The file that `firstclick export` writes."""
    with whole_log(shop, archives) as log:
        return b"".join(export_model(log, entry_of(shop)))


def fork_of(shop, name, *archives):
    """A fork with the same policy, as `firstclick fork` makes it; it is not served yet."""
    with whole_log(shop, archives) as log:
        fork(shop.service.store, log, entry_of(shop), name)
    return shop.model(name)


def check_has_logs_of(shop, *origins):
    """Check that the log of a fork contains the events of its origins, bit for bit."""
    events = raw_events(shop)
    created = unpacked(events[0], Created)
    for position, origin in enumerate(origins):
        its = raw_events(origin)
        assert [seen_by(event, position, created) for event in events[: len(its)]] == its


def replay(shop, *, use_snapshots=False):
    """The digest of a replay of the stored log."""
    return recover(shop.service.store, entry_of(shop), use_snapshots=use_snapshots).digest()


def check_recommends_as_replayed(shop, n):
    """Check that the model recommends the same slates as one that was replayed from the log."""
    model = shop.service.model(shop.name)
    new = recover(shop.service.store, entry_of(shop), use_snapshots=False)
    for number in range(n):
        assert model.recommend(number).items == new.recommend(number).items, number


def check_replays(shop, every):
    """Check that a replay of all events at once equals one event by event with snapshots between."""
    store, entry, digest = shop.service.store, entry_of(shop), shop.digest()
    model = recover(store, entry._replace(head=1), use_snapshots=False)
    for head in range(2, entry.head + 1):
        catch_up(store, model, head)
        if head % every == 0:
            before = model.digest()
            model = Model.restored(entry.id, shop.name, model.snapshot()[1], model.created)
            assert model.digest() == before
    assert model.digest() == replay(shop) == audit_of_store(shop).digest == digest
    assert shop.audit().equal


def append_unchecked(shop, kind, *fields):
    """Write an event as another process does that has not read the latest events."""
    service = shop.service
    return service._change(service.model(shop.name), getattr(events, kind)(*fields))


def correct_unchecked(shop, seq, items, clicks, *, rows=None, issued=999, **more):
    """Write a correction of the slate of this event, whatever it was; `rows` need not be those of items."""
    rows = shop.service.model(shop.name).catalog.rows_of(items) if rows is None else rows
    rows = np.array(rows, "<u4").tobytes()
    append_unchecked(shop, "Correction", seq, 0.0, full_payload(clicks, issued, rows, **more))


def check_taught(shop, lessons):
    """Check that the model has learned exactly these pairs of items and click, in this order."""
    known = shop.service.model(shop.name)
    new = Model(0, shop.name, known.created)
    for seq, (items, click) in enumerate(lessons, 2):
        rows = np.array(new.catalog.rows_of(items), "<u4").tobytes()
        event = Event(seq, Kind.FEEDBACK, seq.to_bytes(16, "big"), feedback_payload(click, 0, rows), 0.0)
        new.apply([event], lambda seq: new.known())
    for name, array in shop.state().items():
        np.testing.assert_array_equal(array, getattr(new.engine.state, name), err_msg=name)


def store_log(store, log, name="made"):
    """Write the events of a `made_log.Log` to a store, or to the one at this address."""
    if isinstance(store, str):
        with open_store(store) as store:
            return store_log(store, log, name)
    return store.create(name, [NewEvent(*event[1:]) for event in log.events])


def share_of_policy(shop, slate):
    """The probability with which the policy decided this slate, where there is a baseline."""
    token = shop.service.keys.read(slate.token, shop.service.model(shop.name).id, days=1)
    return read_drawn(token.fields).chosen.share
