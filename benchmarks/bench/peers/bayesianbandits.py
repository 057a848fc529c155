"""bayesianbandits: one Bayesian regression shared by all items, Thompson sampling, top_k."""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from benchmarks.bench.peers.peer import examined


class BayesianBandits:
    title: ClassVar[str] = "bayesianbandits"
    package: ClassVar[str] = "bayesianbandits"
    used: ClassVar[str] = "LipschitzContextualAgent, NormalRegressor shared by all items, pull with top_k = K"
    remark: ClassVar[str] = ""

    def __init__(self, features: NDArray[np.float64], k: int, seed: int) -> None:
        from bayesianbandits import (
            Arm,
            FunctionArmFeaturizer,
            LipschitzContextualAgent,
            NormalRegressor,
            ThompsonSampling,
        )

        def features_of(context: Any, items: Sequence[int]) -> Any:
            """The features of these items; there is one user, whose context says nothing."""
            return features[np.asarray(items)].T[None]

        self.k, self.context = k, np.ones((1, 1))
        self.agent = LipschitzContextualAgent(
            arms=[Arm(item, learner=None) for item in range(len(features))],
            policy=ThompsonSampling(),
            arm_featurizer=FunctionArmFeaturizer(features_of),
            learner=NormalRegressor(alpha=1.0, beta=1.0),
            random_seed=seed,
        )

    def recommend(self) -> Sequence[int]:
        (slate,) = self.agent.pull(self.context, top_k=self.k)
        return [int(item) for item in slate]

    def learn(self, slate: Sequence[int], click: int) -> None:
        for item, clicked in zip(*examined(slate, click), strict=True):
            self.agent.select_for_update(item).update(self.context, np.array([float(clicked)]))
