"""Stores of earlier versions: what was learned then is folded now, to the same bits."""

import sqlite3
from pathlib import Path

import pytest

from firstclick.serve.recovery import recover
from firstclick.serve.store import open_store

HERE = Path(__file__).parent


def test_the_log_of_schema_1_is_folded_to_what_it_was(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "old.db")
    connection.executescript((HERE / "databases" / "schema-1.sql").read_text())
    connection.close()
    with open_store(tmp_path / "old.db") as store:
        assert store.check() == []
        (stored,) = store.models()
        model = recover(store, stored, use_snapshots=False)
    assert (model.seq, model.policy, model.history.slates) == (207, "cascade-lin-ts", 200)
    state = model.live.state
    assert (int(state.observations[0]), int(state.time[0])) == (206, 86)
    # Sums as they came out when this version was made; learning otherwise would be another policy.
    assert state.precision.sum() == pytest.approx(344.647144849122, rel=1e-13)
    assert state.moment.sum() == pytest.approx(70.12921690778936, rel=1e-13)
    assert state.factor.sum() == pytest.approx(30.83412231555633, rel=1e-12)
    assert model.shelf.names["i3"] == "renamed"
    assert not model.shelf.is_shown("i70")
