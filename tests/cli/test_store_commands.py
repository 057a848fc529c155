"""Commands on a store beside the server: audit, log, export, import, archive, backup, delete, fork, keys."""

import json
import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import polars as pl
import pytest

from firstclick import policy_classes
from firstclick.serve import Item, open_service
from tests.support.shop import shop_at

ITEMS = [Item("tea", "Tea", "drinks"), Item("bun", "Bun <b>", "bakes"), Item(7, "Seven"), Item("pie")]


@pytest.fixture
def shop(folder):
    """shop.db with one model, some feedback and a snapshot; no server has it open."""
    with shop_at("shop.db", k=3, items=ITEMS, seed=4) as shop:
        for click in (0, None, 2):
            shop.feedback(shop.recommend(), click)
        shop.snapshot()
        shop.withdraw_items(["pie"])
    return folder / "shop.db"


def damage(sql):
    with closing(sqlite3.connect("shop.db")) as connection, connection:
        connection.execute(sql)


def seqs(out):
    return [json.loads(line)["seq"] for line in out.splitlines()]


def test_audit_reports_equal_and_notices_a_changed_log(run, shop):
    seen = run("audit", "--store", shop)
    assert (seen.code, seen.err) == (0, "")
    assert seen.out.startswith("shop: equal (1 snapshot), 5 events, SHA-256 ")
    assert seen.out.endswith("storage: sound\n")
    page = json.loads(run("audit", "shop", "--store", shop, "--json").out)
    assert (page["storage"], page["models"][0]["equal"], page["models"][0]["seq"]) == ([], True, 5)
    damage("UPDATE event SET payload = CAST(X'0100' || substr(payload, 3) AS BLOB) WHERE seq = 2")
    seen = run("audit", "--store", shop)
    assert (seen.code, "shop: DIFFERS" in seen.out) == (1, True)
    assert "error: shop: the snapshot after event 4 has digest" in seen.err
    damage("DELETE FROM event WHERE seq = 3")
    seen = run("audit", "--store", shop)
    assert (seen.code, "storage: DAMAGED" in seen.out) == (1, True)
    assert seen.err.startswith("error: ")
    assert seen.err.count("\n") == 1


def test_empty_store_is_sound(run, folder):
    open_service("empty.db").close()
    assert run("audit", "--store", "empty.db").out == "storage: sound\n"


def test_log_prints_events_and_writes_them(run, shop):
    log = ("log", "shop", "--store", shop)
    lines = [json.loads(line) for line in run(*log).out.splitlines()]
    assert [line["kind"] for line in lines] == ["created", *["feedback"] * 3, "items-withdrawn"]
    assert [line["seq"] for line in lines] == [1, 2, 3, 4, 5]
    assert [line["click"] for line in lines[1:4]] == [0, None, 2]
    assert set(lines[1]["items"]) <= {"tea", "bun", 7, "pie"}
    assert lines[0]["items"][1] == {"id": "bun", "name": "Bun <b>", "group": "bakes"}
    assert lines[4]["ids"] == ["pie"]
    assert seqs(run(*log, "--last", 2).out) == [4, 5]
    assert seqs(run(*log, "--kind", "feedback", "--after", 2).out) == [3, 4]
    assert run(*log, "--out", "log.jsonl").out == ""
    assert [json.loads(line) for line in Path("log.jsonl").read_text().splitlines()] == lines
    assert run(*log, "--out", "log.parquet").code == 0
    table = pl.read_parquet("log.parquet").to_dicts()
    assert [row["click"] for row in table] == [None, 0, None, 2, None]
    assert table[1]["items"] == [str(item) for item in lines[1]["items"]]
    assert json.loads(table[0]["change"])["policy"] == "cascade-ts"


def test_model_goes_to_another_store(run, shop):
    assert run("export", "shop", "--store", shop, "--out", "shop.model").code == 0
    seen = run("import", "shop.model", "--store", "other.db")
    assert (seen.code, seen.err) == (0, "note: other.db is a new store\nshop: 5 events are in other.db\n")
    audits = [json.loads(run("audit", "--store", store, "--json").out) for store in (shop, "other.db")]
    assert len({audit["models"][0]["digest"] for audit in audits}) == 1
    seen = run("import", "shop.model", "--store", "other.db")
    assert (seen.code, seen.out) == (2, "")
    assert seen.err.startswith("error: --name 'shop' is taken")
    assert run("import", "shop.model", "--store", "other.db", "--name", "twin").code == 0


def test_keys_are_made_listed_and_revoked(run, shop):
    made = run("keys", "create", "me", "--role", "admin", "--store", shop)
    key = made.out.strip()
    assert key.startswith("fc_")
    assert len(key) > 40
    assert key not in made.err
    run("keys", "create", "web", "--store", shop)
    page = run("keys", "create", "page", "--role", "page", "--model", "shop", "--store", shop)
    assert (page.code, "key 3 (page of shop) for page" in page.err, "note" in page.err) == (0, True, False)
    early = run("keys", "create", "early", "--role", "page", "--model", "later", "--store", shop)
    assert "note: the store has no model 'later' yet" in early.err
    keys = json.loads(run("keys", "list", "--store", shop, "--json").out)
    assert [(key["name"], key["role"], key["model"]) for key in keys] == [
        ("me", "admin", None), ("web", "write", None), ("page", "page", "shop"), ("early", "page", "later"),
    ]  # fmt: skip
    assert "page of shop" in run("keys", "list", "--store", shop).out
    assert key.encode() not in shop.read_bytes() + Path(f"{shop}-wal").read_bytes()
    assert run("keys", "revoke", "--id", keys[1]["id"], "--store", shop).code == 0
    assert "web" not in run("keys", "list", "--store", shop).out


def test_reading_works_beside_a_server_and_writing_is_refused(run, shop):
    Path("shop.model").write_bytes(b"")
    with shop_at("shop.db") as model:
        model.feedback(model.recommend(), None)
        assert "6 events" in run("audit", "--store", shop).out
        assert len(seqs(run("log", "shop", "--store", shop).out)) == 6
        for command in (
            "keys create me --role admin",
            "import shop.model",
            "archive shop --before 4 --out old.archive",
            "fork shop --policy cascade-ts --as shop2",
            "delete shop --yes-delete shop",
        ):
            seen = run(*command.split(), "--store", "shop.db")
            assert (seen.code, seen.out) == (2, "")
            if not command.startswith("import"):
                assert "shop.db is in use by process" in seen.err
            if command.startswith("fork"):
                assert seen.err.endswith("; or have a running server do it: POST /v1/models/shop/fork\n")
            if command.startswith("delete"):
                assert "or have a running server delete it: DELETE /v1/models/shop" in seen.err
        assert model.service.names() == ["shop"]


def test_old_events_go_to_an_archive_and_both_are_audited(run, shop):
    digest = run("audit", "--store", shop).out.split("SHA-256 ")[1].split()[0]
    archive = ("archive", "shop", "--store", shop, "--before", 4, "--out")
    refused = run(*archive, "old.archive")
    assert refused.code == 2
    assert "the slate of event 2 was recommended" in refused.err
    assert "token is good for 7 days" in refused.err
    assert not Path("old.archive").exists()
    seen = run(*archive, "old.archive", "--token-days", 0)
    assert (seen.code, seen.out) == (0, "")
    assert seen.err.startswith(f"shop: events 1 to 3 are in old.archive; {shop} goes on from event 4, SHA")
    assert "no archive is replaced" in run(*archive, "old.archive", "--token-days", 0).err
    again = run(*archive, "new.archive", "--token-days", 0).err
    assert "--before must be a number from 5 to 5" in again
    assert "events 2 to 3 are archived already" in again

    rest = run("audit", "--store", shop)
    assert rest.code == 0
    assert "5 events (" in rest.out
    assert f"from the archive's end, event 4), SHA-256 {digest}" in rest.out
    with_archive = ("shop", "--store", shop, "--archive", "old.archive")
    both = run("audit", *with_archive)
    assert (both.code, both.err) == (0, "")
    assert both.out.startswith(f"shop: equal (2 snapshots), 5 events, SHA-256 {digest}")
    log = run("log", "shop", "--store", shop)
    assert seqs(log.out) == [1, 4, 5]
    assert "note: the log begins at event 4: events 2 to 3 are archived" in log.err
    log = run("log", *with_archive)
    assert (seqs(log.out), log.err) == ([1, 2, 3, 4, 5], "")

    part = run("export", "shop", "--store", shop, "--out", "shop.model")
    assert (part.code, "that they are in by --archive FILE" in part.err) == (2, True)
    assert run("export", *with_archive, "--out", "shop.model").code == 0
    assert run("import", "shop.model", "--store", "other.db").code == 0
    assert digest in run("audit", "--store", "other.db").out

    content = bytearray(Path("old.archive").read_bytes())
    content[-50] ^= 1
    Path("old.archive").write_bytes(content)
    damaged = run("audit", *with_archive)
    assert (damaged.code, "the file was changed or damaged" in damaged.err) == (2, True)


def test_backup_made_while_a_server_writes_is_the_store_at_one_moment(run, shop):
    done = threading.Event()
    with shop_at("shop.db") as model:
        model.service.create("bakery", policy="cascade-ts", k=2, items=ITEMS, seed=4)

        def write():
            while not done.is_set():
                model.feedback(model.recommend(), click=0)

        writer = threading.Thread(target=write)
        writer.start()
        try:
            backups = [run("backup", "--store", "shop.db", "--out", f"copy{n}.db") for n in range(3)]
        finally:
            done.set()
            writer.join()
        last = model.seq
    heads = []
    for number, seen in enumerate(backups):
        copy = Path(f"copy{number}.db")
        assert (seen.code, seen.err, copy.stat().st_mode & 0o777) == (0, "", 0o600)
        assert seen.out.endswith(f"copy{number}.db: {copy.stat().st_size:,} bytes, sound\n")
        models = {model["name"]: model["seq"] for model in audited(run, copy)}
        assert models["bakery"] == 1
        assert f"shop: {models['shop']:,} events, SHA-256 " in seen.out
        heads.append(models["shop"])
    assert 5 <= heads[0] <= heads[1] <= heads[2] <= last
    # A copy is a store like any other: it has the keys and goes on.
    with shop_at("copy0.db") as copied:
        copied.feedback(copied.recommend(), click=0)
        assert copied.audit().equal


def audited(run, store):
    return json.loads(run("audit", "--store", store, "--json").out)["models"]


def test_backup_that_is_not_sound_is_removed_and_a_sound_one_replaces_on_demand(run, shop, folder):
    Path("old.db").write_bytes(b"older")
    Path("old.db").chmod(0o644)
    assert run("backup", "--store", "shop.db", "--out", "old.db", "--overwrite").code == 0
    assert Path("old.db").stat().st_mode & 0o777 == 0o600
    assert run("audit", "--store", "old.db").code == 0
    damage("DELETE FROM event WHERE seq = 3")
    seen = run("backup", "--store", shop, "--out", "copy.db")
    assert seen.code == 1
    assert "the copy is not sound, and was removed; audit the store: the log of model 'shop'" in seen.err
    assert not list(folder.glob("copy.db*"))


def test_delete_asks_for_the_name_on_a_terminal(run, shop, monkeypatch):
    with open_service("shop.db") as service:
        service.create("bakery", policy="cascade-ts", k=2, items=ITEMS)
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    for answer, code in (("bakery", 2), ("shop", 0)):
        monkeypatch.setattr("typer.prompt", lambda text, answer=answer: answer)
        assert run("delete", "shop", "--store", shop).code == code
    assert [model["name"] for model in audited(run, shop)] == ["bakery"]


@pytest.fixture
def linear_shop(folder):
    """shop.db with a model that learns from features."""
    prices = {"tea": 2.5, "bun": 1.2, 7: 3.0, "pie": 4.0}
    items = [Item(name, features=[price]) for name, price in prices.items()]
    with shop_at("shop.db", policy="cascade-lin-ts", k=3, items=items, seed=4) as shop:
        for click in (0, None, 2):
            shop.feedback(shop.recommend(), click)
        subset = shop.recommend(candidates=["tea", "bun"], features=[[2.25], [1.0]])
        shop.feedback(subset, 1)
        shop.put_items([Item("cake", features=[5.5])])
    return folder / "shop.db"


def test_fork_reports_the_origin_of_its_slates(run, linear_shop):
    before = run("log", "shop", "--store", linear_shop).out.splitlines()
    seen = run("fork", "shop", "--policy", "cascade-ts", "--as", "shop2", "--store", linear_shop)
    assert (seen.code, seen.out) == (0, "")
    assert seen.err == "shop2: a new model of cascade-ts with the 6 events of shop\n"
    with shop_at("shop.db", name="shop2") as forked:
        forked.feedback(forked.recommend(), 1)
    audit = run("audit", "--slates", "--store", linear_shop)
    assert audit.code == 0
    equal = [line for line in audit.out.splitlines() if "0 differ" in line]
    assert [line[:15] for line in equal] == ["shop: 4 slates ", "shop2: 5 slates"]
    assert equal[1].endswith("0 differ, 4 of them of shop (cascade-lin-ts)")

    first, *copied, own = map(json.loads, run("log", "shop2", "--store", linear_shop).out.splitlines())
    assert (first["policy"], first["copied"]) == ("cascade-ts", 6)
    (origin,) = first["origins"]
    assert (origin["model"], origin["upto"], origin["policy"]) == ("shop", 6, "cascade-lin-ts")
    assert "origin" not in own
    for line, original in zip(copied, map(json.loads, before[1:]), strict=True):
        origin = line.pop("origin")
        assert origin == {"model": "shop", "policy": "cascade-lin-ts", "seq": line["seq"]}
        assert line == original
    features = dict(zip(copied[3]["items"], copied[3]["features"], strict=True))
    assert features == {"tea": [2.25], "bun": [1.0]}, "cascade-ts does not use them, and the log has them"

    assert run("log", "shop2", "--store", linear_shop, "--out", "slates.parquet").code == 0
    table = pl.read_parquet("slates.parquet")
    models = [json.loads(origin)["model"] if origin else None for origin in table["origin"]]
    assert models == [None, *["shop"] * 5, None]


def test_relearn_forks_with_the_policy_of_the_model(run, linear_shop):
    seen = run("relearn", "shop", "--name", "again", "--store", linear_shop)
    assert seen.err == "again: a new model of cascade-lin-ts with the 6 events of shop\n"
    models = audited(run, linear_shop)
    assert len(models) == 2
    assert len({model["digest"] for model in models}) == 1


def test_policies_that_cannot_fork_are_refused_and_in_the_help(run, linear_shop):
    seen = run("fork", "shop", "--policy", "bubble-rank", "--as", "b", "--store", linear_shop)
    assert seen.code == 2
    assert "these can: c3-ucb, cascade-kl-ucb, " in seen.err
    cannot = sorted(name for name, known in policy_classes().items() if not known.learns_from_others)
    assert f"shuffled itself: {', '.join(cannot)};" in " ".join(run("fork", "--help").out.split())
