"""A log of slates as a file of JSON lines."""

import hashlib
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from firstclick.files.progress import Progress, silent
from firstclick.files.reading import reading

PIECE = 1 << 20
# Lines between two reports of progress.
MANY = 1000


def read_log(path: Path, progress: Progress = silent) -> Iterator[Any]:
    """The lines of the file, for `warm_start`, each read when it is asked for; ValueError for one that is no
    JSON. An empty line says nothing."""
    with reading(path):
        total, done = path.stat().st_size, 0
        with path.open("rb") as file:
            for number, line in enumerate(file):
                done += len(line)
                if number % MANY == 0:
                    progress(done, total)
                yield json.loads(line) if line.strip() else {"kind": "empty"}
        progress(total, total)


def mark_of(path: Path) -> str:
    """A hash of the file, by which it is known again."""
    digest = hashlib.blake2b(digest_size=16)
    with reading(path), path.open("rb") as file:
        while piece := file.read(PIECE):
            digest.update(piece)
    return digest.hexdigest()
