"""A command line whose errors name the options of the command that ran."""

import re
from collections.abc import Callable
from typing import Any

import typer
from typer.core import TyperCommand
from typer.models import CommandFunctionType as T

from firstclick.errors import FirstclickError

# How the library marks an argument: `separator`, `overwrite=True`, `encoding='iso-8859-1'`.
_MARKED = re.compile(r"`(\w+)(?:='?([^`']*)'?)?`")


class CommandLine(typer.Typer):
    """An application in plain text, of commands of the class below."""

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


class Command(TyperCommand):
    """A command in whose errors its options stand in place of the arguments of the same name."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except FirstclickError as error:
            options = {one.name: one.opts[0] for one in self.params if one.opts[0].startswith("--")}
            own = not error.owner and error.argument in options
            message = f"{options[error.argument]} {error.problem}" if own else str(error)
            error.args = (_MARKED.sub(lambda marked: _option(marked, options), message),)
            raise


def _option(marked: re.Match[str], options: dict[str, str]) -> str:
    name, value = marked.groups()
    if name not in options:
        return marked[0]
    return options[name] if value in (None, "True") else f"{options[name]} {value}"
