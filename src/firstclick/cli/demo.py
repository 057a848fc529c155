"""`firstclick demo`: the learners side by side on a made-up feedback matrix."""

from pathlib import Path
from typing import Annotated

from typer import Option

from firstclick.cli.console import (
    check_output,
    default_jobs,
    print_json,
    print_results,
    progress_bar,
    talk,
    write_output,
)  # fmt: skip
from firstclick.data import FeedbackScenario, synthetic_matrix
from firstclick.simulate import simulate

DEMO_POLICIES = (
    "cascade-lin-ts", "cascade-lin-ucb", "ranked-lin-ts", "cascade-ts", "cascade-kl-ucb", "cascade-ucb1",
    "random",
)  # fmt: skip


def demo(
    steps: Annotated[int, Option(help="Steps of each run.")] = 20_000,
    runs: Annotated[int, Option(help="Runs, each with its own split of the users.")] = 6,
    jobs: Annotated[int, Option(help="Processes; all processors by default.")] = 0,
    seed: Annotated[int, Option(help="Seed of everything that is random.")] = 1,
    folder: Annotated[Path, Option("--out", help="Folder for the report.")] = Path("firstclick-demo"),
    json: Annotated[bool, Option("--json", help="Print JSON instead of the table.")] = False,
) -> None:
    """Play all learners on a synthetic feedback matrix and write a report. Needs no data.

    Example: firstclick demo --out my-demo
    """
    check_output(folder, overwrite=True)
    feedback = synthetic_matrix(seed)
    n_users, n_items = feedback.matrix.shape
    kept, k, rank = 256, 4, 20
    talk.print(
        f"{n_users:,} made-up users x {n_items:,} items; the {kept} most attractive ones, "
        f"{k} shown at a time, {steps:,} steps, {runs} runs"
    )
    with progress_bar() as progress:
        results = simulate(
            list(DEMO_POLICIES),
            FeedbackScenario(
                feedback.matrix, rank=rank, n_items=kept, pick="popular", item_names=feedback.item_names
            ),
            k=k,
            steps=steps,
            runs=runs,
            seed=seed,
            jobs=jobs or default_jobs(),
            progress=progress,
            settings={
                "data": f"synthetic, {n_users} users x {n_items} items",
                "items": kept,
                "pick": "popular",
                "rank": rank,
            },
        )
    report = write_output(
        results,
        folder,
        title="Learning what to recommend from the first click",
        subtitle=f"{len(results.results)} learners on a synthetic feedback matrix of {n_users:,} users "
        f"and {n_items:,} items, of which the {kept} most attractive compete for {k} places",
        command=f"firstclick demo --steps {steps} --runs {runs} --seed {seed}",
    )
    if json:
        print_json(results.summary())
    else:
        print_results(results, report)
