"""`firstclick audit`, `log`, `export`, `import` and `keys`, as someone beside the server uses them."""

import json
from pathlib import Path

import polars as pl
import pytest

from firstclick.catalog.item import Item
from firstclick.serve.service import open_service
from firstclick.serve.store import open_store

ITEMS = [Item("tea", "Tea", "drinks"), Item("bun", "Bun <b>", "bakes"), Item(7, "Seven"), Item("pie")]


@pytest.fixture
def shop(folder):
    """A store with one model, some feedback and a snapshot; no server has it open."""
    with open_service("shop.db") as service:
        service.create("shop", policy="cascade-ts", k=3, items=ITEMS, seed=4)
        for click in (0, None, 2):
            service.feedback("shop", service.recommend("shop").token, click)
        service.maintenance.snapshot(service.model("shop"))
        service.withdraw_items("shop", ["pie"])
    return folder / "shop.db"


def test_audit_says_equal_and_notices_a_changed_log(run, shop):
    done = run("audit", "--store", shop)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith("shop: equal (1 snapshot), 5 events, SHA-256 ")
    assert done.out.endswith("storage: sound\n")
    told = json.loads(run("audit", "shop", "--store", shop, "--json").out)
    assert (told["storage"], told["models"][0]["equal"], told["models"][0]["seq"]) == ([], True, 5)
    _tamper(shop, "UPDATE event SET payload = CAST(X'0100' || substr(payload, 3) AS BLOB) WHERE seq = 2")
    done = run("audit", "--store", shop)
    assert done.code == 1
    assert "shop: DIFFERS" in done.out
    assert "error: shop: the snapshot after event 4 has digest" in done.err
    _tamper(shop, "DELETE FROM event WHERE seq = 3")
    done = run("audit", "--store", shop)
    assert done.code == 1
    assert "storage: DAMAGED" in done.out
    assert done.err.startswith("error: ")
    assert done.err.count("\n") == 1


def _tamper(shop, sql):
    import sqlite3

    connection = sqlite3.connect(shop)
    connection.execute(sql)
    connection.commit()
    connection.close()


def test_log_prints_events_and_writes_them(run, shop):
    lines = [json.loads(line) for line in run("log", "shop", "--store", shop).out.splitlines()]
    assert [line["kind"] for line in lines] == ["created", *["feedback"] * 3, "items-withdrawn"]
    assert [line["seq"] for line in lines] == [1, 2, 3, 4, 5]
    assert [line["click"] for line in lines[1:4]] == [0, None, 2]
    assert set(lines[1]["items"]) <= {"tea", "bun", 7, "pie"}
    assert lines[0]["items"][1] == {"id": "bun", "name": "Bun <b>", "group": "bakes"}
    assert lines[4]["ids"] == ["pie"]
    assert len(run("log", "shop", "--store", shop, "--last", 2).out.splitlines()) == 2
    only = run("log", "shop", "--store", shop, "--kind", "feedback", "--after", 2).out.splitlines()
    assert [json.loads(line)["seq"] for line in only] == [3, 4]
    assert run("log", "shop", "--store", shop, "--out", "log.jsonl").out == ""
    assert [json.loads(line) for line in Path("log.jsonl").read_text().splitlines()] == lines
    assert run("log", "shop", "--store", shop, "--out", "log.parquet").code == 0
    table = pl.read_parquet("log.parquet").to_dicts()
    assert [row["click"] for row in table] == [None, 0, None, 2, None]
    assert table[1]["items"] == [str(item) for item in lines[1]["items"]]
    assert json.loads(table[0]["change"])["policy"] == "cascade-ts"


def test_a_model_goes_to_another_store(run, shop):
    assert run("export", "shop", "--store", shop, "--out", "shop.model").code == 0
    done = run("import", "shop.model", "--store", "other.db")
    assert (done.code, done.err) == (0, "note: other.db is a new store\nshop: 5 events are in other.db\n")
    digests = [
        json.loads(run("audit", "--store", store, "--json").out)["models"][0]["digest"]
        for store in (shop, "other.db")
    ]
    assert digests[0] == digests[1]
    done = run("import", "shop.model", "--store", "other.db")
    assert (done.code, done.out) == (2, "")
    assert "already" in done.err
    assert run("import", "shop.model", "--store", "other.db", "--name", "twin").code == 0


def test_keys_are_made_listed_and_revoked(run, shop):
    done = run("keys", "create", "web", "--store", shop)
    assert (done.code, done.out) == (2, "")
    assert "say --role admin" in done.err
    done = run("keys", "create", "me", "--role", "admin", "--store", shop)
    key = done.out.strip()
    assert key.startswith("fc_")
    assert len(key) > 40
    assert key not in done.err
    run("keys", "create", "web", "--store", shop)
    told = json.loads(run("keys", "list", "--store", shop, "--json").out)
    assert [(one["name"], one["role"]) for one in told] == [("me", "admin"), ("web", "write")]
    assert key.encode() not in shop.read_bytes() + Path(f"{shop}-wal").read_bytes()
    assert run("keys", "revoke", "--id", told[1]["id"], "--store", shop).code == 0
    assert "web" not in run("keys", "list", "--store", shop).out
    assert run("keys", "revoke", "--id", 99, "--store", shop).code == 2


def test_a_key_for_a_page_may_name_its_model(run, shop):
    run("keys", "create", "me", "--role", "admin", "--store", shop)
    made = run("keys", "create", "web", "--role", "page", "--model", "shop", "--store", shop)
    assert (made.code, "key 2 (page of shop) for web" in made.err) == (0, True)
    assert "note" not in made.err
    early = run("keys", "create", "web", "--role", "page", "--model", "later", "--store", shop)
    assert "note: the store has no model 'later' yet" in early.err
    told = json.loads(run("keys", "list", "--store", shop, "--json").out)
    assert [(one["role"], one["model"]) for one in told] == [
        ("admin", None),
        ("page", "shop"),
        ("page", "later"),
    ]
    assert "page of shop" in run("keys", "list", "--store", shop).out


def test_reading_works_beside_a_server_and_writing_is_refused(run, shop):
    with open_service(str(shop)) as service:
        service.feedback("shop", service.recommend("shop").token, None)
        assert "6 events" in run("audit", "--store", shop).out
        assert len(run("log", "shop", "--store", shop).out.splitlines()) == 6
        for words in (("keys", "create", "me", "--role", "admin"), ("import", "shop.model")):
            Path("shop.model").write_bytes(b"")
            done = run(*words, "--store", shop)
            assert done.code == 2, words


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["audit", "--store", "nowhere.db"], "no store nowhere.db; name the one of your server with --store"),
        (["audit", "other"], "no model 'other' in the store; there are: shop"),
        (["log", "shop", "--kind", "clicks"], "--kind must be one of created, feedback"),
        (["export", "shop", "--out", "shop.db"], "is there already; name a new file, or say --overwrite"),
        (["log", "shop", "--out", "log.csv"], "must end in .jsonl or .parquet"),
        (["export", "shop", "--out", "."], "is a folder"),
        (["export", "shop", "--out", "no/folder/x"], "cannot be written"),
        (["import", "shop.db"], "not an exported model"),
        (["import", "missing"], "missing"),
        (["keys", "create", "x", "--role", "king"], "--role must be one of page, read, write, admin"),
        (["keys", "create", "x", "--model", "shop"], "--model is for keys with the role 'page', got 'write'"),
        (
            ["keys", "create", "x", "--role", "page", "--model", "a b"],
            "must be 1 to 64 letters",
        ),
        (["audit", "--store", "mysql://x"], "a store is a file"),
    ],
)
def test_mistakes_are_one_line(run, shop, words, sentence):
    if "--store" not in words:
        words = [*words, "--store", str(shop)]
    done = run(*words)
    assert done.code == 2
    assert done.err.startswith("error: ")
    assert done.err.count("\n") == 1
    assert sentence in done.err


def test_an_empty_store_is_sound(run, folder):
    open_store("empty.db").close()
    assert run("audit", "--store", "empty.db").out == "storage: sound\n"


def test_old_events_go_to_an_archive_and_both_are_audited(run, shop):
    before = run("audit", "--store", shop).out
    digest = before.split("SHA-256 ")[1].split()[0]
    to_file = ("archive", "shop", "--store", shop, "--before", 4, "--out", "old.archive")
    refused = run(*to_file)
    assert refused.code == 2
    assert "the slate of event 2 was recommended" in refused.err
    assert "token is good for 7 days" in refused.err
    assert not Path("old.archive").exists()
    done = run(*to_file, "--token-days", 0)
    assert (done.code, done.out) == (0, "")
    assert done.err.startswith(f"shop: events 1 to 3 are in old.archive; {shop} goes on from event 4, SHA")
    there = run(*to_file, "--token-days", 0)
    assert "--out old.archive is there already, and no archive is replaced" in there.err
    again = run(*to_file[:-1], "new.archive", "--token-days", 0)
    assert "--before must be a number from 5 to 5" in again.err
    assert "events 2 to 3 are archived already" in again.err

    alone = run("audit", "--store", shop)
    assert alone.code == 0
    assert f"5 events (folded from the archive's end, event 4), SHA-256 {digest}" in alone.out
    both = run("audit", "shop", "--store", shop, "--archive", "old.archive")
    assert (both.code, both.err) == (0, "")
    assert both.out.startswith(f"shop: equal (2 snapshots), 5 events, SHA-256 {digest}")
    assert "name it: firstclick audit MODEL" in run("audit", "--store", shop, "--archive", "old.archive").err

    told = run("log", "shop", "--store", shop)
    assert [json.loads(line)["seq"] for line in told.out.splitlines()] == [1, 4, 5]
    assert "note: the log begins at event 4: events 2 to 3 are archived" in told.err
    told = run("log", "shop", "--store", shop, "--archive", "old.archive")
    assert [json.loads(line)["seq"] for line in told.out.splitlines()] == [1, 2, 3, 4, 5]
    assert told.err == ""

    part = run("export", "shop", "--store", shop, "--out", "shop.model")
    assert part.code == 2
    assert "name the files that they are in by --archive FILE" in part.err
    assert run("export", "shop", "--store", shop, "--archive", "old.archive", "--out", "shop.model").code == 0
    assert run("import", "shop.model", "--store", "other.db").code == 0
    assert digest in run("audit", "--store", "other.db").out

    content = bytearray(Path("old.archive").read_bytes())
    content[-50] ^= 1
    Path("old.archive").write_bytes(content)
    spoilt = run("audit", "shop", "--store", shop, "--archive", "old.archive")
    assert spoilt.code == 2
    assert "the file was changed or damaged" in spoilt.err


def test_an_archive_needs_the_sqlite_file_for_itself(run, shop):
    with open_service(str(shop)):
        done = run("archive", "shop", "--store", shop, "--before", 4, "--out", "old.archive")
    assert done.code == 2
    assert "is in use by process" in done.err
