"""EM with longer steps."""

import numpy as np
import pytest

from firstclick.click_models.em import maximise


def test_long_step_that_makes_things_worse_is_not_taken():
    # Equal plain steps up to 0.5 look like a straight way to 1, where the objective is far lower.
    def step(here):
        return np.where(here < 0.5, np.minimum(here + 0.01, 0.5), here), -abs(float(here[0]) - 0.5)

    found = maximise(step, np.array([0.2]), 1.0)
    assert found.parameters[0] == pytest.approx(0.5)
    assert found.finished
    cut = maximise(lambda here: (here * 0.999, -float(here[0])), np.array([0.9]), 1e-9, most_steps=2)
    assert (cut.finished, cut.steps) == (False, 2)


def test_long_steps_save_steps_where_em_is_slow():
    taken = []

    def step(here):
        taken.append(float(here[0]))
        return here + 0.002 * (0.7 - here), -float((here[0] - 0.7) ** 2)

    found = maximise(step, np.array([0.1]), 1.0)
    assert found.parameters[0] == pytest.approx(0.7, abs=0.01)
    # Plain EM: 0.998 to the power of 2,000 is 0.018.
    assert found.steps == len(taken) < 50
