"""Run the tutorials: NAME.py in docs/tutorials becomes the notebook NAME.ipynb, with its outputs.

mkdocs calls `build` before it reads the pages. A notebook whose source has not changed is kept.

A source is a Python file in cells. `# %%` starts a code cell, `# %% [markdown]` a text, `# %% [bash]` or
another cell magic of IPython a cell that is not Python; the lines of these are comments. In a code cell
`# %magic` is a line magic.
Progress is left out of the outputs; stderr of commands follows stdout. Each tutorial runs in an empty folder.
"""

import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from filelock import FileLock

TUTORIALS = Path(__file__).parents[1] / "tutorials"
SECONDS = 600  # for a cell
ESCAPES = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
PROGRESS = re.compile(r"^(?:playing: .*|[\d,]+ cells.*|.*: \d+%.*)\n", re.MULTILINE)


class Cell(NamedTuple):
    kind: str  # markdown or code
    source: str


def sources() -> list[Path]:
    return sorted(TUTORIALS.glob("*.py"))


def cells_of(text: str) -> list[Cell]:
    """Split a source into the cells of its notebook."""
    cells = []
    for part in re.split(r"^# %%", text, flags=re.MULTILINE)[1:]:
        head, _, body = part.partition("\n")
        kind, body = head.strip(" []"), body.strip("\n")
        if kind == "markdown":
            cells.append(Cell("markdown", _uncomment(body)))
        elif kind:
            cells.append(Cell("code", f"%%{kind}\n{_uncomment(body)}"))
        else:
            cells.append(Cell("code", re.sub(r"^# (%[a-z])", r"\1", body, flags=re.MULTILINE)))
    return cells


def _uncomment(body: str) -> str:
    return re.sub(r"^# ?", "", body, flags=re.MULTILINE)


def build(source: Path) -> Any:
    """Return the notebook of a source. Run it only if there is none, or one of another source."""
    import nbformat

    file, text = source.with_suffix(".ipynb"), source.read_text(encoding="utf-8")
    # Two tests may build the same notebook at a time.
    with FileLock(source.with_name(f".{source.stem}.lock")):
        if file.exists():
            notebook = nbformat.read(file, as_version=4)
            if notebook.metadata.get("source") == text:
                return notebook
        with tempfile.TemporaryDirectory() as folder:
            notebook = execute(text, folder)
        notebook.metadata["source"] = text
        file.write_text(nbformat.writes(notebook, indent=1) + "\n", encoding="utf-8")
    return notebook


def execute(text: str, folder: str) -> Any:
    """Run the cells of a source in a folder."""
    from nbclient import NotebookClient
    from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

    new_cell = {"markdown": new_markdown_cell, "code": new_code_cell}
    notebook = new_notebook(
        cells=[
            new_cell[cell.kind](cell.source, id=f"cell-{number}")
            for number, cell in enumerate(cells_of(text))
        ],
        metadata={
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
    )
    client = NotebookClient(
        notebook, timeout=SECONDS, kernel_name="python3", record_timing=False,
        coalesce_streams=True, resources={"metadata": {"path": folder}},
    )  # fmt: skip
    # Commands in cells are those of this environment; wide enough for every table.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    client.execute(env={**os.environ, "PATH": path, "COLUMNS": "100", "NO_COLOR": "1"})
    for cell in notebook.cells:
        if cell.source.startswith("%%bash"):
            streams = sorted(cell.outputs, key=lambda stream: stream.name, reverse=True)  # stdout first
            printed = PROGRESS.sub("", ESCAPES.sub("", "".join(stream.text for stream in streams)))
            cell.outputs = [new_output("stream", name="stdout", text=printed)]
    return notebook
