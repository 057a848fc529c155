"""How likely a policy is to show the first 1, 2, ... items of a slate."""
