"""Files that are there whole or not at all."""

import hashlib
import os
import re
import secrets
import shutil
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import BinaryIO

from filelock import lock_descriptor

from firstclick.errors import InvalidInput, WorkFailed
from firstclick.files.reading import as_path

MOST_LOOKED_AT = 2000
# A file system takes names of 255 bytes, and a draft's name is longer than that of its file.
LONGEST_NAME = 200


def write_whole(path: str | os.PathLike[str], content: bytes | Iterable[bytes]) -> None:
    """The file holds the content, on the disk; a crash or another writer leaves one version, whole.

    The content may come in pieces, more than fit into the memory. If making one fails nothing is written.
    An older file keeps its permissions. A symbolic link stays one: what it points to is written. Drafts that
    killed writers of this file left behind are removed. A place that does not exist is InvalidInput, a disk
    that is full WorkFailed.
    """
    with whole_file(path) as file:
        file.writelines((content,) if isinstance(content, bytes) else content)


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file to write to, that takes its place when all of it is written: see `write_whole`."""
    given = as_path(path)
    with _errors_named(path):
        older = _status(given)
        if older is not None and not (stat.S_ISREG(older.st_mode) or stat.S_ISDIR(older.st_mode)):
            # A device or a pipe, such as /dev/stdout, must not be replaced by a file.
            with given.open("wb") as device:
                yield device
            return
        target = Path(os.path.realpath(given))
        with _draft_of(target, private=older is not None) as (draft, file):
            yield file
            file.flush()
            if older is not None:
                _pass_on(older, file.fileno())
            os.fsync(file.fileno())
            if sys.platform == "win32":
                file.close()  # Nothing that is open can be replaced there.
            draft.replace(target)
        _sync_folder(target.parent)


@contextmanager
def private_draft(path: str | os.PathLike[str]) -> Iterator[Path]:
    """An empty file, for its owner alone, that somebody else writes to; at the end of the block it is on the
    disk and has this name, or it is gone if the block raises."""
    target = Path(os.path.realpath(as_path(path)))
    with _errors_named(path):
        with _draft_of(target, private=True) as (draft, file):
            yield draft
            os.fsync(file.fileno())
            draft.replace(target)
        _sync_folder(target.parent)


@contextmanager
def _errors_named(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn errors of the system into ours, which name the file: InvalidInput where the path is wrong."""
    try:
        yield
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError) as error:
        raise InvalidInput(f"{path} cannot be written: {error.strerror}") from None
    except OSError as error:
        raise WorkFailed(f"{path} cannot be written: {error.strerror or error}") from None


def _status(path: Path) -> os.stat_result | None:
    try:
        return path.stat()
    except FileNotFoundError:
        return None


def _pass_on(older: os.stat_result, descriptor: int) -> None:
    """Give a draft the owner and the permissions of the file whose place it takes."""
    if sys.platform == "win32":
        return
    mine = os.fstat(descriptor)
    if (mine.st_uid, mine.st_gid) != (older.st_uid, older.st_gid):
        with suppress(OSError):  # Only root may give a file away.
            os.fchown(descriptor, older.st_uid, older.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(older.st_mode))


@contextmanager
def _draft_of(target: Path, *, private: bool) -> Iterator[tuple[Path, BinaryIO]]:
    """A new file beside the target, under a name of its own; gone afterwards, unless it was moved.

    It is locked until then. The system drops the lock when the process ends, however it ends: a draft that
    can be locked belongs to nobody. So drafts of killed writers are found and removed here.
    """
    draft, file = _new_draft(target, 0o600 if private else 0o666)
    try:
        _remove_left_drafts(target, draft)
        yield draft, file
    finally:
        with suppress(OSError):  # What could not be written cannot be on closing either.
            file.close()
        with suppress(OSError):
            draft.unlink(missing_ok=True)


def is_draft(name: str, of: str) -> bool:
    """Whether a file with this name is a draft of the file called `of`."""
    return re.fullmatch(rf"\.{re.escape(_stem(of))}\.[a-z0-9_]{{8}}\.part", name) is not None


def _stem(name: str) -> str:
    short = len(os.fsencode(name)) <= LONGEST_NAME
    return name if short else hashlib.sha256(os.fsencode(name)).hexdigest()


def _new_draft(target: Path, mode: int) -> tuple[Path, BinaryIO]:
    while True:
        draft = target.with_name(f".{_stem(target.name)}.{secrets.token_hex(4)}.part")
        with suppress(FileExistsError):
            file = open(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY | _BINARY, mode), "wb")  # noqa: SIM115
            with suppress(OSError):  # Where nobody can lock, nobody removes drafts either.
                lock_descriptor(file.fileno(), poll_interval=0.001)
            if os.fstat(file.fileno()).st_nlink:
                return draft, file
            file.close()  # Somebody took it for one left behind, in the moment before it was locked.


_BINARY = getattr(os, "O_BINARY", 0)


def _remove_left_drafts(target: Path, ours: Path) -> None:
    """Remove the drafts of the target that no living process writes to."""
    if sys.platform == "win32":
        return
    with os.scandir(target.parent) as entries:
        # Not in a folder of thousands: to look at all of them would take longer than to write the file.
        names = [entry.name for entry in islice(entries, MOST_LOOKED_AT)]
    for name in names:
        if name.endswith(".part") and name != ours.name and is_draft(name, target.name):
            left = target.with_name(name)
            with suppress(OSError):
                descriptor = os.open(left, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
                try:
                    if lock_descriptor(descriptor, blocking=False):
                        left.unlink()
                finally:
                    os.close(descriptor)


def folder_draft(folder: Path, stem: str = "") -> Path:
    """Where in `folder` this process may make a folder that gets its own name, or place, later.

    What killed processes have left there is removed.
    """
    for left in folder.glob(".*.part"):
        process = drafting_process(left.name, stem)
        if process is not None and not _lives(process):
            shutil.rmtree(left, ignore_errors=True)
    return folder / f".{stem}{stem and '.'}{os.getpid()}.part"


def drafting_process(name: str, stem: str = "") -> int | None:
    """The number of the process whose draft of a folder has this name; None if it is no such draft."""
    number = name.removeprefix(f".{stem}{stem and '.'}").removesuffix(".part")
    return int(number) if number.isdecimal() and name == f".{stem}{stem and '.'}{number}.part" else None


def _lives(process: int) -> bool:
    """Whether there may be a process of this number."""
    if sys.platform == "win32":
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # Somebody else's.
        return True
    except OverflowError:
        return False
    return True


def _sync_folder(folder: Path) -> None:
    """Put the folder's new entry on the disk too, where the file system can do that.

    A full disk has been noticed before.
    """
    if os.name == "posix":
        with suppress(OSError):
            descriptor = os.open(folder, os.O_RDONLY)
            try:
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
