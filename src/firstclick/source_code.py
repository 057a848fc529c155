"""A hash of the code that a result depends on, so that a result of other code is not taken for this one's."""

import hashlib
import secrets
import sys
from functools import cache
from importlib import import_module

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
