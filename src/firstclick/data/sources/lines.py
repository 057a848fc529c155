"""Lines of large text files: read in blocks, numbered, with the bytes read so far as progress."""

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from firstclick.data.sources.source import Progress
from firstclick.errors import InvalidInput
from firstclick.files.reading import reading
from firstclick.files.text_file import MARKUP

_BLOCK = 1 << 18

# Nothing that we read has longer lines; a file without line ends must not fill the memory.
LONGEST_LINE = 1 << 24


class Lines:
    """One text file, read from its first line to its last as it is asked for; nothing is kept."""

    def __init__(self, path: Path, advance: Callable[[int], Any] = lambda size: None) -> None:
        self.name = path.name
        self._path = path
        self._advance = advance
        self._told = 0
        self._without_end = 0

    def blocks(self) -> Iterator[tuple[int, list[bytes]]]:
        """Yield (number of its first line, lines without their ends) for one block after the other.

        Blank lines at the end of the file are no lines. A file without any, or of markup, is InvalidInput.
        """
        number, rest = 1, b""
        with reading(self._path), self._path.open("rb") as file:
            while block := file.read(_BLOCK):
                self._advance(len(block))
                if not rest and number == 1:
                    block = block.removeprefix(b"\xef\xbb\xbf")
                    if block[:100].decode("latin-1").lstrip().lower().startswith(MARKUP):
                        raise self.error(1, "a web page, not data; fetch the file itself")
                block = rest + block
                # The last line that is not blank waits for the next block, which may end it.
                end = block.rstrip().rfind(b"\n") + 1
                rest = block[end:]
                if end:
                    lines = block[:end].replace(b"\r\n", b"\n").split(b"\n")[:-1]
                    yield number, lines
                    number += len(lines)
                elif len(rest) > LONGEST_LINE:
                    raise self.error(number, f"longer than {LONGEST_LINE:,} bytes; is this a text file?")
        if not rest.endswith((b"\n", b"\r")):
            self._without_end = number
        rest = rest.rstrip(b"\r\n")
        if not rest:
            raise InvalidInput(f"{self.name} is empty")
        yield number, [rest]

    def __iter__(self) -> Iterator[tuple[int, str]]:
        """Yield (number, text) of every line; bytes that are not UTF-8 are InvalidInput."""
        for first, lines in self.blocks():
            for number, line in enumerate(lines, first):
                try:
                    text = line.decode()
                except UnicodeDecodeError:
                    raise self.error(number, "bytes that are not UTF-8; convert the file to UTF-8") from None
                yield number, text

    def part(self, start: float, stop: float) -> Progress:
        """Progress for who reads the file in another way: from one share of its bytes to another."""

        def tell(done: int, total: int) -> None:
            share = start + (stop - start) * done / total if total else stop
            told = max(int(share * self._path.stat().st_size), self._told)
            self._advance(told - self._told)
            self._told = told

        return tell

    def error(self, number: int, problem: str) -> InvalidInput:
        """What to raise about this line; a last line without an end may have been cut off, and it says so."""
        hint = "; the file ends within this line: is it complete?" if number == self._without_end else ""
        return InvalidInput(f"{self.name} line {number}: {problem}{hint}")


def lines_of(files: Mapping[str, Path], progress: Progress) -> dict[str, Lines]:
    """The lines of each file, by what it holds; progress counts the bytes of them all."""
    total = done = 0
    for path in files.values():
        with reading(path):
            total += path.stat().st_size

    def advance(size: int) -> None:
        nonlocal done
        done += size
        progress(done, total)

    return {what: Lines(path, advance) for what, path in files.items()}


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


def _ended(path: Path) -> bool:
    with path.open("rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read() in b"\r\n"
