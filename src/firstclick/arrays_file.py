"""One file of plain arrays and a JSON page: NumPy's .npz, never a pickle."""

import io
import json
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from firstclick.errors import InvalidInput

_PAGE = "page"


def write_arrays(path: str | os.PathLike[str], page: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
    """Write all, on the disk when this returns; a crash leaves the older file or the new one, whole."""
    buffer = io.BytesIO()
    text = np.frombuffer(json.dumps(page, allow_nan=False).encode(), np.uint8)
    np.savez(buffer, **{_PAGE: text}, **arrays)  # type: ignore[arg-type]
    target = Path(path)
    draft = target.with_name(target.name + ".part")
    try:
        with draft.open("wb") as file:
            file.write(buffer.getbuffer())
            file.flush()
            os.fsync(file.fileno())
        draft.replace(target)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise InvalidInput(f"{path} cannot be written: {error.strerror or error}") from None


def read_arrays(
    path: str | os.PathLike[str], expected: str
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The page and the arrays, if the page's `format` is the expected one."""
    try:
        with np.load(Path(path), allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        page = json.loads(arrays.pop(_PAGE).tobytes())
        found = page["format"]
    except FileNotFoundError:
        raise InvalidInput(f"{path}: no such file") from None
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror or error}") from None
    except (KeyError, TypeError, ValueError, EOFError, AttributeError, zipfile.BadZipFile):
        raise InvalidInput(f"{path}: damaged, or not a file of firstclick") from None
    if found != expected:
        raise InvalidInput(f"{path}: expected {expected!r}, got {found!r}")
    return page, arrays
