"""A fit as predictions and as a file."""

import json

import numpy as np
import pytest

from firstclick.click_models import FITTED_MODELS, ClickFit, load_click_fit
from firstclick.errors import InvalidInput
from firstclick.files.arrays import read_arrays, write_arrays
from tests.support.reference.click_models import click_chances


def made_up(model, **changes):
    generator = np.random.default_rng(2)
    chances = {"dcm": generator.random(4), "pbm": generator.random(4), "dbn": np.array([0.7])}
    given = {
        "model": model, "items": ("tea", 7, "cocoa", "maté", 2**70), "segments": ("new", "old"),
        "shares": np.array([0.25, 0.75]), "attraction": generator.random((2, 5)),
        "satisfaction": generator.random((2, 5)) if model in ("sdbn", "dbn") else np.empty((0, 0)),
        "chances": chances.get(model, np.empty(0)), "looks": 9 * generator.random((2, 5)), "k": 4,
        "slates": 12.0, "converged": False,
    }  # fmt: skip
    return ClickFit(**(given | changes))


@pytest.mark.parametrize("model", FITTED_MODELS)
def test_click_chances_equal_the_sum_over_all_that_may_be_clicked(model):
    fit = made_up(model)
    slates = np.array([[0, 1, 2, 3], [4, 2, 0, -1], [3, -1, -1, -1]], np.int32)
    segments = np.array([1, 0, 1], np.int32)
    found = fit.click_chances(slates, segments)
    for row, (slate, segment) in enumerate(zip(slates, segments, strict=True)):
        shown = slate[slate >= 0]
        np.testing.assert_allclose(found[row, : len(shown)], click_chances(shown, fit, segment), atol=1e-12)
        assert (found[row, len(shown) :] == 0).all()


def test_file_gives_back_the_same_fit(tmp_path):
    for model in FITTED_MODELS:
        fit = made_up(model)
        fit.save(tmp_path / "fit.npz")
        again = load_click_fit(tmp_path / "fit.npz")
        for name, value in vars(fit).items():
            np.testing.assert_array_equal(getattr(again, name), value)


def test_files_that_are_no_fits_are_refused(tmp_path):
    path = tmp_path / "fit.npz"
    made_up("dbn").save(path)
    page, arrays = read_arrays(path, "firstclick click model 1")
    missing = {name: array for name, array in arrays.items() if name != "shares"}
    for content, named, problem in (
        (page, arrays | {"attraction": arrays["attraction"][:, :3]}, "attraction .*shape"),
        (page, arrays | {"chances": np.array([1.5])}, "chances .*at most 1"),
        (page, arrays | {"looks": np.full((2, 5), np.nan)}, "looks .*0 or more"),
        (page, missing, "a part of the fit is missing"),
        (page | {"format": "firstclick click model 9"}, arrays, "its format must be"),
    ):
        write_arrays(path, content, named)
        with pytest.raises(InvalidInput, match=problem):
            load_click_fit(path)
    path.write_text(json.dumps(page))
    with pytest.raises(InvalidInput, match="damaged"):
        load_click_fit(path)
