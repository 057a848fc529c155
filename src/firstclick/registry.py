"""Names for policies, worlds and sources of data: ours, those of plug-ins, and those just defined."""

import importlib
import pkgutil
from functools import cache
from importlib.metadata import entry_points
from typing import TypeVar

from firstclick.errors import InvalidInput, WorkFailed
from firstclick.parameters import Declared, check_name, split_bare, split_spec
from firstclick.policies.base import Policy
from firstclick.validation.quoting import quoted
from firstclick.worlds.base import WorldSpec

T = TypeVar("T", bound=Declared)

PLUGINS = "firstclick.plugins"
RESEARCH = "firstclick.policies.research"

# The policy for who names none.
DEFAULT_POLICY = "cascade-mixed"

# Who plays where nobody is named: the policies of the paper, and those it is fair to compare them with.
USUAL_POLICIES = (
    "cascade-lin-ts", "cascade-lin-ucb", "ranked-lin-ts", "cascade-ts", "cascade-kl-ucb", "cascade-ucb1",
    "random",
)  # fmt: skip


@cache
def _load_everything() -> None:
    for package_name in ("firstclick.policies", RESEARCH, "firstclick.worlds", "firstclick.data.sources"):
        package = importlib.import_module(package_name)
        for module in pkgutil.iter_modules(package.__path__, package_name + "."):
            importlib.import_module(module.name)
    for plugin in entry_points(group=PLUGINS):
        try:
            plugin.load()
        except Exception as error:
            raise WorkFailed(
                f"plug-in {plugin.name!r} ({plugin.value}) cannot be loaded: {error}; mend it or uninstall it"
            ) from error


def named(base: type[T]) -> dict[str, type[T]]:
    """Every subclass with a name; of two with one name yours comes before ours, and the later counts."""
    _load_everything()
    classes: list[type[T]] = []
    waiting = list(base.__subclasses__())
    while waiting:
        cls = waiting.pop()
        waiting.extend(cls.__subclasses__())
        if vars(cls).get("name"):
            classes.append(cls)
    # Ours may be imported only now, after a class typed in a notebook: the order alone will not do.
    classes.sort(key=lambda cls: (not cls.__module__.startswith("firstclick."), cls.defined))
    latest = {cls.name: cls for cls in classes}
    return dict(sorted(latest.items()))


def policy_classes() -> dict[str, type[Policy]]:
    """All known policy classes by name, including those of plug-ins and your own.

    >>> policy_classes()["cascade-ucb1"].defaults()
    {'start': 'sample', 'radius': 1.5}
    """
    return named(Policy)  # type: ignore[type-abstract]


def is_research(policy: type[Policy]) -> bool:
    """Whether the policy is of the second tier: usable everywhere, but lists show it only if asked."""
    return policy.__module__.startswith(RESEARCH + ".")


def world_classes() -> dict[str, type[WorldSpec]]:
    """All kinds of worlds that have a name, including those of plug-ins and your own.

    >>> from firstclick import world_classes
    >>> sorted(world_classes())[:3]
    ['bernoulli', 'blb', 'drift']
    """
    return named(WorldSpec)  # type: ignore[type-abstract]


def policy_class(name: str) -> type[Policy]:
    """The policy class of this name."""
    return find("policy", name, policy_classes())


def make_policy(spec: str | Policy) -> Policy:
    """Make a policy from its description.

    >>> make_policy("cascade-ucb1:radius=0.5")
    CascadeUCB1(start='sample', radius=0.5)

    Args:
        spec: `name` or `name:param=value,...`. A policy object is returned as it is.

    Raises:
        UnknownName: No policy, or no parameter, has this name.
        InvalidInput: A value breaks its parameter's rule.
    """
    if isinstance(spec, Policy):
        return spec
    if not isinstance(spec, str):
        shown = f"the class {spec.__name__}" if isinstance(spec, type) else quoted(spec)
        raise InvalidInput(f"must be 'name:param=value,...' or a Policy object, got {shown}", "policy")
    name, texts = split_spec(spec)
    return policy_class(name).from_text(texts)


def make_world(spec: str) -> WorldSpec:
    """Make a world from its description. `build(seed)` draws it.

    >>> make_world("blb:n_items=9,k=3").build(seed=1).n_items
    9

    Args:
        spec: `name` or `name:param=value,...`; see the list of worlds.

    Raises:
        UnknownName: No world, or no parameter, has this name.
        InvalidInput: A value breaks its parameter's rule.
    """
    kind = world_classes().get(spec.partition(":")[0].strip())
    if kind is not None and kind.bare:
        return kind.from_text(split_bare(spec, kind.rules(), kind.bare))
    name, texts = split_spec(spec)
    return find("world", name, world_classes()).from_text(texts)


def find(kind: str, name: str, known: dict[str, type[T]]) -> type[T]:
    """The class of this name among those known, or UnknownName with the nearest."""
    return known[check_name(kind, name, known)]
