"""Where commands print: results on stdout, everything else on stderr."""

import json
import sys
from typing import Any

from rich.console import Console
from typer import TyperException

# No markup: a path or a note may hold brackets.
talk = Console(stderr=True, highlight=False, markup=False, emoji=False, soft_wrap=True)

# Lines for a pipe or a file are not folded: what reads them counts lines, not columns.
UNFOLDED = 10_000


def page() -> Console:
    """Where results are printed: stdout, as wide as the terminal if it is one."""
    width = None if sys.stdout.isatty() else UNFOLDED
    return Console(highlight=False, markup=False, emoji=False, width=width)


def print_json(value: Any) -> None:
    """One line for programs, several for people."""
    print(json.dumps(value, allow_nan=False, indent=2 if sys.stdout.isatty() else None))


class Interrupted(TyperException):
    """Ctrl-C where something was kept after all."""

    exit_code = 130
