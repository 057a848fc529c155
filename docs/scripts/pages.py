"""What the generated pages share: where they are, and how docstrings and parameters become Markdown."""

import inspect
import re
from pathlib import Path

from firstclick.parameters import Declared

DOCS = Path(__file__).parents[1]
NOTICE = "<!-- Written by docs/scripts/generate.py; change the code and run it again. -->\n"


def first_sentence(cls: type) -> str:
    """The first line of a docstring."""
    return inspect.cleandoc(cls.__doc__ or "").splitlines()[0]


def docstring(cls: type, *, rest: bool = False) -> list[str]:
    """The docstring as Markdown, formulas as blocks of code; with `rest` without its first line."""
    lines = inspect.cleandoc(cls.__doc__ or "").splitlines()[1 if rest else 0 :]
    text = "\n".join(lines).strip()
    # Indented lines are formulas.
    text = re.sub(r"((?:^ {4}.*\n?)+)", lambda found: fence(found[1]), text, flags=re.MULTILINE)
    return [*(text.splitlines() if text else ["It has no more to it."]), ""]


def fence(block: str) -> str:
    lines = [line.removeprefix("    ") for line in block.rstrip().splitlines()]
    return "```text\n" + "\n".join(lines) + "\n```\n"


def parameters(cls: type[Declared]) -> list[str]:
    """A table of the parameters of a policy or world."""
    if not cls.rules():
        return ["No parameters.", ""]
    lines = ["| parameter | default | must be | meaning |", "|---|---|---|---|"]
    for name, rule in cls.rules().items():
        default = cls.defaults()[name]
        shown = "" if default is None else "/".join(map(str, default)) if rule.kind is tuple else default
        lines.append(
            f"| `{name}` | {shown} | {rule.describe()} | {rule.help} |".replace("|theta|", "\\|theta\\|")
        )
    return [*lines, ""]
