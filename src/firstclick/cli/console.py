"""What commands share: the progress bar, the seed, the output folder, the last words."""

import json
import os
import secrets
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from firstclick.errors import InvalidInput, WorkFailed
from firstclick.simulate import Results

talk = Console(stderr=True, highlight=False)
out = Console(highlight=False)

OUR_FILES = {"report.html", "results.json", "results.csv", "regret.svg", "regret.png"}


def default_jobs() -> int:
    """The processors this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def drawn_seed(seed: int | None) -> int:
    """The given seed, or a fresh one that the user is told, so that the run can be repeated."""
    if seed is None:
        seed = secrets.randbelow(2**31)
        talk.print(f"seed {seed} (drawn; repeat with --seed {seed})")
    return seed


@contextmanager
def progress_bar() -> Iterator[Any]:
    """A `progress(done, total)` that draws a bar with the time left on stderr, if that is a terminal."""
    columns = (
        TextColumn("{task.description}"), BarColumn(), TaskProgressColumn(),
        TextColumn("{task.fields[steps]}"), TimeRemainingColumn(),
    )  # fmt: skip
    with Progress(*columns, console=talk, transient=True, disable=not talk.is_terminal) as bar:
        task = bar.add_task("preparing", total=None, steps="")

        def progress(done: int, total: int) -> None:
            description = "playing" if done else "compiling kernels (kept for next time)"
            steps = f"{done / 1e6:.1f} of {total / 1e6:.1f} M steps" if done else ""
            bar.update(
                task, completed=done, total=total if done else None, description=description, steps=steps
            )

        yield progress


def check_output(folder: Path | None, *, overwrite: bool) -> None:
    """Refuse a folder that holds something, before any work is done."""
    if folder is None:
        return
    if folder.exists() and not folder.is_dir():
        raise InvalidInput(f"{folder} is a file; --out names a folder")
    held = sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []
    if held and not (overwrite and set(held) <= OUR_FILES):
        what = "results" if set(held) & OUR_FILES else f"other files ({held[0]})"
        way_out = "or say --overwrite" if set(held) <= OUR_FILES else "or an empty one"
        raise InvalidInput(f"{folder} holds {what} already; name a new folder, {way_out}")
    parent = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if not os.access(parent, os.W_OK):
        raise InvalidInput(f"{folder} cannot be written: no permission in {parent}")


def write_output(results: Results, folder: Path, *, title: str, subtitle: str, command: str) -> Path:
    """Fill the folder with report, figures and tables; all of them, or none and an error."""
    from firstclick.report import regret_figure, save_figure, write_report

    draft = folder.with_name(folder.name + ".part")
    try:
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(parents=True)
        results.save(draft / "results.json")
        _write_csv(results, draft / "results.csv")
        figure = regret_figure(results)
        for kind in ("svg", "png"):
            save_figure(figure, draft / f"regret.{kind}")
        write_report(results, draft / "report.html", title=title, subtitle=subtitle, command=command)
        if folder.exists():
            shutil.rmtree(folder)
        draft.replace(folder)
    except OSError as error:
        shutil.rmtree(draft, ignore_errors=True)
        raise WorkFailed(f"{folder} cannot be written: {error.strerror or error}") from None
    return folder / "report.html"


def _write_csv(results: Results, path: Path) -> None:
    rows = results.rows()
    lines = [",".join(rows[0]), *(",".join(str(value) for value in row.values()) for row in rows)]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def print_json(value: Any) -> None:
    json.dump(value, sys.stdout, allow_nan=False, indent=None if not sys.stdout.isatty() else 2)
    print()


def print_results(results: Results, report: Path | None) -> None:
    """The table on stdout, and where the report is on stderr."""
    from firstclick.report import results_table

    for note in results.notes:
        talk.print(f"note: {note}")
    out.print(results_table(results))
    if report is not None:
        talk.print(f"report: {report}", soft_wrap=True)
