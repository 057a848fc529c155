"""Item features from a file: one row per item."""

import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from firstclick.data.delimited import read_rows
from firstclick.errors import InvalidInput
from firstclick.protocol import check_features


def read_features(path: str | os.PathLike[str]) -> NDArray[np.float64]:
    """The features of a .npy file, or of a CSV or TSV file of numbers without a header."""
    path = Path(path)
    if path.suffix == ".npy":
        try:
            return check_features(np.load(path, allow_pickle=False))
        except FileNotFoundError:
            raise InvalidInput(f"{path}: no such file") from None
        except (OSError, ValueError, EOFError) as error:
            if isinstance(error, InvalidInput):
                raise InvalidInput(f"{path.name}: {error}") from None
            raise InvalidInput(f"{path.name}: not a .npy file of numbers") from None
    rows = []
    for line, fields in read_rows(path):
        try:
            rows.append([float(field) for field in fields])
        except ValueError:
            raise InvalidInput(f"{path.name} line {line}: features must be numbers, got {fields}") from None
        if not np.isfinite(rows[-1]).all():
            raise InvalidInput(f"{path.name} line {line}: features must be finite, got {fields}")
    return check_features(rows)
