"""Where a policy stands in the guide: family by family, core before research. Its class says which."""

from firstclick.policies.base import FAMILIES, Policy
from firstclick.registry import is_research, policy_classes

FLOOR = "random"  # The random order that all are measured by.


def class_of(label: str) -> type[Policy]:
    """The class of a policy; `Policy` itself for one of a plug-in that is not installed here."""
    return policy_classes().get(label.partition(":")[0], Policy)


def family_of(label: str) -> str:
    """The title of the policy's family; random order has none."""
    return "" if label == FLOOR else FAMILIES[class_of(label).family]


def in_order(label: str) -> tuple[bool, int, bool, str]:
    """What policies are sorted by: by family, core before research, by name; random order last."""
    cls = class_of(label)
    return label == FLOOR, list(FAMILIES).index(cls.family), is_research(cls), label.partition(":")[0]
