"""Comments and docstrings name files that exist."""

import ast
import io
import re
import subprocess
import tokenize
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PATH = re.compile(r"(?<![\w/.<~:-])((?:[\w.-]+/)+[\w-]+\.(?:py|md|toml|js|css|csv|yaml|yml))\b")


def tracked_sources():
    listing = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", "*.py"]
    names = subprocess.run(listing, cwd=ROOT, capture_output=True, text=True, check=True).stdout.split("\0")
    return [ROOT / name for name in names if name and (ROOT / name).is_file()]


def prose(source):
    """Yield each comment and docstring of a module, with its line."""
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield getattr(node, "lineno", 1), ast.get_docstring(node) or ""


def missing_paths(file, source):
    if not PATH.search(source):  # most files: reading their tokens takes long
        return []
    folders = [ROOT, file.parent, ROOT / "src" / "firstclick", ROOT / "docs", ROOT / "tests"]
    return [
        f"{file.relative_to(ROOT)}:{line} {name}"
        for line, text in prose(source)
        for name in PATH.findall(text)
        if not any((folder / name).exists() for folder in folders)
    ]


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="not a git checkout")
def test_paths_in_comments_and_docstrings_exist():
    files = tracked_sources()
    assert len(files) > 300
    wrong = "no" + "where.py"
    (found,) = missing_paths(Path(__file__), f"1\n# As in tests/{wrong}, not as in tests/test_paths.py.\n")
    assert found == f"tests/test_paths.py:2 tests/{wrong}"
    assert [path for file in files for path in missing_paths(file, file.read_text(encoding="utf-8"))] == []
