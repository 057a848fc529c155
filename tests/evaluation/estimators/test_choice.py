"""Cross-validation: whose loss is smallest, and what is noise."""

import numpy as np
import pytest

from firstclick.evaluation.estimators.choice import choose
from firstclick.evaluation.estimators.position_ips import IIPS
from firstclick.evaluation.estimators.prefix_ips import RIPS, SELF_NORMALISED_RIPS


def folds(apart):
    """Fold sums of RIPS and of an estimator with a fifth of its noise, so many standard errors apart."""
    rng = np.random.default_rng(1)
    noisy, quiet = rng.normal(size=(2, 200))
    noisy, quiet = noisy - noisy.mean(), 0.2 * (quiet - quiet.mean())
    error = (noisy - quiet).std() / np.sqrt(200)
    return np.stack([5.0 + noisy, 5.0 + quiet - apart * error], axis=1)


@pytest.mark.parametrize(
    ("other", "apart", "chosen"),
    [
        (SELF_NORMALISED_RIPS, 0.5, "sn-rips"),
        # RIPS itself may be what is off.
        (SELF_NORMALISED_RIPS, 1.95, "sn-rips"),
        (SELF_NORMALISED_RIPS, 3.0, "sn-rips"),
        (IIPS, 1.95, "iips"),
        # What need not be right is then taken to be biased.
        (IIPS, 3.0, "rips"),
    ],
)
def test_the_distance_from_rips_counts_where_noise_cannot_explain_it(other, apart, chosen):
    found = choose([RIPS, other], folds(apart), np.ones(200), "pbm", np.random.default_rng(2))
    assert found.name == chosen
    assert found.name == min(found.losses, key=lambda name: found.losses[name])
    assert ("Too far from RIPS" in found.reasons[1]) == (chosen == "rips")


def test_of_two_the_one_with_less_noise_wins_whichever_comes_first():
    noisy_and_quiet = folds(0.0)
    assert choose(
        [RIPS, SELF_NORMALISED_RIPS], noisy_and_quiet[:, ::-1], np.ones(200), "cm", np.random.default_rng(2)
    ).name == "rips"  # fmt: skip
