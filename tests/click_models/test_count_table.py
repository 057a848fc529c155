"""The position-based model from counts by item and position."""

import numpy as np
import pytest

from firstclick.click_models import fit
from firstclick.click_models.count_table import fit_counts, read_counts
from firstclick.errors import InvalidInput
from tests.support.made_up_log import MadeUpLog, position_clicks, shuffled_slates


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
    expected = fit(MadeUpLog(slates, clicks, segments=segments, n_segments=2), "pbm", by_segment=True)
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
    for row, (odd, fact) in enumerate(
        zip(table.skipped, ("item", "position", "impressions", "clicks"), strict=True), start=3
    ):
        assert f"row {row}" in str(odd)
        assert fact in str(odd)
    (capped,) = map(str, table.capped)
    assert "row 2" in capped
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
