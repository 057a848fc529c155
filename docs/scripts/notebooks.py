"""Run the tutorials and write them as notebooks: docs/tutorials/NAME.py becomes NAME.ipynb, with its outputs.

    python docs/scripts/notebooks.py [NAME ...]      # all of them; or `make notebooks`

A source is a Python file in cells. `# %%` starts a code cell, `# %% [markdown]` a text, `# %% [bash]` or
another cell magic of IPython a cell that is not Python; the lines of these are comments. In a code cell
`# %magic` is a magic of a line. Progress is left out of the outputs; stderr of commands follows stdout.
Needs nbclient, nbformat and ipykernel. Each tutorial runs in an empty folder, with seeds of its own.
"""

import os
import re
import sys
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

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
    """The cells of a source, as a notebook has them."""
    found = []
    for part in re.split(r"^# %%", text, flags=re.MULTILINE)[1:]:
        head, _, body = part.partition("\n")
        kind, body = head.strip(" []"), body.strip("\n")
        if kind == "markdown":
            found.append(Cell("markdown", _uncommented(body)))
        elif kind:
            found.append(Cell("code", f"%%{kind}\n{_uncommented(body)}"))
        else:
            found.append(Cell("code", re.sub(r"^# (%[a-z])", r"\1", body, flags=re.MULTILINE)))
    return found


def _uncommented(body: str) -> str:
    return re.sub(r"^# ?", "", body, flags=re.MULTILINE)


def execute(source: Path, folder: Path) -> Any:
    """The notebook of a source, run in the folder."""
    import nbformat
    from nbclient import NotebookClient
    from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

    made = {"markdown": new_markdown_cell, "code": new_code_cell}
    cells = cells_of(source.read_text(encoding="utf-8"))
    notebook = new_notebook(
        cells=[made[cell.kind](cell.source, id=f"cell-{place}") for place, cell in enumerate(cells)],
        metadata={
            "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
            "language_info": {"name": "python"},
        },
    )
    client = NotebookClient(
        notebook, timeout=SECONDS, kernel_name="python3", record_timing=False,
        coalesce_streams=True, resources={"metadata": {"path": str(folder)}},
    )  # fmt: skip
    # Commands in cells are those of this environment; wide enough for every table.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    client.execute(env={**os.environ, "PATH": path, "COLUMNS": "100", "NO_COLOR": "1"})
    for cell in notebook.cells:
        if cell.source.startswith("%%bash"):
            streams = sorted(cell.outputs, key=lambda stream: stream.name, reverse=True)  # stdout first
            said = PROGRESS.sub("", ESCAPES.sub("", "".join(stream.text for stream in streams)))
            cell.outputs = [new_output("stream", name="stdout", text=said)]
    nbformat.validate(notebook)
    return notebook


def main() -> None:
    import nbformat

    wanted = sys.argv[1:] or [source.stem for source in sources()]
    for name in wanted:
        with tempfile.TemporaryDirectory() as folder:
            notebook = execute(TUTORIALS / f"{name}.py", Path(folder))
        file = TUTORIALS / f"{name}.ipynb"
        file.write_text(nbformat.writes(notebook, indent=1) + "\n", encoding="utf-8")
        print(f"wrote {file.name}, {file.stat().st_size // 1000} kB")


if __name__ == "__main__":
    main()
