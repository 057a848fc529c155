"""Mab2Rec: BanditRecommender over LinTS."""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from benchmarks.bench.peers.peer import PER_ITEM, examined


class Mab2Rec:
    title: ClassVar[str] = "Mab2Rec"
    package: ClassVar[str] = "mab2rec"
    used: ClassVar[str] = "BanditRecommender of LinTS with top_k = K, partial_fit"
    remark: ClassVar[str] = PER_ITEM

    def __init__(self, features: NDArray[np.float64], k: int, seed: int) -> None:
        from mab2rec import BanditRecommender, LearningPolicy

        n_items, n_features = features.shape
        self.context = np.full((1, n_features), n_features**-0.5)
        self.recommender = BanditRecommender(LearningPolicy.LinTS(alpha=1.0), top_k=k, seed=seed)
        self.recommender.set_arms(list(range(n_items)))
        self.recommender.fit([0], [0], self.context)  # it wants one observation before the first question

    def recommend(self) -> Sequence[int]:
        return [int(item) for item in self.recommender.recommend(self.context)]

    def learn(self, slate: Sequence[int], click: int) -> None:
        items, clicks = examined(slate, click)
        self.recommender.partial_fit(items, clicks, np.repeat(self.context, len(items), axis=0))
