"""The log of a model: its events, their bytes, and what they come to."""
