"""A policy at work: recommend a slate, hear of the clicks, learn."""
