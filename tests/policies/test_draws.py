"""Which policies draw at random: what they have shown can tell about another policy."""

import numpy as np
import pytest

from firstclick import Catalog, Ranker
from firstclick.registry import policy_classes
from tests.support.policies import OTHERS

L = 12
SPECS = {
    "c3-ucb": "c3-ucb:context=2", "context-lin-ts": "context-lin-ts:context=2",
    "segment-lin-ts": "segment-lin-ts:segments=2",
}  # fmt: skip
CONTEXTS = {"c3-ucb": [1.0, 0.0], "context-lin-ts": [1.0, 0.0], "segment-lin-ts": [1.0]}


@OTHERS
@pytest.mark.parametrize("name", sorted(policy_classes()))
def test_a_policy_draws_if_and_only_if_it_says_so(name: str) -> None:
    """One that does not draw shows one slate, whenever no two items are equal to it."""
    draw = np.random.default_rng(1)
    features = draw.dirichlet([1, 1, 1], size=L)
    attraction = np.linspace(0.05, 0.6, L)
    asked = {"context": CONTEXTS[name]} if name in CONTEXTS else {}
    ranker = Ranker(Catalog(range(L), features), k=3, policy=SPECS.get(name, name), seed=1)
    fewest = 100
    for _ in range(6):
        for _ in range(50):
            slate = ranker.recommend(**asked)  # type: ignore[arg-type]
            clicked = np.flatnonzero(draw.random(3) < attraction[list(slate.items)])  # type: ignore[arg-type]
            ranker.learn(slate, click=int(clicked[0]) if len(clicked) else None)
        slates = {ranker.recommend(**asked).items for _ in range(100)}  # type: ignore[arg-type]
        fewest = min(fewest, len(slates))
    assert (fewest > 1) == ranker.policy.draws
