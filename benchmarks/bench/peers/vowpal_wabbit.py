"""Vowpal Wabbit: conditional contextual bandits, a slot for each place of the slate."""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray


class VowpalWabbit:
    title: ClassVar[str] = "Vowpal Wabbit"
    package: ClassVar[str] = "vowpalwabbit"
    used: ClassVar[str] = "--ccb_explore_adf with K slots, one line of text for each item"
    remark: ClassVar[str] = "explores by chance (epsilon-greedy) and keeps no posterior"

    def __init__(self, features: NDArray[np.float64], k: int, seed: int) -> None:
        from vowpalwabbit import Workspace

        self.k = k
        self.bandit = Workspace(f"--ccb_explore_adf --quiet --random_seed {seed}")
        self.lines = ["ccb shared |"] + [
            "ccb action |x " + " ".join(f"{place}:{value:.6g}" for place, value in enumerate(row))
            for row in features
        ]

    def recommend(self) -> Sequence[int]:
        question = self.bandit.parse(self.lines + ["ccb slot |"] * self.k)
        # For each slot the items left with their chances of being shown, the drawn one first.
        self.shown = [slot[0] for slot in self.bandit.predict(question)]
        self.bandit.finish_example(question)
        return [int(item) for item, _ in self.shown]

    def learn(self, slate: Sequence[int], click: int) -> None:
        # Slots that the user did not look at have no label, and teach nothing.
        slots = [
            f"ccb slot {item}:{-float(place == click)}:{chance:.6g} |" if place <= click else "ccb slot |"
            for place, (item, chance) in enumerate(self.shown)
        ]
        answer = self.bandit.parse(self.lines + slots)
        self.bandit.learn(answer)
        self.bandit.finish_example(answer)
