"""`firstclick evaluate describe`: what a log holds, and what can be asked of it."""

import shlex
import sys
from pathlib import Path
from typing import Annotated

from typer import Option

from firstclick.cli.console import page, print_json, talk
from firstclick.cli.log_argument import (
    ColumnOption,
    LogArchiveOption,
    LogArgument,
    LogModelOption,
    LogOptionOption,
    open_log,
)
from firstclick.cli.options import check_output_file
from firstclick.cli.progress_bar import progress_bar
from firstclick.extras import needed_by

# A pipe or a log file hears of long work this often.
SECONDS = 10.0


def evaluate_describe(
    log: LogArgument,
    model: LogModelOption = None,
    archive: LogArchiveOption = None,
    column: ColumnOption = None,
    log_option: LogOptionOption = None,
    page_file: Annotated[
        Path | None, Option("--page", metavar="FILE.html", help="Also write everything to an HTML page.")
    ] = None,
    json: Annotated[bool, Option("--json", help="Print JSON.")] = False,
) -> None:
    """Describe a log of slates: clicks by position, how often the order varied, odd rows, and what can be
    evaluated from it.

    \b
    Examples:
      firstclick evaluate describe clicks.parquet
      firstclick evaluate describe a.csv --column items=ranking --column click=pos
      firstclick evaluate describe shop.db --model shop --page shop-log.html

    \b
    One row per slate:
      items,click                      tea|milk|jam,1
    One row per impression:
      view,position,item,clicked       v17,1,tea,0
    """
    from firstclick.logs.describe import describe_log
    from firstclick.logs.description_text import description_text

    check_output_file("--page", page_file, ".html", ".htm")
    with progress_bar(every=SECONDS) as progress:
        opened = open_log(
            log, model=model, archive=archive, column=column, log_option=log_option,
            progress=progress.doing(f"opening {log}"),
        )  # fmt: skip
        found = describe_log(opened, progress.doing(f"reading {log}"))
    if page_file is not None:
        with needed_by("--page"):
            from firstclick.evaluation.description_page import write_description

        write_description(found, page_file, command="firstclick " + shlex.join(sys.argv[1:]))
        talk.print(f"written: {page_file}")
    if json:
        print_json(found.as_json())
    else:
        page().print(description_text(found), end="")
