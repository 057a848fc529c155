"""Names for policies and worlds: ours, those of installed plug-ins, and those just defined."""

import importlib
import pkgutil
from functools import cache
from importlib.metadata import entry_points
from typing import TypeVar

from firstclick.declaration import did_you_mean, split_spec
from firstclick.errors import UnknownName
from firstclick.protocol import Policy, WorldSpec

T = TypeVar("T")

PLUGINS = "firstclick.plugins"


@cache
def _load_everything() -> None:
    for package_name in ("firstclick.policies", "firstclick.worlds"):
        package = importlib.import_module(package_name)
        for module in pkgutil.iter_modules(package.__path__, package_name + "."):
            importlib.import_module(module.name)
    for plugin in entry_points(group=PLUGINS):
        plugin.load()


def _named(base: type[T]) -> dict[str, type[T]]:
    """Every subclass with a name; a later definition of a name takes the place of an earlier one."""
    _load_everything()
    found: dict[str, type[T]] = {}
    waiting = list(base.__subclasses__())
    while waiting:
        cls = waiting.pop(0)
        waiting.extend(cls.__subclasses__())
        if name := vars(cls).get("name"):
            found[name] = cls
    return dict(sorted(found.items()))


def policy_classes() -> dict[str, type[Policy]]:
    """Every known policy class by its name."""
    return _named(Policy)  # type: ignore[type-abstract]


def world_classes() -> dict[str, type[WorldSpec]]:
    """Every kind of world that can be asked for by name."""
    return _named(WorldSpec)  # type: ignore[type-abstract]


def policy_class(name: str) -> type[Policy]:
    """The policy class of this name."""
    return _find("policy", name, policy_classes())


def make_policy(spec: str | Policy) -> Policy:
    """The policy that `name:param=value,...` describes."""
    if isinstance(spec, Policy):
        return spec
    name, texts = split_spec(spec)
    return policy_class(name).from_text(texts)


def make_world(spec: str) -> WorldSpec:
    """The kind of world that `name:param=value,...` describes, ready to be built."""
    name, texts = split_spec(spec)
    return _find("world", name, world_classes()).from_text(texts)


def _find(kind: str, name: str, known: dict[str, type[T]]) -> type[T]:
    if name not in known:
        hint = did_you_mean(name, known) or "; known are " + ", ".join(known)
        raise UnknownName(f"unknown {kind} {name!r}{hint}")
    return known[name]
