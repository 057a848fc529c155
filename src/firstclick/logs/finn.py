"""The FINN.no slates (an .npz file): up to 20 slates a user, and the item that was clicked.

`slate` is users x steps x places of item numbers, `click` users x steps: the number of the clicked item.
0 fills up, and 1 stands for "no click", in `click` and as the first entry of a slate. The other entries are
the items in the order of the page. `slate_lengths` is not read: users of the data report that it is not
reliable, and the zeros say the same. `interaction_type` (search, recommendation) becomes the segment.
"""

import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from firstclick.errors import InvalidInput
from firstclick.files.progress import Progress, silent
from firstclick.files.reading import reading
from firstclick.kernels.slate_reading import EMPTY, OUTSIDE, TWICE
from firstclick.logs.duck_log import chosen
from firstclick.logs.odd_rows import DOUBTFUL, UNUSABLE, OddRows
from firstclick.logs.ranked_log import NO_ITEM, NOT_TOLD, RankedLog, SlateBatch

NO_CLICK = 1
_USERS_AT_ONCE = 4096
_TYPES = ("interaction_type", "slate_type")


class FinnLog(RankedLog):
    """The slates, user by user and step by step; `numbers` are user times steps plus step."""

    def __init__(self, path: Path, progress: Progress = silent) -> None:
        self._path, self.name = path, path.name
        with _opened(path) as archive:
            names = {name.removesuffix(".npy") for name in archive.namelist()}
        missing = [name for name in ("slate", "click") if name not in names]
        if missing:
            raise InvalidInput(f"{path.name} has no array {missing[0]!r}; it has: {', '.join(sorted(names))}")
        self._type = next((name for name in _TYPES if name in names), None)
        met = np.zeros(2, np.bool_)
        kinds: set[int] = set()
        self.k = n_slates = 0
        for slates, clicks, types, _ in self._pieces(progress):
            largest = int(slates.max(initial=0))
            if largest >= len(met):
                met = np.concatenate([met, np.zeros(largest + 1 - len(met), np.bool_)])
            met[slates.ravel()] = True
            shown = (slates > NO_CLICK).sum(axis=1)[clicks != 0]
            self.k = max(self.k, int(shown.max(initial=0)))
            n_slates += len(shown)
            kinds |= set(np.unique(types).tolist())
        met[: NO_CLICK + 1] = False
        numbers = np.flatnonzero(met)
        self.items = numbers.tolist()
        self._codes = np.full(len(met), NO_ITEM, np.int32)
        self._codes[numbers] = np.arange(len(numbers))
        self._kinds = np.array(sorted(kinds), np.int64)
        self.segments = [str(kind) for kind in self._kinds] if self._type else ()
        if not n_slates or not self.k:
            raise InvalidInput(f"{path.name} has no slates")
        self.notes = ("FINN.no slates: 0 fills up, 1 means no click",)

    def batches(self, progress: Progress = silent) -> Iterator[SlateBatch]:
        """The slates in the order of the file."""
        odd = OddRows()
        for slates, clicked, types, numbers in self._pieces(progress):
            there = clicked != 0
            slates, clicked, types, numbers = slates[there], clicked[there], types[there], numbers[there]
            shown = slates > NO_CLICK
            n = len(slates)
            lengths = shown.sum(axis=1)
            items = np.full((n, self.k), NO_ITEM, np.int32)
            items[np.arange(self.k) < lengths[:, None]] = self._codes[slates[shown]]
            wanted = np.where(clicked > NO_CLICK, clicked, 0)
            code = self._codes[np.minimum(wanted, len(self._codes) - 1)]
            code[wanted >= len(self._codes)] = NO_ITEM
            clicks = ((items == code[:, None]) & (items >= 0)).astype(np.uint8)
            problems = np.zeros(n, np.uint8)
            problems[lengths == 0] |= EMPTY
            problems[(wanted > 0) & ~clicks.any(axis=1)] |= OUTSIDE
            ordered = np.sort(items, axis=1)
            problems[((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)).any(axis=1)] |= TWICE
            batch = SlateBatch(
                items, clicks, np.full(n, NOT_TOLD, np.int32), np.ones(n, np.bool_), numbers,
                segments=np.searchsorted(self._kinds, types).astype(np.int32) if self._type else None,
            )  # fmt: skip
            usable = odd.note(problems, numbers)
            yield batch if usable is None else chosen(batch, usable)
        self.skipped, self.doubtful = odd.told(UNUSABLE), odd.told(DOUBTFUL)

    def _pieces(self, progress: Progress) -> Iterator[tuple[NDArray[Any], ...]]:
        """Slates, clicked items, types and numbers of some users at a time."""
        with _opened(self._path) as archive:
            slate, click = (_Rows(archive, name, self.name) for name in ("slate", "click"))
            kind = _Rows(archive, self._type, self.name) if self._type else None
            if (
                slate.shape[:2] != click.shape
                or len(slate.shape) != 3
                or (kind and kind.shape != click.shape)
            ):
                raise InvalidInput(
                    f"{self.name}: 'slate' must be users x steps x places and 'click' users x steps, got "
                    f"shapes {slate.shape} and {click.shape}"
                )
            users, steps, places = slate.shape
            for start in range(0, users, _USERS_AT_ONCE):
                n = min(_USERS_AT_ONCE, users - start)
                slates = slate.read(n).reshape(n * steps, places)
                if (slates < 0).any():
                    raise InvalidInput(f"{self.name}: 'slate' has a negative item number")
                clicks = click.read(n).ravel()
                types = clicks * 0 if kind is None else kind.read(n).ravel()
                yield slates, clicks, types, np.arange(start * steps, (start + n) * steps)
                progress(start + n, users)


def _opened(path: Path) -> zipfile.ZipFile:
    with reading(path):
        try:
            return zipfile.ZipFile(path)
        except zipfile.BadZipFile:
            raise InvalidInput(f"{path.name} is no .npz file, or is cut short or damaged") from None


class _Rows:
    """An array of whole numbers in an .npz file, read from its first row on: never all of it at once."""

    def __init__(self, archive: zipfile.ZipFile, name: str, file: str) -> None:
        self._file: IO[bytes] = archive.open(f"{name}.npy")
        try:
            version = np.lib.format.read_magic(self._file)
            read = (
                np.lib.format.read_array_header_1_0
                if version == (1, 0)
                else np.lib.format.read_array_header_2_0
            )
            self.shape, fortran, self._type = read(self._file)
        except ValueError:
            raise InvalidInput(f"{file}: {name!r} is no array") from None
        if fortran or self._type.kind not in "iu":
            raise InvalidInput(f"{file}: {name!r} must hold whole numbers, row after row; got {self._type}")

    def read(self, n: int) -> NDArray[np.int64]:
        """The next n rows."""
        shape = (n, *self.shape[1:])
        content = self._file.read(int(np.prod(shape)) * self._type.itemsize)
        return np.frombuffer(content, self._type).reshape(shape).astype(np.int64)
