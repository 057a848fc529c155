"""A copy of an SQLite store to rely on: made while a server writes, and folded before it is used."""

from pathlib import Path

from firstclick.errors import InvalidInput, WorkFailed
from firstclick.files.progress import Progress, silent
from firstclick.files.writing import private_draft
from firstclick.serve.model.audit import Audit, audit_stored
from firstclick.serve.store.sqlite import SqliteStore


def back_up(store: SqliteStore, out: Path, progress: Progress = silent) -> list[Audit]:
    """Copy the store to the file, as it is at one moment; what its models come to.

    The copy is checked, and every log in it folded. The file is there whole, or not at all: WorkFailed if
    anything is wrong.
    """
    for beside in ("-wal", "-journal"):
        if out.with_name(out.name + beside).exists():
            # SQLite would take it for a part of the copy.
            raise InvalidInput(
                f"{out}{beside} is there: {out.name} is in use, or was not closed; name another file"
            )
    with private_draft(out) as draft:
        store.copy_to(draft)
        with SqliteStore(draft, read_only=True) as copy:
            wrong = copy.check()
            audits = [audit_stored(copy, stored, progress) for stored in copy.models()] if not wrong else []
        wrong += [f"{one.name}: {sentence}" for one in audits for sentence in one.differing]
        if wrong:
            raise WorkFailed(f"the copy is not sound, and was removed; audit the store: {'; '.join(wrong)}")
    return audits
