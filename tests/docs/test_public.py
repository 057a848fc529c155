"""The public surface: these names and no others, documented, with examples that give what they say.

Whoever changes a public name changes this list, and the CHANGELOG.
"""

import doctest
import inspect
from importlib import import_module
from pathlib import Path

import pytest

import firstclick

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
PACKAGE = Path(firstclick.__file__).parent
WITH_EXAMPLES = sorted(
    ".".join(["firstclick", *path.relative_to(PACKAGE).with_suffix("").parts]).removesuffix(".__init__")
    for path in PACKAGE.rglob("*.py")
    if ">>> " in path.read_text(encoding="utf-8")
)
WITHOUT = {
    # To be derived from: examples/skeleton_policy.py and docs/research/add_a_policy.md are their examples.
    "Policy", "Scenario", "PolicyTests", "Check", "DeterministicTarget", "Predictions", "request",
    # What other functions return, or take from a file: the example is theirs.
    "SyntheticFeedback", "Evaluation", "PolicyAnswer", "SamplingPolicy", "WorkFailed",
    # The parts of `firstclick run`, which docs/guide/experiments.md shows as a whole.
    "Cell", "CellStore", "Comparison", "Dataset", "Experiment", "Setting", "Training", "conduct", "plan",
}  # fmt: skip


@pytest.mark.parametrize("module", PUBLIC)
def test_public_names_are_declared_documented_and_called_in_an_example(module):
    package = import_module(module)
    assert sorted(package.__all__) == sorted(PUBLIC[module])
    things = {name: getattr(package, name) for name in package.__all__}
    assert [name for name, thing in things.items() if not thing.__doc__] == []
    called = {name for name, thing in things.items() if inspect.isroutine(thing) or inspect.isclass(thing)}
    lacking = {name for name in called if ">>> " not in things[name].__doc__}
    assert lacking == WITHOUT & called, "if it has an example now, take it off the list"
    with pytest.raises(AttributeError, match="no attribute 'Rankr'"):
        _ = package.Rankr


@pytest.mark.parametrize("module", WITH_EXAMPLES)
def test_examples_give_what_they_say(module, tmp_path, monkeypatch):
    imported = import_module(module)
    monkeypatch.chdir(tmp_path)  # some write files
    failed, tried = doctest.testmod(imported)
    assert (failed, tried > 0) == (0, True)
