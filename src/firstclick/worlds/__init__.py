"""What answers with clicks."""

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
