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
    """Create a model from another one's log: the same items and slates, learned by another policy.

    The new model knows what a model of that policy would know after the same items and clicks. The old model
    stays as it is; feedback for slates that it has shown still goes to it. `firstclick log` and `firstclick
    audit --slates` show which model a slate comes from.

    \b
    A policy can learn from a log unless
    - it learns from slates that it has shuffled itself:
      batch-rank, bubble-rank, recur-rank, top-rank;
    - it needs features, and the items have none that it can use;
    - it needs a context, and the slates have none of the right length.

    Parts of the log that the policy does not use, such as a context, are ignored. If the policy cannot learn
    from the log, the error names those that can.

    PostgreSQL: works while servers are running. SQLite: stop the server first, or ask the server: POST
    /v1/models/MODEL/fork.

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
    """Create a model from another one's log: the same items, slates and policy, learned by this version.

    For a model that this version does not serve because another version of its policy has learned it. The old
    model stays as it is. Feedback that comes later for its slates is lost. An SQLite file must not be open
    in a server.

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
