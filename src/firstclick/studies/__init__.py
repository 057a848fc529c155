"""Studies that can be run again: the paper, and the guide."""
