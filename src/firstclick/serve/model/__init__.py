"""One model: its state as the log makes it, its items, and the rules for what goes into its log."""
