"""The policy of a model in a store, as it was after some event, and what it has learned from."""

from collections.abc import Iterable
from pathlib import Path

from firstclick.errors import InvalidInput, UnknownName
from firstclick.extras import needed_by
from firstclick.files.progress import Progress, silent
from firstclick.logs.ranked_log import RankedLog
from firstclick.online.engine import PolicyEngine


def engine_of_model(
    store: str,
    name: str,
    event: int | None = None,
    archive: Iterable[Path] = (),
    progress: Progress = silent,
) -> PolicyEngine:
    """The model's policy, frozen after this event of its log, or after the last one. Nothing is written."""
    with needed_by("a model of a store"):
        from firstclick.serve.model.archive import ArchivedLog, opened_archives
        from firstclick.serve.model.replay import recover
        from firstclick.serve.store import open_store

    if "://" not in store and not Path(store.removeprefix("sqlite:")).exists():
        raise InvalidInput(f"no store {store}", "store")
    with open_store(store, read_only=True) as there, opened_archives(list(archive)) as files:
        models = {stored.name: stored for stored in there.models()}
        if name not in models:
            raise UnknownName(f"no model {name!r} in {store}; there are: {', '.join(models) or 'none'}")
        stored = models[name]
        if event is not None:
            if event > stored.head:
                raise InvalidInput(
                    f"event must be at most {stored.head:,}, the model's last one, got {event:,}"
                )
            stored = stored._replace(head=event)
        return recover(
            ArchivedLog(there, stored, files) if files else there, stored, progress=progress
        ).engine


def has_events_of(store: str, name: str, log: RankedLog) -> bool:
    """Whether this log is that of the model, or one that it was copied from or to: then the model has learned
    from slates of the log."""
    with needed_by("a model of a store"):
        from firstclick.evaluation.own_log import OwnLog
        from firstclick.evaluation.own_propensities import OwnLogWithPropensities
        from firstclick.serve.store import open_store

    if not isinstance(log, OwnLog | OwnLogWithPropensities):
        return False
    with open_store(store, read_only=True) as there:
        stored = next(one for one in there.models() if one.name == name)
        return log.has_events_of(there, stored)
