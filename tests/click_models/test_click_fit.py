"""A fit as predictions and as a file."""

import json

import numpy as np
import pytest

from firstclick.click_models import FITTED_MODELS, ClickFit, fit, load_click_fit
from firstclick.click_models.count_table import fit_counts, read_counts
from firstclick.errors import InvalidInput
from firstclick.files.arrays import read_arrays, write_arrays
from tests.support.memory_log import InMemoryLog, position_clicks, shuffled_slates
from tests.support.reference.click_models import click_chances


def fit_of(model):
    generator = np.random.default_rng(2)
    chances = {"dcm": generator.random(4), "pbm": generator.random(4), "dbn": np.array([0.7])}
    return ClickFit(
        model=model, items=("tea", 7, "cocoa", "maté", 2**70), segments=("new", "old"),
        shares=np.array([0.25, 0.75]), attraction=generator.random((2, 5)),
        satisfaction=generator.random((2, 5)) if model in ("sdbn", "dbn") else np.empty((0, 0)),
        chances=chances.get(model, np.empty(0)), looks=9 * generator.random((2, 5)), k=4, slates=12.0,
        converged=False,
    )  # fmt: skip


@pytest.mark.parametrize("model", FITTED_MODELS)
def test_click_chances_equal_the_sum_over_all_that_may_be_clicked(model):
    fit = fit_of(model)
    slates = np.array([[0, 1, 2, 3], [4, 2, 0, -1], [3, -1, -1, -1]], np.int32)
    segments = np.array([1, 0, 1], np.int32)
    found = fit.click_chances(slates, segments)
    for row, (slate, segment) in enumerate(zip(slates, segments, strict=True)):
        shown = slate[slate >= 0]
        np.testing.assert_allclose(found[row, : len(shown)], click_chances(shown, fit, segment), atol=1e-12)
        assert (found[row, len(shown) :] == 0).all()


def test_file_gives_back_the_same_fit(tmp_path):
    for model in FITTED_MODELS:
        fit = fit_of(model)
        fit.save(tmp_path / "fit.npz")
        again = load_click_fit(tmp_path / "fit.npz")
        for name, value in vars(fit).items():
            np.testing.assert_array_equal(getattr(again, name), value)


def test_files_that_are_no_fits_are_refused(tmp_path):
    path = tmp_path / "fit.npz"
    fit_of("dbn").save(path)
    page, arrays = read_arrays(path, "firstclick click model 1")
    missing = {name: array for name, array in arrays.items() if name != "shares"}
    for content, named, problem in (
        (page, arrays | {"attraction": arrays["attraction"][:, :3]}, "attraction"),
        (page, arrays | {"chances": np.array([1.5])}, "chances"),
        (page, arrays | {"looks": np.full((2, 5), np.nan)}, "looks"),
        (page, missing, "missing"),
        (page | {"format": "firstclick click model 9"}, arrays, "format"),
    ):
        write_arrays(path, content, named)
        with pytest.raises(InvalidInput, match=problem):
            load_click_fit(path)
    path.write_text(json.dumps(page))
    with pytest.raises(InvalidInput, match="damaged"):
        load_click_fit(path)


def test_counts_give_the_same_fit_as_the_slates_they_were_counted_from(tmp_path):
    generator = np.random.default_rng(6)
    slates, segments = shuffled_slates(generator, 5000, 6, 4), generator.integers(0, 2, 5000)
    attraction = np.array([np.linspace(0.1, 0.6, 6), np.linspace(0.5, 0.05, 6)])
    clicks = position_clicks(generator, attraction[segments[:, None], slates], np.array([1, 0.6, 0.5, 0.2]))
    counts = {}
    for slate, clicked, segment in zip(slates, clicks, segments, strict=True):
        for position in range(4):
            one = counts.setdefault((segment, slate[position], position + 1), [0, 0])
            one[0] += 1
            one[1] += clicked[position]
    path = tmp_path / "counts.csv"
    rows = [",".join(map(str, (*key, *value))) for key, value in sorted(counts.items())]
    # An item and position may come in two rows.
    rows = ["0,2,1,0,0", *rows]
    path.write_text("query,url,Pos,Impression,Click\n" + "\n".join(rows) + "\n")
    table = read_counts(path)
    assert (table.first_position, table.skipped, table.capped) == (1, (), ())
    found = fit_counts(table)
    expected = fit(InMemoryLog(slates, clicks, segments=segments), "pbm", by_segment=True)
    order = [found.items.index(str(item)) for item in range(6)]
    np.testing.assert_allclose(found.attraction[:, order], expected.attraction, atol=1e-9)
    np.testing.assert_allclose(found.chances, expected.chances, atol=1e-9)
    np.testing.assert_allclose(found.shares, expected.shares)
    assert found.slates == 5000


def test_odd_rows_are_counted_and_reported(tmp_path):
    path = tmp_path / "counts.csv"
    path.write_text(
        "item,position,impressions,clicks\n"
        "tea,0,10,4\ntea,1,10,12\n,0,10,1\ncocoa,1.5,10,1\ncocoa,1,many,1\ncocoa,0,10,-1\ncocoa,0,20,2\n"
    )
    table = read_counts(path)
    for row, odd in enumerate([*table.capped, *table.skipped], start=2):
        assert f"row {row}" in str(odd)
    assert (len(table.capped), len(table.skipped)) == (1, 4)
    assert (table.items, table.segments, table.first_position) == (("tea", "cocoa"), ("",), 0)
    assert table.clicks.tolist() == [[4, 10], [2, 0]]


def test_files_that_cannot_be_counts_are_refused(tmp_path):
    path = tmp_path / "counts.csv"
    for text, problem in (
        ("item,position,shown,clicks\ntea,1,10,4\n", "needs a column 'impressions'"),
        ("item,position,impressions,clicks\ntea,-1,10,4\n", "no row has"),
        ("item,position,impressions,clicks\ntea,1,0,0\n", "no impressions"),
    ):
        path.write_text(text)
        with pytest.raises(InvalidInput, match=problem):
            fit_counts(read_counts(path))
