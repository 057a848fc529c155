"""The map: which folders of src/firstclick import from which. Tests and docs/design.md use it."""

import ast
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "src" / "firstclick"
MODULES = sorted(path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py"))
# They only name what is public.
PUBLIC = {Path("__init__.py"), Path("serve/__init__.py")}


def room(path: Path) -> str:
    """The folder of a module; a file at the top is a room of its own."""
    return path.parent.as_posix() if path.parent != Path(".") else path.stem


def module_at(name: str) -> Path | None:
    """The file of `firstclick.policies.base`, if there is one."""
    path = Path(*name.split(".")[1:])
    return next((one for one in (path.with_suffix(".py"), path / "__init__.py") if one in MODULES), None)


def imported(path: Path) -> set[Path]:
    """The modules of firstclick that a file imports, anywhere in it: late and for types alone too."""
    names = set()
    for node in ast.walk(ast.parse((PACKAGE / path).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    found = {module_at(name) for name in names if name.startswith("firstclick.")}
    return {module for module in found if module is not None}


@cache  # all modules are parsed: seconds
def rooms() -> dict[str, set[str]]:
    """Each room and those it imports from."""
    found: dict[str, set[str]] = {}
    for path in MODULES:
        if path not in PUBLIC:
            found.setdefault(room(path), set()).update(room(one) for one in imported(path))
    return {name: others - {name} for name, others in found.items()}


def about(name: str) -> str:
    """The first sentence of a room's docstring."""
    folder = PACKAGE / name
    file = folder / "__init__.py" if folder.is_dir() else folder.with_suffix(".py")
    text = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    return " ".join(text.split("\n\n")[0].split())


def table() -> list[str]:
    """The rooms from the top down: each imports only from those below it. Small files that everybody imports
    come last, and are not named as imports."""
    graph = {
        name: others for name, others in rooms().items() if name not in ("studies", "__main__", "_version")
    }
    files = {name for name in graph if not (PACKAGE / name).is_dir()} | {"_version"}
    level: dict[str, int] = {}

    def height(name: str) -> int:
        if name not in level:
            level[name] = 1 + max((height(other) for other in graph.get(name, ())), default=0)
        return level[name]

    def row(name: str) -> str:
        below = sorted(graph[name] - files - {"validation", "files"}, key=lambda one: (-height(one), one))
        shown = f"`{name}/`" if name not in files else f"`{name}.py`"
        return f"| {shown} | {about(name)} | {', '.join(below)} |"

    ordered = sorted(graph, key=lambda name: (name in files, -height(name), name))
    return ["| room | what is in it | imports from |", "|---|---|---|", *map(row, ordered), ""]
