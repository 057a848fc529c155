"""docs/service/operate.md, command by command: what an operator does with the page at hand."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import firstclick
from firstclick.serve.config import Settings
from firstclick.serve.http.server import Server as HttpServer
from firstclick.serve.service import open_service
from tests.support import seam
from tests.support.serving import ITEMS

# Real servers: minutes, not seconds.
pytestmark = pytest.mark.long

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "service" / "operate.md").read_text(encoding="utf-8")


def commands(heading):
    """The blocks of commands under a heading."""
    section = re.split(r"^## ", PAGE, flags=re.MULTILINE)
    (text,) = (part for part in section if part.startswith(f"{heading}\n"))
    return re.findall(r"^```sh\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)


class Shell:
    """A shell in a folder, where `firstclick` is this version."""

    def __init__(self, folder):
        self.folder = folder
        programs = folder.parent / "programs"
        programs.mkdir()
        program = programs / "firstclick"
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m firstclick "$@"\n')
        program.chmod(0o755)
        source = Path(firstclick.__file__).parents[1]
        self.environment = os.environ | {
            "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}", "PYTHONPATH": str(source)
        }  # fmt: skip

    def run(self, script, **environment):
        done = subprocess.run(
            ["sh", "-e", "-c", script], cwd=self.folder, env=self.environment | environment, text=True,
            capture_output=True,
        )  # fmt: skip
        assert done.returncode == 0, (script, done.stdout, done.stderr)
        return done.stdout


@pytest.fixture
def shell(tmp_path):
    folder = tmp_path / "shop"
    folder.mkdir()
    return Shell(folder)


def answer(service, slates):
    for _ in range(slates):
        service.feedback("shop", service.recommend("shop").token, click=1)


def create(service):
    service.create("shop", policy="cascade-ts", k=3, items=ITEMS, seed=1)


def estimates(service):
    return [service.recommend("shop", k=1, candidates=[item.id]).scores for item in ITEMS]


def digests(printed):
    return re.findall(r"SHA-256 ([0-9a-f]{64})", printed)


def test_back_up_break_restore_go_on(shell):
    store = shell.folder / "shop.db"
    (back_up,) = commands("Backup")
    (restore,) = commands("Restore")
    with open_service(str(store)) as service:
        create(service)
        answer(service, 20)
        seam.model(service, "shop").snapshot()
        late = service.recommend("shop").token
        backed_up = shell.run(back_up)
        assert backed_up.endswith("bytes, sound\n")
        answer(service, 5)
    copy = shell.folder / "shop-monday.db"
    assert copy.stat().st_mode & 0o777 == 0o600
    # A killed server leaves these too; its disk has damaged the store.
    content = bytearray(store.read_bytes())
    content[5000:20000] = b"\xff" * 15000
    store.write_bytes(content)
    store.with_name("shop.db-wal").write_bytes(b"of another time")
    restored = shell.run(restore)
    assert restored.endswith("storage: sound\n")
    assert digests(restored) == digests(backed_up)
    assert store.stat().st_mode & 0o777 == 0o600
    with open_service(str(store)) as service:
        assert seam.model(service, "shop").seq == 21, "what came after the copy is gone, as the page says"
        assert service.feedback("shop", late, click=0).status == "accepted"
        assert service.audit("shop").equal


def test_upgrade(shell):
    store = shell.folder / "shop.db"
    with open_service(str(store)) as service:
        create(service)
        answer(service, 3)
    keep, install, audit = commands("Upgrade")
    shell.run(keep)
    assert (shell.folder / "before" / "shop.db").read_bytes() == store.read_bytes()
    assert "firstclick serve --store shop.db" in install
    printed = shell.run(audit)
    assert printed.endswith("storage: sound\n")
    assert "DIFFERS" not in printed


def test_delete_on_a_running_server_and_without_one(shell):
    over_http, without = commands("Delete a model")
    store = shell.folder / "shop.db"
    with open_service(str(store), poll_seconds=0.05) as service:
        with HttpServer(service, Settings(port=0)) as server:
            create(service)
            answer(service, 3)
            assert "http://127.0.0.1:8000" in over_http
            if shutil.which("curl"):
                told = shell.run(over_http.replace("http://127.0.0.1:8000", server.address))
                assert told == '{"name":"shop","events":4}'
            else:
                service.delete("shop")
            assert service.names() == []
        create(service)
        answer(service, 150)
    before = store.stat().st_size
    shell.run(without)
    assert store.stat().st_size < before
    assert b"Espresso" not in store.read_bytes()
    with open_service(str(store)) as service:
        assert service.names() == []


def test_a_model_is_exported_imported_archived_and_forked(shell):
    store = shell.folder / "shop.db"
    (move,) = commands("Export and import one model")
    (put_away,) = commands("Archive a long log")
    (fork,) = commands("Change the policy: fork")
    with open_service(str(store)) as service:
        create(service)
        answer(service, 210)
        digest = service.audit("shop").digest
        shell.run(move)
    with open_service(str(shell.folder / "other.db")) as service:
        assert seam.model(service, "copy").seq == 211
        assert service.audit("copy").digest == digest
    forked = shell.run(fork)
    assert "shop2: 210 slates drawn again equal, 0 differ, 210 of them of shop (cascade-ts)" in forked
    assert forked.endswith("storage: sound\n")
    early = subprocess.run(
        ["sh", "-e", "-c", put_away], cwd=shell.folder, env=shell.environment, text=True, capture_output=True
    )
    assert "its token is good for 7 days" in early.stderr, "younger slates are not archived, as the page says"
    # As a week later.
    audited = shell.run(put_away.replace(" --before", " --token-days 0.000001 --before"))
    assert "shop: equal (1 snapshot), 211 events" in audited
    assert digests(audited)[-1] == digest


def test_roll_back_on_a_running_server(shell):
    if not shutil.which("curl"):
        pytest.skip("the page's command needs curl")
    (script,) = commands("Roll back")
    with (
        open_service(str(shell.folder / "shop.db")) as service,
        HttpServer(service, Settings(port=0)) as server,
    ):
        create(service)
        new = estimates(service)
        answer(service, 4)
        learned = estimates(service)
        assert learned != new
        assert shell.run(script.replace("http://127.0.0.1:8000", server.address)) == '{"seq":6}'
        assert estimates(service) == new
        service.roll_back("shop", 5)
        assert estimates(service) == learned, "forward again, as the page says"


def test_postgresql_is_dumped_restored_and_audited(shell, postgresql):
    (script,) = commands("PostgreSQL: back up and restore")
    pgserver = pytest.importorskip("pgserver")
    programs = Path(pgserver.__file__).parent / "pginstall" / "bin"
    urls = {}
    for name in ("STORE", "COPY"):
        postgresql.run(f"CREATE DATABASE operating_{name.lower()}")
        urls[name] = postgresql.address_of(f"operating_{name.lower()}")
    with open_service(urls["STORE"]) as service:
        create(service)
        answer(service, 20)
        seam.model(service, "shop").snapshot()
        token = service.recommend("shop").token
        path = f"{programs}{os.pathsep}{shell.environment['PATH']}"
        printed = shell.run(script, PATH=path, **urls)
    assert "shop: equal (1 snapshot), 21 events" in printed
    with open_service(urls["COPY"]) as service:
        assert service.feedback("shop", token, click=0).status == "accepted"
        assert service.store.create("another", []).id > 1, "numbers of models go on"
