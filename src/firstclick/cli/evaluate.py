"""`firstclick evaluate`: what a log says of policies that were not shown."""

from firstclick.cli.command_line import command_group
from firstclick.cli.evaluate_describe import evaluate_describe
from firstclick.cli.evaluate_propensities import propensities
from firstclick.cli.evaluate_run import evaluate_run

evaluate_app = command_group("Logs: describe one, and estimate what other policies would have earned.")
evaluate_app.command("describe", short_help="Describe a log and what can be evaluated from it.")(
    evaluate_describe
)
evaluate_app.command(short_help="Compute the probability of each slate of a model's log.")(propensities)
evaluate_app.command("run", short_help="Estimate from a log what policies would have earned.")(evaluate_run)
