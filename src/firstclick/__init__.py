"""firstclick: learn what to recommend from the first click.

The names below are loaded when they are first used: a client of the service needs no kernels.
"""

from typing import TYPE_CHECKING

from firstclick._version import __version__
from firstclick.lazy_names import lazy_names

if TYPE_CHECKING:
    from firstclick.catalog.catalog import Catalog, Subset
    from firstclick.errors import (
        DuplicateFeedback,
        FirstclickError,
        ForgottenSlate,
        InvalidInput,
        UnknownName,
        UnknownSlate,
        WorkFailed,
    )
    from firstclick.experiments.results import PolicyResult, Results
    from firstclick.experiments.simulate import simulate
    from firstclick.online.ranker import Ranker, Slate
    from firstclick.parameters import param
    from firstclick.policies.base import Policy
    from firstclick.registry import make_policy, make_world, policy_classes, world_classes
    from firstclick.theory import confidence_width, regret_bound
    from firstclick.worlds.base import Scenario, Stage, World

_HOME = {
    "Catalog": "catalog.catalog", "DuplicateFeedback": "errors", "FirstclickError": "errors",
    "ForgottenSlate": "errors", "InvalidInput": "errors",
    "Policy": "policies.base", "PolicyResult": "experiments.results", "Ranker": "online.ranker",
    "Results": "experiments.results",
    "Scenario": "worlds.base", "Slate": "online.ranker", "Stage": "worlds.base",
    "Subset": "catalog.catalog", "UnknownName": "errors", "UnknownSlate": "errors",
    "WorkFailed": "errors", "World": "worlds.base", "confidence_width": "theory", "make_policy": "registry",
    "make_world": "registry", "param": "parameters", "policy_classes": "registry", "regret_bound": "theory",
    "simulate": "experiments.simulate", "world_classes": "registry",
}  # fmt: skip

__all__ = [
    "Catalog",
    "DuplicateFeedback",
    "FirstclickError",
    "ForgottenSlate",
    "InvalidInput",
    "Policy",
    "PolicyResult",
    "Ranker",
    "Results",
    "Scenario",
    "Slate",
    "Stage",
    "Subset",
    "UnknownName",
    "UnknownSlate",
    "WorkFailed",
    "World",
    "__version__",
    "confidence_width",
    "make_policy",
    "make_world",
    "param",
    "policy_classes",
    "regret_bound",
    "simulate",
    "world_classes",
]


__getattr__ = lazy_names(__name__, _HOME, "firstclick")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
