"""Why a file cannot be read, in one sentence."""

import os
from collections.abc import Iterator
from contextlib import contextmanager

from firstclick.errors import InvalidInput


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
