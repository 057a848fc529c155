"""MABWiser: LinTS, the best k of its expectations."""

import heapq
from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from benchmarks.bench.peers.peer import PER_ITEM, examined


class MABWiser:
    title: ClassVar[str] = "MABWiser"
    package: ClassVar[str] = "mabwiser"
    used: ClassVar[str] = "LinTS, best K of predict_expectations, partial_fit"
    remark: ClassVar[str] = PER_ITEM

    def __init__(self, features: NDArray[np.float64], k: int, seed: int) -> None:
        from mabwiser.mab import MAB, LearningPolicy

        n_items, n_features = features.shape
        self.k, self.context = k, np.full((1, n_features), n_features**-0.5)
        self.bandit = MAB(list(range(n_items)), LearningPolicy.LinTS(alpha=1.0), seed=seed)
        self.bandit.fit([0], [0], self.context)  # it wants one observation before the first question

    def recommend(self) -> Sequence[int]:
        expected = self.bandit.predict_expectations(self.context)
        return heapq.nlargest(self.k, expected, key=expected.__getitem__)

    def learn(self, slate: Sequence[int], click: int) -> None:
        items, clicks = examined(slate, click)
        self.bandit.partial_fit(items, clicks, np.repeat(self.context, len(items), axis=0))
