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
from tests.support.seam import Model

ITEMS = [Item("tea", "Tea", "drinks"), Item("bun", "Bun <b>", "bakes"), Item(7, "Seven"), Item("pie")]


@pytest.fixture
def shop(folder):
    """shop.db with one model, some feedback and a snapshot; no server has it open."""
    with open_service("shop.db") as service:
        service.create("shop", policy="cascade-ts", k=3, items=ITEMS, seed=4)
        shop = Model(service, "shop")
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
    assert (seen.code, "storage: DAMAGED" in seen.out, seen.err.count("\n")) == (1, True, 1)


def test_empty_store_is_sound(run, folder):
    open_service("empty.db").close()
    assert run("audit", "--store", "empty.db").out == "storage: sound\n"


def test_log_prints_events_and_writes_them(run, shop):
    log = ("log", "shop", "--store", shop)
    lines = [json.loads(line) for line in run(*log).out.splitlines()]
    assert [line["kind"] for line in lines] == ["created", *["feedback"] * 3, "items-withdrawn"]
    assert [line["click"] for line in lines[1:4]] == [0, None, 2]
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
    assert audited(run, "other.db")["shop"]["digest"] == audited(run, shop)["shop"]["digest"]
    assert run("import", "shop.model", "--store", "other.db").err.startswith("error: --name 'shop' is taken")
    assert run("import", "shop.model", "--store", "other.db", "--name", "twin").code == 0


def test_keys_are_made_listed_and_revoked(run, shop):
    made = run("keys", "create", "me", "--role", "admin", "--store", shop)
    key = made.out.strip()
    assert (key[:3], key in made.err) == ("fc_", False)
    run("keys", "create", "web", "--store", shop)
    page = run("keys", "create", "page", "--role", "page", "--model", "shop", "--store", shop)
    assert (page.code, "note" in page.err) == (0, False)
    early = run("keys", "create", "early", "--role", "page", "--model", "later", "--store", shop)
    assert "note: the store has no model 'later' yet" in early.err
    keys = json.loads(run("keys", "list", "--store", shop, "--json").out)
    assert [(key["name"], key["role"], key["model"]) for key in keys] == [
        ("me", "admin", None), ("web", "write", None), ("page", "page", "shop"), ("early", "page", "later"),
    ]  # fmt: skip
    assert key.encode() not in shop.read_bytes() + Path(f"{shop}-wal").read_bytes()
    assert "page of shop" in run("keys", "list", "--store", shop).out
    assert run("keys", "revoke", "--id", keys[1]["id"], "--store", shop).code == 0
    assert "web" not in run("keys", "list", "--store", shop).out


def test_reading_works_beside_a_server_and_writing_is_refused(run, shop):
    with open_service("shop.db") as service:
        service.feedback("shop", service.recommend("shop").token, None)
        assert "6 events" in run("audit", "--store", shop).out
        assert len(seqs(run("log", "shop", "--store", shop).out)) == 6
        for command in (
            "keys create me --role admin",
            "archive shop --before 4 --out old.archive",
            "fork shop --policy cascade-ts --as shop2",
            "delete shop --yes-delete shop",
        ):
            seen = run(*command.split(), "--store", "shop.db")
            assert (seen.code, seen.out, "shop.db is in use by process" in seen.err) == (2, "", True)
            assert "running server" in seen.err or not command.startswith(("fork", "delete"))
        assert service.names() == ["shop"]


def test_old_events_go_to_an_archive_and_both_are_audited(run, shop):
    digest = run("audit", "--store", shop).out.split("SHA-256 ")[1].split()[0]
    archive = ("archive", "shop", "--store", shop, "--before", 4, "--out")
    refused = run(*archive, "old.archive")
    assert (refused.code, "token is good for 7 days" in refused.err) == (2, True)
    assert not Path("old.archive").exists()
    seen = run(*archive, "old.archive", "--token-days", 0)
    assert (seen.code, seen.out) == (0, "")
    assert seen.err.startswith(f"shop: events 1 to 3 are in old.archive; {shop} goes on from event 4, SHA")
    assert "no archive is replaced" in run(*archive, "old.archive", "--token-days", 0).err
    rest = run("audit", "--store", shop)
    assert rest.code == 0
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
    assert run("export", "shop", "--store", shop, "--out", "shop.model").code == 2
    assert run("export", *with_archive, "--out", "shop.model").code == 0
    assert run("import", "shop.model", "--store", "other.db").code == 0
    assert digest in run("audit", "--store", "other.db").out


def test_backup_made_while_a_server_writes_is_the_store_at_one_moment(run, shop):
    done = threading.Event()
    with open_service("shop.db") as service:

        def write():
            while not done.is_set():
                service.feedback("shop", service.recommend("shop").token, click=0)

        writer = threading.Thread(target=write)
        writer.start()
        try:
            backups = [run("backup", "--store", "shop.db", "--out", f"copy{n}.db") for n in range(3)]
        finally:
            done.set()
            writer.join()
        last = Model(service, "shop").seq
    heads = []
    for number, seen in enumerate(backups):
        copy = Path(f"copy{number}.db")
        assert (seen.code, seen.err, copy.stat().st_mode & 0o777) == (0, "", 0o600)
        assert seen.out.endswith(f"copy{number}.db: {copy.stat().st_size:,} bytes, sound\n")
        heads.append(audited(run, copy)["shop"]["seq"])
        assert f"shop: {heads[-1]:,} events, SHA-256 " in seen.out
    assert 5 <= heads[0] <= heads[1] <= heads[2] <= last
    # A copy is a store like any other: it has the keys and goes on.
    with open_service("copy0.db") as service:
        service.feedback("shop", service.recommend("shop").token, click=0)
        assert service.audit("shop").equal


def audited(run, store):
    return {
        model["name"]: model for model in json.loads(run("audit", "--store", store, "--json").out)["models"]
    }


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
    assert list(audited(run, shop)) == ["bakery"]


@pytest.fixture
def linear_shop(folder):
    """shop.db with a model that learns from features."""
    with open_service("shop.db") as service:
        items = [
            Item(item.id, features=[price]) for item, price in zip(ITEMS, (2.5, 1.2, 3.0, 4.0), strict=True)
        ]
        service.create("shop", policy="cascade-lin-ts", k=3, items=items, seed=4)
        for click in (0, None, 2):
            service.feedback("shop", service.recommend("shop").token, click)
        subset = service.recommend("shop", candidates=["tea", "bun"], features=[[2.25], [1.0]])
        service.feedback("shop", subset, 1)
        service.put_items("shop", [Item("cake", features=[5.5])])
    return folder / "shop.db"


def test_fork_reports_the_origin_of_its_slates(run, linear_shop):
    before = run("log", "shop", "--store", linear_shop).out.splitlines()
    seen = run("fork", "shop", "--policy", "cascade-ts", "--as", "shop2", "--store", linear_shop)
    assert (seen.code, seen.out) == (0, "")
    assert seen.err == "shop2: a new model of cascade-ts with the 6 events of shop\n"
    with open_service("shop.db") as service:
        service.feedback("shop2", service.recommend("shop2"), 1)
    audit = run("audit", "--slates", "--store", linear_shop)
    assert audit.code == 0
    equal = [line for line in audit.out.splitlines() if "0 differ" in line]
    assert [line[:15] for line in equal] == ["shop: 4 slates ", "shop2: 5 slates"]
    assert equal[1].endswith("0 differ, 4 of them of shop (cascade-lin-ts)")
    first, *copied, own = map(json.loads, run("log", "shop2", "--store", linear_shop).out.splitlines())
    assert (first["policy"], first["copied"], "origin" in own) == ("cascade-ts", 6, False)
    for line, original in zip(copied, map(json.loads, before[1:]), strict=True):
        assert line.pop("origin") == {"model": "shop", "policy": "cascade-lin-ts", "seq": line["seq"]}
        assert line == original
    features = dict(zip(copied[3]["items"], copied[3]["features"], strict=True))
    assert features == {"tea": [2.25], "bun": [1.0]}, "cascade-ts does not use them, and the log has them"
    assert run("log", "shop2", "--store", linear_shop, "--out", "slates.parquet").code == 0
    origins = pl.read_parquet("slates.parquet")["origin"]
    models = [json.loads(origin)["model"] if origin else None for origin in origins]
    assert models == [None, *["shop"] * 5, None]


def test_relearn_forks_with_the_policy_of_the_model(run, linear_shop):
    seen = run("relearn", "shop", "--name", "again", "--store", linear_shop)
    assert seen.err == "again: a new model of cascade-lin-ts with the 6 events of shop\n"
    models = audited(run, linear_shop)
    assert models["again"]["digest"] == models["shop"]["digest"]


def test_policies_that_cannot_fork_are_refused_and_in_the_help(run, linear_shop):
    seen = run("fork", "shop", "--policy", "bubble-rank", "--as", "b", "--store", linear_shop)
    assert seen.code == 2
    assert "these can: c3-ucb, cascade-kl-ucb, " in seen.err
    cannot = sorted(name for name, known in policy_classes().items() if not known.learns_from_others)
    assert f"shuffled itself: {', '.join(cannot)};" in " ".join(run("fork", "--help").out.split())
