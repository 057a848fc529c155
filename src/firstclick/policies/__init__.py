"""The learners: one file, one learner. The classes here are what several of them share."""

from firstclick.policies._counts import ConfidencePolicy, CountPolicy
from firstclick.policies._linear import LinearPolicy

__all__ = ["ConfidencePolicy", "CountPolicy", "LinearPolicy"]
