"""`firstclick fork` and `relearn`: a new model from the log of another."""

from contextlib import ExitStack
from pathlib import Path
from typing import Annotated

from typer import Option

from firstclick.cli.console import talk
from firstclick.cli.progress_bar import progress_bar
from firstclick.cli.stores import (
    OWN_STORE,
    ArchiveOption,
    ModelArgument,
    StoreOption,
    find_model,
    log_of,
    opened,
)
from firstclick.errors import InvalidInput


def fork(
    model: ModelArgument,
    policy: Annotated[
        str, Option("--policy", metavar="POLICY", help="Policy of the new model, NAME[:param=value,...].")
    ],
    name: Annotated[str, Option("--as", metavar="NAME", help="Name of the new model.")],
    store: StoreOption = OWN_STORE,
    archive: ArchiveOption = None,
) -> None:
    """Start a new model from the log of another: the same items and slates, learned by another policy.

    It comes to what a new model of that policy would, had it been given the same items and clicks. The old
    model stays as it is, and slates that it has shown are its own: their clicks go to it. `firstclick log`
    and `firstclick audit --slates` tell whose slates are whose.

    \b
    A policy can learn from a log unless
    - it learns from slates that it has shuffled itself:
      batch-rank, bubble-rank, recur-rank, top-rank;
    - it needs features, and the items have none, or none that it can work with;
    - it wants numbers of context, and the slates have none, or not as many.

    What it does not take, such as a context, it does not look at. The error names the policies that can.

    PostgreSQL: beside running servers. SQLite: stop the server first, or ask it: POST /v1/models/MODEL/fork.

    \b
    Example:
      firstclick fork shop --policy cascade-lin-ucb --as shop2 --store shop.db
    """
    _fork(model, policy, name, store, archive)


def relearn(
    model: ModelArgument,
    name: Annotated[str, Option("--name", metavar="NAME", help="Name of the new model.")],
    store: StoreOption = OWN_STORE,
    archive: ArchiveOption = None,
) -> None:
    """Start a new model from the log of another: the same items, slates and policy, learned by this version.

    For a model that another version of its policy has learned, which this firstclick does not serve. The old
    model stays as it is; clicks for slates that it has shown and not heard of yet are lost. No server may
    have the store open if it is an SQLite file.

    \b
    Example:
      firstclick relearn shop --name shop-2 --store shop.db
    """
    _fork(model, None, name, store, archive)


def _fork(model: str, policy: str | None, name: str, store: str, archive: list[Path] | None) -> None:
    from firstclick.serve.model.fork import fork as forked

    with opened(store) as there:
        find_model(there, model)
    with ExitStack() as stack:
        try:
            there = stack.enter_context(opened(store, read_only=False))
        except InvalidInput as error:
            # As a rule a server has the file.
            way_out = f"; or have a running server do it: POST /v1/models/{model}/fork" if policy else ""
            raise InvalidInput(f"{error}{way_out}") from None
        old = find_model(there, model)
        whole = stack.enter_context(log_of(there, old, archive))
        told = stack.enter_context(progress_bar()).doing(f"learning {model}")
        made = forked(there, whole, old, name, policy, progress=told)
    passed = f"; {made.left_out:,} slates came without the context that it wants" if made.left_out else ""
    if made.late_clicks:
        passed += f"; {made.late_clicks:,} late clicks are left out: it cannot take back what it has learned"
    talk.print(
        f"{name}: a new model of {made.policy} with the {made.stored.head:,} events of {model}{passed}"
    )
