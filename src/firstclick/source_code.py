"""The code that a result depends on: a hash of it and versions, so that nothing is taken for another's."""

import hashlib
import platform
import secrets
import sys
from functools import cache
from importlib import import_module

import numba
import numpy
import scipy

from firstclick._version import __version__
from firstclick.kernels.source_files import digest


@cache
def code_hash(module: str, *classes: type) -> str:
    """Twelve digits that change with this module, the modules of the classes, and whatever of firstclick or
    of a plug-in's own they import."""
    import_module(module)
    modules = {base.__module__ for one in classes for base in one.__mro__}
    # A class typed into a notebook has no file; its name alone tells it apart.
    typed = {name for name in modules if getattr(sys.modules.get(name), "__file__", None) is None}
    try:
        found = digest({module} | modules - typed)
    except OSError:
        # A file was edited after this process started, so what is loaded may be in no file: like no other.
        found = secrets.token_hex(16)
    return hashlib.sha256(" ".join([found, *sorted(typed)]).encode()).hexdigest()[:12]


def installed_versions() -> dict[str, str]:
    """What the last bits of a result depend on, besides its settings."""
    return {
        "firstclick": __version__,
        "numpy": numpy.__version__,
        "scipy": scipy.__version__,
        "numba": numba.__version__,
        "python": platform.python_version(),
        "platform": f"{platform.system()} {platform.machine()}",
    }
