"""The policies: one file, one policy. The classes here are what several of them share.

The core is here. `research` has policies of papers that we keep for comparison. They work everywhere, but are
seldom the ones to start with: lists show them only if asked.
"""

from firstclick.policies._counts import ConfidencePolicy, CountPolicy
from firstclick.policies._linear import LinearPolicy

__all__ = ["ConfidencePolicy", "CountPolicy", "LinearPolicy"]
