"""A new model from the log of another: the same items and slates, learned by another policy, or by another
version of the same one."""

import secrets
import struct
from collections.abc import Callable
from contextlib import suppress
from itertools import chain
from typing import Any, NamedTuple

import msgspec
import numpy as np
from numpy.typing import NDArray

from firstclick.catalog.encoder import Encoder
from firstclick.catalog.feature_scale import FeatureScale
from firstclick.errors import FirstclickError, WorkFailed
from firstclick.files.progress import Progress, silent
from firstclick.online.engine import scale_for
from firstclick.policies.base import Policy
from firstclick.registry import is_research, policy_class, policy_classes
from firstclick.serve.log.copies import (
    left_out,
    origin_of,
    with_features,
    with_other_slates,
    with_other_words,
)
from firstclick.serve.log.events import (
    Created,
    Event,
    FeedbackEvent,
    ItemsChanged,
    Kind,
    packed,
    read_feedback,
    unpacked,
)
from firstclick.serve.model.build import this_build
from firstclick.serve.model.loading import check_new, load, publish, reserved
from firstclick.serve.model.model import Model
from firstclick.serve.model.new_events import check_context_size, model_seed, policy_of
from firstclick.serve.model.replay import (
    Log,
    Memory,
    changes_in,
    check_whole,
    created_in,
    not_reached,
    unless_archived_meanwhile,
)
from firstclick.serve.store.store import Store, StoredModel
from firstclick.streams import stream_key
from firstclick.wire.errors import Malformed, refusing


class Forked(NamedTuple):
    """A model made from the log of another."""

    stored: StoredModel
    policy: str
    left_out: int  # slates that came without what the policy wants to know of the user
    late_clicks: int  # on slates that had counted as no click: left out, if the policy cannot correct that


def fork(
    store: Store,
    log: Log,
    stored: StoredModel,
    name: str,
    policy: Policy | str | None = None,
    *,
    seed: int | None = None,
    progress: Progress = silent,
) -> Forked:
    """A new model with the items and slates of another, learned by this policy. If none is named, by its own
    in the version that is installed; then the key stays the same too.

    `log` is the store, or the store and the files in which the model's events were archived. Others write
    meanwhile, and nobody sees the new model before it is whole. Malformed if the policy cannot learn from
    this log, Conflict if the name is taken or a part of the log is archived.
    """
    check_new(store, name)

    def copied() -> Forked:
        check_whole(log, stored)
        created = created_in(log, stored)
        made = Fork(created, stored.name, stored.id, stored.head, policy, _n_context(log, stored), seed=seed)
        memory = Memory(changes_in(log, stored, 1))
        with reserved(store) as number:
            for events in log.events(stored.id, 0, stored.head):
                load(store, number, made.fold(name, made.events(events), memory))
                progress(events[-1].seq, stored.head)
            assert made.model is not None
            published = publish(store, number, name, made.model)
            return Forked(published, made.policy.label, made.n_left_out, made.n_late_clicks)

    return unless_archived_meanwhile(log, stored, copied)


def _n_context(log: Log, stored: StoredModel) -> int | None:
    """How many numbers each request of the log brought; None if it has no slates."""
    for event in chain.from_iterable(log.events(stored.id, 1, stored.head)):
        if event.kind == Kind.FEEDBACK:
            try:
                return len(read_feedback(event.payload).context)
            except (ValueError, struct.error):
                continue  # Nobody learned from it.
    return None


class Fork:
    """The events of a log as they are in the log of its fork."""

    def __init__(
        self,
        origin: Created,
        name: str,
        id: int,
        head: int,
        policy: Policy | str | None,
        n_context: int | None,
        *,
        seed: int | None = None,
    ) -> None:
        """Of a model that begins with `origin`, is called `name`, and has so many events."""
        self._origin, self._name, self._again = origin, name, policy is None
        self._place = len(origin.origins)
        self.n_left_out = self.n_late_clicks = 0
        self.model: Model | None = None
        with refusing:
            self._encoder = Encoder.from_json(origin.encoder) if origin.encoder else None
            self._before = FeatureScale.from_json(origin.feature_scale) if origin.feature_scale else None
            if policy is None:
                chosen = policy_class(origin.policy)(**origin.settings)
            else:
                chosen = policy_of(policy).with_context(n_context or 0)
            if why := self._why_not(chosen, n_context):
                raise Malformed(
                    f"{chosen.label} {why}, so that it cannot learn from the log of {name!r}; these can: "
                    + ", ".join(self._able(n_context)),
                    "policy",
                )
            check_context_size(chosen)
            self.policy = chosen
            wanted_all = getattr(policy_classes().get(origin.policy), "wants_all_clicks", False)
            self._first_alone = chosen.wants_all_clicks and not wanted_all
            self._after = self._scale(chosen)
            items = self._items(origin.items, lambda: origin.values)
            self.created = msgspec.structs.replace(
                origin,
                policy=chosen.name,
                settings=chosen.settings,
                version=chosen.version,
                n_features=items.n_features,
                items=msgspec.structs.replace(items, earlier={}),
                feature_scale=None if self._after is None else self._after.as_json(),
                origins=[
                    *origin.origins,
                    origin_of(origin, name, id, head, same_features=self._before == self._after),
                ],
            )
            if policy is not None:
                drawn = secrets.randbits(32) if seed is None else model_seed(seed)
                self.created = msgspec.structs.replace(
                    self.created,
                    seed=drawn,
                    key=int(stream_key(drawn, "model", chosen.name, origin.k)),
                    build=this_build(type(chosen)),
                )

    def _why_not(self, policy: Policy, n_context: int | None) -> str:
        """Why a policy cannot learn from this log; empty if it can."""
        origin = self._origin
        if not (policy.learns_from_others or self._is_own(policy)):
            return "learns from slates that it has shuffled itself"
        if policy.needs_features and not origin.n_features:
            return "needs features, and the items have none"
        if n_context is not None and policy.n_context not in (0, n_context):
            brought = f"{n_context} numbers" if n_context else "none"
            return (
                f"wants {policy.n_context} numbers of context with each slate, and the slates have {brought}"
            )
        known = policy_classes().get(origin.policy)
        if policy.unit_features and origin.encoder and known and not known.unit_features:
            return "takes shares between 0 and 1 as they are, and the columns of the catalog were scaled"
        return ""

    def _is_own(self, policy: Policy) -> bool:
        """Whether it is the policy of the log, in whatever version."""
        return (policy.name, policy.settings) == (self._origin.policy, self._origin.settings)

    def _able(self, n_context: int | None) -> list[str]:
        """The policies of the first tier that can learn from this log."""
        origin, able = self._origin, []
        for name, known in policy_classes().items():
            policy = known().with_context(n_context or 0)
            if is_research(known) or self._why_not(policy, n_context):
                continue
            with suppress(FirstclickError):
                if known.unit_features:
                    policy.numbers(origin.k, self._given(origin.first_features(), lambda: origin.values))
                able.append(name)
        return able

    def _scale(self, policy: Policy) -> FeatureScale | None:
        """The scale in which the policy sees features: that of a new model with the same items."""
        origin, before = self._origin, self._before
        known = policy_classes().get(origin.policy)
        if not origin.n_features or self._is_own(policy):
            return before
        if before is None and known and not (known.unit_features or known.scales_features):
            return None  # Its owner wants features as they are.
        names = self._encoder.names if self._encoder else before.names if before else ()
        given = self._given(origin.first_features(), lambda: origin.values)
        fitted = scale_for(policy, given, origin.k, names)
        if before is None or fitted is None:
            return fitted
        # The same but for rounding: no number has to be changed.
        return before if bool(before.intercept) == bool(fitted.intercept) else fitted

    def _given(self, rows: NDArray[np.float64], values: Callable[[], list[list[Any]]]) -> NDArray[np.float64]:
        """Features as people gave them, or as the encoder made them of what they gave."""
        given = rows if self._before is None else self._before.undo(rows)
        if self._encoder is not None:
            # To the last bit, unless the encoder has learned to read otherwise since.
            encoded, _ = self._encoder.encode(values())
            return np.where(np.isclose(encoded, given, rtol=1e-12, atol=1e-12), encoded, given)
        return given

    def _items(self, body: Any, values: Callable[[], list[list[Any]]]) -> Any:
        """Items as the policy sees them."""
        table = body.table()
        if table is None or self._before == self._after:
            return body
        given = self._given(table, values)
        rows = given if self._after is None else self._after.apply(given)
        return with_features(body, rows, self._place)

    def events(self, events: list[Event]) -> list[Event]:
        """The next events as they are in the fork."""
        with refusing:
            return [self._copy(event) for event in events]

    def _copy(self, event: Event) -> Event:
        copy = COPIES.get(event.kind)
        if copy is None:
            raise WorkFailed(f"event {event.seq} is of kind {event.kind}, and no fork knows what it means")
        return copy(self, event)

    def _first(self, event: Event) -> Event:
        return event._replace(payload=packed(self.created))

    def _same(self, event: Event) -> Event:
        return event

    def _of_processes(self, event: Event) -> Event:
        """What processes say that drew slates of the origin."""
        return event if self._again else self._left_out(event)

    def _left_out(self, event: Event) -> Event:
        return left_out(event, self._place)

    def _items_changed(self, event: Event) -> Event:
        body = unpacked(event, ItemsChanged)
        fitting = self._items(body, lambda: self._lines(body))
        return event if fitting is body else event._replace(payload=packed(fitting))

    def _lines(self, body: ItemsChanged) -> list[list[Any]]:
        """The values of all inputs, None where none was sent."""
        assert self._encoder is not None
        n_inputs = len(self._encoder.inputs)
        lines = []
        for sent, given in zip(body.sent, body.values, strict=True):
            line: list[Any] = [None] * n_inputs
            for place, value in zip(range(n_inputs) if sent is True else sent or (), given, strict=True):
                line[place] = value
            lines.append(line)
        return lines

    def _feedback(self, event: Event) -> Event:
        policy = self.policy
        if self._again:
            return event
        try:
            before = read_feedback(event.payload)
            said = self._said(before)
        except (FirstclickError, ValueError, struct.error):
            return event  # Nobody learns from it.
        if policy.n_context and len(said.context) != policy.n_context:
            self.n_left_out += 1
            return self._left_out(event)
        if said is before:
            return event
        return event._replace(payload=with_other_words(event.payload, said, self._place))

    def _said(self, said: FeedbackEvent) -> FeedbackEvent:
        """What a slate says to the policy; the same object if that is what it said before."""
        if said.context and not self.policy.n_context:
            said = said._replace(context=())
        if said.features and not self.policy.takes_features:
            said = said._replace(features=())
        elif said.features and self._before != self._after:
            rows = np.array(said.features)
            given = rows if self._before is None else self._before.undo(rows)
            rows = given if self._after is None else self._after.apply(given)
            said = said._replace(features=tuple(map(tuple, rows.tolist())))
        if self._first_alone and said.examined is None and len(said.clicks) == 1:
            # It may be the first of several: nothing is known of what stands below it.
            said = said._replace(examined=said.clicks[0] + 1)
        return said

    def _correction(self, event: Event) -> Event:
        if self._again or self.policy.corrects:
            return event
        self.n_late_clicks += 1
        return self._left_out(event)

    def _warm_start(self, event: Event) -> Event:
        """Each of its slates as feedback would be."""
        if self._again:
            return event

        def fitting(payload: bytes) -> bytes:
            copy = self._feedback(event._replace(kind=Kind.FEEDBACK, payload=payload))
            # What is left out stays as it is: the policy passes over it.
            return copy.payload if copy.kind == Kind.FEEDBACK else payload

        return event._replace(payload=with_other_slates(event.payload, fitting))

    def fold(self, name: str, events: list[Event], memory: Memory) -> list[Event]:
        """Have the model called `name` learn from the next events of the fork, which are given back."""
        try:
            with refusing:
                if self.model is None:
                    self.model = Model(0, name, self.created, first=events[0])
                memory.fold(self.model, events, not_reached)
        except (FirstclickError, ArithmeticError, LookupError, MemoryError, TypeError, ValueError) as error:
            if isinstance(error, WorkFailed):
                raise
            raise Malformed(
                f"{self.policy.label} cannot learn from the log of {self._name!r}: {error}", "policy"
            ) from None
        return events


# What becomes of each kind of event. A kind that is not here stops a fork: whoever adds one has to say.
COPIES: dict[int, Callable[[Fork, Event], Event]] = {
    Kind.CREATED: Fork._first,
    Kind.FEEDBACK: Fork._feedback,
    Kind.ITEMS_CHANGED: Fork._items_changed,
    Kind.ITEMS_WITHDRAWN: Fork._same,
    Kind.AVAILABILITY: Fork._same,
    Kind.ROLLED_BACK: Fork._same,
    Kind.LIST_PUT: Fork._same,
    Kind.LIST_REMOVED: Fork._same,
    Kind.SETTINGS: Fork._same,
    Kind.BASELINE: Fork._same,
    Kind.WARM_START: Fork._warm_start,
    Kind.CORRECTION: Fork._correction,
    Kind.BUILD: Fork._of_processes,
    Kind.RECOMMENDED: Fork._of_processes,
    Kind.TRIAL_STARTED: Fork._left_out,  # A trial is of the model that it was started on.
    Kind.TRIAL_SHARES: Fork._left_out,
    Kind.TRIAL_STOPPED: Fork._left_out,
    Kind.COPIED: Fork._same,
}
