"""From logs to a feedback matrix, its two halves, and item features."""

from firstclick.data.features import truncated_svd
from firstclick.data.features_file import read_features
from firstclick.data.interactions import Interactions, read_interactions
from firstclick.data.matrix import feedback_matrix, most_attractive
from firstclick.data.scenario import FeedbackScenario
from firstclick.data.split import split
from firstclick.data.synthetic import SyntheticFeedback, synthetic_matrix

__all__ = [
    "FeedbackScenario",
    "Interactions",
    "SyntheticFeedback",
    "feedback_matrix",
    "most_attractive",
    "read_features",
    "read_interactions",
    "split",
    "synthetic_matrix",
    "truncated_svd",
]
