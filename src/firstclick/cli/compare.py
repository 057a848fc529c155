"""`firstclick compare`: every policy in every stock world, and the table and picture of the guide."""

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

from typer import Option

from firstclick.cli.console import page, print_json, talk
from firstclick.cli.experiments import EngineName, Jobs, Overwrite, at_work, watch
from firstclick.cli.options import count
from firstclick.extras import needed_by
from firstclick.files.writing import write_whole
from firstclick.studies.guide.conduct import RUNS, SEED, STEPS, policies_named
from firstclick.studies.guide.conduct import compare as play_all
from firstclick.studies.guide.standings import Line, lines_of
from firstclick.studies.guide.stock import stock_worlds


def compare(
    world: Annotated[
        list[str] | None, Option(metavar="NAME", help="Stock world; again for more; all by default.")
    ] = None,
    policy: Annotated[
        list[str] | None,
        Option(metavar="SPEC", help="Policy NAME[:param=value,...]; again for more; all by default."),
    ] = None,
    steps: Annotated[int, count("Steps of each run.")] = STEPS,
    runs: Annotated[int, count("Runs, each in another world of its kind.")] = RUNS,
    seed: Annotated[int, count("Seed of all that is random.")] = SEED,
    out: Annotated[
        Path, Option(metavar="FOLDER", help="Folder for the table, the picture and finished cells.")
    ] = Path("firstclick-compare"),
    overwrite: Overwrite = False,
    jobs: Jobs = 0,
    engine: EngineName = "local",
    json: Annotated[bool, Option("--json", help="Print JSON instead of the table.")] = False,
) -> None:
    """Play every policy in every stock world, and write the table and picture of docs/guide.md.

    The stock worlds are fixed, and policies have their defaults, but are told what their papers assume
    known. Interrupted or killed, the same command goes on: finished cells in --out are not played again.
    --out gets guide.md, guide.png, guide.svg, results.csv, and speed.csv with the time of a step.

    \b
    All of it, some minutes:
      firstclick compare --out guide

    \b
    Your policy against two others where tastes move:
      firstclick compare --world switch --world drift --policy my-policy \\
          --policy cascade-lin-ts --policy discounted-lin-ts
    """
    # Here already: not after playing for minutes.
    with needed_by("the guide"):
        from firstclick.report.figures import save_figure
        from firstclick.studies.guide.figure import guide_figure
        from firstclick.studies.guide.page import guide_page, leaders_table

    worlds = stock_worlds(world or ())
    policies = policies_named(policy or ())
    with at_work(out, engine, jobs) as (runner, progress):
        standings = play_all(
            policies, worlds, out, runner, steps=steps, runs=runs, seed=seed, overwrite=overwrite,
            watch=watch(progress),
        )  # fmt: skip
        lines = lines_of(standings, steps)
        figure = guide_figure(lines)
        for kind in ("svg", "png"):
            save_figure(figure, out / f"guide.{kind}")
        write_whole(out / "guide.md", guide_page(lines, everything=bool(policy)).encode())
    for one in standings if policy else ():  # Who names a policy wants to know where it is.
        if one.reason:
            talk.print(f"not played in {one.world.name}: {one.reason}")
    if json:
        print_json(as_plain(lines))
    else:
        page().print(leaders_table(lines))
    talk.print(f"guide: {out / 'guide.md'}")


def as_plain(lines: Sequence[Line]) -> list[dict[str, Any]]:
    """The lines for `--json`; what is no number is null."""
    return [
        {name: None if value != value else value for name, value in asdict(line).items()} for line in lines
    ]
