"""`firstclick policies`: the learners there are."""

from typing import Annotated, Any

from rich.padding import Padding
from rich.table import Table
from rich.text import Text
from typer import Option

from firstclick.cli.console import page, print_json
from firstclick.protocol import Policy
from firstclick.registry import policy_classes


def policies(json: Annotated[bool, Option("--json", help="Print JSON.")] = False) -> None:
    """List the learners, their parameters with defaults, and where they come from.

    \b
    Example:
      firstclick policies --json
    """
    described = [describe(cls) for cls in policy_classes().values()]
    if json:
        print_json(described)
        return
    out = page()
    for entry in described:
        out.print(Text.assemble((entry["name"], "bold"), "  ", entry["summary"]))
        table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
        for name, parameter in entry["parameters"].items():
            default = "" if parameter["default"] is None else parameter["default"]
            table.add_row(f"{name}={default}", f"{parameter['help']} ({parameter['rule']})")
        source = ("needs features" if entry["needs_features"] else "no features") + (
            f"; {entry['paper']}" if entry["paper"] else ""
        )
        for below in (Text(source, "dim"), table) if entry["parameters"] else (Text(source, "dim"),):
            out.print(Padding(below, (0, 0, 0, 2), expand=False))


def describe(cls: type[Policy]) -> dict[str, Any]:
    """A policy class in plain words, for the list, the docs page and JSON."""
    defaults = cls.defaults()
    return {
        "name": cls.name,
        "summary": (cls.__doc__ or "").strip().splitlines()[0],
        "paper": cls.paper,
        "needs_features": cls.needs_features,
        "parameters": {
            name: {"default": defaults[name], "help": rule.help, "rule": rule.describe()}
            for name, rule in cls.rules().items()
        },
    }
