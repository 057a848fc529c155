"""The command line: each command opens what it is given, calls the library once, and prints."""

import io
import os
import sys

import typer

from firstclick import __version__
from firstclick.cli.app import CommandLine
from firstclick.cli.bound import bound
from firstclick.cli.compare import compare
from firstclick.cli.data import data_app
from firstclick.cli.demo import demo
from firstclick.cli.features import features
from firstclick.cli.keys import keys_app
from firstclick.cli.policies import policies
from firstclick.cli.reproduce import reproduce
from firstclick.cli.run import run
from firstclick.cli.serve import serve
from firstclick.cli.simulate import simulate
from firstclick.cli.stores import audit, export, import_, log, relearn
from firstclick.errors import FirstclickError, WorkFailed
from firstclick.extras import needed_by

INTERRUPTED = 130

app = CommandLine(name="firstclick", help="Cascading bandits: learn what to recommend from the first click.")
app.command(short_help="Play the usual policies on made-up data, write a report.")(demo)
app.command(short_help="Play policies in a world, or on your own data.")(simulate)
app.command(short_help="Every policy in every stock world: the guide.")(compare)
app.command(short_help="The paper: its experiments, figures and claims.")(reproduce)
app.command(short_help="Play an experiment that a TOML file declares.")(run)
app.command(short_help="Recommend over HTTP, and learn from the clicks.")(serve)
app.command(short_help="Learn item features from a log, write a catalog.")(features)
app.command(short_help="Fold every log again and compare, bit for bit.")(audit)
app.command(short_help="Print a model's events, or write them to a file.")(log)
app.command(short_help="Write a model to a file.")(export)
app.command("import", short_help="Put an exported model into a store.")(import_)
app.command(short_help="Start a new model from the log of another.")(relearn)
app.add_typer(keys_app, name="keys")
app.command(short_help="List the policies and their parameters.")(policies)
app.command(short_help="Theorem 1 in numbers: c and the regret bound.")(bound)
app.add_typer(data_app, name="data")


def _version(wanted: bool) -> None:
    if wanted:
        print(f"firstclick {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def _start(
    context: typer.Context,
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Show the version."
    ),
) -> None:
    if context.invoked_subcommand is None:
        print(context.get_help())


def main(application: typer.Typer = app) -> None:
    """Run the command line; a mistake is one line on stderr and exit code 2, failed work is 1."""
    if sys.stdout is None:  # closed by the caller: `firstclick ... >&-`
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A terminal without '±' shows '?' in its place; the numbers matter more.
        sys.stdout.reconfigure(errors="replace")
    try:
        with needed_by("this command"):
            code = application(standalone_mode=False)
        if code == INTERRUPTED:  # Typer makes this of a KeyboardInterrupt.
            _complain("interrupted; nothing was written", code)
        # Here and not at exit, where nobody could catch what goes wrong.
        sys.stdout.flush()
    except typer.TyperException as error:
        code = _complain(_in_words(error), error.exit_code)
    except FirstclickError as error:
        code = _complain(str(error), 1 if isinstance(error, WorkFailed) else 2)
    except MemoryError as error:
        code = _complain(f"out of memory: {error}" if str(error) else "out of memory", 1)
    except BrokenPipeError:
        # The reader of a pipe, such as `head`, has gone: nothing is left to say.
        code = 1
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        code = _complain(where + (error.strerror or str(error)), 1)
    except KeyboardInterrupt:
        code = _complain("interrupted; nothing was written", INTERRUPTED)
    if code:
        _forget_stdout()
    sys.exit(code or 0)


def _in_words(error: typer.TyperException) -> str:
    """Typer's sentence; shorter, if it is about the value of an option."""
    if isinstance(error, typer.BadParameter) and error.param and error.message:
        return f"{error.param.opts[0]} {error.message}"
    return error.format_message()


def _complain(message: str, code: int) -> int:
    print("error: " + " ".join(message.split()), file=sys.stderr)
    return code


def _forget_stdout() -> None:
    """Send what could not be written nowhere, or Python complains about it once more at exit."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
