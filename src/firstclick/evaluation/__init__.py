"""What would another policy have earned? Answers from a log."""
