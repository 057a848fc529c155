"""Lists of what can be asked for by name: its parameters, with defaults and rules."""

from collections.abc import Mapping
from typing import Any

from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from firstclick.cli.console import page
from firstclick.parameters import Declared


def in_words(cls: type[Declared], **more: Any) -> dict[str, Any]:
    """A policy or source class in plain words, for lists and JSON."""
    defaults = cls.defaults()
    return {
        "name": cls.name,
        "summary": (cls.__doc__ or "").strip().splitlines()[0],
        **more,
        "parameters": {
            name: {"default": defaults[name], "help": rule.help, "rule": rule.describe()}
            for name, rule in cls.rules().items()
        },
    }


def print_entry(entry: Mapping[str, Any], remark: str) -> None:
    """The name and its sentence, a remark, and the parameters below."""
    out = page()
    out.print(Text.assemble((entry["name"], "bold"), "  ", entry["summary"]))
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    for name, parameter in entry["parameters"].items():
        default = parameter["default"]
        if isinstance(default, tuple):
            default = "/".join(f"{part:g}" for part in default)
        default = "" if default is None else default
        table.add_row(f"{name}={default}", Text(f"{parameter['help']} ({parameter['rule']})"))
    for below in (Text(remark, "dim"), table) if entry["parameters"] else (Text(remark, "dim"),):
        out.print(Padding(below, (0, 0, 0, 2), expand=False))
