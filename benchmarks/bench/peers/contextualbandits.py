"""contextualbandits: LinTS with topN."""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from benchmarks.bench.peers.peer import PER_ITEM, examined


class ContextualBandits:
    title: ClassVar[str] = "contextualbandits"
    package: ClassVar[str] = "contextualbandits"
    used: ClassVar[str] = "LinTS by Cholesky factors, topN, partial_fit"
    remark: ClassVar[str] = PER_ITEM

    def __init__(self, features: NDArray[np.float64], k: int, seed: int) -> None:
        from contextualbandits.online import LinTS

        n_items, n_features = features.shape
        self.k, self.context = k, np.full((1, n_features), n_features**-0.5)
        self.bandit = LinTS(n_items, fit_intercept=False, method="chol", beta_prior="auto", random_state=seed)
        self.bandit.fit(self.context, np.zeros(1, np.int64), np.zeros(1))  # as the others

    def recommend(self) -> Sequence[int]:
        return [int(item) for item in self.bandit.topN(self.context, self.k)[0]]

    def learn(self, slate: Sequence[int], click: int) -> None:
        items, clicks = examined(slate, click)
        contexts = np.repeat(self.context, len(items), axis=0)
        self.bandit.partial_fit(contexts, np.array(items), np.array(clicks, np.float64))
