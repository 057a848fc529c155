"""`firstclick compare`: every policy in every stock world, or the usual ones on your own data."""

import os
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

from typer import Option

from firstclick.cli import interaction_file
from firstclick.cli.console import page, print_json, talk
from firstclick.cli.experiments import EngineName, Jobs, Overwrite, at_work, load, watch
from firstclick.cli.options import count, given, refuse
from firstclick.cli.progress_bar import ProgressBar
from firstclick.data.sources import make_source
from firstclick.errors import InvalidInput
from firstclick.experiments import Dataset
from firstclick.extras import needed_by
from firstclick.files.writing import write_whole
from firstclick.policies.base import Policy
from firstclick.registry import DEFAULT_POLICY, make_policy
from firstclick.studies.guide.conduct import RUNS, SEED, STEPS, policies_named
from firstclick.studies.guide.conduct import compare as play_all
from firstclick.studies.guide.data_worlds import MOVIELENS, MOVIELENS_1M, DataWorld
from firstclick.studies.guide.fitted_page import PREFIX, FittedPage
from firstclick.studies.guide.fitting import Contender
from firstclick.studies.guide.standings import Line, lines_of
from firstclick.studies.guide.summary import REFERENCES
from firstclick.studies.guide.worlds import GuideWorld, worlds_named
from firstclick.validation.whole_number import whole_number

# On data of your own the question is which policy to take: few runs cannot tell.
RUNS_ON_FILE = 20
K_ON_FILE = 4

GET_IT = "say where it is with --data FOLDER; `firstclick data download movielens-1m --data FOLDER` gets it"


def compare(
    world: Annotated[
        list[str] | None,
        Option(
            metavar="NAME",
            help="Stock world, or one of MovieLens; repeatable; all by default. Or fitted:FILE alone: the "
            "page of a fitted click model.",
        ),
    ] = None,
    data: Annotated[
        Path | None,
        Option(metavar="FOLDER", help="Folder with MovieLens 1M, for its worlds."),
    ] = None,
    interactions: interaction_file.File = None,
    user_column: interaction_file.UserColumn = None,
    item_column: interaction_file.ItemColumn = None,
    value_column: interaction_file.ValueColumn = None,
    above: interaction_file.Above = None,
    separator: interaction_file.Separator = None,
    header: interaction_file.Header = False,
    encoding: interaction_file.Encoding = None,
    strict: interaction_file.Strict = False,
    n_items: interaction_file.Items = None,
    rank: interaction_file.Rank = None,
    k: Annotated[
        int | None,
        count(
            f"Length of a slate with --interactions ({K_ON_FILE} by default) or fitted:FILE (default: as in "
            "its log)."
        ),
    ] = None,
    sweep_k: Annotated[
        bool,
        Option(
            "--sweep-k",
            help="In worlds made of data: also play the default policy with k = 1, 2, 4, 8 and 16.",
        ),
    ] = False,
    policy: Annotated[
        list[str] | None,
        Option(
            metavar="SPEC",
            help="Policy: NAME[:param=value,...]; repeatable; all by default, the references with "
            "--interactions and fitted:FILE.",
        ),
    ] = None,
    steps: Annotated[int, count("Slates per run.")] = STEPS,
    runs: Annotated[
        int | None,
        count(
            f"Number of runs, each in a new world of its kind; {RUNS} by default, {RUNS_ON_FILE} with "
            "--interactions and fitted:FILE."
        ),
    ] = None,
    seed: Annotated[int, count("Random seed.")] = SEED,
    out: Annotated[
        Path, Option(metavar="FOLDER", help="Folder for the table, the figure and finished cells.")
    ] = Path("firstclick-compare"),
    overwrite: Overwrite = False,
    jobs: Jobs = 0,
    engine: EngineName = "local",
    json: Annotated[bool, Option("--json", help="Print JSON instead of the table.")] = False,
) -> None:
    """Compare all policies in all stock worlds, or find the policy for your own data.

    Policies have their default parameters, but are told what their papers assume known. To continue an
    interrupted run, repeat the command: finished cells in --out are not played again. --out gets
    guide.md, guide.png, guide.svg, results.csv, and speed.csv with the time per step.

    \b
    Everything, in a few minutes; with --data also the worlds of MovieLens 1M:
      firstclick compare --out guide --data data

    \b
    Which policy for my data? A file of who liked what:
      firstclick compare --interactions ratings.csv --value-column 2 --above 3 \\
          --items 256 --rank 20 --k 4

    \b
    Which policy for my page? With a file that `firstclick click-model fit` wrote:
      firstclick compare --world fitted:fit.npz

    \b
    Your policy against two others where tastes move:
      firstclick compare --world switch --world drift --policy my-policy \\
          --policy cascade-lin-ts --policy discounted-lin-ts
    """
    # Here already: not after playing for minutes.
    with needed_by("the guide"):
        from firstclick.report.figures import save_figure
        from firstclick.studies.guide.decision import answer
        from firstclick.studies.guide.figure import guide_figure
        from firstclick.studies.guide.sweep import FOLDER, swept

    columns = given(
        user_column=user_column, item_column=item_column, value_column=value_column, above=above,
        separator=separator, header=header, encoding=encoding, strict=strict,
    )  # fmt: skip
    cut = given(n_items=n_items, rank=rank, k=k)
    fitted = next((one for one in world or () if one.startswith(PREFIX)), None)
    if runs is None:
        runs = RUNS if interactions is None and fitted is None else RUNS_ON_FILE
    # Here already, because reading a large file takes a minute.
    for name, value in {"steps": steps, "runs": runs, **cut}.items():
        whole_number(name, value, at_least=1)
    named: Sequence[GuideWorld] = ()
    note = ""
    file: DataWorld | FittedPage | None = None
    if fitted is not None:
        refuse(columns | given(n_items=n_items, rank=rank), "--interactions")
        refuse(given(data=data), "the worlds of MovieLens")
        refuse(given(sweep_k=sweep_k), "--interactions, or the worlds of MovieLens")
        if len(world or ()) > 1 or interactions is not None:
            raise InvalidInput(f"{fitted} is played alone; leave out other worlds and --interactions")
        file = FittedPage.of(fitted, k)
        policies = _against_default(policy or REFERENCES)
    elif interactions is None:
        refuse({**columns, **cut}, "--interactions")
        named, data, note = _named(world or (), data, sweep_k)
        policies = policies_named(policy or ())
    else:
        _check_alone(world, data)
        interaction_file.check_above(above)
        policies = _against_default(policy or REFERENCES)
    with at_work(out, engine, jobs) as (runner, progress):
        progress.opening = note
        if interactions is not None:
            file = _world_of(interactions, columns, cut, progress)
        worlds = _with_data(named, data, progress) if file is None else [file]

        def play(policies: Sequence[Policy], worlds: Sequence[GuideWorld], folder: Path) -> list[Contender]:
            return play_all(
                policies, worlds, folder, runner, steps=steps, runs=runs, seed=seed, overwrite=overwrite,
                named=bool(policy) or file is not None, watch=watch(progress),
            )  # fmt: skip

        standings = play(policies, worlds, out)
        lines = lines_of(standings, steps)
        sizes = swept([one for one in worlds if isinstance(one, DataWorld)]) if sweep_k else []
        sweep = lines_of(play(policies_named([DEFAULT_POLICY]), sizes, out / FOLDER), steps) if sizes else []
        figure = guide_figure(lines)
        for kind in ("svg", "png"):
            save_figure(figure, out / f"guide.{kind}")
        content = _page_of(lines, file, sweep, everything=bool(policy))
        write_whole(out / "guide.md", content.encode())
    for one in standings if policy else ():  # Who names a policy wants to know where it is.
        if one.reason:
            talk.print(f"not played in {one.world.name}: {one.reason}")
    if json:
        print_json(as_plain([*lines, *sweep]))
    else:
        _print_tables(lines, file, sweep)
    if file is not None:
        if json:
            talk.print(answer(lines))
        talk.print(f"what {file.name} cannot tell:")
        for limit in file.limits:
            talk.print(f"- {limit}")
    talk.print(f"guide: {out / 'guide.md'}")


def _page_of(
    lines: Sequence[Line], file: DataWorld | FittedPage | None, sweep: Sequence[Line], *, everything: bool
) -> str:
    from firstclick.studies.guide.decision import decision_page
    from firstclick.studies.guide.page import guide_page

    if file is not None:
        return decision_page(lines, file, sweep)
    return guide_page(lines, sweep, everything=everything)


def _print_tables(lines: Sequence[Line], file: DataWorld | FittedPage | None, sweep: Sequence[Line]) -> None:
    """The leaders of each world; of a file the answer, and what it stands on."""
    from firstclick.report.tables import terminal_table
    from firstclick.studies.guide.decision import answer, decision_block
    from firstclick.studies.guide.page import leaders_table
    from firstclick.studies.guide.sweep import sweep_block

    if file is None:
        page().print(leaders_table(lines))
    else:
        page().print(answer(lines) + "\n")
        page().print(terminal_table(decision_block(lines)))
    if sweep:
        page().print(f"\n{DEFAULT_POLICY} with slates of k items")
        page().print(terminal_table(sweep_block(sweep)))


def _named(
    names: Sequence[str], data: Path | None, sweep_k: bool
) -> tuple[Sequence[GuideWorld], Path | None, str]:
    """The worlds, and where the data of MovieLens is; or a note that its worlds are left out."""
    note = ""
    worlds = worlds_named(names)
    of_data = [world.name for world in worlds if isinstance(world, DataWorld)]
    source = make_source("movielens")
    if data is not None:
        if not of_data:
            raise InvalidInput(f"goes with {', '.join(world.name for world in MOVIELENS)}", "data")
        source.find(data)
    elif names and of_data:
        data = Path(os.environ.get("FIRSTCLICK_DATA", "data"))  # The second is where a download goes.
        try:
            source.find(data)
        except InvalidInput:
            raise InvalidInput(f"{of_data[0]} needs MovieLens 1M; {GET_IT}") from None
    elif of_data:
        note = f"note: {', '.join(of_data)} are left out, because they need MovieLens 1M; {GET_IT}\n"
        worlds = tuple(world for world in worlds if not isinstance(world, DataWorld))
        of_data = []
    if sweep_k and not of_data:
        raise InvalidInput("goes with worlds of data: --interactions, or those of MovieLens", "sweep_k")
    return worlds, data, note


def _with_data(
    worlds: Sequence[GuideWorld], folder: Path | None, progress: ProgressBar
) -> Sequence[GuideWorld]:
    """The same worlds, those of MovieLens with their data."""
    if not any(isinstance(world, DataWorld) for world in worlds):
        return worlds
    dataset = load(make_source("movielens"), folder, progress)
    if dataset.matrix.shape != MOVIELENS_1M:
        users, films = dataset.matrix.shape
        progress.opening += f"note: not MovieLens 1M, but {users:,} users and {films:,} films\n"
    found: list[GuideWorld] = []
    for world in worlds:
        try:
            found.append(world.on(dataset) if isinstance(world, DataWorld) else world)
        except InvalidInput as error:
            raise error.within(world.name) from None
    return found


def _check_alone(world: Sequence[str] | None, data: Path | None) -> None:
    """A file is played alone."""
    if world:
        raise InvalidInput("--world and --interactions exclude each other; give one of them")
    if data is not None:
        raise InvalidInput("--data goes with the worlds of MovieLens; --interactions names its file itself")


def _against_default(specs: Sequence[str]) -> list[Policy]:
    """These policies, and the default, with which they are compared."""
    policies = [make_policy(spec) for spec in specs]
    if all(policy.label != DEFAULT_POLICY for policy in policies):
        policies.append(make_policy(DEFAULT_POLICY))
    return policies_named(policies)


def _world_of(
    path: Path, columns: Mapping[str, Any], cut: Mapping[str, Any], progress: ProgressBar
) -> DataWorld:
    """The world that the file makes."""
    read = interaction_file.read_file(path, columns, progress.doing(f"reading {path.name}"))
    progress.opening += interaction_file.notes_on(path.name, read, columns)
    users, items = len(read.user_ids), len(read.item_ids)
    cut = {"rank": interaction_file.usual_rank(read), "k": K_ON_FILE, **cut}
    call = ["--interactions", path.name]
    for name, value in {**columns, **cut}.items():
        option = "--items" if name == "n_items" else f"--{name.replace('_', '-')}"
        call += [option] if value is True else [option, f"{value:g}" if name == "above" else str(value)]
    kept = cut.get("n_items", items)
    why = f"{users:,} users, and the {kept:,} of {items:,} items that most of them like."
    return DataWorld(path.name, shlex.join(call), why=why, **cut).on(Dataset.of(read, title=path.name))


def as_plain(lines: Sequence[Line]) -> list[dict[str, Any]]:
    """The lines for `--json`; what is no number is null."""
    return [
        {name: None if value != value else value for name, value in asdict(line).items()} for line in lines
    ]
