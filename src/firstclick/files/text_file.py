"""A text file of rows, as DuckDB can read it: its encoding, line ends, separator, header and line numbers.

DuckDB reads UTF-8 whose lines all end alike. Anything else (packed, in another encoding, with line ends of
two kinds, a pipe) is copied into a temporary file first, line by line the same. What line a row is in, is
worked out here, and only when somebody asks.
"""

import codecs
import csv
import errno
import gzip
import io
import mmap
import os
import re
import stat
import tempfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from firstclick.errors import InvalidInput, WorkFailed
from firstclick.files.progress import Progress, silent
from firstclick.files.reading import as_path, reading

# What a download gives when it met an error page, or a page about the file, instead of the file.
MARKUP = ("<!doctype", "<html", "<?xml")
# DuckDB's own limit for a row; a file without line ends must not fill the memory.
LONGEST_LINE = 1 << 21

# Read at once where lines are numbered: bytes, and rows.
_NUMBERED = 1 << 24
_AT_ONCE = 1 << 16
_UTF_8 = ("utf-8", "utf-8-sig")
# What bytes.strip() takes for blanks.
_BLANK_BYTES = np.frombuffer(b" \t\n\r\x0b\x0c", np.uint8)
# Blank lines that a file begins with.
_BLANK_START = re.compile(rb"(?:[^\S\r\n]*(?:\r\n|\r|\n))+")
_LINE_END = re.compile(rb"\r\n|\r|\n")

Ints = NDArray[np.int64]


class WrongEncoding(InvalidInput):
    """Bytes that are not in the encoding asked for; their owner is the file and line."""


class Records(NamedTuple):
    """Some rows of a text file that follow one another: first byte, first line and last line of each."""

    starts: Ints
    lines: Ints
    last_lines: Ints


@dataclass(frozen=True)
class TextFile:
    """A text file that DuckDB can read at `path`; `first` are the fields of its first row."""

    name: str
    path: Path
    separator: str  # empty if line 1 has none of the usual ones
    first: list[str]
    has_quotes: bool
    has_blank_lines: bool
    content_end: int  # behind this byte there are only blanks and line ends
    ends_open: bool  # the last line has no end
    line_end: str  # as DuckDB wants it written: a backslash and a letter
    lines_before: int  # blank lines at the start that the copy does not have

    @property
    def quoting(self) -> bool:
        """Whether quotes mean something: they do with one-character separators other than the tab."""
        return _quoting(self.separator)

    def records(self) -> Iterator[Records]:
        """Every row that is not a blank line, whether it is as wide as the others or not."""
        if not (self.has_quotes and self.quoting):
            return _line_records(self.path, self.separator, self.lines_before)
        return _quoted_records(self.path, self.separator, self.lines_before)

    def line_numbers(self, rows: Ints, rejected: Ints, *, header: bool) -> tuple[Ints, Ints]:
        """The lines of these rows, and those of the rows that begin at these bytes, or behind blanks there.

        Both are sorted. Rows count from 0 behind the header; those rejected are no rows.
        """
        of_rows, of_rejected = [np.empty(0, np.int64)], [np.empty(0, np.int64)]
        first = -1 if header else 0
        for records in self.records() if len(rows) or len(rejected) else ():
            here = rejected[: np.searchsorted(rejected, records.starts[-1], "right")]
            rejected = rejected[len(here) :]
            out = np.searchsorted(records.starts, here)
            lines = np.delete(records.lines, out)
            wanted = rows[np.searchsorted(rows, first) : np.searchsorted(rows, first + len(lines))]
            of_rejected.append(records.lines[out])
            of_rows.append(lines[wanted - first])
            first += len(lines)
            if not len(rejected) and (not len(rows) or rows[-1] < first):
                break
        return np.concatenate(of_rows), np.concatenate(of_rejected)

    def blank_lines(self) -> list[int]:
        """The numbers of the blank lines before the last row."""
        found: list[int] = []
        last = 0
        for records in self.records():
            before = np.concatenate([[last], records.last_lines[:-1]])
            for row in np.flatnonzero(records.lines > before + 1).tolist():
                found.extend(range(int(before[row]) + 1, int(records.lines[row])))
            last = int(records.last_lines[-1])
        return found


@contextmanager
def open_text(
    path: str | os.PathLike[str],
    *,
    separator: str | None = None,
    encoding: str | None = None,
    progress: Progress = silent,
) -> Iterator[TextFile]:
    """The text file, checked and ready for DuckDB; what cannot be text is InvalidInput with its line.

    Without a separator '::' and the tab are looked for in the first row, then the more frequent of comma and
    semicolon is taken. `progress` counts the bytes of the file as it lies there.
    """
    path = as_path(path)
    if separator is not None and (not separator or any(c in separator for c in '"\r\n')):
        raise InvalidInput(f"must be text without quotes and line ends, got {separator!r}", "separator")
    encoding = _known(encoding)
    with tempfile.TemporaryDirectory(prefix="firstclick-") as folder:
        plain = path
        with _named_errors(path):
            copied = encoding not in _UTF_8 or path.suffix == ".gz" or not _is_regular(path)
            if copied:
                plain = Path(folder) / "copy"
                _copy(path, plain, encoding, progress)
            seen = _look(path.name, plain, silent if copied else progress)
            start, before = _head(path.name, plain)
            separator = separator or _sniff(start)
            if seen.mixed or before:
                _copy_evenly(plain, Path(folder) / "even", separator, before)
                plain = Path(folder) / "even"
                seen = _look(path.name, plain, silent)._replace(line_end=r"\n")
        yield TextFile(
            path.name, plain, separator, _first_row(f"{path.name} line {before + 1}", start, separator),
            seen.has_quotes, seen.has_blank_lines or before > 0, seen.content_end, seen.ends_open,
            seen.line_end, before,
        )  # fmt: skip


@contextmanager
def open_lines(path: Path, encoding: str | None = None) -> Iterator[Iterator[tuple[int, str]]]:
    """The lines of a text file without their ends, with their numbers; also of a packed one."""
    encoding = _known(encoding)
    encoding = "utf-8-sig" if encoding in _UTF_8 else encoding
    with (
        _named_errors(path), path.open("rb") as raw, _unpacked(path, raw) as data,
        io.TextIOWrapper(data, encoding=encoding) as file,
    ):  # fmt: skip
        yield _numbered(path, file, encoding)


def _numbered(path: Path, file: io.TextIOWrapper, encoding: str) -> Iterator[tuple[int, str]]:
    number = 0
    try:
        while line := file.readline(LONGEST_LINE):
            number += 1
            where = f"{path.name} line {number}"
            if len(line) == LONGEST_LINE:
                raise InvalidInput(f"longer than {LONGEST_LINE:,} bytes; is this a text file?", owner=where)
            if number == 1 and line.lstrip().lower().startswith(MARKUP):
                raise InvalidInput("a web page, not data; fetch the file itself", owner=where)
            yield number, line.rstrip("\r\n")
    except UnicodeError:
        # The text is decoded in blocks, so that the error is somewhere in the next of them.
        raise WrongEncoding(
            f"bytes that are not {encoding.removesuffix('-sig')}; if it is a text file, pass its encoding, "
            "for example `encoding='latin-1'`",
            owner=f"{path.name} line {_undecodable(path, encoding)}",
        ) from None


def _undecodable(path: Path, encoding: str) -> int:
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


class _Seen(NamedTuple):
    has_quotes: bool
    has_blank_lines: bool
    content_end: int
    ends_open: bool
    line_end: str
    mixed: bool  # line ends that differ, or those of old Macs


def _look(name: str, plain: Path, progress: Progress) -> _Seen:
    """Go through the bytes once; those that cannot be text are InvalidInput with their line."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    blank_at, done, content_end, without_end = -1, 0, 0, 0
    quotes = mixed = pairs = False
    end = b""
    with plain.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        while block := file.read(LONGEST_LINE):
            joined = end + block
            if not done:
                pairs = b"\r\n" in block[: block.find(b"\n") + 1]
            if not block.isascii() or decoder.getstate()[0]:
                _check_utf_8(name, plain, decoder, block, done)
            if (zero := block.find(b"\0")) >= 0:
                raise _wrong(name, plain, done + zero, "a NUL byte; is this a text file?")
            if not (b"\n" in block or b"\r" in block):
                without_end += len(block)
                if without_end > LONGEST_LINE:
                    problem = f"longer than {LONGEST_LINE:,} bytes; is this a text file?"
                    raise _wrong(name, plain, done, problem)
            else:
                without_end = 0
            if pairs:
                # Without the last byte: a return there may be one half of a pair.
                ends = joined.count(b"\r\n")
                mixed |= ends != joined.count(b"\n") or ends != joined.count(b"\r", 0, -1)
            else:
                mixed |= b"\r" in block
            if blank_at < 0:
                found = joined.find(b"\n\r\n" if pairs else b"\n\n")
                blank_at = found + done - len(end) if found >= 0 else -1
            quotes = quotes or b'"' in block
            if stripped := len(block.rstrip()):
                content_end = done + stripped
            end = block[-2:]
            done += len(block)
            progress(done, size)
    if decoder.getstate()[0]:
        raise _not_utf_8(name, plain, done)
    return _Seen(
        quotes,
        0 <= blank_at < content_end,
        content_end,
        not end.endswith((b"\n", b"\r")),
        r"\r\n" if pairs else r"\n",
        mixed,
    )


def _head(name: str, plain: Path) -> tuple[str, int]:
    """The text from the first row that is not blank on, a block of it, and how many lines are before it."""
    before = 0
    with plain.open("rb") as file:
        block = file.read(LONGEST_LINE).removeprefix(codecs.BOM_UTF8)
        while start := _BLANK_START.match(block):
            before += len(_LINE_END.findall(start[0]))
            block = block[start.end() :]
            block += file.read(LONGEST_LINE - len(block))
    # The last character may be cut; it is not in the first row, or that is too long anyway.
    text = block.decode("utf-8", "ignore")
    if not text.strip():
        raise InvalidInput(f"{name} is empty")
    if text.lstrip().lower().startswith(MARKUP):
        raise InvalidInput(f"{name} line {before + 1}: a web page, not data; fetch the file itself")
    return text, before


def _sniff(text: str) -> str:
    first = text.splitlines()[0]
    for separator in ("::", "\t"):
        if separator in first:
            return separator
    # A file with semicolons may have decimal commas.
    separator = max(",;", key=first.count)
    return separator if separator in first else ""


def _first_row(where: str, text: str, separator: str) -> list[str]:
    if not _quoting(separator):
        line = text.splitlines()[0]
        return line.split(separator) if separator else [line]
    try:
        return next(csv.reader(io.StringIO(text, newline=""), delimiter=separator, strict=True))
    except csv.Error as error:
        raise InvalidInput(f"{where}: badly quoted field ({error})") from None


def _quoting(separator: str) -> bool:
    return len(separator) == 1 and separator != "\t"


def _known(encoding: str | None) -> str:
    try:
        return codecs.lookup(encoding or "utf-8").name
    except LookupError:
        raise InvalidInput(f"unknown encoding {encoding!r}; try 'utf-8' or 'latin-1'") from None


def _is_regular(path: Path) -> bool:
    return stat.S_ISREG(path.stat().st_mode)


@contextmanager
def _named_errors(path: Path) -> Iterator[None]:
    try:
        with reading(path):
            yield
    except (EOFError, zlib.error):
        raise InvalidInput(f"{path.name}: the packed data is cut short or damaged; fetch it again") from None


def _copy(path: Path, target: Path, encoding: str, progress: Progress) -> None:
    """Write the file as UTF-8, unpacked if it is packed."""
    decoder = None if encoding in _UTF_8 else codecs.getincrementaldecoder(encoding)()
    with path.open("rb") as raw, _unpacked(path, raw) as file, _written(target) as copy:
        size = os.fstat(raw.fileno()).st_size
        block = b"more"
        while block:
            block = file.read(LONGEST_LINE)
            try:
                copy.write(decoder.decode(block, not block).encode() if decoder else block)
            except UnicodeError as error:
                copy.flush()
                before = block[: error.start if isinstance(error, UnicodeDecodeError) else 0]
                line = _line_at(target, target.stat().st_size) + before.count(b"\n")
                raise WrongEncoding(
                    f"bytes that are not {encoding}; pass its encoding, for example `encoding='latin-1'`",
                    owner=f"{path.name} line {line}",
                ) from None
            if raw.seekable():
                progress(raw.tell(), size)


def _copy_evenly(plain: Path, target: Path, separator: str, lines_before: int) -> None:
    """Write the file with one kind of line ends between rows, and without the blank lines at its start."""
    mark = re.escape(separator.encode())
    quoted = rb'(?:(?<=[%b\r\n])|\A)[ ]*+"[^"]*+(?:""[^"]*+)*+"|' % mark if _quoting(separator) else b""
    # Line ends within quotes are part of a cell.
    part = re.compile(quoted + rb"\r\n|\r")
    with (
        plain.open("rb") as file,
        mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content,
        _written(target) as copy,
    ):
        done = len(codecs.BOM_UTF8) if content[:3] == codecs.BOM_UTF8 else 0
        for _ in range(lines_before):
            end = _LINE_END.search(content, done)
            done = end.end() if end else done
        for found in part.finditer(content, done):
            if content[found.start()] == ord("\r"):
                _write_between(content, done, found.start(), copy)
                copy.write(b"\n")
                done = found.end()
        _write_between(content, done, len(content), copy)


def _write_between(content: mmap.mmap, start: int, stop: int, copy: IO[bytes]) -> None:
    for at in range(start, stop, LONGEST_LINE):
        copy.write(content[at : min(at + LONGEST_LINE, stop)])


@contextmanager
def _written(target: Path) -> Iterator[IO[bytes]]:
    try:
        with target.open("wb") as file:
            yield file
    except OSError as error:
        if error.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise WorkFailed(
            f"the temporary copy in {target.parent} cannot be written: {error.strerror}; make room there, or "
            "set TMPDIR to a folder that has some"
        ) from None


def _unpacked(path: Path, raw: IO[bytes]) -> IO[bytes]:
    return gzip.GzipFile(fileobj=raw) if path.suffix == ".gz" else raw  # type: ignore[return-value]


def _check_utf_8(name: str, plain: Path, decoder: codecs.IncrementalDecoder, block: bytes, done: int) -> None:
    waiting = len(decoder.getstate()[0])
    try:
        decoder.decode(block)
    except UnicodeDecodeError as error:
        raise _not_utf_8(name, plain, done - waiting + error.start) from None


def _not_utf_8(name: str, plain: Path, offset: int) -> WrongEncoding:
    return WrongEncoding(
        "bytes that are not UTF-8; if it is a text file, pass its encoding, for example `encoding='latin-1'`",
        owner=f"{name} line {_line_at(plain, offset)}",
    )


def _wrong(name: str, plain: Path, offset: int, problem: str) -> InvalidInput:
    return InvalidInput(problem, owner=f"{name} line {_line_at(plain, offset)}")


def _line_at(path: Path, offset: int) -> int:
    """The number of the line that this byte is in; `\\r` alone counts as a line end, too."""
    ends, after_return = 0, False
    with path.open("rb") as file:
        while offset > 0 and (block := file.read(min(LONGEST_LINE, offset))):
            offset -= len(block)
            ends += block.count(b"\n") + block.count(b"\r") - block.count(b"\r\n")
            ends -= after_return and block.startswith(b"\n")
            after_return = block.endswith(b"\r")
    return ends + 1


def _has_fields(line: bytes, separator: bytes) -> bool:
    # Between tabs, a line of blanks is a row of empty fields.
    return bool(line.strip()) or bool(separator and separator in line)


def _line_records(path: Path, separator: str, lines_before: int) -> Iterator[Records]:
    """Every line that is not blank."""
    done, lines, rest = 0, lines_before, b""
    with path.open("rb") as file:
        while True:
            block = file.read(_NUMBERED)
            if not block:
                if not rest:
                    return
                block = b"\n"
            block = rest + block
            content = np.frombuffer(block, np.uint8)
            ends = np.flatnonzero(content == ord("\n"))
            starts = np.concatenate([[0], ends + 1]).astype(np.int64)
            rest = block[starts[-1] :]
            full = ~np.isin(content[starts[:-1]], _BLANK_BYTES)
            for row in np.flatnonzero(~full).tolist():
                full[row] = _has_fields(block[starts[row] : ends[row]], separator.encode())
            kept = np.flatnonzero(full)
            numbers = lines + 1 + kept
            if kept.size:
                yield Records(done + starts[kept], numbers, numbers)
            lines += len(ends)
            done += len(block) - len(rest)


def _quoted_records(path: Path, separator: str, lines_before: int) -> Iterator[Records]:
    """Every row that is not a blank line; a quoted field may hold line ends."""
    mark = re.escape(separator.encode())
    field = rb'(?:[ ]*+"[^"]*+(?:""[^"]*+)*+"[^%b\n]*+|[^%b\n]*+)' % (mark, mark)
    row = re.compile(rb"%b(?:%b%b)*+\n?" % (field, mark, field))
    found: list[tuple[int, int, int]] = []
    lines = lines_before
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        start = len(codecs.BOM_UTF8) if content[:3] == codecs.BOM_UTF8 else 0
        for one in row.finditer(content, start):
            text = one[0]
            inside = text.count(b"\n", 0, -1)
            if _has_fields(text, separator.encode()):
                at = one.start() if len(found) or lines > lines_before or not start else 0
                found.append((at, lines + 1, lines + 1 + inside))
            lines += inside + 1
            if len(found) >= _AT_ONCE:
                yield Records(*np.array(found, np.int64).T)
                found = []
    if found:
        yield Records(*np.array(found, np.int64).T)
