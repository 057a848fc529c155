"""What answers with clicks.

The names below are loaded when they are first used: a `Ranker` needs no world, and no scipy.sparse.
"""

from typing import TYPE_CHECKING

from firstclick.lazy_names import lazy_names

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
    "BernoulliWorld": "worlds.bernoulli", "LinearWorld": "worlds.linear", "LogisticWorld": "worlds.logistic",
    "LongTailWorld": "worlds.long_tail", "MatrixWorld": "worlds.matrix", "TopicsWorld": "worlds.topics",
    "ViewsWorld": "worlds.views",
}  # fmt: skip

__getattr__ = lazy_names(__name__, _HOME, "a world")
