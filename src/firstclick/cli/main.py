"""Run a command line: an error is one line on stderr and an exit code, never a traceback."""

import io
import os
import sys

import typer

from firstclick.errors import FirstclickError, WorkFailed
from firstclick.extras import needed_by

INTERRUPTED = 130


def run_command_line(application: typer.Typer) -> None:
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
