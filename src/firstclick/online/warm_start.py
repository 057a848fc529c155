"""Learning from a log of slates that somebody else has shown."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from numbers import Real
from operator import index
from typing import Any, NamedTuple, SupportsIndex

import numpy as np
from numpy.typing import NDArray

from firstclick.click_models import ClickModel
from firstclick.errors import FirstclickError, InvalidInput
from firstclick.kernels.arrays import NO_LIMITS
from firstclick.kernels.clicks import UNTOLD
from firstclick.not_given import NOT_GIVEN
from firstclick.online.engine import PolicyEngine
from firstclick.online.feedback import click_bits
from firstclick.online.request import read_context
from firstclick.policies.base import Policy
from firstclick.validation.quoting import quoted


class Lesson(NamedTuple):
    """What there is to learn from a slate."""

    rows: NDArray[np.int64]
    clicked: NDArray[np.uint8]
    examined: int | None
    context: NDArray[np.float64]
    features: NDArray[np.float64]


class _Step(NamedTuple):
    """A line that changes what is known: a slate to learn from, or a rollback, which has no lesson."""

    seq: int
    before: int  # the place of the step that it goes on from, -1 for none
    lesson: Lesson | None
    corrects: int = 0  # the step of which it takes the place: a late click that of no click


class LogCounts:
    """How often each row was examined and clicked in a log: all that a policy takes of it for which
    `counts_suffice`, beside slates with features of their own."""

    def __init__(self, n_rows: int) -> None:
        self.examined, self.hits = np.zeros(n_rows, np.int64), np.zeros(n_rows, np.int64)
        self.slates = 0

    def add(self, lesson: Lesson, click_model: ClickModel) -> None:
        seen = click_model.examined(lesson.clicked, lesson.examined)
        # No row is twice in a slate.
        self.examined[lesson.rows[:seen]] += 1
        self.hits[lesson.rows[:seen]] += lesson.clicked[:seen]
        self.slates += 1


def checked_weight(weight: object, policy: Policy) -> float:
    """How much each observation of a log counts for this policy; 1 if it is not said. InvalidInput if it is
    none, or the policy takes no log."""
    if weight is None:
        weight = 1.0
    # Not float(weight): a whole number may be too large for that.
    if isinstance(weight, bool) or not isinstance(weight, Real) or not 0 < weight <= 1:  # type: ignore[operator]
        raise InvalidInput(f"must be a number above 0 and at most 1, got {quoted(weight)}", "weight")
    if not policy.learns_from_others:
        raise InvalidInput(
            f"cannot be learned by {policy.label}, which learns only from slates that it has shuffled "
            "itself; use another policy, or start without a log",
            "log",
        )
    return float(weight)


def learn_log(engine: PolicyEngine, log: Iterable[Mapping[str, Any]]) -> int:
    """Learn from all slates of the log but those that it says were rolled back, or count them where that
    suffices; how many there was something to learn from. The engine knew nothing before.

    A line with a `seq` may be taken back by any later one. So what such lines teach, about 600 bytes for a
    slate of ten, is held until the log ends or its numbers begin anew; other lines are learned as they come.
    An error names the line, from 1; what was learned until then stays learned.
    """
    used, counts = 0, LogCounts(len(engine.catalog.items))
    for lesson in lessons(engine, log):
        if engine.policy.counts_suffice and not len(lesson.features):
            counts.add(lesson, engine.policy.click_model)
        else:
            engine.learn_rows(*lesson[:3], context=lesson.context, features=lesson.features)
        used += 1
    count_log(engine, counts)
    return used


def count_log(engine: PolicyEngine, counts: LogCounts) -> None:
    """Let an engine know these counts too."""
    if counts.slates:
        engine.state = engine.policy.with_counts(
            engine.state, counts.examined.astype(float), counts.hits.astype(float), counts.slates
        )


class HeadStart:
    """A log on its way into what an engine knows: learned apart, then weighed, then put beside it.

    `draw` is for what has to be rounded.
    """

    def __init__(self, engine: PolicyEngine, weight: float, draw: np.random.Generator) -> None:
        engine.follow_catalog()
        self._engine, self._weight, self._draw = engine, weight, draw
        blank = engine.blank_state()
        engine.policy.tempered(blank, weight, draw)  # Refuses before a long log is read.
        same = (np.array_equal(mine, empty) for mine, empty in zip(engine.state, blank, strict=True))
        self._nothing_known = all(same)
        if not (self._nothing_known or engine.policy.mergeable):
            raise InvalidInput(
                f"cannot be merged with what {engine.policy.label} has learned; warm_start a new ranker",
                "log",
            )
        self.past = engine.with_state(blank._asdict())  # learns the log

    def finish(self) -> None:
        """Let the engine know what the log has taught."""
        engine, policy = self._engine, self._engine.policy
        state = policy.tempered(self.past.state, self._weight, self._draw)
        engine.state = policy.with_log(engine.state, state, nothing_known=self._nothing_known)
        engine.refit()


def lessons(engine: PolicyEngine, log: Iterable[Mapping[str, Any]]) -> Iterator[Lesson]:
    """What the log teaches in the end, in its order."""
    steps: list[_Step] = []
    last = 0
    for line, entry in _lines(log):
        seq = _whole(entry.get("seq"))
        if seq is None or seq <= last:  # Of another log, which takes nothing back of this one.
            yield from _kept(steps)
            steps = []
        last = seq or 0
        kind = entry.get("kind", "feedback")
        try:
            if kind == "correction" and seq is not None:
                corrected = _whole(entry.get("corrects")) or 0
                steps.append(_Step(seq, len(steps) - 1, _lesson(engine, entry), corrected))
            elif kind == "feedback":
                lesson = _lesson(engine, entry)
                if lesson is not None and seq is not None:
                    steps.append(_Step(seq, len(steps) - 1, lesson))
                elif lesson is not None:
                    yield lesson
            elif kind == "rolled-back" and seq is not None:
                to = _whole(entry.get("to"))
                if to is None or to >= seq:
                    raise InvalidInput(
                        f"a rollback must go to an event before its own, {quoted(seq)}, got "
                        f"to={quoted(entry.get('to'))}; write the log again with `firstclick log`"
                    )
                known_then = bisect_right(steps, to, key=lambda step: step.seq)
                steps.append(_Step(seq, known_then - 1, None))
        except FirstclickError as error:
            raise InvalidInput(f"line {line}: {error}", "log") from None
    yield from _kept(steps)


def _whole(value: object) -> int | None:
    """The whole number that this is, of whatever type; None for anything else."""
    return index(value) if isinstance(value, SupportsIndex) and not isinstance(value, bool) else None


def _kept(steps: list[_Step]) -> list[Lesson]:
    """What counts after the last step: a rollback knows what was known then, an earlier rollback included."""
    lessons = []
    corrected = set()
    at = len(steps) - 1
    while at >= 0:
        corrected.add(steps[at].corrects)
        if (lesson := steps[at].lesson) is not None and steps[at].seq not in corrected:
            lessons.append(lesson)
        at = steps[at].before
    return lessons[::-1]


def _lines(log: Iterable[Mapping[str, Any]]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The lines, each with its number from 1; the log of a service has others than slates too."""
    if isinstance(log, str | bytes | Mapping):
        raise InvalidInput(
            f"must be a list of slates, such as map(json.loads, open('log.jsonl')), got {type(log).__name__}",
            "log",
        )
    try:
        lines = iter(log)
    except TypeError:
        raise InvalidInput(f"must be a list of slates, got {quoted(log)}", "log") from None
    line = 0
    while True:
        line += 1
        try:
            entry = next(lines)
        except StopIteration:
            return
        except ValueError as error:  # What json.loads raises, among others.
            raise InvalidInput(f"line {line} cannot be read: {error}", "log") from None
        if not isinstance(entry, Mapping):
            raise InvalidInput(
                f"line {line} must be an object with fields such as items and click, got {quoted(entry)}",
                "log",
            )
        yield line, entry


def _lesson(engine: PolicyEngine, entry: Mapping[str, Any]) -> Lesson | None:
    """What one slate teaches, as far as it can be used; None if that is nothing."""
    click, clicks = entry.get("click", NOT_GIVEN), entry.get("clicks")
    if "items" not in entry or (click is NOT_GIVEN and clicks is None):
        keys: list[object] = list(entry)
        names = ", ".join(key if isinstance(key, str) else quoted(key) for key in keys)
        raise InvalidInput(f"a slate needs items, and click or clicks, got {names or 'nothing'}")
    items, catalog = entry["items"], engine.catalog
    if not isinstance(items, list | tuple):
        raise InvalidInput(f"must be a list of ids, got {quoted(items)}", "items")
    known = catalog.known_rows(items)
    if len(set(items)) < len(items):
        raise InvalidInput(f"must be distinct, got {quoted(items)}", "items")
    clicked, page_says = click_bits(
        len(items), click if clicks is None else NOT_GIVEN, clicks, entry.get("examined"),
        wants_all=engine.policy.wants_all_clicks,
    )  # fmt: skip
    if clicks is not None and click is not NOT_GIVEN:
        first = int(np.argmax(clicked)) if clicked.any() else None
        if click != first:
            raise InvalidInput(
                f"must be the first of clicks, {first}, or be left out, got {quoted(click)}", "click"
            )
    # What a policy does not take is passed over: the log may be of another one.
    context = (
        read_context(engine.policy, entry.get("context")) if engine.policy.n_context else NO_LIMITS.context
    )
    features = NO_LIMITS.features
    if items and engine.policy.takes_features:
        if entry.get("features") is not None:
            features = engine.encoded(entry["features"], items)
        elif entry.get("encoded_features") is not None:
            features = engine.in_scale(entry["encoded_features"], len(items))
    if len(known) < len(items):
        first_unknown = next(place for place, item in enumerate(items) if catalog.row_of(item) is None)
        known = known[:first_unknown]
    size = min(len(known), engine.k)
    if size == 0:
        return None
    examined = engine.policy.click_model.examined(clicked, page_says)
    if examined == UNTOLD and clicked[size:].any():
        examined = size  # What lies below is not used, but a click there tells that all above was seen.
    return Lesson(
        np.array(known[:size], np.int64),
        clicked[:size].copy(),  # A view would hold all of it, and a long log has many.
        None if examined == UNTOLD else min(examined, size),
        context,
        features[:size].copy() if len(features) else features,
    )
