"""From logs to a feedback matrix, its two halves, and item features."""

from firstclick.data.cut import cut, keep_items
from firstclick.data.features import read_features, truncated_svd
from firstclick.data.interactions import Interactions
from firstclick.data.logs import interactions_from_frame, read_interactions
from firstclick.data.matrix import feedback_matrix, most_attractive
from firstclick.data.scenario import FeedbackScenario
from firstclick.data.split import split
from firstclick.data.synthetic import SyntheticFeedback, synthetic_matrix

__all__ = [
    "FeedbackScenario",
    "Interactions",
    "SyntheticFeedback",
    "cut",
    "feedback_matrix",
    "interactions_from_frame",
    "keep_items",
    "most_attractive",
    "read_features",
    "read_interactions",
    "split",
    "synthetic_matrix",
    "truncated_svd",
]
