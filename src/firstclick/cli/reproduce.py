"""`firstclick reproduce`: the paper's experiments, figures and claims in one command."""

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

from typer import Option

from firstclick.cli.console import page, print_json, talk
from firstclick.cli.experiments import (
    EngineName,
    Jobs,
    Out,
    Overwrite,
    at_work,
    load,
    print_regret,
    print_speed,
    to_repeat,
    watch,
)
from firstclick.cli.options import choice, count
from firstclick.data.sources import Source
from firstclick.errors import InvalidInput
from firstclick.extras import needed_by
from firstclick.parameters import check_name
from firstclick.registry import make_policy
from firstclick.studies.paper.experiments import (
    BESIDE,
    DATASETS,
    EXPERIMENTS,
    SYNTHETIC,
    dataset_name,
    mode_named,
)
from firstclick.validation.whole_number import seed_number, whole_number

CHOICES = (*DATASETS, *(SYNTHETIC + name for name in DATASETS), "synthetic")


def reproduce(
    out: Out,
    data: Annotated[
        Path | None,
        Option(metavar="FOLDER", help="Folder with the data sets, each in its own folder or directly in it."),
    ] = None,
    dataset: Annotated[
        list[str] | None,
        Option(
            metavar="NAME",
            help="yelp, million-song or movielens; synthetic-NAME for a stand-in, synthetic for all three "
            "stand-ins; repeatable. By default what --data holds.",
        ),
    ] = None,
    experiment: Annotated[
        list[str] | None,
        Option(metavar="NAME", help="1, 2, 3, 4, sigma or c; repeatable; all by default."),
    ] = None,
    mode: Annotated[
        str, choice("Follow the paper's text, or the authors' code where it differs.", "paper", "authors")
    ] = "paper",
    extras: Annotated[
        bool,
        Option("--extras", help="Also play CascadeKL-UCB, CascadeTS and CascadeLinUCB in experiment 1."),
    ] = False,
    policy: Annotated[
        list[str] | None,
        Option(metavar="SPEC", help="Your own policy, played in experiment 1; repeatable."),
    ] = None,
    group: Annotated[
        list[str] | None,
        Option(
            metavar="DATASET=GROUP", help="Another group for experiment 3, such as million-song=Pop_Rock."
        ),
    ] = None,
    steps: Annotated[int, count("Slates per run.")] = 100_000,
    runs: Annotated[int, count("Number of runs; standard errors are over runs.")] = 10,
    overwrite: Overwrite = False,
    jobs: Jobs = 0,
    engine: EngineName = "local",
    seed: Annotated[int, count("Random seed.")] = 1,
    json: Annotated[bool, Option("--json", help="Print the claims and their verdicts as JSON.")] = False,
) -> None:
    """Reproduce Zong et al. 2016: play its experiments, draw its figures, check each of its claims.

    To continue an interrupted run, repeat the command: finished cells in --out are not played again.

    \b
    On MovieLens 1M (firstclick data download movielens-1m --data data):
      firstclick reproduce --dataset movielens --data data --out out/movielens

    \b
    Without any data, on made-up stand-ins of the same size:
      firstclick reproduce --dataset synthetic --out out/synthetic

    \b
    A first look, in a minute:
      firstclick reproduce --dataset synthetic-movielens --steps 2000 \\
        --runs 3 --out look
    """
    with needed_by("the report"):
        from firstclick.studies.paper.reproduce import reproduce as carry_out

    for name, value in (("steps", steps), ("runs", runs)):
        whole_number(name, value, at_least=1)
    seed_number(seed)
    reading = mode_named(mode)
    sources = _sources(dataset, data, reading.source)
    names = list(dict.fromkeys(experiment or EXPERIMENTS))
    for name in names:
        check_name("experiment", name, EXPERIMENTS)
    groups = _groups(group, {dataset_name(source) for source in sources} if "3" in names else set())
    added = [make_policy(spec) for spec in policy or ()]
    if added and BESIDE not in names:
        raise InvalidInput(f"--policy goes with experiment {BESIDE}, which is not played")
    with at_work(out, engine, jobs) as (runner, progress):
        datasets = [load(source, data, progress) for source in sources]
        found = carry_out(
            datasets, out, runner, experiments=names, mode=reading, groups=groups, policies=added,
            extras=extras, overwrite=overwrite, steps=steps, runs=runs, seed=seed, watch=watch(progress),
            # Where the data lies, and who computes, is for the reader to say.
            command=to_repeat(
                "reproduce", dataset=[source.label for source in sources],
                data=None if all(source.synthetic for source in sources) else "DATA", experiment=experiment,
                mode=mode, group=group, policy=policy, extras=extras, steps=steps, runs=runs, seed=seed,
                out="OUT",
            ),
        )  # fmt: skip
    if json:
        print_json(found.claims)
    else:
        print_regret(found.comparisons)
        print_speed(found.comparisons)
        page().print("\n" + found.summary)
    talk.print(f"report: {out / 'report.html'}")


def _sources(chosen: list[str] | None, data: Path | None, source_of: Callable[[str], Source]) -> list[Source]:
    """The sources that were asked for; without a wish, those whose files are there."""
    names: list[str] = []
    for name in chosen or ():
        check_name("dataset", name.partition(":")[0], CHOICES)
        names += [SYNTHETIC + one for one in DATASETS] if name == "synthetic" else [name]
    sources = [source_of(name) for name in dict.fromkeys(names)]
    if sources:
        for source in sources:
            if data is not None and not source.synthetic:
                source.find(data)
        return sources
    if data is None:
        raise InvalidInput(
            "say where the data is with --data FOLDER, or take made-up stand-ins: --dataset synthetic"
        )
    found = []
    for name in DATASETS:
        source = source_of(name)
        try:
            source.find(data)
        except InvalidInput as reason:
            talk.print(f"note: {source.title} is left out: {reason}")
        else:
            found.append(source)
    if not found:
        raise InvalidInput(
            f"{data} holds none of {', '.join(DATASETS)}; see `firstclick data download --help`"
        )
    return found


def _groups(given: list[str] | None, played: set[str]) -> dict[str, str]:
    groups = {}
    for entry in given or ():
        name, equals, group = entry.partition("=")
        if not equals or not group:
            raise InvalidInput(f"--group must be DATASET=GROUP, such as million-song=Pop_Rock, got {entry!r}")
        check_name("dataset", name, DATASETS)
        if name not in played:
            raise InvalidInput(f"--group {entry} goes with experiment 3 on {name}, which is not played")
        groups[name] = group
    return groups
