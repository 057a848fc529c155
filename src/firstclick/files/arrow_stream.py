"""What a query of DuckDB gives, a piece at a time, as arrays: Arrow's C stream read without pyarrow.

`fetchnumpy` holds the whole result in memory. The C stream does not, and its layout never changes:
https://arrow.apache.org/docs/format/CStreamInterface.html
"""

import ctypes
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from firstclick.errors import WorkFailed


class ArrowColumn(NamedTuple):
    """One column: numbers with NaN-free `values`, or lists.

    A list column has `starts` (n + 1), and the `values` of list i are values[starts[i]:starts[i + 1]].
    `valid` tells which rows are not null, `valid_values` which values; None: all of them.
    """

    values: NDArray[Any]
    valid: NDArray[np.bool_] | None
    starts: NDArray[np.int64] | None = None
    valid_values: NDArray[np.bool_] | None = None

    def rows(self, start: int, stop: int) -> "ArrowColumn":
        """Some of the rows."""
        valid = None if self.valid is None else self.valid[start:stop]
        if self.starts is None:
            return ArrowColumn(self.values[start:stop], valid)
        first, last = int(self.starts[start]), int(self.starts[stop])
        inner = None if self.valid_values is None else self.valid_values[first:last]
        return ArrowColumn(
            self.values[first:last], valid, self.starts[start : stop + 1] - first, valid_values=inner
        )


class _Schema(ctypes.Structure):
    pass


class _Array(ctypes.Structure):
    pass


class _Stream(ctypes.Structure):
    pass


_Schema._fields_ = [
    ("format", ctypes.c_char_p),
    ("name", ctypes.c_char_p),
    ("metadata", ctypes.c_char_p),
    ("flags", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("children", ctypes.POINTER(ctypes.POINTER(_Schema))),
    ("dictionary", ctypes.POINTER(_Schema)),
    ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(_Schema))),
    ("private_data", ctypes.c_void_p),
]
_Array._fields_ = [
    ("length", ctypes.c_int64),
    ("null_count", ctypes.c_int64),
    ("offset", ctypes.c_int64),
    ("n_buffers", ctypes.c_int64),
    ("n_children", ctypes.c_int64),
    ("buffers", ctypes.POINTER(ctypes.c_void_p)),
    ("children", ctypes.POINTER(ctypes.POINTER(_Array))),
    ("dictionary", ctypes.POINTER(_Array)),
    ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(_Array))),
    ("private_data", ctypes.c_void_p),
]
_Stream._fields_ = [
    ("get_schema", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Stream), ctypes.POINTER(_Schema))),
    ("get_next", ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(_Stream), ctypes.POINTER(_Array))),
    ("get_last_error", ctypes.CFUNCTYPE(ctypes.c_char_p, ctypes.POINTER(_Stream))),
    ("release", ctypes.CFUNCTYPE(None, ctypes.POINTER(_Stream))),
    ("private_data", ctypes.c_void_p),
]

# The types that our own queries ask for, as Arrow writes them.
_NUMBERS: dict[bytes, type[Any]] = {
    b"c": np.int8, b"C": np.uint8, b"i": np.int32, b"l": np.int64, b"L": np.uint64, b"g": np.float64,
}  # fmt: skip
_LIST = b"+l"

_pointer_in = ctypes.pythonapi.PyCapsule_GetPointer
_pointer_in.restype = ctypes.c_void_p
_pointer_in.argtypes = [ctypes.py_object, ctypes.c_char_p]


def arrow_batches(relation: Any) -> Iterator[dict[str, ArrowColumn]]:
    """The rows of a relation of DuckDB in pieces: columns of TINYINT, INTEGER, BIGINT, UBIGINT or DOUBLE, or
    lists of those. The arrays of a piece are gone when the next one is asked for."""
    capsule = relation.__arrow_c_stream__()
    stream = ctypes.cast(_pointer_in(capsule, b"arrow_array_stream"), ctypes.POINTER(_Stream))
    schema = _Schema()
    try:
        _check(stream, stream.contents.get_schema(stream, ctypes.byref(schema)))
        children = [schema.children[place].contents for place in range(schema.n_children)]
        formats = [(child.name.decode(), child.format, _inner(child)) for child in children]
        while True:
            array = _Array()
            _check(stream, stream.contents.get_next(stream, ctypes.byref(array)))
            if not array.release:
                return
            try:
                yield {
                    name: _column(array.children[place].contents, kind, inner)
                    for place, (name, kind, inner) in enumerate(formats)
                }
            finally:
                array.release(ctypes.byref(array))
    finally:
        if schema.release:
            schema.release(ctypes.byref(schema))
        # The capsule would do it, too, but only when it is collected, and the connection waits for it.
        if stream.contents.release:
            stream.contents.release(stream)


def _inner(schema: _Schema) -> bytes:
    return bytes(schema.children[0].contents.format) if schema.n_children else b""


def _check(stream: Any, code: int) -> None:
    if code:
        said = b""
        with suppress(ValueError):
            said = stream.contents.get_last_error(stream) or b""
        raise WorkFailed(f"DuckDB stopped: {said.decode(errors='replace').splitlines()[0] if said else code}")


def _column(array: _Array, kind: bytes, inner: bytes) -> ArrowColumn:
    if kind != _LIST:
        return ArrowColumn(_numbers(array, kind), _valid(array))
    n = array.length
    starts = _buffer(array, 1, np.int32, n + 1, array.offset).astype(np.int64)
    child = array.children[0].contents
    first, last = (int(starts[0]), int(starts[-1])) if n else (0, 0)
    valid_values = _valid(child)
    return ArrowColumn(
        _numbers(child, inner)[first:last],
        _valid(array),
        starts - first,
        None if valid_values is None else valid_values[first:last],
    )


def _numbers(array: _Array, kind: bytes) -> NDArray[Any]:
    return _buffer(array, 1, _NUMBERS[kind], array.length, array.offset)


def _valid(array: _Array) -> NDArray[np.bool_] | None:
    if array.null_count == 0 or not array.buffers[0]:
        return None
    n_bytes = (array.offset + array.length + 7) // 8
    bits = _buffer(array, 0, np.uint8, n_bytes, 0)
    found = np.unpackbits(bits, bitorder="little", count=array.offset + array.length)
    return found[array.offset :].astype(np.bool_)


def _buffer(array: _Array, place: int, kind: type[Any], size: int, offset: int) -> NDArray[Any]:
    address = array.buffers[place]
    if not address or not size:
        return np.empty(size, kind)
    n_bytes = (offset + size) * np.dtype(kind).itemsize
    raw = memoryview((ctypes.c_ubyte * n_bytes).from_address(address))
    found: NDArray[Any] = np.frombuffer(raw, kind)
    return found[offset:]
