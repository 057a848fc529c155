"""What errors of SQLite mean: try again, give up, or believe nothing any more."""

import sqlite3
from pathlib import Path

from firstclick.errors import FirstclickError, InvalidInput
from firstclick.wire.errors import StoreBroken, Unavailable

BUSY_SECONDS = 2.0


def in_words(error: sqlite3.Error, path: Path, *, opening: bool = False) -> FirstclickError | sqlite3.Error:
    """What an error of SQLite means for the caller; errors of our own making stay as they are."""
    code = getattr(error, "sqlite_errorcode", None)
    if code is None:
        return error
    match code & 0xFF:
        case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_LOCKED:
            return Unavailable(
                f"{path} was locked by another program for {BUSY_SECONDS:g} s; send the same again when it "
                "is done"
            )
        case sqlite3.SQLITE_FULL:
            return Unavailable(f"the disk of {path} is full; make room and send the same again")
        case sqlite3.SQLITE_IOERR if code == sqlite3.SQLITE_IOERR_WRITE:
            # Refused before it was on its way to the disk, as by a quota: what was there is not touched.
            return Unavailable(
                f"{path} cannot be written now (a quota, or a limit of file sizes); send the same again"
            )
        case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_PERM:
            if opening:
                return InvalidInput(f"{path} cannot be opened to be written ({error}); see its permissions")
            return Unavailable(f"{path} cannot be opened or written now ({error}); send the same again later")
        case sqlite3.SQLITE_NOTADB:
            return StoreBroken(f"{path} is not a SQLite database; name another file, or restore this one")
        case sqlite3.SQLITE_CORRUPT:
            return StoreBroken(f"{path} is damaged ({error}); restore a copy of it")
        case sqlite3.SQLITE_CONSTRAINT if code == sqlite3.SQLITE_CONSTRAINT_PRIMARYKEY:
            # A seq that was free by the model's head.
            return StoreBroken(f"{path} contradicts itself ({error}); audit it")
        case sqlite3.SQLITE_CONSTRAINT:
            return InvalidInput(f"a value breaks a rule of the store ({error}); nothing was written")
    return StoreBroken(
        f"{path}: {error} ({error.sqlite_errorname}); what was not acknowledged may be lost, and nothing "
        "more is written until a restart"
    )
