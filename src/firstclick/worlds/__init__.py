"""What answers with clicks.

The names below are loaded when they are first used: a `Ranker` needs no world, and no scipy.sparse.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from firstclick.worlds.bernoulli import BernoulliWorld
    from firstclick.worlds.linear import LinearWorld
    from firstclick.worlds.logistic import LogisticWorld
    from firstclick.worlds.long_tail import LongTailWorld
    from firstclick.worlds.matrix import MatrixWorld
    from firstclick.worlds.topics import TopicsWorld
    from firstclick.worlds.views import ViewsWorld

__all__ = [
    "BernoulliWorld",
    "LinearWorld",
    "LogisticWorld",
    "LongTailWorld",
    "MatrixWorld",
    "TopicsWorld",
    "ViewsWorld",
]

_HOME = {
    "BernoulliWorld": "bernoulli", "LinearWorld": "linear", "LogisticWorld": "logistic",
    "LongTailWorld": "long_tail", "MatrixWorld": "matrix", "TopicsWorld": "topics", "ViewsWorld": "views",
}  # fmt: skip


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
