"""Reading a file: a path that can be one, and why a file cannot be read, in one sentence."""

import os
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from firstclick.errors import InvalidInput
from firstclick.validation.quoting import quoted

PARQUET = (".parquet", ".pq")


def as_path(path: str | os.PathLike[str]) -> Path:
    """The path, or InvalidInput if this is none; whether something is there, is another question."""
    try:
        text: object = os.fspath(path)
        if not isinstance(text, str) or not text or "\0" in text:
            raise TypeError
        os.fsencode(text)
    except (TypeError, UnicodeEncodeError):
        raise InvalidInput(
            f"must be a text that is not empty, or a Path, got {quoted(path)}; name a file or a folder",
            "path",
        ) from None
    return Path(text)


@contextmanager
def reading(path: str | os.PathLike[str]) -> Iterator[None]:
    """What the system says about the file in here becomes InvalidInput with its name."""
    try:
        yield
    except FileNotFoundError:
        raise InvalidInput(f"{path}: no such file") from None
    except IsADirectoryError:
        raise InvalidInput(f"{path} is a folder; name a file in it") from None
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror or error}") from None


def read_toml(path: Path) -> dict[str, Any]:
    """What a TOML file holds, or InvalidInput with its name."""
    try:
        with reading(path):
            return tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except UnicodeDecodeError:
        problem = "not a TOML file (bytes that are not UTF-8)"
    except tomllib.TOMLDecodeError as error:
        problem = f"not a TOML file: {error}"
    except InvalidInput:
        raise
    except ValueError:  # What tomllib lets through: int() takes 4,300 digits.
        problem = "a number has too many digits to be read"
    raise InvalidInput(problem, owner=path.name)
