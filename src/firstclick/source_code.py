"""A hash of the code that a result depends on, so that a result of other code is not taken for this one's."""

import hashlib
import sys
from functools import cache
from pathlib import Path

# What decides the bits of a run. Commands, reports and the like may change without touching them.
DECISIVE = (
    "kernels", "policies", "worlds", "data", "simulate", "click_models.py", "protocol.py", "streams.py",
    "theory.py",
)  # fmt: skip


@cache
def code_hash(*classes: type, parts: tuple[str, ...] = DECISIVE) -> str:
    """Twelve digits that change with the sources in `parts` and with the files the classes come from."""
    package = Path(__file__).parent
    files = {
        file
        for part in parts
        for file in ([package / part] if part.endswith(".py") else (package / part).rglob("*.py"))
    }
    content = hashlib.sha256()
    for file in sorted(files):
        content.update(file.relative_to(package).as_posix().encode())
        content.update(file.read_bytes())
    bases = {base.__module__ for one in classes for base in one.__mro__ if base is not object}
    for module in sorted(bases):
        # A class typed into a notebook has no file; its name alone tells it apart.
        source = getattr(sys.modules.get(module), "__file__", None)
        content.update(Path(source).read_bytes() if source else module.encode())
    return content.hexdigest()[:12]
