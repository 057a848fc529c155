"""One short function for each route: from what was asked to the service, and back."""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import msgspec
import numpy as np
from msgspec import UNSET

from firstclick.catalog.ids import ItemId
from firstclick.catalog.item import Item
from firstclick.in_pieces import drop
from firstclick.not_given import NOT_GIVEN
from firstclick.online.item_counts import counts_by_item
from firstclick.serve.dashboard.data import View
from firstclick.serve.http.auth import check_model_of_key, check_page_request, new_key
from firstclick.serve.http.errors import as_answer
from firstclick.serve.http.messages import Answer, Asked
from firstclick.serve.model.model import Model
from firstclick.serve.model.trial_events import TrialReport
from firstclick.serve.readiness import why_not_feedback, why_not_recommend
from firstclick.serve.service import Service
from firstclick.wire import schemas
from firstclick.wire.errors import Conflict, Malformed, Refused, TooLarge, Unavailable, Unknown, refusing
from firstclick.wire.feedback import DUPLICATE, ClickReport, Receipt
from firstclick.wire.limits import MOST_ENTRIES

FILE = b"application/octet-stream"
# The oldest age of the store's last answer that goes without saying.
LATELY = 1.0
# Pieces of feedback whose tokens are read on the event loop, in less than a millisecond.
FEW = 16
# The arguments of a request that says nothing.
NOTHING_ASKED = msgspec.structs.asdict(schemas.Recommend())

encode = msgspec.json.Encoder().encode


# Recommendations and feedback


def empty(asked: Asked) -> Answer:
    return Answer(b"{}")


def recommend(asked: Asked) -> Answer:
    # The fields of the body are the arguments of the service.
    arguments = msgspec.structs.asdict(asked.body)
    if asked.of_page:
        check_page_request(arguments, NOTHING_ASKED)
    shown = asked.service.recommend(asked.path[0], **arguments)
    if asked.of_page:
        # Not the scores: any visitor could read what the policy has learned.
        return Answer(encode(schemas.Recommended(items=shown.items, token=shown.token)))
    headers = [(b"firstclick-seq", b"%d" % shown.seq)]
    if (age := asked.service.maintenance.silence()) > LATELY:
        headers.append((b"firstclick-age", b"%.1f" % age))
    return Answer(encode(schemas.Recommended(**shown._asdict())), 200, headers)


async def _outcomes(asked: Asked, entries: Sequence[schemas.Feedback]) -> list[Receipt | Refused]:
    future: asyncio.Future[list[Receipt | Refused]] = asyncio.get_running_loop().create_future()
    send = partial(_send, asked, entries, partial(asked.site.inbox.post, future))
    if len(entries) <= FEW:
        send()
    else:
        await asked.site.in_pool(send)
    return await future


def _send(
    asked: Asked, entries: Sequence[schemas.Feedback], done: Callable[[list[Receipt | Refused]], None]
) -> None:
    reports = [
        ClickReport(
            entry.token,
            NOT_GIVEN if entry.click is UNSET else entry.click,
            None if entry.clicks is UNSET else entry.clicks,
            entry.examined,
        )
        for entry in entries
    ]
    asked.service.send_feedback(asked.path[0], reports, done)


async def feedback(asked: Asked) -> Answer:
    (outcome,) = await _outcomes(asked, [asked.body])
    if isinstance(outcome, Refused):
        # Not raised: what is raised is counted at the door, and the service has counted this one.
        return as_answer(outcome)
    receipt = schemas.FeedbackAnswer(outcome.status, outcome.seq, _durability(asked))
    return Answer(encode(receipt), 200 if outcome.status == DUPLICATE else 201)


async def feedback_batch(asked: Asked) -> schemas.Outcomes:
    entries = asked.body.feedback
    if len(entries) > MOST_ENTRIES:
        raise TooLarge(
            f"must have at most {MOST_ENTRIES} entries, got {len(entries)}; send several batches", "feedback"
        )
    if not entries:
        asked.service.model(asked.path[0])
        return schemas.Outcomes([])
    durability = _durability(asked)
    return schemas.Outcomes(
        [
            schemas.Outcome(
                outcome.status, message=str(outcome), field="" if outcome.owner else outcome.argument
            )
            if isinstance(outcome, Refused)
            else schemas.Outcome(outcome.status, outcome.seq, durability=durability)
            for outcome in await _outcomes(asked, entries)
        ]
    )


def _durability(asked: Asked) -> schemas.Durability:
    return "relaxed" if asked.site.settings.durability == "relaxed" else "full"


# Items


def put_item(asked: Asked) -> schemas.Changed:
    name, text = asked.path
    item = _item(_item_meant(asked.service.model(name), text), asked.body)
    return schemas.Changed(asked.service.put_items(name, [item]))


def patch_item(asked: Asked) -> schemas.Changed:
    return put_item(asked)


def withdraw_item(asked: Asked) -> schemas.Changed:
    name, text = asked.path
    item = _item_meant(asked.service.model(name), text)
    return schemas.Changed(asked.service.withdraw_items(name, [item]))


def change_items(asked: Asked) -> schemas.Changed:
    body: schemas.ItemChanges = asked.body
    put = _items(body.put)
    drop(body.put)
    try:
        return schemas.Changed(asked.service.change_items(asked.path[0], put=put, withdraw=body.withdraw))
    finally:
        drop(put)


def set_available(asked: Asked) -> schemas.Changed:
    body: schemas.ItemAvailability = asked.body
    return schemas.Changed(asked.service.set_available(asked.path[0], on=body.on, off=body.off))


def put_list(asked: Asked) -> schemas.Changed:
    name, list_name = asked.path
    return schemas.Changed(asked.service.put_list(name, list_name, asked.body.items))


def remove_list(asked: Asked) -> schemas.Changed:
    return schemas.Changed(asked.service.remove_list(*asked.path))


def show_lists(asked: Asked) -> schemas.ItemLists:
    lists = asked.service.model(asked.path[0]).items.lists
    return schemas.ItemLists({name: len(listed) for name, listed in sorted(lists.copy().items())})


def set_baseline(asked: Asked) -> schemas.Changed:
    body: schemas.NewBaseline = asked.body
    return schemas.Changed(asked.service.set_baseline(asked.path[0], body.items, body.max_loss))


def remove_baseline(asked: Asked) -> schemas.Changed:
    return schemas.Changed(asked.service.remove_baseline(asked.path[0]))


def show_baseline(asked: Asked) -> schemas.BaselineFacts:
    name = asked.path[0]
    facts = asked.service.model(name).launch.facts()
    if facts is None:
        raise Unknown(
            f"is missing: model {name!r} has none; PUT one to /v1/models/{name}/baseline", "baseline"
        )
    return msgspec.convert(facts, schemas.BaselineFacts)


def warm_start(asked: Asked) -> schemas.WarmStarted:
    body: schemas.NewWarmStart = asked.body
    if body.counts is not None:
        if body.slates:
            raise Malformed("must be left out where slates are given; give one of them", "counts")
        with refusing:
            counts = counts_by_item((one.item, one.looks, one.clicks) for one in body.counts)
        seq, items = asked.service.warm_start(asked.path[0], counts=counts, weight=body.weight)
        return schemas.WarmStarted(seq, 0, items)
    slates = ({**_given(slate), "kind": "feedback"} for slate in body.slates)
    try:
        return schemas.WarmStarted(*asked.service.warm_start(asked.path[0], slates, weight=body.weight))
    finally:
        drop(body.slates)


def _given(slate: schemas.LoggedSlate) -> dict[str, Any]:
    said = msgspec.structs.asdict(slate).items()
    return {name: value for name, value in said if value is not UNSET}


def start_trial(asked: Asked) -> schemas.Changed:
    body: schemas.NewTrial = asked.body
    return schemas.Changed(
        asked.service.start_trial(
            asked.path[0], body.arms, learn_from=body.learn_from, stop_if_worse=body.stop_if_worse,
            last_pages=body.last_pages,
        )
    )  # fmt: skip


def change_trial(asked: Asked) -> schemas.Changed:
    return schemas.Changed(asked.service.change_trial_shares(asked.path[0], asked.body.arms))


def stop_trial(asked: Asked) -> schemas.Changed:
    return schemas.Changed(asked.service.stop_trial(asked.path[0], show=asked.body.show))


def report_trial(asked: Asked) -> TrialReport:
    return asked.service.trial_report(asked.path[0])


def list_items(asked: Asked) -> schemas.ListedItems:
    model = asked.service.model(asked.path[0])
    after, limit = asked.query["after"], asked.query["limit"]
    with model.lock:
        catalog, state = model.catalog, model.items
        rows = np.flatnonzero(catalog.withdrawn[after + 1 :] == 0)[: limit + 1] + after + 1
        items = [catalog.items[row] for row in rows[:limit].tolist()]
        listed = [
            schemas.ListedItem(
                item, state.names.get(item, ""), state.group(item), features, item not in catalog.unavailable
            )
            for item, features in zip(items, catalog.features_as_given(rows[:limit]), strict=True)
        ]
    return schemas.ListedItems(listed, int(rows[limit - 1]) if len(rows) > limit else None)


def _item_meant(model: Model, text: str) -> ItemId:
    """The id that a path means: text, unless only the whole number of these digits is there."""
    catalog = model.catalog
    if catalog.row_of(text) is None and text.isascii() and text.lstrip("-").isdigit() and len(text) < 18:
        number = int(text)
        # Where items are numbered, a new one is meant to be numbered too.
        if str(number) == text and (catalog.row_of(number) is not None or isinstance(catalog.items[0], int)):
            return number
    return text


def _item(id: ItemId, facts: schemas.ItemFacts) -> Item:
    sent = (facts.name, facts.group, facts.features, facts.available)
    return Item(id, *(NOT_GIVEN if value is UNSET else value for value in sent))  # type: ignore[arg-type]


def _items(given: Sequence[schemas.NewItem]) -> list[Item]:
    return [_item(item.id, item) for item in given]


# Models


def list_models(asked: Asked) -> schemas.ModelList:
    return schemas.ModelList([_facts(model) for model in asked.service.models.all()])


def create_model(asked: Asked) -> Answer:
    body: schemas.NewModel = asked.body
    model = asked.service.create(
        body.name, policy=body.policy, k=body.k, items=_items(body.items), seed=body.seed,
        explore=body.explore, baseline=body.baseline, max_loss=body.max_loss,
        no_click_after=body.no_click_after,
    )  # fmt: skip
    return Answer(encode(_facts(model)), 201)


def delete_model(asked: Asked) -> schemas.Deleted:
    (name,) = asked.path
    if asked.body.name != name:
        raise Malformed(
            f"must be {name!r}, the model of the path, so that nothing is deleted by mistake; got "
            f"{asked.body.name[:60]!r}",
            "name",
        )
    return schemas.Deleted(name, asked.service.delete(name))


def describe_model(asked: Asked) -> schemas.ModelFacts:
    return _facts(asked.service.model(asked.path[0]))


def change_settings(asked: Asked) -> schemas.Changed:
    body: schemas.ModelSettings = asked.body
    return schemas.Changed(
        asked.service.change_settings(asked.path[0], explore=body.explore, no_click_after=body.no_click_after)
    )


def view_model(asked: Asked) -> View:
    return asked.site.views.of(asked.path[0])


def audit_model(asked: Asked) -> schemas.AuditAnswer:
    audit = asked.service.audit(asked.path[0])
    return schemas.AuditAnswer(
        audit.name, audit.seq, audit.digest, audit.equal, list(audit.differing), audit.seconds, audit.start
    )


def export(asked: Asked) -> Answer:
    (name,) = asked.path
    pieces = asked.service.export(name)
    disposition = f'attachment; filename="{name}.firstclick"'.encode()
    return Answer(b"", 200, [(b"content-disposition", disposition)], FILE, pieces)


def import_(asked: Asked) -> Answer:
    return Answer(encode(_facts(asked.service.import_model(asked.path[0], asked.body))), 201)


def fork(asked: Asked) -> Answer:
    body: schemas.ForkModel = asked.body
    return Answer(encode(_facts(asked.service.fork(asked.path[0], body.policy, body.name))), 201)


def roll_back(asked: Asked) -> schemas.Changed:
    return schemas.Changed(asked.service.roll_back(asked.path[0], asked.body.seq))


def _facts(model: Model) -> schemas.ModelFacts:
    return msgspec.convert(model.describe(), schemas.ModelFacts)


# Keys


def list_keys(asked: Asked) -> schemas.Keys:
    found = asked.service.store.api_keys()
    return schemas.Keys([msgspec.convert(key._asdict(), schemas.KeyFacts) for key in found])


def make_key(asked: Asked) -> Answer:
    body: schemas.NewKey = asked.body
    store = asked.service.store
    if body.role != "admin" and not store.api_keys():
        raise Malformed(
            f"must be 'admin' for the first key, got {body.role!r}: from then on a key is needed to make "
            "another",
            "role",
        )
    check_model_of_key(body.role, body.model, "model")
    text, digest = new_key()
    key = store.add_api_key(body.name, body.role, digest, asked.site.service.clock.time(), body.model)
    asked.service.maintenance.reload_api_keys()
    made = schemas.MadeKey(key.id, key.name, key.role, key.created, key.model, key=text)
    return Answer(encode(made), 201)


def revoke_key(asked: Asked) -> schemas.Keys:
    (text,) = asked.path
    store = asked.service.store
    keys = {str(key.id): key for key in store.api_keys()}
    key = keys.pop(text, None)
    if key is None:
        raise Unknown(f"must be the id of an API key, got {text[:60]!r}; GET /v1/keys lists them", "key")
    if key.role == "admin" and not any(other.role == "admin" for other in keys.values()):
        raise Conflict(
            f"{key.id} is the last one with the role 'admin'; make another first, or use 'firstclick keys' "
            "on the server",
            "key",
        )
    store.revoke_api_key(key.id)
    asked.service.maintenance.reload_api_keys()
    return list_keys(asked)


# The server itself


def live(asked: Asked) -> schemas.Live:
    return schemas.Live("live")


def ready(asked: Asked) -> schemas.Ready:
    service, settings = asked.service, asked.site.settings
    if service.writer.broken is not None:
        raise Unavailable("the store must not be written to any more; restart the server, and see its log")
    if (silence := service.maintenance.silence()) > settings.max_lag:
        raise Unavailable(
            f"the store has not answered for {silence:.1f} s; what was learned is served meanwhile"
        )
    outdated = sorted(service.models.outdated)
    for name, why in service.models.broken.items():
        # No restart would serve a model of another version: the others must not go down with it.
        if name not in outdated or not service.names():
            raise Unavailable(f"model {name!r} cannot be served: {why}")
    for model in service.models.all():
        if model.set_back:
            raise Unavailable(model.set_back)
        if (lag := service.maintenance.lag(model.name)) > settings.max_lag:
            raise Unavailable(
                f"model {model.name!r} is {lag:.1f} s behind its log, and may be {settings.max_lag:g} s; "
                "ask another replica"
            )
    set_backs = [f"model {name!r}: {found[-1]}" for name, found in sorted(service.models.set_backs.items())]
    return schemas.Ready("ready", _durability(asked), outdated, set_backs)


def ready_recommend(asked: Asked) -> schemas.ReadyFor:
    return _ready_for(asked, why_not_recommend)


def ready_feedback(asked: Asked) -> schemas.ReadyFor:
    return _ready_for(asked, why_not_feedback)


def _ready_for(asked: Asked, why_not: Callable[[Service, float], Unavailable | None]) -> schemas.ReadyFor:
    service = asked.service
    if (refusal := why_not(service, asked.site.settings.max_lag)) is not None:
        raise refusal
    age = service.maintenance.silence()
    return schemas.ReadyFor("ready", round(age, 1) if age > LATELY else 0.0, sorted(service.models.broken))


def metrics(asked: Asked) -> Answer:
    return Answer(asked.site.metrics.text(), 200, [], asked.site.metrics.media)


def openapi(asked: Asked) -> Answer:
    return Answer(asked.site.openapi)
