"""Arrays streamed by DuckDB: pieces in order, and errors on the way."""

import duckdb
import numpy as np
import pytest

from firstclick.errors import WorkFailed
from firstclick.files.arrow_stream import arrow_batches


def test_long_result_comes_in_pieces_and_in_order():
    n = 500_000
    with duckdb.connect() as db:
        relation = db.sql(f"SELECT i, [i, i + 1]::BIGINT[] AS pair FROM range({n}) t(i)")
        seen = 0
        for piece in arrow_batches(relation):
            values = piece["i"].values
            assert np.array_equal(values, np.arange(seen, seen + len(values)))
            assert len(values) < n
            half = piece["pair"].rows(len(values) // 2, len(values))
            assert half.values[0] == seen + len(values) // 2
            seen += len(values)
        assert seen == n


def test_stream_that_is_left_early_frees_its_connection():
    with duckdb.connect() as db:
        stream = arrow_batches(db.sql("SELECT i FROM range(1000000) t(i)"))
        next(stream)
        stream.close()
        assert db.execute("SELECT 1").fetchall() == [(1,)]


def test_error_on_the_way_is_raised():
    with duckdb.connect() as db:
        query = "SELECT if(i < 400000, i, error('row ' || i))::BIGINT AS i FROM range(500000) t(i)"
        with pytest.raises((WorkFailed, duckdb.Error), match="row 4"):
            list(arrow_batches(db.sql(query)))
