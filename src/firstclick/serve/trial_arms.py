"""Arms of a trial that other models decide: their slates, and what they are taught.

The slate of such an arm is drawn by the other model, and its feedback goes into both logs in one commit: into
that of the model whose trial it is, which counts it, and into that of the other model, which learns from it.
"""

import logging
import struct
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from firstclick.catalog.catalog import Subset
from firstclick.catalog.ids import ItemId
from firstclick.errors import FirstclickError
from firstclick.serve.log.drawn import Assigned, read_drawn, timed_out, with_time_out
from firstclick.serve.log.events import Kind, NewEvent, TrialArm, full_payload, issued_ms, read_feedback
from firstclick.serve.model.launch import Decision
from firstclick.serve.model.model import Model, Ranked
from firstclick.serve.model.trial import ALL, MODEL
from firstclick.serve.model.trial_events import learns_from_arms
from firstclick.wire.errors import Malformed

log = logging.getLogger("firstclick.serve")

# Seconds for which the slate of an arm waits for the lock of its model.
PATIENCE = 1.0


def check_arm(model: Model, other: Model) -> None:
    """Refuse another model whose slates this one could not show."""
    if other.id == model.id:
        raise Malformed(f"must not have model {model.name!r} itself; its own arm is 'policy'", "arms")
    if other.launch.running is not None:
        # Each would be an arm of the other, or of an arm of it: nobody could say who learns from what.
        raise Malformed(
            f"have model {other.name!r}, which has a running trial itself; stop that first", "arms"
        )
    mine, theirs = model.engine.policy, other.engine.policy
    if mine.n_context != theirs.n_context:
        raise Malformed(
            f"must have contexts of the same size, got {theirs.n_context} numbers for model {other.name!r} "
            f"and {mine.n_context} for {model.name!r}",
            "arms",
        )
    if other.k < model.k:
        raise Malformed(
            f"must have k={model.k} or more, as model {model.name!r}, got k={other.k} of {other.name!r}",
            "arms",
        )
    known, there = set(model.items.names), set(other.items.names)
    for names, whose, lacks in ((known - there, model, other), (there - known, other, model)):
        if names:
            raise Malformed(
                f"must have the same items, got {min(names, key=str)!r} in {whose.name!r}, which "
                f"{lacks.name!r} does not have",
                "arms",
            )


def arm_slate(
    model: Model,
    other: Model,
    number: int,
    decision: Decision,
    *,
    candidates: Iterable[ItemId] | Subset | str | None,
    exclude: Iterable[ItemId] | Subset | str,
    **asked: Any,
) -> Ranked | None:
    """The slate of an arm that another model decides, as one of this model; None if it cannot be shown here,
    because the catalogs of both have drifted apart."""
    k = asked.pop("k", None)
    if isinstance(k, int | np.integer) and k > model.k:
        return None  # It is refused, as that of another arm would be.
    with model.lock:
        lists = model.items.lists
        allowed = list(lists[candidates]) if isinstance(candidates, str) else candidates
        hidden = list(lists[exclude]) if isinstance(exclude, str) else exclude
    # Whoever asks this model may hold its lock. Two that wait for one another must not wait for ever.
    if not other.lock.acquire(timeout=PATIENCE):
        log.warning("%s: no slate of %s for its arm: it is busy", model.name, other.name)
        return None
    try:
        theirs = other.recommend(
            number,
            k=model.k if k is None else k,
            candidates=list(allowed) if isinstance(allowed, Subset) else allowed,
            exclude=list(hidden) if isinstance(hidden, Subset) else hidden,
            **asked,
        )
    except FirstclickError as error:
        log.warning("%s: no slate of %s for its arm: %s", model.name, other.name, error)
        return None
    finally:
        other.lock.release()
    with model.lock:
        if not all(model.items.is_shown(item) for item in theirs.items):
            log.warning(
                "%s: %s shows items that are not shown here; its slate is not used", model.name, other.name
            )
            return None
        rows = np.array(model.catalog.rows_of(theirs.items), np.int64)
        fields = model.fields_of_arm(decision, theirs, rows)
    assert decision.assigned is not None
    return theirs._replace(
        rows=rows,
        seq=model.seq,
        fields=fields,
        chosen=decision.chosen,
        arm=decision.assigned.arm,
        by_arm=True,
    )


def model_of(models: Sequence[Model], arm: TrialArm) -> Model | None:
    """The model that decides an arm; None if this model or its baseline does, or if it is gone."""
    if arm.kind != MODEL:
        return None
    return next((one for one in models if one.name == arm.model and one.created.key == arm.key), None)


def assigned_in(fields: bytes) -> Assigned | None:
    """The arm of a trial that a slate with these fields belongs to."""
    try:
        drawn = read_drawn(fields)
    except (LookupError, ValueError, struct.error):
        return None
    return None if drawn is None else drawn.assigned


def copies(models: Sequence[Model], model: Model, event: NewEvent) -> list[tuple[Model, NewEvent]]:
    """What feedback for a slate of this model says to the models that are arms of its trial."""
    trial = model.launch.trial
    if trial is None or event.kind != Kind.FEEDBACK:
        return []
    if not any(arm.kind == MODEL for arm in trial.arms):
        return []
    try:
        said = read_feedback(event.payload)
        drawn = read_drawn(said.fields)
    except (LookupError, ValueError, struct.error):
        return []
    if drawn is None or drawn.assigned is None or drawn.assigned.trial != trial.id or said.features:
        return []
    by_list = drawn.chosen is not None and not drawn.chosen.by_policy
    given_up = timed_out(said.fields)
    found = []
    for place, arm in enumerate(trial.arms):
        own = drawn.arm_fields is not None and drawn.assigned.arm == place
        other = model_of(models, arm)
        taught = (by_list or trial.body.learn_from == ALL) and other is not None and learns_from_arms(other)
        if other is None or not (own or taught):
            continue
        rows = _rows_in(other, [model.catalog.items[row] for row in said.rows])
        if rows is None:
            continue
        fields = drawn.arm_fields if own and drawn.arm_fields is not None else b""
        payload = full_payload(
            said.clicks,
            issued_ms(event.payload),
            rows,
            examined=said.examined,
            context=np.array(said.context, "<f8").tobytes(),
            fields=fields if given_up is None else with_time_out(fields, given_up),
        )
        found.append((other, event._replace(nonce=nonce_in_arm(event.nonce, trial.id), payload=payload)))
    return found


def nonce_in_arm(nonce: bytes, trial: int) -> bytes:
    """The nonce that feedback has in the log of an arm. It keeps the time and the number, from which the
    slate can be drawn again, and is another one: a page may ask both models by one request id."""
    mark = (int.from_bytes(nonce[6:8], "little") ^ (trial & 0xFFFF or 1)).to_bytes(2, "little")
    return nonce[:6] + mark + nonce[8:]


def _rows_in(model: Model, items: Sequence[ItemId]) -> bytes | None:
    """The rows that these items have in this model, as tokens have them."""
    with model.lock:
        rows = [model.catalog.row_of(item) for item in items]
    return None if None in rows else np.array(rows, "<u4").tobytes()
