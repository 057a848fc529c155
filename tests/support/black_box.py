"""Count the internals of firstclick that each test file imports.

    python -m tests.support.black_box [paths]    print the internals that each file imports
    python -m tests.support.black_box --update   lower the numbers of tests/support/white_box.txt
    python -m tests.support.black_box --moved    write that list again after files moved between folders

Tests go through public names, so that code can move. Folders in WHITE_BOX may import internals by design.
"""

import ast
from pathlib import Path

import firstclick
import firstclick.serve
from tests.support import shrinking

ROOT = Path(__file__).parents[2]
LIST = ROOT / "tests/support/white_box.txt"
HEADER = """\
# Test files that import internals of firstclick, with the number of internal names in each.
# Public modules: firstclick, and its client, serve, testing, errors, cli.
# The numbers only shrink: python -m tests.support.black_box --update
"""
WHITE_BOX = ("tests/kernels/", "tests/policies/", "tests/faults/", "tests/support/")
PUBLIC = {f"firstclick.{name}" for name in ("client", "serve", "testing", "errors", "cli")}
NAMES = {"firstclick": {*firstclick.__all__, *(name.partition(".")[2] for name in PUBLIC)}}
NAMES["firstclick.serve"] = set(firstclick.serve.__all__)


def is_public(module, name):
    if module in NAMES:
        return name in NAMES[module]
    return module in PUBLIC and not name.startswith("_")


def internals(text):
    """List the internal names of firstclick that a file imports, in functions too."""
    names = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "firstclick":
            names += [
                f"{node.module}.{alias.name}"
                for alias in node.names
                if not is_public(node.module, alias.name)
            ]
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names if alias.name.startswith("firstclick.")]
            names += [module for module in modules if module not in PUBLIC]
    return sorted(names)


def by_file():
    """Return the internals imported by each test file outside the folders of white-box tests."""
    files = {str(path.relative_to(ROOT)): path for path in sorted(ROOT.glob("tests/**/*.py"))}
    return {
        name: internals(path.read_text("utf-8"))
        for name, path in files.items()
        if not name.startswith(WHITE_BOX)
    }


def count():
    return {name: len(names) for name, names in by_file().items() if names}


def main():
    options = shrinking.parser(__doc__).parse_args()
    if shrinking.rewrite(options, LIST, HEADER, count()):
        return
    for name, names in by_file().items():
        if names and name.startswith(tuple(options.paths or [""])):
            print(f"{name}: {', '.join(names)}")


if __name__ == "__main__":
    main()
