"""`firstclick evaluate`: what a log says of policies that were not shown."""

from firstclick.cli.command_line import command_group
from firstclick.cli.evaluate_describe import evaluate_describe

evaluate_app = command_group("Logs: describe one, and estimate what other policies would have earned.")
evaluate_app.command("describe", short_help="Tell what a log holds, and what can be asked of it.")(
    evaluate_describe
)
