"""CascadeHybrid."""

from firstclick.errors import InvalidInput
from firstclick.parameters import param
from firstclick.policies._coverage import CoveragePolicy


class CascadeHybrid(CoveragePolicy):
    """Fill the slate from the top by relevance and by what each further item adds to the topics, together.

    It takes clicks for those of a cascade. The first `topics` features of an item are the shares, between 0
    and 1, to which it covers each topic; the others speak for the item wherever it stands. Below a set S of
    items, item e attracts with the probability v'theta, where v_i = x_i prod over S of (1 - x_i) for a topic
    and v_i = x_i for the others: cascade-lin-ucb with these features, position by position, and learned by
    those that an item had in its slate. With topics=0 it is cascade-lin-ucb, slate by slate; if all are
    topics, cascade-lsb.

    The rule is the authors'; c = 1 and sigma = 1 are our choice, as for cascade-lin-ucb. A request takes O(K
    L d^2) for L items, as for cascade-lsb.
    """

    name = "cascade-hybrid"
    draws = False
    paper = "Li, Feng and de Rijke 2020 (CascadeHybrid)"
    made_for = ("topics", "topics-and-more")
    topics: int | None = param(
        None, "how many of the features, from the first on, are topics; all of them",
        kind=int, at_least=0, told="topics",
    )  # fmt: skip

    def n_topics(self, n_features: int) -> int:
        if self.topics is None:
            return n_features
        if self.topics > n_features:
            raise InvalidInput(f"must be at most the number of features, {n_features}", "topics", self.label)
        return self.topics
