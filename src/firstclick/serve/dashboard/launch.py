"""What the dashboard shows of a launch: how the policy does beside the list, and who decides the slates."""

import struct
from collections import Counter

from msgspec import Struct

from firstclick.online.baseline import Choice
from firstclick.serve.log.drawn import read_drawn
from firstclick.serve.log.events import FeedbackEvent
from firstclick.serve.model.model import Model


class Decider(Struct):
    """How many of the last slates were decided by `by`: policy, floor, holdout, baseline, or the name of an
    arm that another model decides.
    """

    by: str
    slates: int


class AgainstList(Struct):
    """The baseline, and the slates since it was set: how many the policy and the list showed, and how many of
    them had a click. `items` are the names of its first items.

    With `confidence`, at all times: the list's click rate lies between `rate_low` and `rate_high`, and the
    expected clicks of all slates are at least `at_least` times the list's. The guarantee is 1 - `max_loss`;
    `assumed` says what it assumes.
    """

    items: list[str]
    listed: int
    max_loss: float
    confidence: float
    policy_slates: int
    policy_clicks: int
    list_slates: int
    list_clicks: int
    rate_low: float
    rate_high: float
    at_least: float
    assumed: str


def against_list(model: Model) -> AgainstList | None:
    """How the policy does beside the list; None if there is no list. The model's lock is held."""
    baseline = model.launch.baseline
    if baseline is None:
        return None
    found, names = baseline.floor.report(), model.items.names
    return AgainstList(
        [names.get(item) or str(item) for item in baseline.items[: model.k]],
        len(baseline.items),
        found.max_loss,
        found.confidence,
        found.policy_pages,
        found.policy_clicks,
        found.baseline_pages,
        found.baseline_clicks,
        found.baseline_rate_low,
        found.baseline_rate_high,
        found.at_least,
        found.assumed,
    )


def deciders(model: Model) -> list[Decider]:
    """Who decided the last slates, the policy first and the list last; the model's lock is held."""
    counted = Counter(model.launch.lately)
    listed = [choice.word for choice in Choice]
    others = sorted(counted.keys() - listed)
    return [Decider(by, counted[by]) for by in (listed[0], *others, *listed[1:]) if by in counted]


def reasons_of(model: Model, feedback: FeedbackEvent) -> list[str]:
    """Why each item of a slate is in it; empty if the log does not say. The model's lock is held."""
    try:
        drawn = read_drawn(feedback.fields)
    except (LookupError, ValueError, struct.error):
        return []
    if drawn is None:
        return []
    by = model.launch.decider(drawn)
    return [by if why == Choice.POLICY.word else why for why in drawn.reasons(feedback.rows)]
