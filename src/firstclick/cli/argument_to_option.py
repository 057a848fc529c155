"""Errors name the options of the command that ran, in place of the library's arguments."""

import re
from typing import Any

from typer.core import TyperCommand

from firstclick.errors import FirstclickError

# How the library marks an argument: `separator`, `overwrite=True`, `encoding='iso-8859-1'`.
_MARKED = re.compile(r"`(\w+)(?:='?([^`']*)'?)?`")


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
