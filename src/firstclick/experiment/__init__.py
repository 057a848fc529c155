"""Experiments as declarations: which learners, on which data, with which settings; played cell by cell."""

from firstclick.experiment.cells import Cell, Setting, plan
from firstclick.experiment.comparison import Comparison, comparisons_of
from firstclick.experiment.conduct import conduct
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
    "conduct",
    "plan",
    "play_missing",
    "read_experiment",
]
