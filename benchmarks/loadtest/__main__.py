"""`python -m benchmarks.loadtest`: how much a server bears, and how long its answers take."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from rich.table import Table
from typer import Option

from firstclick.cli.command_line import CommandLine
from firstclick.cli.console import page, print_json
from firstclick.cli.main import run_command_line
from firstclick.cli.options import count, number
from firstclick.cli.progress_bar import progress_bar
from firstclick.errors import InvalidInput
from firstclick.validation.whole_number import whole_number

if TYPE_CHECKING:
    from benchmarks.loadtest.run import LoadTest

SECONDS_BETWEEN_LINES = 15.0
MOST_SECONDS, MOST_ROUNDS, MOST_EVENTS = 600.0, 100, 10**8


def loadtest(
    url: Annotated[
        str | None,
        Option(metavar="URL", help="Server that is running, http://host:port; by default one of its own."),
    ] = None,
    model: Annotated[str, Option(metavar="NAME", help="Model of that server.")] = "default",
    key: Annotated[
        str | None,
        Option(metavar="KEY", envvar="FIRSTCLICK_KEY", show_envvar=True, help="API key of that server."),
    ] = None,
    feedback: Annotated[
        bool,
        Option("--feedback", help="Send that server feedback too: its model learns from made-up clicks."),
    ] = False,
    anywhere: Annotated[
        bool, Option("--anywhere", help="Let that server be on another machine; it must be yours.")
    ] = False,
    seconds: Annotated[float, number("Time of each measurement.")] = 5.0,
    rounds: Annotated[int, count("How often each is measured; the best round counts.")] = 3,
    share: Annotated[float, number("Latencies are measured at this share of the throughput.")] = 0.5,
    rate: Annotated[
        float | None, number("Latencies are measured at this many requests or entries a second instead.")
    ] = None,
    events: Annotated[
        int, count("Events in the log that is recovered, of our own server; 0 for no recovery.")
    ] = 1_000_000,
    items: Annotated[int, count("Items of our own server.")] = 10_000,
    folder: Annotated[
        Path | None,
        Option(metavar="FOLDER", help="Where our own server's files go for the time; temporary by default."),
    ] = None,
    json: Annotated[bool, Option("--json", help="Print JSON instead of the tables.")] = False,
) -> None:
    """Put a server under load, and compare with an empty request to the same server.

    Throughput: as fast as it goes over 64 connections, 256 for feedback. Latency: requests are due at fixed
    times, whether or not earlier ones were answered, and count from when they were due.

    Without --url it starts servers of its own, with made-up items on a temporary store, and measures
    everything: about five minutes. 10,000 items have 32 features, a slate 10 places.

    \b
    A server that is running:
      python -m benchmarks.loadtest --url http://127.0.0.1:8000 --model shop

    \b
    Everything, faster:
      python -m benchmarks.loadtest --seconds 1 --rounds 2 --events 100000
    """
    _check(seconds, rounds, share, rate, events, items)
    if url is None:
        _refuse_unused(key is not None, "--key", feedback, "--feedback", anywhere, "--anywhere")
    elif folder is not None:
        raise InvalidInput("--folder goes with a server of our own; leave it out, or --url")
    if folder is not None and not folder.is_dir():
        raise InvalidInput(f"--folder {folder} is not there; name a folder that is")
    # Imported late: no other command needs the server.
    from benchmarks.loadtest.run import own_server, running_server

    how: dict[str, Any] = {"seconds": seconds, "rounds": rounds, "share": share, "rate": rate}
    with progress_bar(every=SECONDS_BETWEEN_LINES) as bar:

        def progress(what: str, done: int, total: int) -> None:
            bar.doing(what)(done, total)

        if url is None:
            found = own_server(
                **how, events=events, n_items=items, folder=None if folder is None else str(folder),
                progress=progress,
            )  # fmt: skip
        else:
            found = running_server(
                url, model=model, key=key, feedback=feedback, anywhere=anywhere, progress=progress, **how
            )
    if json:
        print_json(found.as_json())
    else:
        _print(found, share, rate)


def _check(seconds: float, rounds: int, share: float, rate: float | None, events: int, items: int) -> None:
    if not 0 < seconds <= MOST_SECONDS:
        raise InvalidInput(f"--seconds must be above 0 and at most {MOST_SECONDS:g}, got {seconds:g}")
    if not 0 < share <= 2:
        raise InvalidInput(f"--share must be above 0 and at most 2, got {share:g}")
    if rate is not None and not 0 < rate <= 1e6:
        raise InvalidInput(f"--rate must be above 0 and at most 1,000,000, got {rate:g}")
    whole_number("--rounds", rounds, at_least=1, at_most=MOST_ROUNDS)
    whole_number("--events", events, at_least=0, at_most=MOST_EVENTS)
    whole_number("--items", items, at_least=100, at_most=10**6)


def _refuse_unused(*given: bool | str) -> None:
    for is_given, name in zip(given[::2], given[1::2], strict=True):
        if is_given:
            raise InvalidInput(f"{name} goes with --url, a server that is running")


def _print(found: "LoadTest", share: float, rate: float | None) -> None:
    out = page()
    offered = f"{share:.0%} of the throughput" if rate is None else f"{rate:,.0f} a second"
    out.print(f"Throughput a second, and latency in ms at {offered}. Best round; lowest and highest in ().")
    table = Table(box=None, pad_edge=False)
    table.add_column("", no_wrap=True)
    for heading in ("a second", "", "p50", "p99", "p99.9", ""):
        table.add_column(heading, justify="right", no_wrap=True)
    told = [contestant.as_json() for contestant in found.contestants]
    for one in told:
        p99 = [value for value in one["p99s_ms"] if value is not None]
        table.add_row(
            one["name"],
            f"{one['rate']:,.0f}",
            f"({min(one['rates']):,.0f}–{max(one['rates']):,.0f})",
            *(_ms(one[name]) for name in ("p50_ms", "p99_ms", "p999_ms")),
            f"({_ms(min(p99))}–{_ms(max(p99))})" if p99 else "",
        )
    out.print(table)
    for one in told:
        for word in ("refused", "unanswered"):
            if one[word]:
                out.print(f"{one['name']}: {one[word]:,} requests were {word}")
    if found.demands:
        ratios = Table(box=None, pad_edge=False)
        for heading in ("", "found", "", "asked", ""):
            ratios.add_column(heading, justify="left" if not heading else "right", no_wrap=True)
        for demand in found.demands:
            low, high = demand.spread
            asked = (
                f"at least {demand.at_least:g}" if demand.at_least is not None
                else f"at most {demand.at_most:g}" if demand.at_most is not None
                else ""
            )  # fmt: skip
            met = {True: "yes", False: "NO", None: ""}[demand.met]
            ratios.add_row(demand.name, f"{demand.value:.2f}", f"({low:.2f}–{high:.2f})", asked, met)
        out.print()
        out.print(ratios)
    for note in found.notes:
        out.print(f"note: {note}")


def _ms(value: float | None) -> str:
    return "" if value is None else f"{value:.2f}" if value < 10 else f"{value:.0f}"


app = CommandLine()
app.command()(loadtest)

if __name__ == "__main__":
    run_command_line(app)
