"""Item features from a file: one row per item."""

import os

import numpy as np
from numpy.typing import NDArray

from firstclick.catalog.features import check_features
from firstclick.errors import InvalidInput
from firstclick.files.delimited import read_rows
from firstclick.files.reading import as_path, reading


def read_features(
    path: str | os.PathLike[str], *, separator: str | None = None, encoding: str = "utf-8-sig"
) -> NDArray[np.float64]:
    """The features of a .npy file, or of a CSV or TSV file of numbers without a header.

    `separator` and `encoding` are those of a text file, as in `read_interactions`.
    """
    path = as_path(path)
    if path.suffix == ".npy":
        try:
            with reading(path):
                array = np.load(path, allow_pickle=False)
        except InvalidInput:
            raise
        except (ValueError, EOFError):
            raise InvalidInput(f"{path.name}: not a .npy file of numbers") from None
        try:
            return check_features(array)
        except InvalidInput as error:
            raise error.within(path.name) from None
    rows = []
    for line, fields in read_rows(path, separator=separator, encoding=encoding):
        try:
            rows.append([float(field) for field in fields])
        except ValueError:
            raise InvalidInput(f"{path.name} line {line}: features must be numbers, got {fields}") from None
        if not np.isfinite(rows[-1]).all():
            raise InvalidInput(f"{path.name} line {line}: features must be finite, got {fields}")
    return check_features(rows)
