"""Worlds so small that every slate and every outcome can be written down with its probability."""

import itertools

import numpy as np

from firstclick.evaluation.estimators.weighted_slates import WeightedSlates

ITEMS, K = 4, 3
SLATES = np.array(list(itertools.permutations(range(ITEMS), K)))
OUTCOMES = np.array(list(itertools.product((0, 1), repeat=K)))
ATTRACTION = np.array([0.7, 0.45, 0.3, 0.15])
SATISFACTION = np.array([0.5, 0.9, 0.2, 0.6])
EXAMINATION = np.array([0.95, 0.6, 0.35])


def cascade(slate, clicks):
    """Users leave after the first click."""
    return _from_the_top(slate, clicks, leave=lambda item: 1.0, go_on=1.0)


def dbn(slate, clicks):
    """Users leave when satisfied, or now and then after a look."""
    return _from_the_top(slate, clicks, leave=lambda item: float(SATISFACTION[item]), go_on=0.8)


def pbm(slate, clicks):
    """Each position is looked at on its own."""
    chances = EXAMINATION * ATTRACTION[slate]
    return float(np.where(clicks == 1, chances, 1 - chances).prod())


def both_ways(slate, clicks):
    """What stands below takes clicks away too."""
    chances = ATTRACTION[slate] * (1 - 0.4 * (ATTRACTION[slate].sum() - ATTRACTION[slate]))
    return float(np.where(clicks == 1, chances, 1 - chances).prod())


def _from_the_top(slate, clicks, leave, go_on):
    looking, gone = 1.0, 0.0  # the probability of the outcome so far, and the user still there, or not
    for item, click in zip(slate, clicks, strict=True):
        chance = ATTRACTION[item] if click else 1 - ATTRACTION[item]
        stays = (1 - leave(int(item)) if click else 1.0) * go_on
        gone = (0.0 if click else gone) + looking * chance * (1 - stays)
        looking *= chance * stays
    return float(looking + gone)


def plackett_luce(power):
    """The probability of each slate of SLATES."""
    chances = np.ones(len(SLATES))
    for at, slate in enumerate(SLATES):
        left = power.sum()
        for item in slate:
            chances[at] *= power[item] / left
            left -= power[item]
    return chances


def prefix_chances(chances):
    """For each slate: the probability of its first 1, 2, ... items."""
    return np.array(
        [
            [chances[(SLATES[:, : k + 1] == slate[: k + 1]).all(axis=1)].sum() for k in range(K)]
            for slate in SLATES
        ]
    )


def place_chances(chances):
    """ITEMS x K: the probability of each item at each position."""
    return np.array([[chances[SLATES[:, k] == item].sum() for k in range(K)] for item in range(ITEMS)])


def enumerated(model, logger, target):
    """All slates with all outcomes, and the probability of each under the logger."""
    rng = np.random.default_rng(5)
    quality = rng.random((K, ITEMS))  # a poor click model, to be corrected
    logged, judged = prefix_chances(logger), prefix_chances(target)
    places, places_judged = place_chances(logger), place_chances(target)
    rows = [(at, outcome) for at in range(len(SLATES)) for outcome in OUTCOMES]
    which = np.array([at for at, _ in rows])
    slates, clicks = SLATES[which], np.array([outcome for _, outcome in rows], dtype=np.float64)
    chances = np.array([logger[at] * model(SLATES[at], outcome) for at, outcome in rows])
    expected = np.zeros((len(SLATES), K))
    for at, slate in enumerate(SLATES):
        for k in range(K):
            same = (SLATES[:, :k] == slate[:k]).all(axis=1)
            # After items that the target never shows, any number will do.
            if target[same].sum() > 0:
                expected[at, k] = target[same] @ quality[k, SLATES[same, k]] / target[same].sum()
    positions = np.arange(K)
    return WeightedSlates(
        clicks, logged[which], judged[which],
        logged_places=places[slates, positions], target_places=places_judged[slates, positions],
        predicted=quality[positions, slates], predicted_target=expected[which],
    ), chances  # fmt: skip


def value(model, target):
    """The clicks a page that the target would have."""
    return float(
        sum(
            chance * model(slate, outcome) * outcome.sum()
            for chance, slate in zip(target, SLATES, strict=True)
            for outcome in OUTCOMES
        )
    )
