"""The command line: each command opens what it is given, calls the library once, and prints."""

import typer

from firstclick import __version__
from firstclick.cli.archive import archive
from firstclick.cli.backup import backup
from firstclick.cli.bound import bound
from firstclick.cli.catalog import catalog_app
from firstclick.cli.click_model import click_model_app
from firstclick.cli.command_line import CommandLine
from firstclick.cli.compare import compare
from firstclick.cli.data import data_app
from firstclick.cli.delete import delete
from firstclick.cli.demo import demo
from firstclick.cli.evaluate import evaluate_app
from firstclick.cli.features import features
from firstclick.cli.fork import fork, relearn
from firstclick.cli.keys import keys_app
from firstclick.cli.main import run_command_line
from firstclick.cli.policies import policies
from firstclick.cli.reproduce import reproduce
from firstclick.cli.run import run
from firstclick.cli.serve import serve
from firstclick.cli.simulate import simulate
from firstclick.cli.stores import audit, export, import_, log
from firstclick.cli.trial import trial_app
from firstclick.cli.warm_up import warm_up

app = CommandLine(name="firstclick", help="Cascading bandits: learn what to recommend from the first click.")
app.command(short_help="Play the default policy and those of the paper on made-up data.")(demo)
app.command(short_help="Play policies in a world, or on your own data.")(simulate)
app.command(short_help="Play every policy in every stock world.")(compare)
app.command(short_help="Reproduce the paper: experiments, figures and claims.")(reproduce)
app.command(short_help="Run an experiment from a TOML file.")(run)
app.command(short_help="Recommend over HTTP, and learn from the clicks.")(serve)
app.command("warm-up", short_help="Compile what a server needs, before it starts.")(warm_up)
app.add_typer(trial_app, name="trial")
app.add_typer(evaluate_app, name="evaluate")
app.add_typer(click_model_app, name="click-model")
app.add_typer(catalog_app, name="catalog")
app.command(short_help="Compute item features from a log and write a catalog.")(features)
app.command(short_help="Back up a store, also while a server runs.")(backup)
app.command(short_help="Replay every log and compare, bit for bit.")(audit)
app.command(short_help="Print a model's events, or write them to a file.")(log)
app.command(short_help="Export a model to a file.")(export)
app.command("import", short_help="Import a model from a file.")(import_)
app.command(short_help="Create a model from another one's log, with another policy.")(fork)
app.command(short_help="Create a model from a log that another version learned.")(relearn)
app.command(short_help="Move old events of a model to a file.")(archive)
app.command(short_help="Delete a model for good.")(delete)
app.add_typer(keys_app, name="keys")
app.command(short_help="List the policies and their parameters.")(policies)
app.command(short_help="Compute the regret bound of Theorem 1.")(bound)
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


def main() -> None:
    """The program `firstclick`."""
    run_command_line(app)
