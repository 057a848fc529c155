"""Which source files a compiled function may depend on.

Numba freezes constants into machine code, and a constant may come from any module that the function's module
imports. So we follow every import: of firstclick, and of a plug-in's own package or folder. We do not follow
the standard library or other installed packages.
"""

import ast
import hashlib
import os
import re
import sys
import time
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

# Parsing whole files takes 50 ms for a policy, at every start. So only import statements are parsed, found
# by their first line. A file with anything unusual about its imports is parsed as a whole.
_IMPORT = re.compile(
    rb"^[ \t]*((?:from[ \t]+[\w.]+[ \t]+import|import[ \t]+[\w.]+)\b(?:[^\n(#]|\([^)]*\))*)", re.M
)
_TYPES_ONLY = "TYPE_" + "CHECKING"  # in two parts, or this file would be an unusual one
_UNUSUAL = re.compile(
    _TYPES_ONLY.encode()
    + rb"|[:;\f][ \t]*(?:from[ \t]+[\w.]+[ \t]+import|import[ \t]+\w)|^[ \t]*(?:from|import)\b[^\n]*\\\r?$",
    re.M,
)

_OURS = Path(__file__).parents[2]


def _process_start() -> float:
    """When this process started, if the system tells: before its first import."""
    now = time.time()
    try:
        with open("/proc/self/stat", encoding="ascii", errors="replace") as stat:
            started = float(stat.read().rpartition(")")[2].split()[19]) / os.sysconf("SC_CLK_TCK")
        for _ in range(10):
            now = time.time()
            with open("/proc/uptime") as up:
                age = float(up.read().split()[0]) - started
            if time.time() - now < 0.01:  # Else the process had to wait between the two readings.
                break
    except (OSError, ValueError, IndexError):
        return now
    # Both clocks tick every 10 ms, and Python needs longer than that to begin.
    return min(now, now - age + 0.02)


_STARTED = _process_start()


class Module(NamedTuple):
    """A module and where it was found."""

    name: str
    file: Path
    root: Path  # the folder that holds its outermost package

    @property
    def package(self) -> tuple[str, ...]:
        """The package that a relative import starts from."""
        parts = tuple(self.name.split("."))
        return parts if self.file.name == "__init__.py" else parts[:-1]


def digest(names: Iterable[str]) -> str:
    """A hash of these loaded modules and of everything they import.

    OSError if a file cannot be read, or was changed after this process started: what is loaded may be older.
    """
    hashed = hashlib.sha256()
    for module in with_imports(names):
        hashed.update(module.name.encode() + _read(module.file, module.package)[0])
    return hashed.hexdigest()


def with_imports(names: Iterable[str]) -> list[Module]:
    """These loaded modules and every module that they import, directly or not, sorted by name.

    Modules of the standard library are left out.
    """
    found = {}
    for name in names:
        if name.partition(".")[0] not in sys.stdlib_module_names:
            module = _loaded(name)
            if module is None:
                raise OSError(f"{name} was not loaded from a file")
            found[name] = module
    waiting = list(found.values())
    while waiting:
        for module in _imported_by(waiting.pop()):
            if module.name not in found:
                found[module.name] = module
                waiting.append(module)
    return sorted(found.values())


def imported_names(source: bytes, package: Iterable[str]) -> set[str]:
    """The full names of what this source imports: modules, and names that may be modules."""
    try:
        if _UNUSUAL.search(source):
            raise SyntaxError
        return _names(ast.parse(b"\n".join(match[1].rstrip() for match in _IMPORT.finditer(source))), package)
    except SyntaxError:
        pass
    try:
        return _names(ast.parse(source), package)
    except (SyntaxError, ValueError):
        return set()  # not Python


def _names(tree: ast.AST, package: Iterable[str]) -> set[str]:
    package = list(package)
    found: set[str] = set()
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.If) and ast.unparse(node.test).split(".")[-1] == _TYPES_ONLY:
            waiting += node.orelse
        elif isinstance(node, ast.Import):
            for alias in node.names:
                parts = alias.name.split(".")
                found |= {".".join(parts[: n + 1]) for n in range(len(parts))}
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) + 1 - node.level] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            found |= {base, *(f"{base}.{alias.name}" for alias in node.names)}
        else:
            waiting += ast.iter_child_nodes(node)
    return found


@cache
def _read(file: Path, package: tuple[str, ...]) -> tuple[bytes, list[str]]:
    """The hash of a source file, and what it imports."""
    status = file.stat()
    # A file that takes the place of another may bring an old time of its own; the second is the system's.
    if _STARTED < max(status.st_mtime, status.st_ctime) <= time.time():
        raise OSError(f"{file} was changed after this process started")
    source = file.read_bytes()
    return hashlib.sha256(source).digest(), sorted(imported_names(source, package))


def _imported_by(module: Module) -> Iterator[Module]:
    for name in _read(module.file, module.package)[1]:
        if (other := _find(name, module.name.partition(".")[0], module.root)) is not None:
            yield other


@cache
def _find(name: str, importer: str, root: Path) -> Module | None:
    """The module of this name if it is to be followed. It is imported by the package `importer` in `root`."""
    outermost = name.partition(".")[0]
    own = outermost == importer or not _holds_installed_packages(root)
    if own and (file := _file_in(root, name)) is not None:
        return Module(name, file, root)
    # In another folder: firstclick for a plug-in, or a second project under development.
    if outermost == "firstclick":
        file = _file_in(_OURS, name)
        return None if file is None else Module(name, file, _OURS)
    other = _loaded(name)
    if other is None or other.file.suffix != ".py" or _holds_installed_packages(other.root):
        return None
    return other


def _loaded(name: str) -> Module | None:
    """A loaded module, unless it belongs to the standard library or has no file."""
    file = getattr(sys.modules.get(name), "__file__", None)
    if file is None or name.partition(".")[0] in sys.stdlib_module_names:
        return None
    path = Path(file)
    folder = path.parent if path.name == "__init__.py" else path
    return Module(name, path, folder.parents[name.count(".")])


@cache
def _holds_installed_packages(root: Path) -> bool:
    return root.name in ("site-packages", "dist-packages") or any(root.glob("*.dist-info"))


@cache
def _file_in(root: Path, name: str) -> Path | None:
    package, _, own = name.rpartition(".")
    folder = str(root)
    if package:
        # A name in a file that is no package is no module; and most names are of this kind.
        above = _file_in(root, package)
        folder = os.path.join(root, *package.split("."))
        if above is not None and above.name != "__init__.py":
            return None
    for file in (f"{folder}/{own}.py", f"{folder}/{own}/__init__.py"):
        if os.path.isfile(file):
            return Path(file)
    return None
