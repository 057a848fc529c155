"""Examples in docstrings give what they say."""

import doctest
import importlib
from pathlib import Path

import pytest

import firstclick

PACKAGE = Path(firstclick.__file__).parent
WITH_EXAMPLES = sorted(
    ".".join(["firstclick", *path.relative_to(PACKAGE).with_suffix("").parts]).removesuffix(".__init__")
    for path in PACKAGE.rglob("*.py")
    if ">>> " in path.read_text(encoding="utf-8")
)


@pytest.mark.parametrize("module", WITH_EXAMPLES)
def test_examples_give_what_they_say(module: str) -> None:
    failed, tried = doctest.testmod(importlib.import_module(module))
    assert (failed, tried > 0) == (0, True)
