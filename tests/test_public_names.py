"""What is public: these names and no others. Whoever changes one changes this list, and the CHANGELOG."""

from importlib import import_module

import pytest

PUBLIC = {
    "firstclick": [
        "Catalog", "DuplicateFeedback", "FirstclickError", "ForgottenSlate", "InvalidInput", "Policy",
        "PolicyResult", "Ranker", "Results", "Scenario", "Slate", "Stage", "Subset", "UnknownName",
        "UnknownSlate", "WorkFailed", "World", "__version__", "confidence_width",
        "make_policy", "make_world", "param", "policy_classes", "regret_bound", "simulate", "world_classes",
    ],
    "firstclick.client": ["AsyncClient", "Client"],
    "firstclick.data": [
        "FeedbackScenario", "Interactions", "SyntheticFeedback", "cut", "feedback_matrix",
        "interactions_from_frame", "keep_items", "most_attractive", "read_features", "read_interactions",
        "split", "synthetic_matrix", "truncated_svd",
    ],
    "firstclick.evaluation": [
        "DeterministicTarget", "Estimate", "Evaluation", "FixedList", "GreedySlate", "PolicyAnswer",
        "Predictions", "SamplingPolicy", "Target", "Uniform", "evaluate", "forest_plot", "write_page",
    ],
    "firstclick.experiments": [
        "Cell", "CellStore", "Comparison", "Dataset", "Experiment", "PolicyResult", "Results", "Setting",
        "Shown", "Training", "conduct", "plan", "read_experiment", "simulate",
    ],
    "firstclick.policies": ["ConfidencePolicy", "CountPolicy", "LinearPolicy"],
    "firstclick.report": [
        "headline", "html_report", "regret_figure", "results_table", "save_figure", "write_report",
    ],
    "firstclick.serve": [
        "ClickReport", "Item", "Receipt", "ServedSlate", "Service", "Tuning", "open_service",
    ],
    "firstclick.testing": [
        "CHECKS", "N_FEATURES", "N_ITEMS", "Check", "Driver", "K", "PolicyTests", "check_policy", "checks_of",
        "request", "states_differ",
    ],
    "firstclick.worlds": [
        "BernoulliWorld", "LinearWorld", "LogisticWorld", "LongTailWorld", "MatrixWorld", "TopicsWorld",
        "ViewsWorld",
    ],
}  # fmt: skip


@pytest.mark.parametrize("module", PUBLIC)
def test_public_names_are_declared_there_and_documented(module):
    found = import_module(module)
    assert sorted(found.__all__) == sorted(PUBLIC[module])
    for name in found.__all__:
        assert getattr(found, name).__doc__, f"{module}.{name} has no docstring"
    with pytest.raises(AttributeError, match="no attribute 'Rankr'"):
        _ = found.Rankr
