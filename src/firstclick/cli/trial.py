"""`firstclick trial`: is it better than the list?"""

from collections.abc import Callable
from dataclasses import asdict
from typing import Annotated, Any

from typer import Option

from firstclick.cli.command_line import command_group
from firstclick.cli.console import page, print_json, talk
from firstclick.cli.options import choice, count
from firstclick.cli.progress_bar import progress_bar
from firstclick.cli.stores import OWN_STORE, ModelArgument, StoreOption, find_model, opened
from firstclick.errors import InvalidInput
from firstclick.validation.quoting import quoted

trial_app = command_group("Compare policies and the baseline on live requests.")

ServerOption = Annotated[
    str | None,
    Option("--server", metavar="URL", help="Address of a running server, instead of --store."),
]
KeyOption = Annotated[
    str | None,
    Option(
        "--key",
        envvar="FIRSTCLICK_KEY",
        show_envvar=False,
        help="API key for that server; or set FIRSTCLICK_KEY.",
    ),
]
ArmOption = Annotated[
    list[str] | None,
    Option(
        "--arm",
        metavar="ARM=SHARE",
        help="policy, baseline, policy:SPEC or model:NAME, and its share; repeatable.",
    ),
]


@trial_app.command(short_help="Start a trial on a model.")
def start(
    model: ModelArgument,
    arm: ArmOption = None,
    learn_from: Annotated[
        str, choice("own: an arm learns from its own slates; all: from all slates.", "own", "all")
    ] = "own",
    stop_if_worse: Annotated[
        bool, Option("--stop-if-worse", help="Show the baseline as soon as the policy is worse.")
    ] = False,
    last_pages: Annotated[
        int, count("Pages that the second figure of the report covers.", "--last-pages")
    ] = 10_000,
    store: StoreOption = OWN_STORE,
    server: ServerOption = None,
    key: KeyOption = None,
) -> None:
    """Start a trial. Without --arm 90 % of the users see the policy and 10 % the baseline.

    Send the id of a user or visit as `unit` with each request, so that a user stays in one arm. If a server
    has the SQLite file open, use --server.

    \b
    Examples:
      firstclick trial start shop --server http://127.0.0.1:8000
      firstclick trial start shop --arm policy=0.45 --arm policy:cascade-ts=0.45 \\
        --arm baseline=0.1 --server http://127.0.0.1:8000
    """
    shares = _shares(arm)
    options: dict[str, Any] = {
        "learn_from": learn_from, "stop_if_worse": stop_if_worse, "last_pages": last_pages,
    }  # fmt: skip
    place = _change(
        model, store, server, key,
        lambda service: service.start_trial(model, shares, **options),
        lambda client: client.start_trial(shares, **options),
    )  # fmt: skip
    told = _in_words(shares or {"policy": 0.9, "baseline": 0.1})
    talk.print(f"{model}: the trial starts with event {place:,}: {told}")
    from firstclick.serve.config import shown_store

    where = f"--server {server}" if server else f"--store {shown_store(store)}"
    talk.print(f"`firstclick trial report {model} {where}` says how it stands")


@trial_app.command(short_help="Change the shares of the arms.")
def shares(
    model: ModelArgument,
    arm: ArmOption = None,
    store: StoreOption = OWN_STORE,
    server: ServerOption = None,
    key: KeyOption = None,
) -> None:
    """Change the shares of all arms. A new period starts. As few users as possible change their arm.

    \b
    Example:
      firstclick trial shares shop --arm policy=0.5 --arm baseline=0.5 \\
        --server http://127.0.0.1:8000
    """
    given = _shares(arm)
    if given is None:
        raise InvalidInput("say the share of each arm: --arm policy=0.5 --arm baseline=0.5")
    place = _change(
        model, store, server, key,
        lambda service: service.change_trial_shares(model, given),
        lambda client: client.change_trial_shares(given),
    )  # fmt: skip
    talk.print(f"{model}: from event {place:,} on {_in_words(given)}")


@trial_app.command(short_help="End the trial.")
def stop(
    model: ModelArgument,
    show: Annotated[str, choice("Who decides the slates from now on.", "policy", "baseline")] = "policy",
    store: StoreOption = OWN_STORE,
    server: ServerOption = None,
    key: KeyOption = None,
) -> None:
    """End the trial. Its report stays.

    \b
    Example:
      firstclick trial stop shop --show policy --server http://127.0.0.1:8000
    """
    place = _change(
        model, store, server, key,
        lambda service: service.stop_trial(model, show=show),
        lambda client: client.stop_trial(show=show),
    )  # fmt: skip
    told = "the policy decides, within its floor" if show == "policy" else "the baseline is shown"
    talk.print(f"{model}: no trial is running; from event {place:,} on {told}")


@trial_app.command(short_help="Print the results so far.")
def report(
    model: ModelArgument,
    store: StoreOption = OWN_STORE,
    server: ServerOption = None,
    key: KeyOption = None,
    json: Annotated[bool, Option("--json", help="Print JSON.")] = False,
) -> None:
    """Print the clicks of each arm, their difference, and the verdict. Works while a server is running.

    Look as often as you like: the intervals stay valid.

    \b
    Example:
      firstclick trial report shop --store shop.db
    """
    import msgspec

    from firstclick.serve.model.replay import recover
    from firstclick.serve.model.trial_events import TrialReport, trial_report

    if server is not None:
        from firstclick.client import Client

        with Client(server, model, key=key) as client:
            found = msgspec.convert(client.trial_report(), TrialReport)
    else:
        with opened(store) as there, progress_bar() as progress:
            found = trial_report(recover(there, find_model(there, model), progress=progress.doing("reading")))
    if json:
        print_json(asdict(found))
    else:
        page().print(found.text(), end="")


def _in_words(shares: dict[str, float]) -> str:
    return ", ".join(f"{name} {share:.4g}" for name, share in shares.items())


def _shares(arms: list[str] | None) -> dict[str, float] | None:
    if not arms:
        return None
    found: dict[str, float] = {}
    taken: set[str] = set()
    for text in arms:
        # A policy's own parameters have equal signs, too.
        name, _, share = text.rpartition("=")
        try:
            found[name] = float(share.removesuffix("%")) / (100 if share.endswith("%") else 1)
        except ValueError:
            name = ""
        if name in taken:
            raise InvalidInput(f"--arm {name} is given twice; say its share once")
        taken.add(name)
        if not name:
            raise InvalidInput(f"--arm must be ARM=SHARE, such as policy=0.9, got {quoted(text)}")
    return found


def _change(
    model: str,
    store: str,
    server: str | None,
    key: str | None,
    here: Callable[[Any], int],
    there: Callable[[Any], int],
) -> int:
    """Change a model through its server, or in its store."""
    if server is not None:
        from firstclick.client import Client

        with Client(server, model, key=key) as client:
            return there(client)
    from firstclick.serve import open_service

    with opened(store) as known:
        find_model(known, model)
    with open_service(store) as service:
        return here(service)
