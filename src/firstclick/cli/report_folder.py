"""What `simulate` and `demo` hand over: the results on stdout, and a report in a folder."""

import shutil
import sys
from contextlib import nullcontext
from pathlib import Path

from firstclick.cli.console import page, print_json, talk
from firstclick.errors import FirstclickError, InvalidInput, WorkFailed
from firstclick.experiments import Results
from firstclick.experiments.folder import names_in
from firstclick.experiments.results import as_csv
from firstclick.extras import MissingExtra
from firstclick.files.writing import drafting_process, folder_draft

OUR_FILES = {"report.html", "results.json", "results.csv", "regret.svg", "regret.png"}


def check_output(folder: Path | None, *, overwrite: bool) -> None:
    """Refuse a folder that holds something or cannot be written, before any work is done."""
    if folder is None:
        return
    # A command that was killed while it wrote its report has left a draft, which goes with the next one.
    found = names_in(folder, f"--out {folder}", "--out names a folder")
    held = {name for name in found if drafting_process(name) is None}
    if held and not (overwrite and held <= OUR_FILES):
        what = f"other files ({min(held - OUR_FILES)})" if held - OUR_FILES else "results"
        way_out = "or an empty one" if held - OUR_FILES else "or say --overwrite"
        raise InvalidInput(f"--out {folder} holds {what} already; name a new folder, {way_out}")


def write_output(
    results: Results, folder: Path, *, title: str, subtitle: str, command: str, default: str = ""
) -> None:
    """Fill the folder with tables, figures and a report; all of them, or none and an error.

    Without the packages of a report the tables are written, and MissingExtra is raised.
    """
    # Within the folder if there is one: it may be the current folder or a mounted one, which cannot be
    # replaced as a whole.
    draft = folder_draft(folder) if folder.exists() else folder_draft(folder.parent, folder.name)
    try:
        draft.mkdir(parents=True)
        results.save(draft / "results.json")
        (draft / "results.csv").write_bytes(as_csv(results.rows()))
        missing = None
        try:
            from firstclick.report import regret_figure, save_figure, write_report

            figure = regret_figure(results, default=default)
            for kind in ("svg", "png"):
                save_figure(figure, draft / f"regret.{kind}")
            write_report(
                results, draft / "report.html", title=title, subtitle=subtitle, command=command,
                default=default,
            )  # fmt: skip
        except MissingExtra as error:
            missing = error
        if draft.parent == folder:
            for name in OUR_FILES:
                if (draft / name).exists():
                    (draft / name).replace(folder / name)
                else:  # the report of other results
                    (folder / name).unlink(missing_ok=True)
        else:
            draft.replace(folder)
    except (OSError, FirstclickError) as error:
        # Our own sentence names a file of the draft, which is gone: its end is the system's reason.
        reason = getattr(error, "strerror", None) or str(error).rpartition(": ")[2]
        raise WorkFailed(f"{folder} cannot be written: {reason}; the results are on stdout alone") from None
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    if missing is not None:
        raise missing


def hand_over(
    results: Results, folder: Path | None, *, as_json: bool, default: str = "", **heading: str
) -> None:
    """The results on stdout, the report in its folder, and where it is on stderr.

    The policy `default` is marked as the default in table, figure and report.
    What took long to compute is printed even where the folder cannot be written after all.
    """
    failure = told = None
    if folder is not None:
        told = f"report: {folder / 'report.html'}"
        try:
            with talk.status("writing the report") if sys.stderr.isatty() else nullcontext():
                write_output(results, folder, default=default, **heading)
        except MissingExtra as error:
            told = f"results: {folder} (no report: {error})"
        except WorkFailed as error:
            failure = error
    for note in results.notes:
        talk.print(f"note: {note}")
    if as_json:
        print_json(results.summary())
    else:
        from firstclick.report import results_table

        page().print(results_table(results, default=default))
    if failure is not None:
        raise failure
    if told is not None:
        talk.print(told)
