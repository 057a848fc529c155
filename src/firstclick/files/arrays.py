"""One file of plain arrays and a JSON page: NumPy's .npz, never a pickle."""

import io
import json
import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

from firstclick.errors import InvalidInput
from firstclick.files.reading import as_path, reading
from firstclick.files.writing import write_whole
from firstclick.validation.quoting import quoted

_PAGE = "page"


def write_arrays(path: str | os.PathLike[str], page: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> None:
    """Write all, on the disk when this returns; a crash leaves the older file or the new one, whole."""
    buffer = io.BytesIO()
    text = np.frombuffer(json.dumps(page, allow_nan=False).encode(), np.uint8)
    np.savez(buffer, **{_PAGE: text}, **arrays)  # type: ignore[arg-type]
    write_whole(path, buffer.getvalue())


def read_arrays(
    path: str | os.PathLike[str], expected: str
) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """Read the page and the arrays of a file in the expected format, which ends in its version."""
    try:
        # NumPy leaves a file that it cannot read open: this one is closed here.
        with reading(path), as_path(path).open("rb") as opened, np.load(opened, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        page = json.loads(arrays.pop(_PAGE).tobytes())
        actual = page["format"]
    except InvalidInput:
        raise
    except Exception:
        # Damaged bytes make zipfile, zlib, NumPy and json raise whatever they happen to meet.
        raise InvalidInput(f"{path}: damaged, or not a file of firstclick") from None
    if actual != expected:
        same_kind = str(actual).rpartition(" ")[0] == expected.rpartition(" ")[0]
        way_out = "use the version of firstclick that wrote the file" if same_kind else "name another file"
        raise InvalidInput(f"{path}: its format must be {expected!r}, got {quoted(actual)}; {way_out}")
    return page, arrays
