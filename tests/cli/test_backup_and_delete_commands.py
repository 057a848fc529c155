"""`firstclick backup` and `firstclick delete`, as an operator uses them."""

import sqlite3
import threading
from pathlib import Path

import pytest

from firstclick.catalog.item import Item
from firstclick.serve.service import open_service
from firstclick.serve.store import open_store

ITEMS = [Item("tea", "Tea"), Item("bun", "Bun"), Item("pie", "Pie")]


def answer(service, name):
    service.feedback(name, service.recommend(name).token, click=0)


@pytest.fixture
def store(folder):
    """A store with two models; no server has it open."""
    with open_service("shop.db") as service:
        for name in ("shop", "bakery"):
            service.create(name, policy="cascade-ts", k=2, items=ITEMS, seed=4)
            answer(service, name)
    return folder / "shop.db"


def files(folder):
    return {path.name for path in folder.iterdir()}


def test_a_copy_made_while_a_server_writes_is_the_store_at_one_moment(run, store):
    done = threading.Event()
    with open_service("shop.db") as service:

        def write():
            while not done.is_set():
                answer(service, "shop")

        writing = threading.Thread(target=write)
        writing.start()
        try:
            copies = [run("backup", "--store", "shop.db", "--out", f"copy{number}.db") for number in range(3)]
        finally:
            done.set()
            writing.join()
        last = service.model("shop").seq
    seqs = []
    for number, copied in enumerate(copies):
        assert (copied.code, copied.err) == (0, "")
        copy = Path(f"copy{number}.db")
        assert copy.stat().st_mode & 0o777 == 0o600
        with open_store(str(copy), read_only=True) as there:
            heads = {model.name: model.head for model in there.models()}
        assert heads["bakery"] == 2
        assert f"shop: {heads['shop']:,} events, SHA-256 " in copied.out
        assert copied.out.endswith(f"copy{number}.db: {copy.stat().st_size:,} bytes, sound\n")
        seqs.append(heads["shop"])
    assert seqs == sorted(seqs)
    assert 2 <= seqs[0] <= seqs[-1] <= last
    # A copy is a store like any other: it has the keys and goes on.
    with open_service("copy0.db") as service:
        answer(service, "shop")
        assert service.audit("shop").equal


def test_a_copy_that_is_not_sound_is_not_there(run, store):
    connection = sqlite3.connect(store)
    connection.execute("DELETE FROM event WHERE model = 2 AND seq = 1")
    connection.commit()
    connection.close()
    done = run("backup", "--store", store, "--out", "copy.db")
    assert done.code == 1
    assert "the copy is not sound, and was removed; audit the store: the log of model 'bakery'" in done.err
    assert all(name.startswith("shop.db") for name in files(store.parent))


@pytest.mark.parametrize(
    ("out", "more", "told"),
    [
        ("old.db", [], "--out old.db is there already"),
        ("shop.db", ["--overwrite"], "--out shop.db is the store itself"),
        ("link.db", ["--overwrite"], "--out link.db is the store itself"),
        ("open.db", [], "open.db-wal is there: open.db is in use, or was not closed"),
        ("nowhere/copy.db", [], "nowhere/copy.db cannot be written: No such file or directory"),
    ],
)
def test_backup_replaces_nothing_by_accident(run, store, out, more, told):
    Path("old.db").write_bytes(b"older")
    Path("open.db-wal").write_bytes(b"")
    Path("link.db").symlink_to("shop.db")
    before = store.read_bytes()
    done = run("backup", "--store", "shop.db", "--out", out, *more)
    assert done.code == 2
    assert told in done.err
    assert store.read_bytes() == before
    assert Path("old.db").read_bytes() == b"older"


def test_an_older_copy_is_replaced_if_that_is_said(run, store):
    Path("copy.db").write_bytes(b"older")
    Path("copy.db").chmod(0o644)
    assert run("backup", "--store", "shop.db", "--out", "copy.db", "--overwrite").code == 0
    assert Path("copy.db").stat().st_mode & 0o777 == 0o600
    assert run("audit", "--store", "copy.db").code == 0


def test_delete_wants_the_name_once_more(run, store, monkeypatch):
    done = run("delete", "shop", "--store", store)
    assert (done.code, done.err) == (
        2, "error: to delete 'shop' for good, repeat its name: say --yes-delete shop\n"
    )  # fmt: skip
    done = run("delete", "shop", "--store", store, "--yes-delete", "bakery")
    assert "the name must be 'shop' once more, got 'bakery'; nothing was deleted" in done.err
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    for typed, code in (("bakery", 2), ("shop", 0)):
        monkeypatch.setattr("typer.prompt", lambda text, typed=typed: typed)
        assert run("delete", "shop", "--store", store).code == code
    with open_store(str(store), read_only=True) as there:
        assert [model.name for model in there.models()] == ["bakery"]


def test_delete_makes_no_store_and_knows_the_models(run, folder):
    assert "no store other.db" in run("delete", "shop", "--store", "other.db", "--yes-delete", "shop").err
    assert files(folder) == set()
    with open_service("shop.db") as service:
        service.create("shop", policy="cascade-ts", k=2, items=ITEMS)
        done = run("delete", "bakery", "--store", "shop.db", "--yes-delete", "bakery")
        assert (done.code, "no model 'bakery' in the store; there are: shop" in done.err) == (2, True)
        done = run("delete", "shop", "--store", "shop.db", "--yes-delete", "shop")
        assert done.code == 2
        assert "shop.db is in use by process" in done.err
        assert "or have a running server delete it: DELETE /v1/models/shop" in done.err
        assert service.names() == ["shop"]
