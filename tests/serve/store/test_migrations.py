"""Tables of older and newer versions."""

import sqlite3
from collections.abc import Sequence
from pathlib import Path

import psycopg
import pytest
from killed_store import Kill, kills
from stores import feedback, log_of, raised

from firstclick.errors import InvalidInput
from firstclick.serve.log.events import BODY_OF, Kind, read_feedback, unpacked
from firstclick.serve.store import migrations, open_store
from firstclick.serve.store.postgresql_link import PostgresSchema
from firstclick.serve.store.sqlite_file import SqliteSchema
from firstclick.serve.store.store import Store

DATABASES = Path(__file__).parents[1] / "databases"
# Made up, for a later version: a column more, then a table with what was counted.
MADE_UP = {
    "sqlite": [
        ("ALTER TABLE model ADD COLUMN note TEXT NOT NULL DEFAULT 'none'",),
        ("CREATE TABLE tally (n INTEGER)", "INSERT INTO tally SELECT count(*) FROM event"),
    ],
    "postgresql": [
        ("ALTER TABLE firstclick_model ADD COLUMN note text NOT NULL DEFAULT 'none'",),
        ("CREATE TABLE tally (n bigint)", "INSERT INTO tally SELECT count(*) FROM firstclick_event"),
    ],
}


NOW = len(migrations.SQLITE_STEPS)


def add_steps(monkeypatch: pytest.MonkeyPatch, number: int = 2, last: Sequence[str] = ()) -> None:
    """As if this were a later version."""
    for kind, schema in (("sqlite", SqliteSchema), ("postgresql", PostgresSchema)):
        steps = [*schema.steps, *MADE_UP[kind][:number]]
        monkeypatch.setattr(schema, "steps", [*steps, last] if last else steps)


def ask(url: str, statement: str) -> list[tuple[object, ...]]:
    """The answer to a query behind the store's back."""
    if url.startswith("postgresql"):
        with psycopg.connect(url) as connection:
            return connection.execute(statement.replace("meta", "firstclick_meta").encode()).fetchall()
    connection = sqlite3.connect(url)
    found = connection.execute(statement).fetchall()
    connection.close()
    return found


def test_an_older_store_is_brought_up_to_date_with_all_that_is_in_it(
    store: Store, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = store.create("shop", [feedback(0), feedback(1)]).id
    before = log_of(store, shop)
    store.close()
    add_steps(monkeypatch)
    for _ in range(2):
        newer = open_store(store_url)
        assert log_of(newer, shop) == before
        assert newer.check() == []
        newer.close()
        assert ask(store_url, "SELECT n FROM tally") == [(2,)], "each step is done once"
        assert ask(store_url, "SELECT value FROM meta WHERE key = 'schema'") == [(str(NOW + 2),)]


def test_a_process_of_the_older_version_goes_on_beside_the_newer(
    store: Store, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not store.shared:
        pytest.skip("a SQLite file has one process")
    shop = store.create("shop", [feedback(0)]).id
    add_steps(monkeypatch)
    newer = open_store(store_url)
    store.append([(shop, feedback(1))])
    newer.append([(shop, feedback(2))])
    assert log_of(store, shop) == log_of(newer, shop)
    newer.close()


def test_a_step_that_fails_leaves_the_schema_before_it(
    store: Store, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.close()
    with monkeypatch.context() as broken:
        add_steps(broken, 1, ["CREATE TABLE halfway (n INTEGER)", "CREATE TABLE halfway (n INTEGER)"])
        assert raised(lambda: open_store(store_url)) is not None
        assert ask(store_url, "SELECT value FROM meta WHERE key = 'schema'") == [(str(NOW + 1),)]
        assert raised(lambda: ask(store_url, "SELECT n FROM halfway")) is not None
    add_steps(monkeypatch)
    open_store(store_url).close()
    assert ask(store_url, "SELECT n FROM tally") == [(0,)]


def test_killed_after_any_step_the_next_start_goes_on(
    store_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind = "postgresql" if store_url.startswith("postgresql") else "sqlite"
    # All on one store: each process gets one step further before it is killed.
    asked = [
        Kill(store_url, "after migration step", 1, str(tmp_path / f"acks-{n}"), more_steps=MADE_UP[kind][:n])
        for n in range(3)
    ]
    asked = [*asked[:1] * NOW, *asked[1:]]
    assert kills(asked) == [[] for _ in asked]
    assert ask(store_url, "SELECT value FROM meta WHERE key = 'schema'") == [(str(NOW + 2),)]
    add_steps(monkeypatch)
    store = open_store(store_url)
    store.create("shop", [feedback(0)])
    assert store.check() == []
    store.close()
    assert ask(store_url, "SELECT n FROM tally") == [(0,)]


@pytest.mark.parametrize("read_only", [False, True])
def test_a_store_of_a_newer_version_is_refused_and_left_alone(
    store: Store, store_url: str, read_only: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.close()
    with monkeypatch.context() as newer:
        add_steps(newer)
        open_store(store_url).close()
    with pytest.raises(
        InvalidInput, match=rf"made by a newer firstclick \(schema {NOW + 2}, this one knows {NOW}\)"
    ):
        open_store(store_url, read_only=read_only)
    assert ask(store_url, "SELECT value FROM meta WHERE key = 'schema'") == [(str(NOW + 2),)]


def test_an_older_store_is_not_changed_by_reading_it(
    store: Store, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.close()
    add_steps(monkeypatch)
    with pytest.raises(InvalidInput, match="start a server on it once"):
        open_store(store_url, read_only=True)
    assert ask(store_url, "SELECT value FROM meta WHERE key = 'schema'") == [(str(NOW),)]


@pytest.mark.parametrize("dump", sorted(DATABASES.glob("schema-*.sql")), ids=lambda path: path.stem)
def test_stores_that_released_versions_made_are_read(dump: Path, tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "shop.db")
    connection.executescript(dump.read_text(encoding="utf-8"))
    connection.close()
    store = open_store(tmp_path / "shop.db")
    (model,) = store.models()
    events = log_of(store, model.id)
    assert (model.name, len(events)) == ("shop", model.head)
    assert {event.kind for event in events} == {kind for kind in Kind if kind <= Kind.ROLLED_BACK}
    assert [event.seq for event in events] == list(range(1, model.head + 1))
    for event in events:
        read_feedback(event.payload) if event.kind == Kind.FEEDBACK else unpacked(event, BODY_OF[event.kind])
    assert store.append([(model.id, feedback(1))])[0].seq == 1, "its nonces are known"
    assert store.append([(model.id, feedback(10**9))])[0].seq == model.head + 1
    assert [key.secret for key in store.token_keys()] == [b"k" * 32]
    assert [key.role for key in store.api_keys()] == ["read"]
    # Those that were made without links may be of a history that is gone.
    assert len(store.snapshots(model.id)) == (dump.stem >= "schema-2")
    assert store.create("bakery", []).id > model.id
    assert store.check() == []
    store.close()


def test_there_is_a_dump_of_every_schema() -> None:
    names = [f"schema-{n}.sql" for n in range(1, len(migrations.SQLITE_STEPS) + 1)]
    assert sorted(path.name for path in DATABASES.glob("*.sql")) == names
