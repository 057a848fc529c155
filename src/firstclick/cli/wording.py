"""The command line's words: how a number may be written, and which option a library's name belongs to."""

import re
import sys
from typing import Any

from typer import BadParameter, Option, Typer
from typer.main import get_command

# Where the library names an argument, a command may have an option. Anchored at the start of the
# message: 'blb: k must be ...' is about the world's own k.
OPTION_OF = {
    "above": "--above", "engine": "--engine", "features": "--features", "jobs": "--jobs", "k": "--k",
    "n_features": "--features", "n_items": "--items", "rank": "--rank", "runs": "--runs", "seed": "--seed",
    "separator": "--separator", "sigma": "--sigma", "steps": "--steps", "theta_norm": "--theta-norm",
}  # fmt: skip
_OPTION = re.compile(r"--[a-z-]+")
_NAMED = re.compile(rf"^({'|'.join(OPTION_OF)})(?= must )")

# Ways out that the library gives in Python. A test sees to it that the library still says these.
OPTION_FOR = {
    "user_column and item_column": "--user-column and --item-column",
    "name the columns or pass header=True": "name the columns or say --header",
    "pass the separator": "name it with --separator",
    "pass the file's own encoding, for example encoding='iso-8859-1'": "if it is a text file, name its "
    "encoding, for example --encoding iso-8859-1",
    "give features, or take": "give --features, or take",
    "try a lower rank": "try a lower --rank",
    "pass overwrite=True": "say --overwrite",
}

# Typer's own sentences, shorter.
SHORTER = {"Invalid value for ": "", "Value error, ": ""}

LONGEST_SHOWN = 60


def in_options(message: str, application: Typer) -> str:
    """A message of the library, or of Typer, as one line in the words of the command that is run.

    Only options that this command has are named: in `data describe table:encoding=...` the library's own
    words are right.
    """
    known = _options_of(application, sys.argv[1:])
    for words, ours in (OPTION_FOR | SHORTER).items():
        if known.issuperset(_OPTION.findall(ours)):
            message = message.replace(words, ours)
    message = re.sub(r"^'(--[a-z-]+)':( must)?", lambda found: found[1] + (found[2] or ":"), message)
    found = _NAMED.match(message)
    if found and OPTION_OF[found[1]] in known:
        message = OPTION_OF[found[1]] + message[found.end() :]
    return " ".join(message.split())


def _options_of(application: Typer, arguments: list[str]) -> set[str]:
    """The options of the command that these arguments begin with."""
    command = get_command(application)
    for word in arguments:
        command = getattr(command, "commands", {}).get(word, command)
    return {option for parameter in command.params for option in parameter.opts}


def count(help: str, *names: str) -> Any:
    """An option that takes a whole number; 1e5 and 100_000 are as good as 100000."""
    return Option(*names, parser=_whole, metavar="N", help=help)


def number(help: str, *names: str) -> Any:
    """An option that takes a number."""
    return Option(*names, parser=_real, metavar="NUMBER", help=help)


def _whole(value: str | int) -> int:
    text = str(value)
    try:
        return int(text)
    except ValueError:
        pass
    try:
        real = float(text)
        if real != int(real):
            raise ValueError
        return int(real)
    except (ValueError, OverflowError):
        raise BadParameter(f"must be a whole number, got {shown(text)}") from None


def _real(value: str | float) -> float:
    try:
        return float(value)
    except ValueError:
        raise BadParameter(f"must be a number, got {shown(str(value))}") from None


def shown(text: str) -> str:
    """What the user wrote, in quotes, cut where it would fill the screen."""
    return repr(text if len(text) <= LONGEST_SHOWN else text[:LONGEST_SHOWN] + "...")
