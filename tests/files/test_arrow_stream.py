"""Arrays streamed by DuckDB: pieces in order, and errors on the way."""

import duckdb
import numpy as np
import pytest

from firstclick.errors import WorkFailed
from firstclick.files.arrow_stream import arrow_batches


def test_nulls_lists_and_their_offsets_are_read():
    rows = (
        "(VALUES ([1, NULL, 3]::BIGINT[], 1::BIGINT, 0.5::DOUBLE), (NULL, NULL, NULL), "
        "([]::BIGINT[], 3, 1.5)) t(a, b, c)"
    )
    with duckdb.connect() as db:
        stream = arrow_batches(db.sql(f"SELECT * FROM {rows}"))
        piece = next(stream)
        a, b, c = piece["a"], piece["b"], piece["c"]
        assert a.starts.tolist() == [0, 3, 3, 3]
        assert a.valid.tolist() == a.valid_values.tolist() == [True, False, True]
        assert a.values[[0, 2]].tolist() == b.values[b.valid].tolist() == [1, 3]
        assert c.values[[0, 2]].tolist() == [0.5, 1.5]
        later = a.rows(1, 3)
        assert (later.starts.tolist(), len(later.values)) == ([0, 0, 0], 0)
        assert next(stream, None) is None


def test_long_result_comes_in_pieces_and_in_order():
    n = 500_000
    with duckdb.connect() as db:
        relation = db.sql(f"SELECT i, [i, i + 1]::BIGINT[] AS pair FROM range({n}) t(i)")
        seen = 0
        for piece in arrow_batches(relation):
            values = piece["i"].values
            assert np.array_equal(values, np.arange(seen, seen + len(values)))
            assert len(values) < n
            pairs = piece["pair"]
            assert (pairs.values[:2].tolist(), len(pairs.values)) == ([seen, seen + 1], 2 * len(values))
            half = pairs.rows(len(values) // 2, len(values))
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
