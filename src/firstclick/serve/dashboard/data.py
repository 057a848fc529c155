"""What the dashboard shows of a model."""

import time
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from firstclick import __version__
from firstclick.catalog.ids import ItemId
from firstclick.serve.dashboard.launch import AgainstList, Decider, against_list, deciders, reasons_of
from firstclick.serve.model.click_stats import DAY, FIRST_SLATES, ClickStats, Span
from firstclick.serve.model.model import Model
from firstclick.serve.model.trial_events import TrialReport, trial_report
from firstclick.serve.service import Service

MOST_BUCKETS = 240
MOST_ESTIMATES = 200
MOST_RECENT = 8
# The best of all items are looked for in at most this share of the time; in between, those found last are
# shown with what is held of them now.
SHARE = 0.01
# From so many slates after the first ones on, it is worth saying how things go lately.
ENOUGH = 100
OUTCOMES = (
    "accepted", "duplicate", "conflict", "unknown", "expired", "malformed", "too-large", "overloaded",
    "unavailable", "corrected", "late",
)  # fmt: skip


class Counted(Struct):
    """Slates and clicks. `label` says which."""

    label: str
    slates: int
    clicks: int


class Estimate(Struct):
    """The estimated attraction of an item; null where the policy has no estimate."""

    id: ItemId
    name: str
    group: str
    mean: float | None
    deviation: float | None
    examined: int | None


class BestSlate(Struct):
    """The slate that the policy would show without exploring."""

    items: list[Estimate]


class Answered(Struct):
    """A slate and its clicks, by position; `click` is the first. `reasons` says why each item was shown:
    policy, explored, pinned, floor, holdout, baseline, or the arm of a trial that another model decides.
    It is empty for slates of early versions.
    """

    time: float
    items: list[str]
    reasons: list[str]
    click: int | None
    clicks: list[int]


class Totals(Struct):
    """Counts since the model was created."""

    slates: int
    clicks: int


class ItemCounts(Struct):
    """How many items can be shown, were withdrawn, or are sold out."""

    shown: int
    withdrawn: int
    unavailable: int


class Outcomes(Struct):
    """How much feedback comes back. `recommended` counts slates as far as the log knows, `timed_out` those
    without feedback in time. `unreported` is the share without feedback, null while too little is known.
    `warnings` says what is wrong, in sentences.
    """

    recommended: int
    timed_out: int
    unreported: float | None
    warnings: list[str]


class ExploringShare(Struct):
    """The share of the last slates that differed from the best slate."""

    share: float
    of: int


class Process(Struct):
    """The process that answered."""

    started: float
    version: str
    store: str
    durability: str
    recommended: int
    snapshot_seq: int


class View(Struct):
    """A model at a glance. Times are seconds since 1970 by the server's clock, `now`.

    `against_list` is null without a baseline; then `start`, the model's own first slates, is what there is to
    compare with. `trial` is null if there was none. `deciders` are those who decided the last slates; empty
    before the first slate, and without a baseline or trial.
    """

    model: str
    policy: str
    k: int
    seq: int
    now: float
    items: ItemCounts
    since: float | None
    totals: Totals
    clickthrough: list[Span]
    start: Counted | None
    lately: Counted | None
    against_list: AgainstList | None
    trial: TrialReport | None
    deciders: list[Decider]
    positions: list[int]
    best: BestSlate | None  # None where it depends on who asks, or on the other items of the slate
    recent: list[Answered]
    estimates: list[Estimate]
    exploring: ExploringShare | None
    feedback: dict[str, int]
    outcomes: Outcomes
    process: Process
    replicas: list[dict[str, Any]]


class Views:
    """The views of a service's models."""

    def __init__(self, service: Service, durability: str) -> None:
        self._service = service
        self._durability = durability
        self._found: dict[str, tuple[int, float, NDArray[np.int64]]] = {}

    def of(self, name: str) -> View:
        """How the model stands."""
        service = self._service
        model = service.model(name)
        rows = self._rows_to_show(model)
        now = service.clock.time()
        with model.lock:
            facts = model.describe()
            stats = model.click_stats
            spans = stats.buckets(now, MOST_BUCKETS)
            start, lately = compared(stats, spans, now)
            estimates = _estimates(model, rows)
            recent = list(model.recent)[: -MOST_RECENT - 1 : -1]
            items, names = model.catalog.items, model.items.names
            answered = [
                Answered(
                    received,
                    [names.get(items[row]) or str(items[row]) for row in feedback.rows],
                    reasons_of(model, feedback),
                    feedback.click,
                    list(feedback.clicks),
                )
                for received, feedback in recent
            ]
            positions = stats.positions[: model.k] + [0] * (model.k - len(stats.positions))
            totals, since = Totals(stats.slates, stats.clicks), stats.since
            beside, deciding = against_list(model), deciders(model)
            trial = None if model.launch.trial is None else trial_report(model)
        # It may be deleted meanwhile.
        exploring = service.exploring.get(name)
        share = None if exploring is None else exploring.share()
        counts = dict(service.outcomes.get(name, {}))
        return View(
            model=name,
            policy=facts["policy"],
            k=model.k,
            seq=facts["seq"],
            now=now,
            items=ItemCounts(facts["items"], facts["withdrawn"], facts["unavailable"]),
            since=since,
            totals=totals,
            clickthrough=spans,
            start=start,
            lately=lately,
            against_list=beside,
            trial=trial,
            deciders=deciding,
            positions=positions,
            best=_best(model, estimates),
            recent=answered,
            estimates=estimates,
            exploring=None if share is None else ExploringShare(*share),
            feedback={outcome: counts.get(outcome, 0) for outcome in OUTCOMES},
            outcomes=Outcomes(
                facts["recommended"], facts["timed_out"], facts["unreported"], model.warnings()
            ),
            process=Process(
                service.started,
                __version__,
                service.store.kind,
                self._durability,
                service.recommended[name],
                service.maintenance.snapshot_seq(name),
            ),
            replicas=service.maintenance.replicas(model),
        )

    def _rows_to_show(self, model: Model) -> NDArray[np.int64]:
        """Rows with the highest estimates, or as of lately: with 100,000 items that is a search."""
        began = time.monotonic()
        n_rows, due, rows = self._found.get(model.name, (0, 0.0, np.empty(0, np.int64)))
        if began >= due or n_rows != len(model.catalog.items):
            rows = model.best_rows(MOST_ESTIMATES)
            took = time.monotonic() - began
            self._found[model.name] = len(model.catalog.items), began + took / SHARE, rows
        with model.lock:
            hidden = model.catalog.hidden
            if not len(rows):
                rows = np.flatnonzero(hidden == 0)[:MOST_ESTIMATES]
            shown: NDArray[np.int64] = rows[hidden[rows] == 0]
            return shown


def compared(stats: ClickStats, spans: list[Span], now: float) -> tuple[Counted | None, Counted | None]:
    """How it went at first and how it goes lately: by days after two days, by slates before that."""
    since = stats.since
    if since is None or stats.slates < FIRST_SLATES:
        return None, None
    if now - since >= 2 * DAY:
        day = [span for span in spans if span.start >= now - DAY]
        slates = sum(span.slates for span in day)
        if slates >= ENOUGH:
            clicks = sum(span.clicks for span in day)
            start = Counted("first day", stats.day_slates, stats.day_clicks)
            return start, Counted("last 24 hours", slates, clicks)
    start = Counted(f"first {FIRST_SLATES:,} slates", FIRST_SLATES, stats.first_clicks)
    wanted = min(FIRST_SLATES, stats.slates - FIRST_SLATES)
    if wanted < ENOUGH:
        return start, None
    slates = clicks = 0
    for span in reversed(spans):
        slates, clicks = slates + span.slates, clicks + span.clicks
        if slates >= wanted:
            break
    return start, Counted(f"last {slates:,} slates", slates, clicks) if slates >= ENOUGH else None


def _best(model: Model, estimates: list[Estimate]) -> BestSlate | None:
    if not model.engine.policy.best_by_estimates:
        return None
    return BestSlate([one for one in estimates[: model.k] if one.mean is not None])


def _estimates(model: Model, rows: NDArray[np.int64]) -> list[Estimate]:
    """What is held for each of the rows, highest mean first; nothing where that depends on who asks."""
    means, deviations = model.engine.estimates(rows)
    if model.wants_context:
        means, deviations = np.full(len(rows), np.nan), np.full(len(rows), np.nan)
    order = np.argsort(-means, kind="stable")
    # Policies that count keep how often an item was examined; others have no such number.
    examined = getattr(model.engine.state, "examined", None)
    state = model.items
    told = []
    for i in order.tolist():
        row = int(rows[i])
        item = state.catalog.items[row]
        told.append(
            Estimate(
                item,
                state.names.get(item, ""),
                state.group(item),
                _number(means[i]),
                _number(deviations[i]),
                int(examined[row]) if isinstance(examined, np.ndarray) and examined.ndim == 1 else None,
            )
        )
    return told


def _number(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
