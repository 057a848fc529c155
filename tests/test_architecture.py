"""The shape of the code: layers point one way, imports stay light, kernels keep their promises."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import firstclick

PACKAGE = Path(firstclick.__file__).parent

# Each line may import from itself and from the lines above it.
LAYERS = [
    {"_version", "errors", "kernels", "quoting"},
    {
        "declaration",
        "ranges",
        "streams",
        "whole_number",
        "float_array",
        "theory",
        "paths",
        "reading",
        "writing",
        "arrays_file",
        "source_code",
    },
    {"click_models", "index", "random_key"},
    {"protocol"},
    {"policies", "worlds", "registry", "catalog", "live"},
    {"data", "simulate", "ranker"},
    {"experiment"},
    {"bench", "compare"},
    {"report", "paper", "serve", "testing"},
    {"cli", "__main__"},
]
LEVEL = {name: level for level, names in enumerate(LAYERS) for name in names}
MODULES = sorted(path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py"))


def part(path: Path) -> str:
    """The first name under firstclick: `policies/random.py` belongs to `policies`."""
    return path.parts[0].removesuffix(".py")


def imported(path: Path) -> set[str]:
    """The parts of firstclick that a file imports, anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse((PACKAGE / path).read_text(encoding="utf-8"))):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module]
        found |= {name.split(".")[1] for name in names if name.startswith("firstclick.")}
    return found


@pytest.mark.parametrize("path", [m for m in MODULES if m != Path("__init__.py")], ids=str)
def test_layers_point_one_way(path: Path) -> None:
    mine = part(path)
    assert mine in LEVEL, f"give {mine} a place in LAYERS"
    for other in imported(path) - {mine}:
        assert LEVEL[other] <= LEVEL[mine], f"{path} must not import {other}"


def test_simulate_and_serve_do_not_know_one_another() -> None:
    for path in MODULES:
        if part(path) in ("simulate", "serve", "ranker"):
            assert not imported(path) & ({"simulate", "serve"} - {part(path)}), path


def test_importing_firstclick_compiles_nothing_and_leaves_the_heavy_libraries_alone() -> None:
    code = (
        "import sys, firstclick; from firstclick.kernels import ranking, posterior; "
        "heavy = {'matplotlib', 'jinja2', 'typer', 'rich', 'pandas', 'scipy.sparse.linalg', 'uvicorn', "
        "'httpx', 'msgspec'}; "
        "print(sorted(heavy & set(sys.modules)), len(posterior.observe.signatures))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[0] == "[] 0"


def test_kernels_never_draw_and_never_reorder_sums() -> None:
    for path in [*(PACKAGE / "kernels").glob("*.py"), *(PACKAGE / "policies").glob("*.py")]:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute):
                assert node.attr != "random" or path.parent.name != "kernels", f"{path.name} draws"
            if isinstance(node, ast.keyword | ast.Constant):
                value = getattr(node, "arg", None) or getattr(node, "value", None)
                assert value not in ("fastmath", "parallel"), f"{path.name} uses {value}"


def test_no_pickle_and_no_global_randomness() -> None:
    for path in MODULES:
        source = (PACKAGE / path).read_text(encoding="utf-8")
        tree = ast.parse(source)
        for node in ast.walk(tree):
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = {alias.name for alias in node.names} | {getattr(node, "module", "") or ""}
                assert not names & {"pickle", "cPickle", "dill", "joblib", "shelve", "random"}, path
        assert "np.random.seed" not in source, path
        assert "default_rng()" not in source, path


def test_files_hold_one_idea() -> None:
    banned = {"utils", "helpers", "common", "misc", "manager"}
    assert not [path for path in MODULES if path.stem in banned]


def test_every_public_name_is_there_and_documented() -> None:
    for name in set(firstclick.__all__) - {"__version__"}:
        thing = getattr(firstclick, name)
        assert thing.__doc__, f"firstclick.{name} has no docstring"
