"""The Python reference as Markdown, for programs: signatures as they are written, and docstrings."""

import re
from functools import cache
from pathlib import Path
from typing import Any

import griffe

HERE = Path(__file__).parent
LONGEST_LINE = 100


@cache
def code() -> Any:
    """The package as griffe reads it, with the extension that mkdocstrings has too."""
    extensions = griffe.load_extensions(str(HERE / "reference_extension.py"))
    return griffe.load("firstclick", search_paths=[HERE.parents[1] / "src"], extensions=extensions)


def api_text(name: str, level: int = 2) -> str:
    """What a directive of mkdocstrings stands for: an object by its public name, and its public members."""
    found = code()[name.removeprefix("firstclick.")]
    found = found.final_target if found.is_alias else found
    name = re.sub(r"(\.\w+)\1$", r"\1", name)  # the function firstclick.data.cut in the module of that name
    parts = [entry(name, found, level)]
    if found.is_class:
        short = name.rpartition(".")[2]
        members = sorted(found.members.items(), key=lambda pair: pair[1].lineno or 0)
        parts += [entry(f"{short}.{word}", one, level + 1) for word, one in members if is_shown(word, one)]
    return "\n\n".join(parts)


def is_shown(name: str, member: Any) -> bool:
    """As on the site: public, and with a docstring."""
    return not name.startswith("_") and not member.is_alias and member.docstring is not None


def entry(name: str, found: Any, level: int) -> str:
    """Heading, signature and docstring of one object."""
    lines = [f"{'#' * level} `{name}`", "", "```py", signature(name, found), "```"]
    if found.docstring is not None:
        lines += ["", found.docstring.value.strip()]
    return "\n".join(lines)


def signature(name: str, found: Any) -> str:
    """As it is written in the source, on several lines if it is long."""
    if found.is_attribute:
        return name if found.annotation is None else f"{name}: {found.annotation}"
    before = "async " if "async" in found.labels else ""
    returns = "" if found.is_class or found.returns is None else f" -> {found.returns}"
    arguments = written([one for one in found.parameters if one.name not in ("self", "cls")])
    if found.is_class and not arguments:
        return name
    line = f"{before}{name}({', '.join(arguments)}){returns}"
    if len(line) <= LONGEST_LINE:
        return line
    return f"{before}{name}(\n" + "".join(f"    {one},\n" for one in arguments) + f"){returns}"


def written(parameters: list[Any]) -> list[str]:
    """Each parameter with its type and default, and the marks between them."""
    texts, named_only = [], False
    for one in parameters:
        kind = one.kind.value
        if kind == "variadic positional":
            named_only = True
        elif kind == "keyword-only" and not named_only:
            texts.append("*")
            named_only = True
        stars = {"variadic positional": "*", "variadic keyword": "**"}.get(kind, "")
        text = f"{stars}{one.name}" + ("" if one.annotation is None else f": {one.annotation}")
        if one.default is not None and not stars:
            text += f" = {one.default}" if one.annotation is not None else f"={one.default}"
        texts.append(text)
    return texts
