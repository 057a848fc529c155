"""Policies played against worlds: one simulation, or an experiment of many cells."""

from firstclick.experiments.cells import Cell, Setting, plan
from firstclick.experiments.conduct import Comparison, conduct
from firstclick.experiments.dataset import Dataset
from firstclick.experiments.file import Experiment, Training, read_experiment
from firstclick.experiments.results import PolicyResult, Results, Shown
from firstclick.experiments.simulate import simulate
from firstclick.experiments.store import CellStore

__all__ = [
    "Cell",
    "CellStore",
    "Comparison",
    "Dataset",
    "Experiment",
    "PolicyResult",
    "Results",
    "Setting",
    "Shown",
    "Training",
    "conduct",
    "plan",
    "read_experiment",
    "simulate",
]
