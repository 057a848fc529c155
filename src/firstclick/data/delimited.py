"""Rows of a text file, one by one, each with the number of the line it starts on."""

import codecs
import csv
import os
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path

from firstclick.errors import InvalidInput
from firstclick.reading import reading

SNIFFED = ("::", "\t", ",", ";")

Row = tuple[int, list[str]]


def read_rows(
    path: str | os.PathLike[str], *, separator: str | None = None, encoding: str = "utf-8-sig"
) -> Iterator[Row]:
    """Yield (line number, fields) for every row; all rows are as wide as the first, or InvalidInput.

    Without a separator the first of '::', tab, comma, semicolon that occurs in line 1 is taken.
    Quotes mean something only where they are a custom: with one-character separators other than the tab.
    Blank lines may only end the file. Lines are read as they are needed; nothing is kept.
    """
    path = Path(path)
    if separator is not None and (not separator or any(c in separator for c in '"\r\n')):
        raise InvalidInput(f"separator must be text without quotes and line ends, got {separator!r}")
    try:
        "".encode(encoding)
    except LookupError:
        raise InvalidInput(f"unknown encoding {encoding!r}; try 'utf-8-sig' or 'iso-8859-1'") from None
    try:
        with reading(path), path.open(encoding=encoding, newline="") as file:
            first = file.readline()
            rows = _split(path.name, chain([first], file), separator or _sniff(path.name, first))
            yield from _even(path.name, rows)
    except UnicodeError:
        raise InvalidInput(
            f"{path.name} line {_undecodable_line(path, encoding)}: bytes that are not {encoding}; "
            "pass the file's own encoding, for example encoding='iso-8859-1'"
        ) from None


def _sniff(name: str, first: str) -> str:
    for separator in SNIFFED:
        if separator in first:
            return separator
    if not first.strip():
        # Any will do: an empty file and a blank first line are refused further on.
        return ","
    raise InvalidInput(f"{name} line 1: no '::', tab, comma or semicolon; pass the separator")


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


def _even(name: str, rows: Iterator[Row]) -> Iterator[Row]:
    width = -1  # unlike 0, no row has it: a blank first line must not pass for a row
    blank = 0
    for row in rows:
        number, fields = row
        if len(fields) != width:
            if len(fields) <= 1 and not "".join(fields).strip():
                blank = blank or number
                continue
            if width > 0:
                raise InvalidInput(f"{name} line {number}: expected {width} fields, got {len(fields)}")
            width = len(fields)
        if blank:
            raise InvalidInput(f"{name} line {blank} is blank, but rows follow it")
        yield row
    if width < 0:
        raise InvalidInput(f"{name} is empty")


def _undecodable_line(path: Path, encoding: str) -> int:
    # Text files decode in blocks, so the error itself knows no line.
    decoder = codecs.getincrementaldecoder(encoding)()
    number = 0
    with path.open("rb") as file:
        for line in file:
            number += 1
            try:
                decoder.decode(line)
            except UnicodeError:
                break
    return number
