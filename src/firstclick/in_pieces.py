"""Long lists, a piece at a time. The result is the same as in one go.

One call of NumPy, `json` or `sorted` on a hundred thousand entries holds the interpreter's lock for 30 to 130
ms, in which a server answers nobody. Between two pieces other threads have their turn.
"""

import heapq
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

T = TypeVar("T")

# Entries in a piece, which take a millisecond or two.
PIECE = 2048


def pieces(values: Sequence[T], size: int = PIECE) -> Iterator[Sequence[T]]:
    """The values, some at a time.

    >>> list(pieces([1, 2, 3, 4, 5], 2))
    [[1, 2], [3, 4], [5]]
    """
    return (values[start : start + size] for start in range(0, len(values), size))


def sorted_pieces(values: Iterable[T], key: Callable[[T], Any] | None = None) -> list[T]:
    """`sorted(values, key=key)`.

    >>> sorted_pieces([3, 1, 2])
    [1, 2, 3]
    """
    runs = [sorted(piece, key=key) for piece in pieces(list(values))]  # type: ignore[type-var,arg-type]
    return list(heapq.merge(*runs, key=key))  # type: ignore[arg-type]


def array_of(rows: Sequence[Any]) -> NDArray[Any]:
    """`np.asarray(rows)`.

    >>> array_of([[1, 2], [3, 4.5]])
    array([[1. , 2. ],
           [3. , 4.5]])
    """
    if len(rows) <= PIECE:
        return np.asarray(rows)
    parts = []
    for piece in pieces(rows):
        parts.append(part := np.asarray(piece))
        if part.dtype.kind not in "fiub" or part.shape[1:] != parts[0].shape[1:]:
            # Of texts and dates NumPy makes something that depends on all of them.
            return np.asarray(rows)
    return np.concatenate(parts)


def json_pieces(value: Any, *, allow_nan: bool = True) -> Iterator[str]:
    """The text of `json.dumps`, of plain values whose objects have texts for names.

    >>> "".join(json_pieces({"a": [1, 2], "b": None}))
    '{"a": [1, 2], "b": null}'
    """
    if isinstance(value, dict):
        separator = "{"
        for name, part in value.items():
            yield f"{separator}{json.dumps(name)}: "
            yield from json_pieces(part, allow_nan=allow_nan)
            separator = ", "
        yield "}" if value else "{}"
    elif isinstance(value, list | tuple) and len(value) > PIECE:
        separator = "["
        for piece in pieces(value):
            yield separator + json.dumps(piece, allow_nan=allow_nan)[1:-1]
            separator = ", "
        yield "]"
    else:
        yield json.dumps(value, allow_nan=allow_nan)


def drop(values: list[Any]) -> None:
    """Empty the list: what is in it goes now, and not all at once."""
    while values:
        del values[-PIECE:]
