"""A log of slates that others have shown, as an event of a model: made, and learned from."""

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from firstclick.errors import InvalidInput
from firstclick.online.engine import PolicyEngine
from firstclick.online.warm_start import HeadStart, Lesson, LogCounts, checked_weight, count_log, lessons
from firstclick.serve.log.codec import count_slates, fold
from firstclick.serve.log.events import WarmStart, full_payload
from firstclick.serve.log.slate_pack import TooManySlates, each_payload, pack, unpack
from firstclick.wire.errors import TooLarge, refusing


def warm_start_body(
    engine: PolicyEngine,
    log: Iterable[Mapping[str, Any]],
    weight: float | None = None,
    *,
    lock: AbstractContextManager[Any],
    file_mark: str = "",
) -> WarmStart:
    """The event of a log that is read as it comes, or Malformed: nothing is learned, and the line is named.

    `lock` keeps others from changing the engine.
    """
    with refusing:
        share = checked_weight(weight, engine.policy)
        with lock:
            HeadStart(engine, share, np.random.default_rng(0))  # Refuses what the policy cannot take.
        try:
            packed = pack(map(_payload, lessons(engine, log)))
        except TooManySlates as error:
            raise TooLarge(str(error)) from None
        if not packed.slates:
            raise InvalidInput("the log has no slate of items that the model has; nothing was learned")
    return WarmStart(share, packed.slates, packed.sizes, packed.content, file_mark)


def _payload(lesson: Lesson) -> bytes:
    # Of what lies below the last look nobody learns, and feedback has no click there.
    clicked = lesson.clicked[: lesson.examined]
    return full_payload(
        np.flatnonzero(clicked).tolist(),
        0,
        lesson.rows.astype("<u4").tobytes(),
        examined=lesson.examined,
        context=_packed(lesson.context),
        features=_packed(lesson.features),
    )


def _packed(numbers: NDArray[np.float64]) -> bytes:
    return numbers.astype("<f8").tobytes()


def learn_warm_start(engine: PolicyEngine, body: WarmStart, draw: np.random.Generator) -> bool:
    """Learn from the slates of the event as a `Ranker` does; False if that cannot be: the policy of a fork
    may take no log, or none of this weight."""
    try:
        content, ends = unpack(body.sizes, body.content)
        start = HeadStart(engine, checked_weight(body.weight, engine.policy), draw)
    except (InvalidInput, ValueError):
        return False
    counts, left = LogCounts(len(engine.catalog.items)), np.ones(len(ends), np.bool_)
    if engine.policy.counts_suffice:
        left = ~count_slates(engine, content, ends, counts.examined, counts.hits)
        counts.slates = len(ends) - int(left.sum())
    if left.any():
        payloads = [payload for payload, kept in zip(each_payload(content, ends), left, strict=True) if kept]
        fold(start.past, payloads)
    count_log(start.past, counts)
    start.finish()
    return True
