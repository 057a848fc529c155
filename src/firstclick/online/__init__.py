"""Live use in a program: recommend a slate, hear of the clicks, learn."""

from firstclick.online.ranker import Ranker, Slate

__all__ = ["Ranker", "Slate"]
