"""`firstclick run`: an experiment of your own, declared in a TOML file."""

from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from firstclick.cli.console import print_json, talk
from firstclick.cli.experiments import (
    EngineName,
    Jobs,
    Out,
    Overwrite,
    as_plain,
    at_work,
    load,
    print_regret,
    to_repeat,
    watch,
)
from firstclick.cli.options import count
from firstclick.experiments.conduct import conduct
from firstclick.experiments.file import read_experiment
from firstclick.extras import needed_by


def run(
    file: Annotated[Path, Argument(metavar="EXPERIMENT.TOML", help="The declaration.")],
    out: Out,
    data: Annotated[
        Path | None, Option(metavar="PATH", help="File or folder of the data, instead of the file's path.")
    ] = None,
    steps: Annotated[int | None, count("Slates per run, instead of the file's.")] = None,
    runs: Annotated[int | None, count("Number of runs, instead of the file's.")] = None,
    seed: Annotated[int | None, count("Random seed, instead of the file's.")] = None,
    extras: Annotated[bool, Option("--extras", help="Also play the policies under extras.")] = False,
    overwrite: Overwrite = False,
    jobs: Jobs = 0,
    engine: EngineName = "local",
    json: Annotated[bool, Option("--json", help="Print JSON instead of the tables.")] = False,
) -> None:
    """Run an experiment from a TOML file, and write a report.

    To continue an interrupted run, repeat the command: finished cells in --out are not played again.

    \b
    Example, films.toml:
      title    = "Which policy for our films?"
      data     = "table:user=customer,item=film,value=stars,above=3"
      path     = "ratings.csv"              # CSV, TSV or Parquet, beside this
      policies = ["cascade-lin-ts", "cascade-ts", "cascade-ucb1:radius=0.5"]
      items    = [64, "all"]                # a list: one comparison for each
      rank     = 20                         # features by truncated SVD
      k        = 4
      steps    = 20_000
      runs     = 5

    \b
    Then:
      firstclick run films.toml --out results

    \b
    Also, with their defaults:
      extras = []                           # policies that --extras adds
      seed = 1
      group = none                          # a group of items
      pick = "popular"                      # or "random", "source"
      scaled = true                         # V Sigma; false: V
      intercept = false
      one_split = false
      with_replacement = false
      cut_first = false                     # SVD before the cut
    """
    with needed_by("the report"):
        from firstclick.report.experiment import write_experiment

    experiment = read_experiment(file).changed(steps=steps, runs=runs, seed=seed)
    if extras:
        experiment = experiment.with_extras()
    with at_work(out, engine, jobs) as (runner, progress):
        datasets = [load(source, data or experiment.path, progress) for source in experiment.data]
        comparisons = conduct([experiment], datasets, out, runner, overwrite=overwrite, watch=watch(progress))
        again = to_repeat("run", file.name, steps=steps, runs=runs, seed=seed, extras=extras, out="OUT")
        write_experiment(comparisons, out, command=again)
    if json:
        print_json(as_plain(comparisons))
    else:
        print_regret(comparisons)
    talk.print(f"report: {out / 'report.html'}")
