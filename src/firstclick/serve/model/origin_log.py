"""The log of a model, read from that of its fork."""

from collections.abc import Iterator, Sequence

from firstclick.serve.log.copies import seen_by
from firstclick.serve.log.events import Created, Event, Kind
from firstclick.serve.log.history import Mark
from firstclick.serve.model.replay import Log
from firstclick.serve.store.store import Base


class OriginLog:
    """The events of a fork as one of the models has them that it was copied from: a `Log`, as a store is one.

    Only of a log that begins with its creation: what the origin knew at a later time is not kept.
    """

    def __init__(self, log: Log, created: Created, place: int) -> None:
        """`created` is the first event of the fork's log, and `place` that of the origin in it."""
        self._log, self._created, self._place = log, created, place

    def events(
        self, model: int, after: int, upto: int | None = None, *, feedback: bool = True
    ) -> Iterator[list[Event]]:
        """As `Store.events`, up to the last event of the origin."""
        last = self._created.origins[self._place].upto
        for chunk in self._log.events(model, after, last if upto is None else upto, feedback=feedback):
            seen = [self._seen(event) for event in chunk]
            # What was left out of the fork may be feedback.
            kept = seen if feedback else [event for event in seen if event.kind != Kind.FEEDBACK]
            if kept:
                yield kept

    def events_at(self, model: int, seqs: Sequence[int]) -> list[Event]:
        """As `Store.events_at`."""
        return [self._seen(event) for event in self._log.events_at(model, seqs)]

    def snapshots(self, model: int) -> list[tuple[int, bytes]]:
        """None: those of the fork are of another policy."""
        return []

    def marks(self, model: int, first: int, last: int) -> dict[int, Mark]:
        """None: links are those of the fork."""
        return {}

    def base(self, model: int) -> Base | None:
        """None: the log begins with its creation."""
        return None

    def _seen(self, event: Event) -> Event:
        return seen_by(event, self._place, self._created)
