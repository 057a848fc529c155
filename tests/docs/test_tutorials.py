"""Tutorials are short, they run, and their outputs are clean."""

import json
import os
import re
from pathlib import Path

import pytest
from tutorials import build, cells_of, sources

ROOT = Path(__file__).parents[2]
MOST_LINES = 25
MOST_BYTES = 400_000
MOST_WORDS = 1_200
SOURCES = sources()
each_tutorial = pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.stem)


def outputs(cells):
    return [output for cell in cells for output in cell.get("outputs", [])]


def check_outputs(cells):
    """Each code cell shows something, and nothing that a reader should not see."""
    for cell in cells:
        if cell["cell_type"] == "code":
            assert cell["outputs"], "".join(cell["source"])
    for output in outputs(cells):
        assert output["output_type"] != "error"
        assert output.get("name") != "stderr", output
        shown = json.dumps({name: value for name, value in output.items() if name != "data"})
        shown += json.dumps(output.get("data", {}).get("text/plain", ""))
        assert not re.search(r"/(home|root|work|tmp|Users)/|Warning|\\u001b", shown), shown


def test_five_tutorials_are_short_and_link_to_pages():
    assert [source.stem[0] for source in SOURCES] == list("12345")
    cells = [cell for source in SOURCES for cell in cells_of(source.read_text(encoding="utf-8"))]
    nav = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    for cell in cells:
        assert len(cell.source.splitlines()) <= MOST_LINES, cell.source
        for link in re.findall(r"\]\((?!http)([^)]+)\.html\)", cell.source):
            page = os.path.normpath(f"tutorials/{link}")
            assert f"{page}.md" in nav or f"{page}.ipynb" in nav, link
    assert sum(len(cell.source.split()) for cell in cells if cell.kind == "markdown") <= MOST_WORDS


@pytest.mark.long
@each_tutorial
def test_tutorial_runs(source):
    check_outputs(build(source).cells)
    assert source.with_suffix(".ipynb").stat().st_size < MOST_BYTES
