"""Ranked logs: what a page showed, in which order, and what was clicked; any format, a batch at a time."""
