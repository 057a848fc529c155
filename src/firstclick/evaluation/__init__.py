"""What would another policy have earned? Answers from a log.

The names below are loaded when they are first used.
"""

from typing import TYPE_CHECKING

from firstclick.lazy_names import lazy_names

if TYPE_CHECKING:
    from firstclick.evaluation.engine_targets import GreedySlate, SamplingPolicy
    from firstclick.evaluation.figure import forest_plot
    from firstclick.evaluation.page import write_page
    from firstclick.evaluation.result import Estimate, Evaluation, PolicyAnswer
    from firstclick.evaluation.run import evaluate
    from firstclick.evaluation.targets import DeterministicTarget, FixedList, Predictions, Target, Uniform

__all__ = [
    "DeterministicTarget",
    "Estimate",
    "Evaluation",
    "FixedList",
    "GreedySlate",
    "PolicyAnswer",
    "Predictions",
    "SamplingPolicy",
    "Target",
    "Uniform",
    "evaluate",
    "forest_plot",
    "write_page",
]

_HOME = {
    "DeterministicTarget": "evaluation.targets", "Estimate": "evaluation.result",
    "Evaluation": "evaluation.result", "FixedList": "evaluation.targets",
    "GreedySlate": "evaluation.engine_targets", "PolicyAnswer": "evaluation.result",
    "Predictions": "evaluation.targets", "SamplingPolicy": "evaluation.engine_targets",
    "Target": "evaluation.targets", "Uniform": "evaluation.targets", "evaluate": "evaluation.run",
    "forest_plot": "evaluation.figure", "write_page": "evaluation.page",
}  # fmt: skip

__getattr__ = lazy_names(__name__, _HOME, "an evaluation")
