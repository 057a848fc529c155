"""What commands share that read a log: the LOG argument, how it is read, and the log itself."""

import re
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from firstclick.errors import FirstclickError, InvalidInput
from firstclick.files.progress import Progress, silent
from firstclick.logs.ranked_log import RankedLog
from firstclick.validation.quoting import quoted

LogArgument = Annotated[
    str,
    Argument(
        metavar="LOG",
        help="CSV, JSON lines or Parquet file; or a store, SQLite file or postgresql://..., with --model; or "
        "what `firstclick export` wrote.",
    ),
]
LogModelOption = Annotated[
    str | None, Option("--model", metavar="MODEL", help="The model, if LOG is a store.")
]
LogArchiveOption = Annotated[
    list[Path] | None,
    Option(
        "--archive", metavar="FILE", help="File that `firstclick archive` wrote for this model; repeatable."
    ),
]
ColumnOption = Annotated[
    list[str] | None,
    Option(
        "--column",
        metavar="WHAT=NAME",
        help="Column of the file, such as items=ranking or click=pos; repeatable.",
    ),
]
LogOptionOption = Annotated[
    list[str] | None,
    Option(
        "--log-option",
        metavar="NAME=VALUE",
        help="How to read it: format, separator, item-separator, encoding, clicks-as, positions-from, "
        "empty-click, propensity-of, gaps, places, timed-out; again for more.",
    ),
]

_OF_FILES = (
    "format", "separator", "item_separator", "encoding", "clicks_as", "positions_from", "empty_click",
    "propensity_of", "gaps", "places",
)  # fmt: skip
_OF_MODELS = ("timed_out",)
# How the files begin.
_SQLITE = b"SQLite format 3\0"
_MODEL_FILE = b"fcmodel"  # of any format: the reader refuses those it does not know
# How the library marks an argument of its own.
_MARKED = re.compile(r"`(\w+)='?([^`']*)'?`")


def open_log(
    log: str,
    *,
    model: str | None = None,
    archive: list[Path] | None = None,
    column: list[str] | None = None,
    log_option: list[str] | None = None,
    progress: Progress = silent,
) -> RankedLog:
    """The log that the argument and the options name."""
    how = {name.replace("-", "_"): value for name, value in _pairs("--log-option", log_option).items()}
    for name in how:
        if name not in (*_OF_FILES, *_OF_MODELS):
            known = ", ".join(one.replace("_", "-") for one in (*_OF_FILES, *_OF_MODELS))
            raise InvalidInput(f"--log-option {name.replace('_', '-')} is not known; there are: {known}")
    columns = _pairs("--column", column)
    try:
        if model is not None or archive or _is_store(log):
            _refuse(how, _OF_FILES, columns, "a file")
            return _of_store(log, model, archive or [], how, progress)
        if _is_model_file(log):
            from firstclick.evaluation.own_log import log_in_model_file

            _refuse(how, _OF_FILES, columns, "a file")
            return log_in_model_file(log, **how, progress=progress)
        _refuse(how, _OF_MODELS, {}, "a store, with --model")
        return _of_file(log, columns, how, progress)
    except FirstclickError as error:
        message = str(error)
        if error.argument in how:
            message = f"--log-option {error.argument.replace('_', '-')} {error.problem}"
        message = message.replace("by `columns`", "by --column").replace("by `archive`", "by --archive")
        error.args = (_MARKED.sub(_as_option, message),)
        raise


def _is_store(log: str) -> bool:
    if "://" in log:
        return True
    path = Path(log.removeprefix("sqlite:"))
    if not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(_SQLITE)) == _SQLITE


def _is_model_file(log: str) -> bool:
    # A file that is not there, or a folder, is told of by who reads it. msgspec is an extra.
    if not Path(log).is_file():
        return False
    with Path(log).open("rb") as file:
        return file.read(len(_MODEL_FILE)) == _MODEL_FILE


def _of_store(
    log: str, model: str | None, archive: list[Path], how: dict[str, Any], progress: Progress
) -> RankedLog:
    from firstclick.evaluation.own_log import log_in_store, models_in_store

    if model is None:
        names = models_in_store(log)
        if len(names) != 1:
            raise InvalidInput(f"{log} is a store; say --model, one of: {', '.join(names) or 'none'}")
        model = names[0]
    return log_in_store(log, model, archives=archive, **how, progress=progress)


def _refuse(how: dict[str, Any], names: tuple[str, ...], columns: dict[str, str], wanted: str) -> None:
    for name in how:
        if name in names:
            raise InvalidInput(f"--log-option {name.replace('_', '-')} goes with a LOG that is {wanted}")
    if columns:
        raise InvalidInput(f"--column goes with a LOG that is {wanted}")


def _of_file(log: str, columns: dict[str, str], how: dict[str, Any], progress: Progress) -> RankedLog:
    from firstclick.logs.open_log import open_ranked_log

    if "positions_from" in how:
        if how["positions_from"] not in ("0", "1"):
            raise InvalidInput(f"must be 0 or 1, got {quoted(how['positions_from'])}", "positions_from")
        how["positions_from"] = int(how["positions_from"])
    return open_ranked_log(log, columns=columns, **how, progress=progress)


def _pairs(option: str, texts: list[str] | None) -> dict[str, str]:
    found = {}
    for text in texts or []:
        name, equals, value = text.partition("=")
        if not equals or not name.strip() or not value:
            raise InvalidInput(f"{option} must be NAME=VALUE, got {quoted(text)}")
        found[name.strip()] = value
    return found


def _as_option(marked: re.Match[str]) -> str:
    name, value = marked.groups()
    return f"--log-option {name.replace('_', '-')}={value}" if name in _OF_FILES else marked[0]
