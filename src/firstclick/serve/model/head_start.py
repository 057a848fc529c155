"""What others have shown, as an event of a model: a log of slates, or counts. Made, and learned from."""

from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from firstclick.errors import InvalidInput
from firstclick.online.engine import PolicyEngine
from firstclick.online.item_counts import (
    CountsByItem,
    ItemCounts,
    check_takes_counts,
    item_counts,
    learn_counts,
)
from firstclick.online.warm_start import HeadStart, Lesson, LogCounts, checked_weight, count_log, lessons
from firstclick.serve.log.codec import count_slates, fold
from firstclick.serve.log.events import COUNTED_ITEM, WarmStart, full_payload
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
            raise InvalidInput(
                "must have slates with items of the model, got none; nothing was learned", "log"
            )
    return WarmStart(share, packed.slates, packed.sizes, packed.content, file_mark)


def counts_body(
    engine: PolicyEngine,
    counts: CountsByItem,
    weight: float | None = None,
    *,
    lock: AbstractContextManager[Any],
    file_mark: str = "",
) -> WarmStart:
    """The event of looks and clicks by item, or Malformed. It has the numbers, not where they came from."""
    with refusing:
        share = checked_weight(weight, engine.policy)
        with lock:
            check_takes_counts(HeadStart(engine, share, np.random.default_rng(0)))
            told = item_counts(engine.catalog, counts)
    table = np.empty(len(told.rows), COUNTED_ITEM)
    table["row"], table["looks"], table["clicks"] = told
    return WarmStart(share, 0, b"", b"", file_mark, table.tobytes())


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
    """Learn from the slates or counts of the event as a `Ranker` does; False if that cannot be: the policy of
    a fork may take no log, or none of this weight, or no counts."""
    if body.counts:
        return _learn_counts(engine, body, draw)
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


def _learn_counts(engine: PolicyEngine, body: WarmStart, draw: np.random.Generator) -> bool:
    try:
        table = np.frombuffer(body.counts, COUNTED_ITEM)
        start = HeadStart(engine, checked_weight(body.weight, engine.policy), draw)
        check_takes_counts(start)
        rows = table["row"].astype(np.int64)
        if (rows >= len(engine.catalog.items)).any():
            return False
    except (InvalidInput, ValueError):
        return False
    learn_counts(start, ItemCounts(rows, table["looks"].astype(float), table["clicks"].astype(float)))
    return True
