"""`firstclick simulate`: policies of your choice in a world, or on a file, of your choice."""

import secrets
import shlex
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from typer import Option

from firstclick.catalog.catalog import Catalog
from firstclick.catalog.ids import ItemId
from firstclick.catalog.list_file import read_list
from firstclick.cli import interaction_file
from firstclick.cli.experiments import Jobs
from firstclick.cli.options import choice, count, given, number, processes, refuse
from firstclick.cli.progress_bar import ProgressBar, progress_bar
from firstclick.cli.report_folder import check_output, hand_over
from firstclick.data import FeedbackScenario, feedback_matrix, read_features
from firstclick.errors import InvalidInput, UnknownName
from firstclick.experiments import simulate as play
from firstclick.policies.base import Policy
from firstclick.registry import DEFAULT_POLICY, USUAL_POLICIES, make_policy, make_world, policy_class
from firstclick.studies.guide.worlds import NAMED
from firstclick.validation.whole_number import whole_number
from firstclick.worlds.base import Scenario, World, WorldSpec

USUAL_K = 4


def simulate(
    world: Annotated[
        str | None,
        Option(metavar="SPEC", help="World: NAME[:param=value,...], see the list above."),
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
    pick: Annotated[
        str | None, choice("Which items to keep; popular by default.", "popular", "random")
    ] = None,
    rank: interaction_file.Rank = None,
    unscaled: Annotated[bool, Option("--unscaled", help="Features are rows of V, not V Sigma.")] = False,
    intercept: Annotated[bool, Option("--intercept", help="Add a constant feature.")] = False,
    one_split: Annotated[
        bool,
        Option(
            "--one-split", help="Use one split of the users for all runs; by default each run has its own."
        ),
    ] = False,
    features: Annotated[
        Path | None,
        Option(metavar="FILE", help="With --world: features from a .npy or CSV file, a row per item."),
    ] = None,
    policy: Annotated[
        list[str] | None,
        Option(
            metavar="SPEC",
            help="Policy: NAME[:param=value,...], see `firstclick policies`; repeatable; default: a standard "
            "set.",
        ),
    ] = None,
    baseline: Annotated[
        str | None,
        Option(
            metavar="FILE|SHARE",
            help="Compare with a list: a file with one id per line, or 0.5 for a made-up list that gets half "
            "of the best slate's clicks.",
        ),
    ] = None,
    max_loss: Annotated[
        float | None,
        number("With --baseline: show it too, so that at most this share of its clicks is lost."),
    ] = None,
    k: Annotated[
        int | None, count("Length of a slate; 4 by default, or as long as the page of a fitted world.")
    ] = None,
    steps: Annotated[int, count("Slates per run.")] = 100_000,
    runs: Annotated[int, count("Number of runs; standard errors are over runs.")] = 10,
    jobs: Jobs = 0,
    seed: Annotated[int | None, count("Random seed; drawn and printed by default.")] = None,
    folder: Annotated[
        Path | None,
        Option("--out", metavar="FOLDER", help="Folder for report.html, results.json, results.csv, figures."),
    ] = None,
    overwrite: Annotated[bool, Option("--overwrite", help="Replace results in --out.")] = False,
    json: Annotated[bool, Option("--json", help="Print JSON instead of the table.")] = False,
) -> None:
    """Play policies in a world, or on a file of who liked what, and compare their regret.

    \b
    In a world:
      firstclick simulate --world blb:n_items=16,k=2,p=0.2,gap=0.15 --k 2 \\
        --policy cascade-ucb1 --policy cascade-kl-ucb --steps 100000 --runs 20

    \b
    On a file, here the ratings of MovieLens:
      firstclick simulate --interactions ratings.dat --value-column 2 --above 3 \\
        --items 256 --policy cascade-lin-ts --policy cascade-ucb1:radius=0.5 \\
        --out results

    \b
    Beside the list that is shown today, losing at most 5 % of its clicks:
      firstclick simulate --world linear:n_items=60 --policy cascade-ts \\
        --steps 20000 --baseline 0.6 --max-loss 0.05

    \b
    Worlds and their defaults:
      bernoulli:attractions=0.5/0.4/0.3/0.2/0.1
      blb:n_items=16,k=2,p=0.2,gap=0.15
      drift:n_items=100,n_features=5,period=5000,thetas=4,best=0.5
      linear:n_items=100,n_features=5,best=0.5
      logistic:n_items=100,n_features=6,best=0.5,spread=4.0
      long-tail:n_items=10000,n_features=32,best=0.5,fading=0.8,tail=0.45
      partly:n_items=100,n_features=5,best=0.5,own=0.5
      shop:n_items=1500,n_features=50,own=0.4,units=scaled
      switch:n_items=100,n_features=5,period=5000,thetas=4,best=0.5
      topics:n_items=100,topics=8,relevance=0,best=0.5
      types:n_items=100,n_features=5,types=4,best=0.5,told=places
      vectors:n_items=100,n_features=5,n_context=3,users=200,best=0.5
    Each also takes clicks=: cascade, dcm/0.6/0.5, pbm/1/0.7/0.5 or scroll/0.8.

    \b
    Your page, from a click model that `firstclick click-model fit` wrote:
      --world fitted:fit.npz
      --world fitted:fit.npz,segment=mobile,catalog=items.csv
    """
    text = given(separator=separator, encoding=encoding)
    columns = given(
        user_column=user_column, item_column=item_column, value_column=value_column, above=above,
        header=header, strict=strict,
    )  # fmt: skip
    cut = given(
        n_items=n_items, pick=pick, rank=rank, unscaled=unscaled, intercept=intercept, one_split=one_split
    )
    _check_places(world, interactions, features)
    if interactions is None:
        refuse({**columns, **cut}, "--interactions")
        refuse({} if features else text, "--interactions or --features")
    refuse({} if folder else given(overwrite=overwrite), "--out")
    refuse({} if baseline else given(max_loss=max_loss), "--baseline")
    # Here already, because reading a large file takes a minute.
    interaction_file.check_above(above)
    for name, value in given(k=k, steps=steps, runs=runs, rank=rank, n_items=n_items).items():
        whole_number(name, value, at_least=1, at_most=None)
    check_output(folder, overwrite=overwrite)
    chosen = [make_policy(spec) for spec in policy or ()]
    kind = None if world is None else _kind_of(world)
    drawn = seed is None
    # Short enough to be typed.
    seed = secrets.randbelow(2**31) if seed is None else seed
    with progress_bar() as progress:
        if drawn:
            progress.opening = f"seed {seed} (drawn; repeat with --seed {seed})\n"
        if kind is not None:
            playground = _in_world(kind, seed, features, chosen, text)
        else:
            assert interactions is not None
            playground = _on_file(interactions, {**columns, **text}, chosen, cut, progress)
        if k is None:
            k = playground.usual_k
        results = play(
            playground.policies, playground.stage, playground.features, k=k, steps=steps, runs=runs,
            seed=seed, jobs=processes(jobs), progress=progress,
            settings=playground.settings | given(baseline=baseline, max_loss=max_loss),
            baseline=None if baseline is None else _list_or_share(baseline, playground.items),
            max_loss=max_loss,
        )  # fmt: skip
    hand_over(
        results,
        folder,
        as_json=json,
        title="Regret of policies",
        subtitle=playground.subtitle,
        command="firstclick " + shlex.join(_without_output(sys.argv[1:], seed)),
    )


def _check_places(world: str | None, interactions: Path | None, features: Path | None) -> None:
    """There must be one place to play in, and features may come with a world alone."""
    if world is None and interactions is None:
        raise InvalidInput("give --world SPEC or --interactions FILE to play on; --help has examples")
    if world is not None and interactions is not None:
        raise InvalidInput("--world and --interactions exclude each other; give one of them")
    if interactions is not None and features is not None:
        raise InvalidInput("--features goes with --world; with --interactions use --rank")


def _kind_of(world: str) -> WorldSpec:
    try:
        return make_world(world)
    except UnknownName:
        for stock in NAMED:
            if stock.name == world:
                way_out = f"say {stock.call}"
                raise UnknownName(f"{world!r} is a stock world of firstclick compare; {way_out}") from None
        raise


@dataclass(frozen=True)
class _Playground:
    """What `simulate` is called with, and how the report calls it."""

    stage: World | Scenario
    features: NDArray[np.float64] | None
    policies: list[Policy]
    settings: dict[str, Any]
    subtitle: str
    items: Sequence[str]

    @property
    def usual_k(self) -> int:
        """How many items are shown if nobody says: as many as the page of a fitted world has."""
        page = self.stage.longest_slate if isinstance(self.stage, World) else None
        return USUAL_K if page is None else min(page, len(self.items))


def _in_world(
    kind: WorldSpec, seed: int, file: Path | None, chosen: list[Policy], text: Mapping[str, Any]
) -> _Playground:
    read = None if file is None else read_features(file, **text)
    world = kind.build(seed)
    features = world.features if read is None else read
    return _Playground(
        stage=world,
        features=features,
        policies=chosen or _usual_policies(has_features=features is not None),
        settings={"world": kind.label, "features": None if file is None else str(file)},
        subtitle=kind.label,
        items=world.names(),
    )


def _on_file(
    path: Path, columns: Mapping[str, Any], chosen: list[Policy], cut: dict[str, Any], progress: ProgressBar
) -> _Playground:
    read = interaction_file.read_file(path, columns, progress.doing(f"reading {path.name}"))
    above = columns.get("above")
    progress.opening += interaction_file.notes_on(path.name, read, columns)
    policies = chosen or _usual_policies(has_features=True)
    users, items = len(read.user_ids), len(read.item_ids)
    if not any(policy.needs_features or policy.takes_features for policy in policies):
        cut["rank"] = None  # The SVD of a large matrix takes its time, and nobody would look at it.
    elif "rank" not in cut:
        cut["rank"] = interaction_file.usual_rank(read)
    scaled = not cut.pop("unscaled", False)
    scenario = FeedbackScenario(feedback_matrix(read), item_names=read.item_ids, scaled=scaled, **cut)
    return _Playground(
        stage=scenario,
        features=None,
        policies=policies,
        settings={
            "interactions": str(path), "above": above, "users": users, "items in the file": items,
            "items": scenario.n_items, "pick": scenario.pick, "rank": scenario.rank,
            "features": ("V Sigma" if scaled else "V") + " and intercept" * scenario.intercept,
            "one_split": scenario.one_split,
        },
        subtitle=f"{path.name}: {users:,} users, {scenario.n_items:,} of {items:,} items",
        items=read.item_ids,
    )  # fmt: skip


def _list_or_share(given: str, items: Sequence[str]) -> list[ItemId] | float:
    """The ids in a file of this name, or a share of the best slate's clicks."""
    try:
        return float(given)
    except ValueError:
        return read_list(given, Catalog(items))


def _usual_policies(*, has_features: bool) -> list[Policy]:
    usual = sorted({DEFAULT_POLICY, *USUAL_POLICIES})
    return [make_policy(name) for name in usual if has_features or not policy_class(name).needs_features]


def _without_output(arguments: list[str], seed: int) -> list[str]:
    """The same call, with the seed, and without where its results went."""
    kept = []
    rest = iter(arguments)
    for argument in rest:
        if argument == "--out":
            next(rest, None)
        elif argument not in ("--overwrite", "--json") and not argument.startswith("--out="):
            kept.append(argument)
    named = any(argument == "--seed" or argument.startswith("--seed=") for argument in kept)
    return kept if named else [*kept, "--seed", str(seed)]
