"""A command line in plain text: help, groups of commands."""

from collections.abc import Callable
from typing import Any

import typer
from typer.models import CommandFunctionType as T

from firstclick.cli.argument_to_option import Command


class CommandLine(typer.Typer):
    """An application in plain text, whose errors name options."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(
            add_completion=False, pretty_exceptions_enable=False, rich_markup_mode=None,
            context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100}, **settings,
        )  # fmt: skip

    def command(self, *name: Any, **settings: Any) -> Callable[[T], T]:
        return super().command(*name, cls=Command, **settings)


def command_group(help: str) -> CommandLine:
    """Commands below a command, which alone prints its help."""
    return CommandLine(help=help, callback=_print_help, invoke_without_command=True)


def _print_help(context: typer.Context) -> None:
    if context.invoked_subcommand is None:
        print(context.get_help())
