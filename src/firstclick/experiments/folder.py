"""The folder of an experiment: whose it is, who works in it, and what belongs to which call."""

import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from filelock import lock_descriptor

from firstclick.errors import InvalidInput
from firstclick.files.writing import is_draft, write_whole
from firstclick.validation.quoting import quoted

KIND = "firstclick experiments "
FORMAT = f"{KIND}1"
MANIFEST = "manifest.json"
CELLS = "cells"
LOCK = ".lock"

# What a call writes besides its cells; those of a call with another manifest are no longer true.
OUTPUTS = (
    "report.html", "claims.json", "results.csv", "runs.csv", "regret.*", "figure-*.*", "sweep-*.*", "guide.*",
)  # fmt: skip


def names_in(folder: Path, called: str, need: str = "the results need a folder") -> list[str]:
    """The names of what a folder for results holds; refused if it is no folder, or cannot be written."""
    try:
        with suppress(FileNotFoundError, NotADirectoryError):
            folder.stat()  # From Python 3.14 on, exists() is silent about a name that is too long.
        if folder.exists() and not folder.is_dir():
            raise InvalidInput(f"{folder} is a file; {need}")
        # Tried, because permissions alone do not tell: a file system may be read-only, or not a real one.
        parent = next(path for path in (folder, *folder.absolute().parents) if path.exists())
        tempfile.TemporaryDirectory(dir=parent).cleanup()
        return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    except OSError as error:
        raise InvalidInput(f"{called} cannot be written: {error.strerror or error}") from None


def check_folder(folder: Path) -> None:
    """Refuse a folder that cannot be written, or that holds something other than an experiment of ours."""
    # A call that was killed while it wrote its manifest leaves a draft.
    held = [name for name in names_in(folder, str(folder)) if name != LOCK and not is_draft(name, MANIFEST)]
    manifest = _manifest_in(folder)
    if held and manifest is None:
        raise InvalidInput(f"{folder} holds other files ({held[0]}); name a new folder, or an empty one")
    if manifest is not None and manifest["format"] != FORMAT:
        raise InvalidInput(
            f"{folder} has the format {quoted(manifest['format'])}, and this firstclick reads {FORMAT!r}; "
            "name a new folder, or an empty one"
        )


@contextmanager
def alone_in(folder: Path, manifest: dict[str, Any], *, overwrite: bool) -> Iterator[None]:
    """The folder has this manifest, and nobody else works in it; a lock that a killed process left is none.

    Results of a call with another manifest are removed, or refused; cells are kept.
    """
    check_folder(folder)
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / LOCK).open("w") as file:
        alone = True
        with suppress(OSError):  # A file system without locks, as some on networks.
            alone = lock_descriptor(file.fileno(), blocking=False)
        if not alone:
            raise InvalidInput(
                f"another process is at work in {folder}; wait for it, or name another folder (a script of "
                "your own must start under `if __name__ == '__main__':`)"
            )
        _write_manifest(folder, {"format": FORMAT} | manifest, overwrite)
        yield


def _write_manifest(folder: Path, manifest: dict[str, Any], overwrite: bool) -> None:
    if _manifest_in(folder) not in (None, manifest):
        if not overwrite:
            raise InvalidInput(
                f"{folder} holds the results of another call; pass `overwrite=True` to replace them "
                "(finished cells are kept, and used where they fit), or name another folder"
            )
        for pattern in OUTPUTS:
            for path in folder.glob(pattern):
                path.unlink(missing_ok=True)
    write_whole(folder / MANIFEST, (json.dumps(manifest, indent=2, ensure_ascii=False) + "\n").encode())


def _manifest_in(folder: Path) -> dict[str, Any] | None:
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError):
        return None
    ours = isinstance(manifest, dict) and str(manifest.get("format")).startswith(KIND)
    return manifest if ours else None
