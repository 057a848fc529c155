"""`firstclick demo`: the default policy beside those of the paper, on a made-up feedback matrix."""

from pathlib import Path
from typing import Annotated

from typer import Option

from firstclick.cli.options import count, processes
from firstclick.cli.progress_bar import progress_bar
from firstclick.cli.report_folder import check_output, hand_over
from firstclick.data import FeedbackScenario, synthetic_matrix
from firstclick.experiments import simulate
from firstclick.registry import DEFAULT_POLICY

# The policies that the paper, Zong et al. 2016, plays or builds on.
PAPER = ("cascade-lin-ts", "cascade-lin-ucb", "cascade-ucb1", "cascade-kl-ucb", "ranked-lin-ts")
# The default may be one of the others.
POLICIES = tuple(dict.fromkeys((DEFAULT_POLICY, *PAPER, "random")))

OWN_FOLDER = Path("firstclick-demo")


def demo(
    steps: Annotated[int, count("Slates per run.")] = 20_000,
    runs: Annotated[int, count("Runs, each with its own split of the users.")] = 6,
    jobs: Annotated[int, count("Processes; 0 for all processors.")] = 0,
    seed: Annotated[int, count("Random seed.")] = 1,
    folder: Annotated[Path, Option("--out", metavar="FOLDER", help="Folder for the report.")] = OWN_FOLDER,
    overwrite: Annotated[
        bool,
        Option(
            "--overwrite",
            help="Replace other results in --out. Results of an older demo are always replaced.",
        ),
    ] = False,
    json: Annotated[bool, Option("--json", help="Print JSON instead of the table.")] = False,
) -> None:
    """Play the default policy beside those of the paper, and write a report. Needs no data.

    \b
    Example:
      firstclick demo --out my-demo
    """
    check_output(folder, overwrite=overwrite or folder == OWN_FOLDER)
    with progress_bar() as progress:
        feedback = synthetic_matrix(seed)
        n_users, n_items = feedback.matrix.shape
        kept, k, rank = 256, 4, 20
        progress.opening = (
            f"{n_users:,} made-up users x {n_items:,} items, of which {kept} compete for {k} places\n"
            f"{len(POLICIES)} policies x {runs} runs x {steps:,} steps\n"
        )
        results = simulate(
            list(POLICIES),
            FeedbackScenario(
                feedback.matrix, rank=rank, n_items=kept, pick="popular", item_names=feedback.item_names
            ),
            k=k,
            steps=steps,
            runs=runs,
            seed=seed,
            jobs=processes(jobs),
            progress=progress,
            settings={
                "data": f"synthetic, {n_users} users x {n_items} items",
                "items": kept,
                "pick": "popular",
                "rank": rank,
                "default policy": DEFAULT_POLICY,
            },
        )
    hand_over(
        results,
        folder,
        as_json=json,
        default=DEFAULT_POLICY,
        title="Learning what to recommend from the first click",
        subtitle=f"{DEFAULT_POLICY}, the default, beside five policies of the paper and random order. "
        f"A synthetic feedback matrix of {n_users:,} users and {n_items:,} items, of which the {kept} most "
        f"attractive compete for {k} places",
        command=f"firstclick demo --steps {steps} --runs {runs} --seed {seed}",
    )
