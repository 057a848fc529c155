"""What earlier versions stored: it is folded to the same bits now, and gives the same slates."""

import json
import sqlite3
import sys
from pathlib import Path
from typing import Any

import psycopg
import pytest
from made_log import K, made_items
from stores import Server

from firstclick import Ranker
from firstclick.registry import DEFAULT_POLICY, make_policy
from firstclick.serve import open_service
from firstclick.serve.config import load_settings
from firstclick.serve.model.replay import recover
from firstclick.serve.startup import open_for
from firstclick.serve.store import open_store
from firstclick.serve.store.store import StoredModel
from sizes import policies

DATABASES = Path(__file__).parents[1] / "databases"
sys.path.insert(0, str(DATABASES))

from make import MODELS, RANKERS, expected_of, next_of, slates_of  # noqa: E402

# What each version wrote, and came to. Tests of a folder are those of the models and rankers that it has.
EXPECTED: dict[Path, Any] = {
    path.parent: json.loads(path.read_text()) for path in sorted(DATABASES.glob("*/expected.json"))
}
OLD = DATABASES / "ea10ab1"
each_folder = pytest.mark.parametrize("old", [pytest.param(folder, id=folder.name) for folder in EXPECTED])


def stored(kind: str, policy_of: dict[str, str]) -> list[Any]:
    """Each folder, with each of its models or rankers: parameters of a test."""
    return [
        pytest.param(folder, name, marks=one.marks, id=f"{folder.name}-{policy_of[name]}")
        for folder, expected in EXPECTED.items()
        for name in expected[kind]
        for one in policies([policy_of[name]])
    ]


def opened(path: Path, script: Path) -> str:
    """The address of an SQLite store with what the script says."""
    connection = sqlite3.connect(path)
    connection.executescript(script.read_text())
    connection.close()
    return str(path)


@pytest.mark.parametrize(("old", "name"), stored("models", MODELS))
def test_a_sqlite_store_comes_to_the_same_digests_and_slates(tmp_path: Path, old: Path, name: str) -> None:
    with open_store(opened(tmp_path / "old.db", old / "sqlite.sql")) as store:
        assert store.check() == []
        assert expected_of(store, [name]) == {name: EXPECTED[old]["models"][name]}


@pytest.mark.plain
@each_folder
def test_a_postgresql_store_comes_to_the_same_digests_and_slates(postgresql: Server, old: Path) -> None:
    url = postgresql.new_database()
    with psycopg.connect(url) as connection:
        connection.execute((old / "postgresql.sql").read_bytes())
    with open_store(url) as store:
        assert store.check() == []
        assert expected_of(store) == EXPECTED[old]["models"]


@each_folder
def test_an_export_is_imported_to_the_same_digest_and_slates(tmp_path: Path, old: Path) -> None:
    with open_service(str(tmp_path / "new.db")) as service:
        model = service.import_model("imported", (old / "linear.export").read_bytes())
        as_exported = recover(service.store, StoredModel(model.id, "imported", model.seq - 1))
        found = {"seq": as_exported.seq, "digest": as_exported.digest(), "slates": slates_of(model)}
        assert [build.firstclick for build in model.builds] != [], "the last event says who serves it now"
        assert service.audit("imported").equal
    assert found == EXPECTED[old]["models"]["linear"]


FILES = {f"{policy.partition(':')[0]}.npz": policy for policy in RANKERS}


@pytest.mark.parametrize(("old", "name"), stored("rankers", FILES))
def test_a_saved_ranker_goes_on_with_the_same_slates(old: Path, name: str) -> None:
    assert next_of(Ranker.load(old / name)) == EXPECTED[old]["rankers"][name]


@pytest.mark.plain
@pytest.mark.parametrize("with_catalog", [True, False])
def test_a_model_keeps_its_policy_when_a_server_is_started_that_is_told_none(
    tmp_path: Path, with_catalog: bool
) -> None:
    """The default is another one now. What was stored before goes on with what it was created with."""
    url = opened(tmp_path / "old.db", OLD / "sqlite.sql")
    flags: dict[str, Any] = {"store": url}
    if with_catalog:
        ids = [item.id for item in made_items()]
        lines = ["id,name,f1,f2,f3,f4", *(f"{item},{item},1,0.1,0.2,0.3" for item in ids)]
        (tmp_path / "items.csv").write_text("\n".join(lines))
        flags |= {"catalog": str(tmp_path / "items.csv"), "name": "linear"}
    settings, origins = load_settings(flags, {})
    assert settings.policy == DEFAULT_POLICY != "cascade-lin-ts"
    service, _, notes = open_for(settings, given={name for name, of in origins.items() if of != "default"})
    with service:
        assert not service.models.broken
        found = {name: service.model(name).policy for name in service.names()}
        assert found == {name: make_policy(MODELS[name]).label for name in EXPECTED[OLD]["models"]}
        model = service.model("linear")
        shown = service.recommend("linear")
        service.feedback("linear", shown, click=0)
        if with_catalog:
            assert "13 of 13 items of the catalog are new or changed, and were put" in notes
            assert model.k == K
        else:
            # Which build serves it now, and the click.
            assert model.seq == EXPECTED[OLD]["models"]["linear"]["seq"] + 2
        assert service.audit("linear").equal


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
