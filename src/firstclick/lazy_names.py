"""Names of a package that are loaded when they are first used."""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from firstclick.extras import needed_by


def lazy_names(package: str, home_of: Mapping[str, str], needs: str) -> Callable[[str], Any]:
    """The `__getattr__` of a package whose names live in these modules of firstclick.

    `needs` is what a missing extra is needed by.
    """

    def load(name: str) -> Any:
        if name not in home_of:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        with needed_by(needs):
            found = getattr(import_module(f"firstclick.{home_of[name]}"), name)
        setattr(sys.modules[package], name, found)  # The next use does not come here.
        return found

    return load
