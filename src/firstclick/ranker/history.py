"""Learning from a log of slates that somebody else has shown."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from firstclick.errors import FirstclickError, InvalidInput
from firstclick.kernels.clicks import UNTOLD
from firstclick.live import LivePolicy
from firstclick.protocol import EVERYTHING
from firstclick.ranker.feedback import told


def learn_log(live: LivePolicy, log: Iterable[Mapping[str, Any]]) -> int:
    """Learn from all slates of the log; how many there was something to learn from.

    An error names the line, from 1; what was learned until then stays learned.
    """
    used = 0
    for line, entry in _slates(log):
        try:
            used += _learn_entry(live, entry)
        except FirstclickError as error:
            raise InvalidInput(f"line {line} of the log: {error}") from None
    return used


def _slates(log: Iterable[Mapping[str, Any]]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    """The lines that tell of a slate, each with its number; the log of a service has others too."""
    if isinstance(log, str | bytes | Mapping):
        raise InvalidInput(
            f"a log is a list of slates, such as map(json.loads, open('log.jsonl')), got {type(log).__name__}"
        )
    try:
        lines = iter(log)
    except TypeError:
        raise InvalidInput(f"a log is a list of slates, got {log!r}") from None
    line = 0
    while True:
        line += 1
        try:
            entry = next(lines)
        except StopIteration:
            return
        except ValueError as error:  # What json.loads raises, among others.
            raise InvalidInput(f"line {line} of the log cannot be read: {error}") from None
        if not isinstance(entry, Mapping):
            raise InvalidInput(
                f"line {line} of the log: a slate must have names for its parts, such as items and click, "
                f"got {entry!r:.80}"
            )
        if entry.get("kind", "feedback") == "feedback":
            yield line, entry


def _learn_entry(live: LivePolicy, entry: Mapping[str, Any]) -> bool:
    """Learn from one slate, as far as it can be; whether there was anything to learn from."""
    click, clicks = entry.get("click", ...), entry.get("clicks")
    if "items" not in entry or (click is ... and clicks is None):
        raise InvalidInput(
            f"a slate needs items, and click or clicks, got {', '.join(map(str, entry)) or 'nothing'}"
        )
    items, catalog = entry["items"], live.catalog
    if not isinstance(items, list | tuple):
        raise InvalidInput(f"items must be a list of ids, got {items!r:.80}")
    known = catalog.known_rows(items)
    if len(set(items)) < len(items):
        raise InvalidInput(f"an item is in the slate twice, got {items!r:.80}")
    clicked, page_says = told(len(items), click if clicks is None else ..., clicks, entry.get("examined"))
    if clicks is not None and click is not ...:
        first = int(np.argmax(clicked)) if clicked.any() else None
        if click != first:
            raise InvalidInput(f"click must be the first of clicks, {first}, or be left out, got {click!r}")
    # What a learner does not take is passed over: the log may be of another one.
    context = live.context(entry.get("context")) if live.policy.n_context else EVERYTHING.context
    features = EVERYTHING.features
    if items and entry.get("features") is not None and live.policy.takes_features:
        features = live.own_features(entry["features"], len(items))
    if len(known) < len(items):
        first_unknown = next(place for place, item in enumerate(items) if catalog.row_of(item) is None)
        known = known[:first_unknown]
    size = min(len(known), live.k)
    if size == 0:
        return False
    examined = live.policy.click_model.examined(clicked, page_says)
    if examined == UNTOLD and clicked[size:].any():
        examined = size  # What lies below is not used, but a click there tells that all above was seen.
    live.learn_rows(
        np.array(known[:size], np.int64),
        clicked[:size],
        None if examined == UNTOLD else min(examined, size),
        context=context,
        features=features[:size],
    )
    return True
