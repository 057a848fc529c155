"""Is what a model serves what its log says? Anyone can check."""

import time
from typing import NamedTuple

from firstclick.errors import FirstclickError
from firstclick.files.progress import Progress, silent
from firstclick.serve.log.events import Created, unpacked
from firstclick.serve.log.snapshot import BadSnapshot
from firstclick.serve.model.model import Model
from firstclick.serve.model.replay import (
    Log,
    Memory,
    catch_up,
    changes_in,
    first_event_in,
    first_model,
    recover,
    unless_archived_meanwhile,
)
from firstclick.serve.store.store import Store, StoredModel
from firstclick.wire.errors import OtherVersion

# Seconds for which a served model may be behind its log while it is audited.
BEHIND_AT_MOST = 5.0


class Audit(NamedTuple):
    """A model folded again from its first event, without snapshots, and compared bit for bit."""

    name: str
    seq: int
    digest: str  # SHA-256 of all that the log comes to
    compared: int  # what it was compared with: the served model, or the snapshots there are
    differing: tuple[str, ...]  # a sentence for each that was not equal
    seconds: float
    not_folded: str = ""  # why it was not: another version of its policy has learned it
    start: int = 1  # the event whose state the fold began with: not the creation if events are archived

    @property
    def equal(self) -> bool:
        return not self.differing


def audit_served(store: Store, model: Model) -> Audit:
    """Compare a model that is being served with its log, as of now."""
    started = time.monotonic()
    head = next(stored.head for stored in store.models() if stored.id == model.id)
    # Events may be in the log a moment before they are folded, not longer.
    while model.seq < head and time.monotonic() - started < BEHIND_AT_MOST:
        time.sleep(0.01)
    with model.lock:
        seq, served = model.seq, model.digest()
    folded = recover(store, StoredModel(model.id, model.name, seq), use_snapshots=False)
    digest = folded.digest()
    differing = [] if served == digest else [f"the served model has digest {served}, its log {digest}"]
    if seq < head:
        differing.append(f"the served model stands at event {seq}, its log at event {head}")
    seconds = time.monotonic() - started
    return Audit(model.name, seq, digest, 1, tuple(differing), seconds, start=folded.archived_before)


def audit_stored(
    store: Store, stored: StoredModel, progress: Progress = silent, *, log: Log | None = None
) -> Audit:
    """Fold a log to its end, and compare the snapshots on the way, and the base if it is not begun with.

    `log` is the store with files of archived events, if there are any.
    """
    whole = log or store
    try:
        return unless_archived_meanwhile(whole, stored, lambda: _folded(store, whole, stored, progress))
    except OtherVersion as error:
        return Audit(stored.name, stored.head, "", 0, (), 0.0, str(error))
    except FirstclickError as error:
        return Audit(stored.name, stored.head, "", 0, (f"the log cannot be folded: {error}",), 0.0)


def _folded(store: Store, whole: Log, stored: StoredModel, progress: Progress) -> Audit:
    started = time.monotonic()
    first = first_event_in(whole, stored)
    created = unpacked(first, Created)
    model = first_model(whole, stored, first)
    start, base = model.seq, store.base(stored.id)
    memory = Memory(changes_in(whole, stored, start))

    def go_on(upto: int) -> None:
        catch_up(whole, model, upto, memory=memory, progress=lambda done, _: progress(done, stored.head))

    compared, differing = 0, []
    # A server that was behind may have made one of events that are archived now.
    kept_ones = [(seq, content, False) for seq, content in store.snapshots(stored.id) if seq >= start]
    if base is not None and base.seq > start:
        kept_ones.append((base.seq, base.content, True))
    for seq, content, is_base in sorted(kept_ones):
        try:
            kept = Model.restored(stored.id, stored.name, content, created, any_code=is_base)
        except BadSnapshot as error:
            if is_base:
                differing.append(f"what was known when events were archived cannot be read: {error}")
            continue  # Nobody would use it either.
        go_on(seq)
        compared += 1
        if (found := kept.digest()) != (wanted := model.digest()):
            differing.append(f"the snapshot after event {seq} has digest {found}, the log {wanted}")
    go_on(stored.head)
    if model.changed_before:
        differing.append(f"events up to {model.changed_before} are not what was appended: links differ")
    seconds = time.monotonic() - started
    return Audit(stored.name, model.seq, model.digest(), compared, tuple(differing), seconds, start=start)
