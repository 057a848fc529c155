"""Files that are there whole or not at all."""

import os
import tempfile
from contextlib import suppress
from pathlib import Path

from firstclick.errors import InvalidInput, WorkFailed


def write_whole(path: str | os.PathLike[str], content: bytes) -> None:
    """The file holds the content, on the disk; a crash or another writer leaves one version, whole.

    A place that does not exist is InvalidInput, a disk that is full WorkFailed.
    """
    target = Path(path)
    draft: Path | None = None
    try:
        # A name of its own: two writers must not share a draft.
        with tempfile.NamedTemporaryFile(
            dir=target.parent, prefix=f".{target.name}.", suffix=".part", delete=False
        ) as file:
            draft = Path(file.name)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.chmod(0o666 & ~_umask())
        draft.replace(target)
        # A full disk has been noticed by now; not every file system can sync a folder.
        with suppress(OSError):
            _sync_folder(target.parent)
    except (FileNotFoundError, NotADirectoryError, IsADirectoryError) as error:
        raise InvalidInput(f"{path} cannot be written: {error.strerror}") from None
    except OSError as error:
        raise WorkFailed(f"{path} cannot be written: {error.strerror or error}") from None
    finally:
        # Gone already if all went well.
        if draft is not None:
            with suppress(OSError):
                draft.unlink(missing_ok=True)


def _umask() -> int:
    """What new files may not be; temporary ones are for their owner alone."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _sync_folder(folder: Path) -> None:
    """Put the folder's new entry on the disk too, where folders can be opened."""
    if os.name == "posix":
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
