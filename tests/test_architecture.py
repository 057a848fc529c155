"""The shape of the code: layers point one way, imports stay light, kernels keep their promises."""

import ast
import subprocess
import sys
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

import firstclick

PACKAGE = Path(firstclick.__file__).parent
MODULES = sorted(path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py"))
# They import public names only.
PUBLIC = {Path("__init__.py"), Path("serve/__init__.py")}


def package(path):
    """Return the folder of a module; a file at the top is a package of its own."""
    return path.parent.as_posix() if path.parent != Path(".") else path.stem


def module_at(name):
    """Return the file of `firstclick.policies.base`, or None."""
    path = Path(*name.split(".")[1:])
    files = (path.with_suffix(".py"), path / "__init__.py")
    return next((file for file in files if file in MODULES), None)


@cache  # to parse all modules takes seconds
def nodes(path):
    return list(ast.walk(ast.parse((PACKAGE / path).read_text(encoding="utf-8"))))


def imports(path):
    """List the modules of firstclick that a file imports, late imports and those of types included."""
    names = set()
    for node in nodes(path):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        if isinstance(node, ast.ImportFrom) and node.module:
            names |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
    return {module_at(name) for name in names if name.startswith("firstclick.")} - {None}


@cache
def import_graph():
    """Return each package and those from which it imports."""
    graph = {}
    for path in MODULES:
        if path not in PUBLIC:
            graph.setdefault(package(path), set()).update(map(package, imports(path)))
    return {name: others - {name} for name, others in graph.items()}


def test_imports_between_packages_have_no_cycle():
    TopologicalSorter(import_graph()).prepare()


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("client", "serve"), ("serve", "experiments"), ("experiments", "serve"), ("online", "experiments"),
        ("report", "studies"), ("policies", "worlds"), ("kernels", "policies"), ("data", "experiments"),
    ],
)  # fmt: skip
def test_package_does_not_import_another_even_indirectly(one, other):
    graph = import_graph()
    reached = {name for name in graph if name.split("/")[0] == one}
    assert reached
    while more := {far for name in reached for far in graph.get(name, ())} - reached:
        reached |= more
    assert other not in {name.split("/")[0] for name in reached}


LOADED = """
import sys
def print_loaded(*names):
    print(sorted({*names} & {*sys.modules}))
"""


@pytest.mark.parametrize(
    "code",
    [
        "import firstclick.client; print_loaded('numba', 'firstclick.serve')",
        "import firstclick; from firstclick.kernels import ranking, posterior\n"
        "if posterior.observe.signatures: print('compiled')\n"
        "print_loaded('matplotlib', 'jinja2', 'typer', 'rich', 'pandas', 'scipy.sparse.linalg', 'uvicorn',"
        " 'httpx', 'msgspec')",
        "import firstclick.cli; print_loaded('matplotlib', 'msgspec', 'duckdb')",
    ],
)
def test_import_loads_no_heavy_library_and_compiles_nothing(code):
    done = subprocess.run([sys.executable, "-c", LOADED + code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


def test_kernels_never_draw_and_never_reorder_sums():
    for path in MODULES:
        if path.parts[0] not in ("kernels", "policies"):
            continue
        for node in nodes(path):
            if isinstance(node, ast.Attribute):
                assert node.attr != "random" or path.parts[0] != "kernels", f"{path} draws"
            value = getattr(node, "arg", None) or getattr(node, "value", None)
            assert value not in ("fastmath", "parallel"), f"{path} uses {value}"


def test_no_pickle_and_no_global_randomness():
    banned = {"pickle", "cPickle", "dill", "joblib", "shelve", "random"}
    for path in MODULES:
        for node in nodes(path):
            if isinstance(node, ast.Import | ast.ImportFrom):
                names = {alias.name for alias in node.names} | {getattr(node, "module", "") or ""}
                assert not names & banned, path
        source = (PACKAGE / path).read_text(encoding="utf-8")
        assert "np.random.seed" not in source, path
        assert "default_rng()" not in source, path


def test_files_hold_one_idea():
    banned = {"utils", "helpers", "common", "misc", "manager"}
    assert not [path for path in MODULES if path.stem in banned]


# Tests of the whole, of pages and of processes have a folder of their own.
BESIDE = {"_shared", "support", "doors", "faults", "benchmarks", "docs"}


def test_folders_of_tests_mirror_the_package():
    tests = Path(__file__).parent
    folders = {path.parent.relative_to(tests).as_posix() for path in tests.rglob("test_*.py")} - {"."}
    for folder in folders - BESIDE:
        assert (PACKAGE / folder).is_dir(), f"tests/{folder} tests nothing of src/firstclick/{folder}"


def test_the_design_page_lists_every_package():
    page = (Path(__file__).parents[1] / "docs" / "design.md").read_text(encoding="utf-8")
    packages = {path.parts[0] for path in MODULES if len(path.parts) > 1}
    assert {name for name in packages if f"`{name}/`" not in page} == set()
