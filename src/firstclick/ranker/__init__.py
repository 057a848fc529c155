"""Live use in a program: recommend a slate, hear of the clicks, learn."""

from firstclick.ranker.ranker import Ranker, Slate

__all__ = ["Ranker", "Slate"]
