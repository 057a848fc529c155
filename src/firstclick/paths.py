"""The door for every path: a text or a Path that a file system can take, or a sentence that says why not."""

import os
from pathlib import Path

from firstclick.errors import InvalidInput
from firstclick.quoting import quoted


def as_path(path: str | os.PathLike[str]) -> Path:
    """The path, or InvalidInput if this is none; whether something is there, is another question."""
    try:
        text: object = os.fspath(path)
        if not isinstance(text, str) or not text or "\0" in text:
            raise TypeError
        os.fsencode(text)
    except (TypeError, UnicodeEncodeError):
        raise InvalidInput(
            f"a path must be a text that is not empty, or a Path, got {quoted(path)}; name a file or a folder"
        ) from None
    return Path(text)
