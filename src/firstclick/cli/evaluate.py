"""`firstclick evaluate`: what a log says of policies that were not shown."""

from firstclick.cli.command_line import command_group
from firstclick.cli.evaluate_propensities import propensities

evaluate_app = command_group("Logs: describe one, and estimate what other policies would have earned.")
evaluate_app.command(short_help="How likely each slate of a model's log was.")(propensities)
