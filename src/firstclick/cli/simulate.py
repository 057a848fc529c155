"""`firstclick simulate`: learners of your choice in a world, or on a file, of your choice."""

import shlex
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from typer import Option

from firstclick.cli.console import (
    check_output,
    default_jobs,
    drawn_seed,
    print_json,
    print_results,
    progress_bar,
    write_output,
)  # fmt: skip
from firstclick.data import FeedbackScenario, feedback_matrix, read_features, read_interactions
from firstclick.errors import InvalidInput
from firstclick.protocol import Policy, Scenario, World
from firstclick.registry import make_policy, make_world, policy_classes
from firstclick.simulate import simulate as play


class Pick(StrEnum):
    popular = "popular"
    random = "random"


def simulate(
    world: Annotated[
        str | None, Option(help="World: blb:n_items=16,k=2,p=0.2,gap=0.15, linear:..., bernoulli:...")
    ] = None,
    interactions: Annotated[
        Path | None, Option(help="File of user, item[, value]: CSV, TSV or '::'-separated.")
    ] = None,
    user_column: Annotated[str, Option(help="Column of the user: a name, or a number from 0.")] = "0",
    item_column: Annotated[str, Option(help="Column of the item.")] = "1",
    value_column: Annotated[str | None, Option(help="Column of the value, such as a rating.")] = None,
    above: Annotated[float | None, Option(help="An item attracts if its value is above this.")] = None,
    separator: Annotated[str | None, Option(help="Separator of columns, if not found by itself.")] = None,
    header: Annotated[
        bool, Option("--header", help="Line 1 names columns, though numbers are given.")
    ] = False,
    encoding: Annotated[str, Option(help="Encoding of the file.")] = "utf-8-sig",
    items: Annotated[int | None, Option(help="Keep this many items; all by default.")] = None,
    pick: Annotated[Pick, Option(help="Which items to keep.")] = Pick.popular,
    rank: Annotated[int, Option(help="Features by truncated SVD of this rank.")] = 20,
    unscaled: Annotated[bool, Option("--unscaled", help="Features are rows of V, not V Sigma.")] = False,
    intercept: Annotated[bool, Option("--intercept", help="Add a constant feature.")] = False,
    one_split: Annotated[bool, Option("--one-split", help="One split of the users for all runs.")] = False,
    features: Annotated[
        Path | None, Option(help="With --world: features from a .npy or CSV file, a row per item.")
    ] = None,
    policy: Annotated[
        list[str] | None, Option(help="Learner NAME[:param=value,...]; again for more; all by default.")
    ] = None,
    k: Annotated[int, Option(help="Items shown at a time.")] = 4,
    steps: Annotated[int, Option(help="Steps of each run.")] = 100_000,
    runs: Annotated[int, Option(help="Runs.")] = 10,
    jobs: Annotated[int, Option(help="Processes; 0 for all processors.", min=0)] = 0,
    seed: Annotated[
        int | None, Option(help="Seed of everything random; drawn and printed if absent.")
    ] = None,
    folder: Annotated[
        Path | None, Option("--out", help="Folder for report.html, results.json, results.csv, figures.")
    ] = None,
    overwrite: Annotated[bool, Option("--overwrite", help="Replace results in --out.")] = False,
    json: Annotated[bool, Option("--json", help="Print JSON instead of the table.")] = False,
) -> None:
    """Play learners in a world, or on a file of who liked what, and compare their regret.

    Example: firstclick simulate --world blb:n_items=16,k=2,p=0.2,gap=0.15 --k 2
    --policy cascade-ucb1 --policy cascade-kl-ucb --steps 100000 --runs 20

    Example: firstclick simulate --interactions ratings.dat --value-column 2 --above 3
    --items 256 --policy cascade-lin-ts --policy cascade-ucb1:radius=0.5 --out results
    """
    if (world is None) == (interactions is None):
        raise InvalidInput("give either --world or --interactions")
    check_output(folder, overwrite=overwrite)
    chosen = [make_policy(spec) for spec in policy or ()]
    if world is not None:
        _only_with_interactions(value_column=value_column, above=above, items=items, separator=separator)
        kind = make_world(world)
    elif features is not None:
        raise InvalidInput("--features goes with --world; with --interactions use --rank")
    seed = drawn_seed(seed)
    with progress_bar() as progress:
        stage: World | Scenario
        given: NDArray[np.float64] | None = None
        settings: dict[str, Any]
        if world is not None:
            stage = kind.build(seed)
            given = stage.features if features is None else read_features(features)
            chosen = chosen or _all_policies(has_features=given is not None)
            settings = {"world": kind.label, "features": None if features is None else str(features)}
            subtitle = kind.label
        else:
            assert interactions is not None
            read = read_interactions(
                interactions, user_column=user_column, item_column=item_column, value_column=value_column,
                above=above, separator=separator, header=header or None, encoding=encoding,
            )  # fmt: skip
            chosen = chosen or _all_policies(has_features=True)
            stage = FeedbackScenario(
                feedback_matrix(read),
                # The SVD of a large matrix takes its time: not for learners that would not look at it.
                rank=rank if any(one.needs_features for one in chosen) else None,
                n_items=items,
                pick=pick.value,
                scaled=not unscaled,
                intercept=intercept,
                one_split=one_split,
                item_names=read.item_ids,
            )
            settings = {
                "interactions": str(interactions), "above": above, "users": len(read.user_ids),
                "items": stage.n_items, "pick": pick.value, "rank": rank,
                "features": ("V" if unscaled else "V Sigma") + (" and intercept" if intercept else ""),
                "one_split": one_split,
            }  # fmt: skip
            subtitle = f"{interactions.name}: {len(read.user_ids):,} users, {stage.n_items:,} items"
        results = play(
            chosen, stage, given, k=k, steps=steps, runs=runs, seed=seed, jobs=jobs or default_jobs(),
            progress=progress, settings=settings,
        )  # fmt: skip
    report = None
    if folder is not None:
        command = "firstclick " + shlex.join(_with_seed(sys.argv[1:], seed))
        report = write_output(results, folder, title="Regret of learners", subtitle=subtitle, command=command)
    if json:
        print_json(results.summary())
    else:
        print_results(results, report)


def _all_policies(*, has_features: bool) -> list[Policy]:
    return [cls() for cls in policy_classes().values() if has_features or not cls.needs_features]


def _only_with_interactions(**options: object) -> None:
    for name, value in options.items():
        if value is not None:
            raise InvalidInput(f"--{name.replace('_', '-')} goes with --interactions")


def _with_seed(arguments: list[str], seed: int) -> list[str]:
    named = any(argument == "--seed" or argument.startswith("--seed=") for argument in arguments)
    return arguments if named else [*arguments, "--seed", str(seed)]
