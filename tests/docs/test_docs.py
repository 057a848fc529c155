"""Docs are true: generated pages are fresh, examples run, links lead somewhere, claims name their tests."""

import importlib.util
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest
from generate import BUILT, COMMANDS, COMMITTED

from firstclick import policy_classes
from tests.support.policies import COMPILED

ROOT = Path(__file__).parents[2]
# Written when the site is built. mkdocs checks the links between them.
BUILT_PAGES = {ROOT / "docs" / name for name in BUILT}
NOTEBOOKS = {path.with_suffix(".ipynb") for path in (ROOT / "docs" / "tutorials").glob("*.py")}
PAGES = [
    ROOT / "README.md",
    *(ROOT / f"{name}.md" for name in ("CHANGELOG", "CONTRIBUTING", "SECURITY")),
    *sorted({*(ROOT / "docs").rglob("*.md")} - BUILT_PAGES),
]


@pytest.mark.parametrize("name", list(COMMITTED))
def test_generated_page_is_fresh(name):
    page = (ROOT / "docs" / name).read_text(encoding="utf-8")
    assert page == COMMITTED[name](), "run: python docs/scripts/generate.py"


@pytest.fixture
def run_script(tmp_path, monkeypatch, capsys):
    """Run a script in an empty folder, in this process, where Numba is loaded; return what it prints."""

    def run_script(script):
        monkeypatch.chdir(tmp_path)
        if "Policy):" not in script.read_text(encoding="utf-8"):
            monkeypatch.setattr(sys, "argv", [str(script)])
            runpy.run_path(str(script), run_name="__main__")
            return capsys.readouterr().out
        # Its policy would stay in the registry of other tests.
        done = subprocess.run([sys.executable, script], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run_script


def marks_of(code):
    """Checks of a class that is compiled anew, and policies that make test does not compile, are long."""
    named = {name for name in policy_classes() if re.search(rf'"{name}[":]', code)}
    return [pytest.mark.long] * ("check_policy(" in code or not named <= {*COMPILED})


def python_blocks():
    for page in PAGES:
        # tests/evaluation/test_story.py and tests/docs/test_readme.py run their commands in order.
        if page.stem in ("log_to_launch", "README"):
            continue
        for number, block in enumerate(re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)):
            yield pytest.param(block, id=f"{page.name}-{number}", marks=marks_of(block))


@pytest.mark.parametrize("block", list(python_blocks()))
def test_python_example_runs_as_it_stands(block, tmp_path, run_script):
    script = tmp_path / "example.py"
    script.write_text(block, encoding="utf-8")
    run_script(script)


each_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())


@each_page
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        path = Path(os.path.normpath(page.parent / target))
        assert target.startswith("http") or path in BUILT_PAGES | NOTEBOOKS or path.exists(), target


@each_page
def test_files_and_tests_that_a_page_names_are_there(page):
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    places = [ROOT, ROOT / "src" / "firstclick", ROOT / "docs"]
    for name in re.findall(r"`((?:[\w-]+/)+[\w.-]+\.(?:py|toml|md))`", text):
        assert any((place / name).exists() for place in places), name
    known = {path.stem for path in (ROOT / "tests").rglob("test_*.py")}
    for name in re.findall(r"(?<![\w/])test_\w+(?!\w*\()", text):
        assert name in known, name


def test_every_command_in_the_readme_exists():
    known = {command.split()[0] for command in COMMANDS}
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert {*re.findall(r"(?:^|`)firstclick ([a-z-]+)", text, re.MULTILINE)} <= known


# The one that needs a server is run by tests/client/test_examples.py.
ALONE = sorted(path for path in (ROOT / "examples").glob("*.py") if path.name != "shop.py")


def examples():
    for path in ALONE:
        # tests/policies/test_skeleton.py runs most checks of the skeleton in plain Python.
        yield pytest.param(path, id=path.name, marks=marks_of(path.read_text(encoding="utf-8")))


@pytest.mark.parametrize("example", list(examples()))
def test_example_runs(example, run_script):
    assert run_script(example)


CLAIMS = (ROOT / "CLAIMS.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`([^`]+)`", CLAIMS.split("## Limitations")[0])))


def whole_numbers(text):
    return set(re.findall(r"\d[\d,.]*\d|\d", text))


@pytest.mark.parametrize("test", [name for name in NAMED if name.startswith("tests/")])
def test_a_test_that_a_claim_names_is_there(test):
    file, _, function = test.partition("::")
    assert (ROOT / file).exists()
    if function:
        assert f"def {function}(" in (ROOT / file).read_text(encoding="utf-8")


@pytest.mark.parametrize(
    "command", [name for name in NAMED if name.split()[0] in {"python", "make", "firstclick"}]
)
def test_a_command_that_a_claim_names_is_there(command):
    words = command.split()
    if words[0] == "make":
        assert f"\n{words[1]}: " in (ROOT / "Makefile").read_text(encoding="utf-8")
    elif words[0] == "firstclick":
        assert words[1] in COMMANDS
    elif words[1] == "-m":
        assert importlib.util.find_spec(words[2]) is not None
    else:
        assert (ROOT / words[1]).exists()


def test_every_row_names_a_test_or_a_command():
    rows = [line for line in CLAIMS.split("## Limitations")[0].splitlines() if line.startswith("| ")]
    rows = [row for row in rows if not row.startswith("| Claim")]
    assert len(rows) > 30
    assert [row for row in rows if "`" not in row.split(" | ")[1]] == []


def test_numbers_that_the_readme_says_were_measured_are_claims():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    measured = readme.partition("## Measured")[2].partition("[CLAIMS.md]")[0]
    words = re.sub(r"\(\[.*?\)\)", "", measured, flags=re.DOTALL)
    numbers = whole_numbers(words) - {"3,706", "16"}  # sizes of the data, not findings
    assert numbers
    assert numbers - whole_numbers(CLAIMS) == set()
