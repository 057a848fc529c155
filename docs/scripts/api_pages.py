"""The pages of docs/reference/python: the public names of each package, as mkdocstrings shows them."""

import importlib
import importlib.util
from collections.abc import Callable
from typing import NamedTuple

from pages import NOTICE

import firstclick


class Package(NamedTuple):
    """What a page says first, and the order of its names: what people use most comes first."""

    summary: str
    sections: dict[str, list[str]]  # by heading; without one for a short page


PACKAGES = {
    "firstclick": Package(
        "The library: catalogs, rankers, simulations, policies and worlds.",
        {
            "Recommend and learn": ["Catalog", "Ranker", "Slate", "Subset"],
            "Simulate": ["simulate", "Results", "PolicyResult"],
            "Policies": ["make_policy", "policy_classes", "Policy", "param"],
            "Worlds": ["make_world", "world_classes", "World", "Scenario", "Stage"],
            "Theory": ["regret_bound", "confidence_width"],
            "Errors": [
                "FirstclickError", "InvalidInput", "UnknownName", "DuplicateFeedback", "ForgottenSlate",
                "UnknownSlate", "WorkFailed",
            ],
        },
    ),
    "firstclick.client": Package(
        "Clients of the service. They retry, and never count a click twice.", {"": ["Client", "AsyncClient"]}
    ),
    "firstclick.data": Package(
        "Read interactions, build a feedback matrix, split it, and compute item features from it.",
        {
            "Read": ["read_interactions", "interactions_from_frame", "Interactions", "read_features"],
            "Prepare": ["cut", "keep_items", "feedback_matrix", "most_attractive", "split", "truncated_svd"],
            "Simulate": ["FeedbackScenario", "synthetic_matrix", "SyntheticFeedback"],
        },
    ),
    "firstclick.evaluation": Package(
        "Estimate from a log what another policy would have earned.",
        {
            "Evaluate": ["evaluate", "Evaluation", "PolicyAnswer", "Estimate"],
            "Targets": [
                "FixedList", "GreedySlate", "SamplingPolicy", "Uniform", "Target", "DeterministicTarget",
                "Predictions",
            ],
            "Report": ["write_page", "forest_plot"],
        },
    ),
    "firstclick.experiments": Package(
        "Experiments that can be interrupted, repeated and compared.",
        {
            "Run": ["read_experiment", "Experiment", "Training", "Dataset", "conduct", "Comparison"],
            "Parts": ["plan", "Setting", "Cell", "CellStore", "Shown"],
        },
    ),
    "firstclick.policies": Package(
        "Base classes for a policy of your own. The policies themselves have [their own pages]"
        "(../policies/index.md).",
        {"": ["LinearPolicy", "CountPolicy", "ConfidencePolicy"]},
    ),
    "firstclick.report": Package(
        "Tables, figures and HTML pages of simulation results.",
        {
            "": [
                "results_table", "headline", "html_report", "write_report", "regret_figure", "save_figure",
            ]
        },
    ),
    "firstclick.serve": Package(
        "The service without HTTP, in your own process.",
        {
            "Service": ["open_service", "Service", "Tuning"],
            "Arguments and results": ["Item", "ServedSlate", "ClickReport", "Receipt"],
        },
    ),
    "firstclick.testing": Package(
        "Conformance tests for a policy of your own.",
        {
            "Checks": ["check_policy", "PolicyTests", "checks_of", "Check"],
            "Write your own": ["Driver", "request", "states_differ"],
        },
    ),
    "firstclick.worlds": Package(
        "Worlds as classes. [Worlds](../worlds.md) lists those that have a name.",
        {
            "": [
                "BernoulliWorld", "LinearWorld", "LogisticWorld", "LongTailWorld", "MatrixWorld", "TopicsWorld",
                "ViewsWorld",
            ]
        },
    ),
}  # fmt: skip
# Those that are no class and no function.
PLAIN = {"__version__", "CHECKS", "N_FEATURES", "N_ITEMS", "K"}


def described_elsewhere(package: str) -> list[str]:
    """The public names of a package that are names of `firstclick` too, and described there."""
    names = importlib.import_module(package).__all__
    return [] if package == "firstclick" else sorted({*names} & {*firstclick.__all__})


def check_order(package: str, public: list[str]) -> None:
    """Every public name that a page describes has its place on it, once."""
    placed = [name for names in PACKAGES[package].sections.values() for name in names]
    wanted = {*public} - PLAIN - {*described_elsewhere(package)}
    assert sorted(placed) == sorted(wanted), (
        f"{package}: PACKAGES in docs/scripts/api_pages.py and __all__ differ in {sorted({*placed} ^ wanted)}"
    )


def path_of(package: str, name: str) -> str:
    """As users import it; for `firstclick.data.cut`, which is a module too, the function in that module."""
    public = f"{package}.{name}"
    return public if importlib.util.find_spec(public) is None else f"{public}.{name}"


def api_page(package: str) -> str:
    """The public names of a package, each as users import it."""
    public = importlib.import_module(package).__all__
    check_order(package, public)
    summary, sections = PACKAGES[package]
    lines = [NOTICE, f"# `{package}`", "", summary, ""]
    for title, names in sections.items():
        if title:
            lines += [f"## {title}", ""]
        level = ["    options:", "      heading_level: 3"] if title else []
        for name in names:
            lines += [f"::: {path_of(package, name)}", *level, ""]
    if elsewhere := described_elsewhere(package):
        names = ", ".join(f"`{name}`" for name in elsewhere)
        lines += [f"Also here, and described in [firstclick](firstclick.md): {names}.", ""]
    if constants := [name for name in public if name in PLAIN and name != "__version__"]:
        lines += [f"Constants: {', '.join(f'`{name}`' for name in constants)}.", ""]
    return "\n".join(lines)


def api_pages() -> dict[str, Callable[[], str]]:
    """Every page, and how it is written."""
    return {
        f"reference/python/{package.rpartition('.')[2]}.md": lambda package=package: api_page(package)
        for package in PACKAGES
    }
