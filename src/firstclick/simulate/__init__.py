"""Policies played against worlds, step after step."""

from firstclick.simulate.results import PolicyResult, Results, Shown
from firstclick.simulate.simulate import simulate

__all__ = ["PolicyResult", "Results", "Shown", "simulate"]
