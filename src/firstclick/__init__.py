"""firstclick: learn what to recommend from the first click."""

from firstclick._version import __version__
from firstclick.catalog import Catalog
from firstclick.declaration import param
from firstclick.errors import FirstclickError, InvalidInput, UnknownName, WorkFailed
from firstclick.protocol import Policy, Scenario, Stage, World
from firstclick.ranker import Ranker, Slate
from firstclick.registry import make_policy, make_world, policy_classes, world_classes
from firstclick.simulate import PolicyResult, Results, simulate
from firstclick.theory import confidence_width, regret_bound

__all__ = [
    "Catalog",
    "FirstclickError",
    "InvalidInput",
    "Policy",
    "PolicyResult",
    "Ranker",
    "Results",
    "Scenario",
    "Slate",
    "Stage",
    "UnknownName",
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
