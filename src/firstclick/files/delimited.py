"""Lines and rows of a text file, one by one; what is wrong with it is said with its line."""

import codecs
import csv
import gzip
import os
import zlib
from collections.abc import Generator, Iterable, Iterator
from contextlib import closing
from io import TextIOWrapper
from itertools import chain, islice
from pathlib import Path
from typing import IO

from firstclick.errors import InvalidInput
from firstclick.files.progress import Progress, silent
from firstclick.files.reading import as_path, reading

SNIFFED = ("::", "\t", ",", ";")
# What a download gives when it met an error page, or a page about the file, instead of the file.
MARKUP = ("<!doctype", "<html", "<?xml")

# Between two reports of progress; handing on whole lists is also faster than line by line.
_LINES_AT_ONCE = 1 << 14

Row = tuple[int, list[str]]


class WrongEncoding(InvalidInput):
    """Bytes that are not in the encoding asked for; their owner is the file and line."""


def read_rows(
    path: str | os.PathLike[str],
    *,
    separator: str | None = None,
    encoding: str = "utf-8-sig",
    progress: Progress = silent,
) -> Iterator[Row]:
    """Yield (line number, fields) for every row; all rows are as wide as the first, or InvalidInput.

    Without a separator the first of '::', tab, comma, semicolon that occurs in line 1 is taken.
    Quotes mean something only where they are a custom: with one-character separators other than the tab.
    Blank lines may only end the file. Lines are read as they are needed; nothing is kept.
    """
    path = as_path(path)
    if separator is not None and (not separator or any(c in separator for c in '"\r\n')):
        raise InvalidInput(f"must be text without quotes and line ends, got {separator!r}", "separator")
    with closing(read_lines(path, encoding=encoding, progress=progress)) as lines:
        first = next(lines, "")
        rows = _split(path.name, chain([first], lines), separator or _sniff(path.name, first))
        yield from _even(path, rows)


def read_lines(
    path: str | os.PathLike[str], *, encoding: str = "utf-8-sig", progress: Progress = silent
) -> Generator[str, None, None]:
    """Yield every line with its end, of a file that is unpacked on the way if its name ends in .gz.

    `progress` counts the bytes of the file as it lies there.
    """
    path = as_path(path)
    try:
        "".encode(encoding)
    except LookupError:
        raise InvalidInput(f"unknown encoding {encoding!r}; try 'utf-8-sig' or 'iso-8859-1'") from None
    try:
        with (
            reading(path), path.open("rb") as raw, _unpacked(path, raw) as data,
            TextIOWrapper(data, encoding=encoding, newline="") as file,
        ):  # fmt: skip
            size = os.fstat(raw.fileno()).st_size
            first = file.readline()
            if first.lstrip().lower().startswith(MARKUP):
                raise InvalidInput(f"{path.name} line 1: a web page, not data; fetch the file itself")
            lines = [first] if first else []
            while lines:
                yield from lines
                progress(raw.tell(), size)
                lines = list(islice(file, _LINES_AT_ONCE))
    except UnicodeError:
        way_out = "if it is a text file, pass its encoding, for example `encoding='iso-8859-1'`"
        where = f"{path.name} line {_undecodable_line(path, encoding)}"
        raise WrongEncoding(f"bytes that are not {encoding}; {way_out}", owner=where) from None
    except (EOFError, zlib.error):
        raise InvalidInput(f"{path.name}: the packed data is cut short or damaged; fetch it again") from None


def refuse_cut_short(path: Path) -> None:
    """InvalidInput if the last line of this text file has no end.

    For published files, all of whose lines have one: what is cut within the last field of a line reads
    like a whole line. In a file of one's own a last line without an end means nothing.
    """
    if not _ended(path):
        with path.open("rb") as file:
            number = sum(1 for _ in file)
        raise InvalidInput(
            f"{path.name} line {number}: the last line has no end; is the file cut short? fetch it again, "
            "or end the line if it is whole"
        )


def _unpacked(path: Path, raw: IO[bytes]) -> IO[bytes]:
    return gzip.GzipFile(fileobj=raw) if path.suffix == ".gz" else raw  # type: ignore[return-value]


def _sniff(name: str, first: str) -> str:
    for separator in SNIFFED:
        if separator in first:
            return separator
    if not first.strip():
        # Any will do: an empty file and a blank first line are refused further on.
        return ","
    raise InvalidInput(f"{name} line 1: no '::', tab, comma or semicolon; pass `separator`")


def _split(name: str, lines: Iterable[str], separator: str) -> Iterator[Row]:
    if len(separator) > 1 or separator == "\t":
        for number, line in enumerate(lines, 1):
            yield number, line.rstrip("\r\n").split(separator)
        return
    # Strict, because otherwise a quote that never ends swallows the rest of the file without a word.
    reader = csv.reader(lines, delimiter=separator, strict=True)
    start = 1
    try:
        for fields in reader:
            yield start, fields
            start = reader.line_num + 1
    except csv.Error as error:
        raise InvalidInput(f"{name} line {start}: badly quoted field ({error})") from None


def _even(path: Path, rows: Iterator[Row]) -> Iterator[Row]:
    name = path.name
    width = -1  # unlike 0, no row has it: a blank first line must not pass for a row
    blank = 0
    for row in rows:
        number, fields = row
        if len(fields) != width:
            if len(fields) <= 1 and not "".join(fields).strip():
                blank = blank or number
                continue
            if width > 0:
                ending = _cut_short(path, rows)
                raise InvalidInput(
                    f"{name} line {number}: expected {width} fields, got {len(fields)}{ending}"
                )
            width = len(fields)
        if blank:
            raise InvalidInput(f"{name} line {blank} is blank, but rows follow it")
        yield row
    if width < 0:
        raise InvalidInput(f"{name} is empty")


def _cut_short(path: Path, rest: Iterator[Row]) -> str:
    # A packed file that is cut short cannot be unpacked to its end, and is refused there.
    if _ended(path) or path.suffix == ".gz" or next(rest, None) is not None:
        return ""
    return "; the file ends within this line: is it cut short?"


def _ended(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read() in b"\r\n"


def _undecodable_line(path: Path, encoding: str) -> int:
    # Text files decode in blocks, so the error itself knows no line.
    decoder = codecs.getincrementaldecoder(encoding)()
    number = 0
    with path.open("rb") as raw, _unpacked(path, raw) as file:
        for line in file:
            number += 1
            try:
                decoder.decode(line)
            except UnicodeError:
                break
    return number
