"""What earlier versions stored: it is folded to the same bits now, and gives the same slates."""

import json
import sqlite3
import sys
from pathlib import Path
from typing import Any

import psycopg
import pytest
from stores import Server

from firstclick import Ranker
from firstclick.serve import open_service
from firstclick.serve.model.replay import recover
from firstclick.serve.store import open_store
from sizes import policies

DATABASES = Path(__file__).parents[1] / "databases"
sys.path.insert(0, str(DATABASES))

from make import MODELS, RANKERS, expected_of, next_of, slates_of  # noqa: E402

OLD = DATABASES / "ea10ab1"
EXPECTED: dict[str, Any] = json.loads((OLD / "expected.json").read_text())


def opened(path: Path, script: Path) -> str:
    """The address of an SQLite store with what the script says."""
    connection = sqlite3.connect(path)
    connection.executescript(script.read_text())
    connection.close()
    return str(path)


@pytest.mark.parametrize("policy", policies(MODELS.values()))
def test_a_sqlite_store_comes_to_the_same_digests_and_slates(tmp_path: Path, policy: str) -> None:
    (name,) = [name for name, of in MODELS.items() if of == policy]
    with open_store(opened(tmp_path / "old.db", OLD / "sqlite.sql")) as store:
        assert store.check() == []
        assert expected_of(store, [name]) == {name: EXPECTED["models"][name]}


@pytest.mark.plain
def test_a_postgresql_store_comes_to_the_same_digests_and_slates(postgresql: Server) -> None:
    url = postgresql.new_database()
    with psycopg.connect(url) as connection:
        connection.execute((OLD / "postgresql.sql").read_bytes())
    with open_store(url) as store:
        assert store.check() == []
        assert expected_of(store) == EXPECTED["models"]


def test_an_export_is_imported_to_the_same_digest_and_slates(tmp_path: Path) -> None:
    with open_service(str(tmp_path / "new.db")) as service:
        model = service.import_model("imported", (OLD / "linear.export").read_bytes())
        found = {"seq": model.seq, "digest": model.digest(), "slates": slates_of(model)}
        assert service.audit("imported").equal
    assert found == EXPECTED["models"]["linear"]


@pytest.mark.parametrize("policy", policies(RANKERS))
def test_a_saved_ranker_goes_on_with_the_same_slates(policy: str) -> None:
    name = f"{policy.partition(':')[0]}.npz"
    assert next_of(Ranker.load(OLD / name)) == EXPECTED["rankers"][name]


def test_the_log_of_schema_1_is_folded_to_what_it_was(tmp_path: Path) -> None:
    with open_store(opened(tmp_path / "old.db", DATABASES / "schema-1.sql")) as store:
        assert store.check() == []
        (stored,) = store.models()
        model = recover(store, stored, use_snapshots=False)
    assert (model.seq, model.policy, model.click_stats.slates) == (207, "cascade-lin-ts", 200)
    state = model.engine.state
    assert (int(state.observations[0]), int(state.time[0])) == (206, 86)
    # Sums as they came out when this version was made; learning otherwise would be another policy.
    assert state.precision.sum() == pytest.approx(344.647144849122, rel=1e-13)
    assert state.moment.sum() == pytest.approx(70.12921690778936, rel=1e-13)
    assert state.factor.sum() == pytest.approx(30.83412231555633, rel=1e-12)
    assert model.items.names["i3"] == "renamed"
    assert not model.items.is_shown("i70")
