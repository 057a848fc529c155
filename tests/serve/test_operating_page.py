"""docs/service/operate.md, command by command: what an operator does with the page at hand."""

import os
import re
import subprocess
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.support.page_shell import ROOT, Shell
from tests.support.programs import program
from tests.support.serving import serve
from tests.support.shop import IDS

# Real servers: minutes, not seconds.
pytestmark = pytest.mark.long

PAGE = (ROOT / "docs" / "service" / "operate.md").read_text(encoding="utf-8")


def commands(heading):
    """The blocks of commands under a heading."""
    section = re.split(r"^## ", PAGE, flags=re.MULTILINE)
    (text,) = (part for part in section if part.startswith(f"{heading}\n"))
    return re.findall(r"^```sh\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)


@pytest.fixture
def shell(tmp_path):
    folder = tmp_path / "shop"
    folder.mkdir()
    return Shell(folder)


def answer(shop, slates):
    for _ in range(slates):
        shop.feedback(shop.recommend(), click=1)


def scores(shop):
    return [shop.recommend(k=1, candidates=[id]).scores for id in IDS]


@contextmanager
def served(shop, script):
    """Yield the script with the address of a server on this shop; it needs curl."""
    program("curl")
    assert "http://127.0.0.1:8000" in script
    with serve(shop.service) as server:
        yield script.replace("http://127.0.0.1:8000", server.address)


def digests(printed):
    return re.findall(r"SHA-256 ([0-9a-f]{64})", printed)


def test_back_up_break_restore_go_on(open_shop, shell):
    (back_up,), (restore,) = commands("Backup"), commands("Restore")
    store = shell.folder / "shop.db"
    shop = open_shop(store)
    answer(shop, 20)
    shop.snapshot()
    late = shop.recommend()
    backed_up = shell.run(back_up)
    assert backed_up.endswith("bytes, sound")
    answer(shop, 5)
    shop.close()
    assert (shell.folder / "shop-monday.db").stat().st_mode & 0o777 == 0o600
    # A killed server leaves these too; its disk has damaged the store.
    content = bytearray(store.read_bytes())
    content[5000:20000] = b"\xff" * 15000
    store.write_bytes(content)
    store.with_name("shop.db-wal").write_bytes(b"of another time")
    restored = shell.run(restore)
    assert restored.endswith("storage: sound")
    assert digests(restored) == digests(backed_up)
    assert store.stat().st_mode & 0o777 == 0o600
    shop = open_shop(store)
    assert shop.seq == 21, "what came after the copy is gone, as the page says"
    assert shop.feedback(late, click=0).status == "accepted"
    assert shop.audit().equal


def test_upgrade(open_shop, shell):
    keep, install, audit = commands("Upgrade")
    store = shell.folder / "shop.db"
    shop = open_shop(store)
    answer(shop, 3)
    shop.close()
    shell.run(keep)
    assert (shell.folder / "before" / "shop.db").read_bytes() == store.read_bytes()
    assert "firstclick serve --store shop.db" in install
    printed = shell.run(audit)
    assert printed.endswith("storage: sound")
    assert "DIFFERS" not in printed


def test_delete_on_a_running_server_and_without_one(open_shop, shell):
    over_http, without = commands("Delete a model")
    store = shell.folder / "shop.db"
    shop = open_shop(store)
    answer(shop, 3)
    with served(shop, over_http) as script:
        assert shell.run(script) == '{"name":"shop","events":4}'
    shop.close()
    shop = open_shop(store)
    answer(shop, 150)
    shop.close()
    before = store.stat().st_size
    shell.run(without)
    assert store.stat().st_size < before
    assert "Grüße".encode() not in store.read_bytes()
    assert open_shop(store, name="other").service.names() == ["other"]


def test_a_model_is_exported_imported_archived_and_forked(open_shop, shell):
    (move,), (put_away,) = commands("Export and import one model"), commands("Archive a long log")
    (fork,) = commands("Change the policy: fork")
    shop = open_shop(shell.folder / "shop.db")
    answer(shop, 210)
    digest = shop.digest()
    shell.run(move)
    shop.close()
    copy = open_shop(shell.folder / "other.db", name="copy")
    assert (copy.seq, copy.digest()) == (211, digest)
    forked = shell.run(fork)
    assert "shop2: 210 slates drawn again equal, 0 differ, 210 of them of shop (cascade-ts)" in forked
    assert forked.endswith("storage: sound")
    early = subprocess.run(
        ["sh", "-e", "-c", put_away], cwd=shell.folder, env=shell.environment, text=True, capture_output=True
    )
    assert "its token is good for 7 days" in early.stderr, "younger slates are not archived, as the page says"
    # As a week later.
    audited = shell.run(put_away.replace(" --before", " --token-days 0.000001 --before"))
    assert "shop: equal (1 snapshot), 211 events" in audited
    assert digests(audited)[-1] == digest


def test_roll_back_on_a_running_server(open_shop, shell):
    (script,) = commands("Roll back")
    shop = open_shop(shell.folder / "shop.db")
    new = scores(shop)
    answer(shop, 4)
    learned = scores(shop)
    assert learned != new
    with served(shop, script) as command:
        assert shell.run(command) == '{"seq":6}'
    assert scores(shop) == new
    shop.roll_back(5)
    assert scores(shop) == learned, "forward again, as the page says"


def test_postgresql_is_dumped_restored_and_audited(open_shop, shell, postgresql):
    (script,) = commands("PostgreSQL: back up and restore")
    pgserver = pytest.importorskip("pgserver")
    programs = Path(pgserver.__file__).parent / "pginstall" / "bin"
    urls = {}
    for name in ("STORE", "COPY"):
        postgresql.run(f"CREATE DATABASE operating_{name.lower()}")
        urls[name] = postgresql.address_of(f"operating_{name.lower()}")
    shop = open_shop(urls["STORE"])
    answer(shop, 20)
    shop.snapshot()
    slate = shop.recommend()
    path = f"{programs}{os.pathsep}{shell.environment['PATH']}"
    printed = shell.run(script, PATH=path, **urls)
    assert "shop: equal (1 snapshot), 21 events" in printed
    copy = open_shop(urls["COPY"])
    assert copy.feedback(slate, click=0).status == "accepted"
    assert copy.service.store.create("another", []).id > 1, "numbers of models go on"
