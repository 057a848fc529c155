"""The models of a store by name, each taken up for itself, so that none takes others down."""

import logging
import threading
from collections.abc import Callable

from firstclick.errors import FirstclickError
from firstclick.files.progress import Progress, silent
from firstclick.serve.model.model import Model
from firstclick.serve.model.replay import recover
from firstclick.serve.model.set_back import SetBack, set_back_of
from firstclick.serve.store.store import Store, StoredModel
from firstclick.validation.quoting import quoted
from firstclick.wire.errors import NotServed, OtherVersion, Unavailable, Unknown

log = logging.getLogger("firstclick.serve")


class NoModel(Unknown):
    """No model has this name. The message ends with the names that there are; `unlisted` does not."""

    def __init__(self, quoted_name: str, known: str) -> None:
        super().__init__(f"{quoted_name} is unknown; known are: {known}", "model")
        self.unlisted = f"{quoted_name} is unknown"


class ModelSet:
    """Models at work, and why others are not."""

    def __init__(self, store: Store, admitted: Callable[[Model], None]) -> None:
        """`admitted` is told of every model before it is found here."""
        self._store = store
        self._admitted = admitted
        self._models: dict[str, Model] = {}
        self._admitting = threading.Lock()
        # Models that are not served, with the reason: their log could not be folded, or was folded by other
        # arithmetic, which is nobody's fault.
        self.broken: dict[str, str] = {}
        self.outdated: set[str] = set()
        # Models whose logs were found to have lost events, since this process started.
        self.set_backs: dict[str, list[SetBack]] = {}

    def names(self) -> list[str]:
        """The names of the models at work."""
        return sorted(self._models)

    def at_work(self, stored: StoredModel) -> Model | None:
        """This very model, and not another of its name; None if it is not at work."""
        model = self._models.get(stored.name)
        return model if model is not None and model.id == stored.id else None

    def all(self) -> list[Model]:
        """The models at work, by name; one of them may be deleted meanwhile."""
        return [model for _, model in sorted(self._models.copy().items())]

    def find(self, name: str) -> Model:
        """The model of this name; NoModel, or Unavailable if its log cannot be folded."""
        model = self._models.get(name)
        if model is not None:
            return model
        if name in self.outdated:
            raise NotServed(f"model {name!r} is not served: {self.broken[name]}")
        if name in self.broken:
            raise Unavailable(f"model {name!r} cannot be served: {self.broken[name]}")
        known = ", ".join(map(repr, self.names())) or "none yet"
        raise NoModel(quoted(name), known)

    def take_up(self, stored: StoredModel, progress: Progress = silent) -> Model | None:
        """The model that is in the store, ready to work; None if its log cannot be folded."""
        if (there := self.at_work(stored)) is not None:
            return there
        lost: list[int] = []
        model = self._loaded(stored, lost, progress)
        if model is None:
            return None
        if lost:
            # A snapshot is only made of what the log has: the store was set back since.
            beyond = max(lost) - stored.head
            self._note_set_back(SetBack(stored.name, max(lost), max(beyond, 1), exact=False))
        # Two threads may find a new model at once; it must not become two.
        with self._admitting:
            there = self._models.get(stored.name)
            # One with a lower number was deleted, by another process that we have not heard of yet.
            if there is None or there.id < stored.id:
                self._admitted(model)
                self._models[stored.name] = model
            self.broken.pop(stored.name, None)
            return self._models[stored.name]

    def _loaded(self, stored: StoredModel, lost: list[int], progress: Progress = silent) -> Model | None:
        """The model from its log, or None; snapshots that are not of this log are removed, and in `lost`."""
        try:
            # A long log takes its time: others are served meanwhile.
            model = recover(self._store, stored, progress=progress, lost=lost.append)
            if lost:
                self._store.drop_snapshots(stored.id, lost)
            # Kernels are compiled now, not while the first users wait.
            model.warm_up()
            return model
        except Unavailable:
            raise  # The store does not answer, which says nothing about the log.
        except FirstclickError as error:
            if isinstance(error, OtherVersion):
                self.outdated.add(stored.name)
            self._say_broken(stored.name, str(error))
            return None
        except Exception as error:
            log.exception("%s: the log cannot be folded", stored.name)
            self._say_broken(stored.name, f"{type(error).__name__}, see the server's log")
        return None

    def drop(self, name: str, number: int) -> bool:
        """Serve no more what was deleted; False if another model of the name is at work by now."""
        with self._admitting:
            model = self._models.get(name)
            if model is not None and model.id != number:
                return False
            self._models.pop(name, None)
            # New ones: somebody may be reading these.
            self.broken = {other: why for other, why in self.broken.items() if other != name}
            self.outdated = self.outdated - {name}
        return True

    def start_again(self, stored: StoredModel) -> None:
        """Fold the log of a model as it is now: it is not the one that was folded before.

        What was known is recommended from meanwhile: a long log takes its time, and a slate does no harm.
        """
        old = self._models.get(stored.name)
        if old is None or not old.set_back:
            return  # It was deleted, or loaded, meanwhile.
        base = self._store.bases().get(stored.id)
        if old.id != stored.id:
            found: SetBack | None = SetBack(stored.name, old.seq, old.seq, exact=True)
        elif base is not None and old.seq < base.seq:
            found = None  # What it had folded last is archived now: nothing is lost.
        else:
            found = set_back_of(self._store, old)
        model = self._loaded(stored, [])
        if found is not None:
            self._note_set_back(found)
        with self._admitting:
            if model is None:
                self._models.pop(stored.name, None)
                return
            self._admitted(model)
            self._models[stored.name] = model
        log.warning("%s: loaded again from its log, at event %d", stored.name, model.seq)

    def _note_set_back(self, found: SetBack) -> None:
        self.set_backs.setdefault(found.name, []).append(found)
        log.critical("%s: the store was set back: %s; the log as it is now is followed", found.name, found)

    def _say_broken(self, name: str, why: str) -> None:
        if self.broken.get(name) != why:
            log.error("model %r is not served: %s", name, why)
        self.broken[name] = why
