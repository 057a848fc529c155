"""The command line: each command opens what it is given, calls the library once, and prints."""

import sys

import typer

from firstclick import __version__
from firstclick.cli.bound import bound
from firstclick.cli.demo import demo
from firstclick.cli.policies import policies
from firstclick.cli.simulate import simulate
from firstclick.errors import FirstclickError, WorkFailed

app = typer.Typer(
    name="firstclick",
    help="Cascading bandits: learn what to recommend from the first click.",
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
app.command()(demo)
app.command()(simulate)
app.command()(policies)
app.command()(bound)


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


def main() -> None:
    """Run the command line; a mistake is one line on stderr and exit code 2, failed work is 1."""
    try:
        code = app(standalone_mode=False)
    except typer.TyperException as error:
        code = _complain(error.format_message(), error.exit_code)
    except WorkFailed as error:
        code = _complain(str(error), 1)
    except FirstclickError as error:
        code = _complain(str(error), 2)
    except (KeyboardInterrupt, typer.Abort):
        code = _complain("interrupted; nothing was written", 130)
    except BrokenPipeError:
        # The reader of a pipe, such as `head`, has gone: nothing is left to say, or to flush at exit.
        sys.stdout = None
        code = 1
    sys.exit(code or 0)


def _complain(message: str, code: int) -> int:
    print("error: " + " ".join(message.split()), file=sys.stderr)
    return code
