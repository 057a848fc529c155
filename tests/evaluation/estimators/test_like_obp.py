"""The estimates of obp 0.5.7 from the same arrays (obp_fixture.py made them), to 1e-10."""

import json
from pathlib import Path

import numpy as np
import pytest

from firstclick.evaluation.estimators.all_estimators import ESTIMATORS
from firstclick.evaluation.estimators.evaluate import evaluate
from firstclick.evaluation.estimators.weighted_slates import WeightedSlates

FIXTURE = json.loads((Path(__file__).parents[2] / "support/reference/obp.json").read_text(encoding="utf-8"))
BY_OBP = FIXTURE["estimates"]


def _slates():
    names = ("clicks", "logged", "target", "logged_places", "target_places", "q", "after")
    arrays = {name: np.array(FIXTURE[name], dtype=np.float64) for name in names}
    q, after = arrays.pop("q"), arrays.pop("after")
    rows = np.array(FIXTURE["slates"])[:, :, None]
    predicted = np.take_along_axis(q, rows, axis=2)[:, :, 0]
    return WeightedSlates(**arrays, predicted=predicted, predicted_target=(q * after).sum(axis=2))


def test_the_fixture_has_all_estimators_of_obp():
    ours = {one.name for one in ESTIMATORS}
    assert set(BY_OBP) == ours - {"sn-cascade-dr"}  # obp does not have it


@pytest.mark.parametrize("name", sorted(BY_OBP))
def test_an_estimate_is_that_of_obp(name):
    found = {one.name: one.value for one in evaluate(_slates(), learning=False).estimates}
    assert found[name] == pytest.approx(BY_OBP[name], abs=1e-10, rel=0)
