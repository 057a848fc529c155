"""Trials with pages of users that return."""

import numpy as np

from firstclick.trials.assignment import N_BUCKETS
from firstclick.trials.tally import Tally


def played(tally, generator, n, unit_share=0.8):
    """Pages of users that return, some of them without a unit."""
    weights = generator.pareto(1.2, N_BUCKETS) + 1
    buckets = generator.choice(N_BUCKETS, n, p=weights / weights.sum())
    for bucket in buckets.tolist():
        arm = int(tally.owner[bucket])
        with_unit = generator.random() < unit_share
        tally.add(arm, bucket if with_unit else None, bool(generator.random() < 0.1 + 0.2 * arm))
    return tally


def full(seed=1):
    """Three arms, two periods, a correction, and stretches of 150 pages."""
    generator = np.random.default_rng(seed)
    tally = played(Tally([0.7, 0.2, 0.1], stretch=150), generator, 500)
    tally.change_shares([0.2, 0.5, 0.3])
    tally.correct(2)
    return played(tally, generator, 700)
