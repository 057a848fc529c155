"""Options that take a number, or one of several words, and those that were given."""

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from typer import BadParameter, Option

from firstclick.errors import InvalidInput
from firstclick.validation.quoting import quoted
from firstclick.validation.whole_number import whole_number


def count(help: str, *names: str) -> Any:
    """An option that takes a whole number; 1e5 and 100_000 are as good as 100000."""
    return Option(*names, parser=_whole, metavar="N", help=help)


def number(help: str, *names: str) -> Any:
    """An option that takes a number."""
    return Option(*names, parser=_real, metavar="NUMBER", help=help)


def choice(help: str, *words: str) -> Any:
    """An option that takes one of these words."""

    def known(value: str) -> str:
        if value not in words:
            raise BadParameter(f"must be one of {', '.join(words)}, got {quoted(value)}")
        return value

    return Option(parser=known, metavar=f"<{'|'.join(words)}>", help=help)


def given(**options: Any) -> dict[str, Any]:
    """The options that were given."""
    return {name: value for name, value in options.items() if value is not None and value is not False}


def refuse(ignored: Mapping[str, Any], wanted: str) -> None:
    """Refuse options that would be ignored without another one."""
    for name in ignored:
        raise InvalidInput(f"goes with {wanted}", name)


def processes(jobs: int) -> int:
    """As many as asked for; for 0 as many as there are processors this process may use."""
    if jobs := whole_number("jobs", jobs, at_least=0):
        return jobs
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _whole(value: str | int) -> int:
    for kind in (int, float):
        with suppress(ValueError, OverflowError):
            if (found := kind(value)) == int(found):
                return int(found)
    raise BadParameter(f"must be a whole number, got {quoted(value)}")


def _real(value: str | float) -> float:
    try:
        return float(value)
    except ValueError:
        raise BadParameter(f"must be a number, got {quoted(value)}") from None


def check_output_file(option: str, file: Path | None, *endings: str) -> None:
    """Refuse a file that cannot be written, before any work is done."""
    if file is None:
        return
    if endings and file.suffix.lower() not in endings:
        raise InvalidInput(f"{option} must end in {' or '.join(endings)}, got {quoted(str(file))}")
    if file.is_dir():
        raise InvalidInput(f"{option} {file} is a folder; name a file in it")
    if not file.parent.is_dir():
        raise InvalidInput(f"{option} {file}: there is no folder {file.parent}")
