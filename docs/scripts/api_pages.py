"""The pages of docs/reference/python: the public names of each package, as mkdocstrings shows them."""

import importlib
from collections.abc import Callable

from pages import NOTICE

import firstclick

PACKAGES = {
    "firstclick": "The library: catalogs, rankers, policies, worlds, simulations.",
    "firstclick.client": "Clients of the service. They retry, and never count a click twice.",
    "firstclick.data": "Read interactions, make a feedback matrix, split it, and take features from it.",
    "firstclick.evaluation": "What a policy would have earned on a log.",
    "firstclick.experiments": "Experiments that can be interrupted, repeated and compared.",
    "firstclick.policies": "Base classes for a policy of your own. The policies themselves have [their own pages]"
    "(../policies/index.md).",
    "firstclick.report": "Figures, tables and HTML of results.",
    "firstclick.serve": "The service without HTTP, in your own process.",
    "firstclick.testing": "Conformance tests for a policy of your own.",
    "firstclick.worlds": "Worlds as classes. [Worlds](../worlds.md) has those that have names.",
}
# Those that are no class and no function.
PLAIN = {"__version__", "CHECKS", "N_FEATURES", "N_ITEMS", "K"}


def api_page(package: str) -> str:
    """The public names of a package, each by the module where it lives."""
    found = importlib.import_module(package)
    lines = [NOTICE, f"# `{package}`", "", PACKAGES[package], ""]
    elsewhere = [] if package == "firstclick" else sorted({*found.__all__} & {*firstclick.__all__})
    for name in sorted(found.__all__, key=str.lower):
        if name not in PLAIN and name not in elsewhere:
            lines += [f"::: {getattr(found, name).__module__}.{name}", ""]
    if elsewhere:
        names = ", ".join(f"`{name}`" for name in elsewhere)
        lines += [f"Also here, and described in [firstclick](firstclick.md): {names}.", ""]
    constants = [name for name in found.__all__ if name in PLAIN and name != "__version__"]
    if constants:
        lines += [f"Constants: {', '.join(f'`{name}`' for name in constants)}.", ""]
    return "\n".join(lines)


def api_pages() -> dict[str, Callable[[], str]]:
    """Every page, and how it is written."""
    return {
        f"reference/python/{package.rpartition('.')[2]}.md": lambda package=package: api_page(package)
        for package in PACKAGES
    }
