"""What answers with clicks."""

from firstclick.worlds.bernoulli import BernoulliWorld
from firstclick.worlds.linear import LinearWorld
from firstclick.worlds.long_tail import LongTailWorld
from firstclick.worlds.matrix import MatrixWorld

__all__ = ["BernoulliWorld", "LinearWorld", "LongTailWorld", "MatrixWorld"]
