"""The stock worlds, the same for all policies: made of what papers assume, before any result was seen."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from firstclick.parameters import check_distinct, check_name
from firstclick.registry import make_world
from firstclick.streams import stream_key
from firstclick.worlds.base import Stage


@dataclass(frozen=True)
class StockWorld:
    """A world, and why it is there. `made_for` of a policy names the worlds that its paper has in mind."""

    name: str
    spec: str
    k: int
    why: str
    topics: int = 0  # how many of the features, from the first on, are topics
    segments: int = 0  # how many segments its users have; 0: what is known of them is no segment
    best_first: bool = False  # Its catalog has the best items first.
    core_only: bool = False  # It is large: research policies play there only if they are named.

    @property
    def call(self) -> str:
        """How `firstclick simulate` plays it."""
        return f"--world {self.spec} --k {self.k}"

    def about(self) -> dict[str, Any]:
        """What the manifest tells it by."""
        return {"world": self.spec}

    def stage(self, seed: int, run: int, spec: str | None = None) -> Stage:
        """What a run is played on; `spec` is the same world with its users described in another way."""
        # A seed of its own for each run, which no other seed has for any.
        world = make_world(spec or self.spec).build(int(stream_key(seed, "stock", run)))
        return Stage(world, world.features, world.names())


STOCK = (
    StockWorld(
        "few-items", "blb:n_items=16,k=4,p=0.2,gap=0.15", 4,
        "Sixteen items without features, four of them good: the world of Kveton et al. 2015.",
        best_first=True,
    ),
    StockWorld(
        "rare-clicks", "linear:n_items=32,n_features=5,best=0.05", 4,
        "No item attracts more than one user in twenty, as on most pages: for policies that know variances.",
    ),
    StockWorld(
        "linear", "linear:n_items=256,n_features=8", 4,
        "Many items whose attraction is linear in a few features: the paper's own assumption.",
    ),
    StockWorld(
        "long-tail", "long-tail:n_items=3000,n_features=16", 4,
        "A catalog as real ones look, in which hardly any item is ever tried: the paper's point.",
    ),
    StockWorld(
        "logistic", "logistic:n_items=256,n_features=6", 4,
        "Attraction is a logistic function of the features: most items hardly attract.",
    ),
    StockWorld(
        "partly-explained", "partly:n_items=64,n_features=5,own=0.5", 4,
        "Features explain half of the differences between items; the other half is an item's own.",
    ),
    StockWorld(
        "shop", "shop:n_items=1500,n_features=50", 6,
        "A shop's catalog: rare clicks, categories and prices as features, and a part that is an item's own.",
        core_only=True,
    ),
    StockWorld(
        "dependent-clicks", "linear:n_items=32,n_features=5,best=0.2,clicks=dcm/0.5", 4,
        "Users click several items and leave after half of the clicks: the model of Katariya et al. 2016.",
    ),
    StockWorld(
        "by-position", "linear:n_items=32,n_features=5,best=0.3,clicks=pbm", 4,
        "Each position is looked at with a chance of its own: the model of Lagree et al. 2016.",
    ),
    StockWorld(
        "scroll", "linear:n_items=64,n_features=5,best=0.3,clicks=scroll/0.8", 6,
        "The page knows how far users scrolled, and tells: no policy has to guess.",
    ),
    StockWorld(
        "types", "types:n_items=100,n_features=5,types=4", 4,
        "Users of four types with tastes of their own, and the type is known.",
        segments=4,
    ),
    StockWorld(
        "vectors", "vectors:n_items=100,n_features=5,n_context=3,users=200", 4,
        "Users with vectors: attraction is bilinear in the user's and the item's.",
    ),
    StockWorld(
        "switch", "switch:n_items=16,n_features=5,period=5000,thetas=4", 4,
        "Tastes are others after every 5,000 steps, from one step to the next.",
    ),
    StockWorld(
        "drift", "drift:n_items=16,n_features=5,period=5000,thetas=4", 4,
        "Tastes wander, little by little.",
    ),
    StockWorld(
        "topics", "topics:n_items=100,topics=8", 6,
        "An item attracts by the topics it adds to those above it: the model of Hiranandani et al. 2019.",
        topics=8,
    ),
    StockWorld(
        "topics-and-more", "topics:n_items=100,topics=8,relevance=5", 6,
        "Topics, and a part that is an item's own: the model of Li, Feng and de Rijke 2020.",
        topics=8,
    ),
)  # fmt: skip


class _Named(Protocol):
    @property
    def name(self) -> str: ...


W = TypeVar("W", bound=_Named)


def chosen(names: Sequence[str], among: Sequence[W]) -> tuple[W, ...]:
    """The worlds of these names, in their usual order; all of them for no name.

    >>> [world.spec for world in chosen(["types", "logistic"], STOCK)]
    ['logistic:n_items=256,n_features=6', 'types:n_items=100,n_features=5,types=4']
    """
    known = {world.name: world for world in among}
    for name in names:
        check_name("stock world", name, known)
    check_distinct("stock world", names)
    return tuple(world for world in among if not names or world.name in names)
