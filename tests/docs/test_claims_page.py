"""CLAIMS.md names tests and commands that are there, and covers what the README says was measured."""

import importlib.util
import re
from pathlib import Path

import pytest
from generate import COMMANDS

ROOT = Path(__file__).parents[2]
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
