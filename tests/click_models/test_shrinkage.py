"""How far rates are drawn to the mean: a fixed list must not decide it alone."""

import numpy as np
import pytest

from firstclick.click_models.shrinkage import rate_prior
from firstclick.streams import stream


def test_a_few_items_that_were_shown_all_the_time_do_not_decide_how_much_items_differ():
    """Four items of a list, alike by chance, have most looks; forty explored ones differ as Beta(2, 8)."""
    draw = stream(3, "rates")
    rates = np.concatenate([[0.19, 0.2, 0.21, 0.2], draw.beta(2.0, 8.0, 40)])
    looks = np.concatenate([np.full(4, 5000.0), np.full(40, 100.0)])
    hits = draw.binomial(looks.astype(int), rates).astype(float)
    strength = rate_prior(hits, looks, np.zeros(44, np.int64), 1).strength
    # 2 + 8 in truth; 6.7 to 25 in 60 other draws. With looks as weights it was 57.
    assert 6 < strength < 20


def test_with_equal_looks_the_strength_is_that_of_the_rates():
    draw = stream(4, "rates")
    looks = np.full(4000, 50.0)
    hits = draw.binomial(50, draw.beta(3.0, 27.0, 4000)).astype(float)
    prior = rate_prior(hits, looks, np.zeros(4000, np.int64), 1)
    # 5 standard errors, found by repeating it: 1.3 each.
    assert prior.strength == pytest.approx(30, abs=6.5)
    assert prior.means[0] == pytest.approx(0.1, abs=0.01)
