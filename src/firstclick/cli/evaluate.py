"""`firstclick evaluate`: what a log says of policies that were not shown."""

from firstclick.cli.command_line import command_group

evaluate_app = command_group("Logs: describe one, and estimate what other policies would have earned.")
