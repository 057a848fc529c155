"""Experiments as declarations: which learners, on which data, with which settings; played cell by cell."""

from firstclick.experiment.cells import Cell, Setting, plan
from firstclick.experiment.comparison import Comparison, comparisons_of
from firstclick.experiment.dataset import Dataset
from firstclick.experiment.declaration import Experiment, Training, read_experiment
from firstclick.experiment.play import play_missing
from firstclick.experiment.store import CellStore

__all__ = [
    "Cell",
    "CellStore",
    "Comparison",
    "Dataset",
    "Experiment",
    "Setting",
    "Training",
    "comparisons_of",
    "plan",
    "play_missing",
    "read_experiment",
]
