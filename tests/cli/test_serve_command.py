"""`firstclick serve` as a newcomer uses it: his own catalog, three calls, a restart, and all is there."""

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from firstclick import make_policy
from firstclick.cli.serve import first_request
from firstclick.registry import DEFAULT_POLICY
from firstclick.serve.service import open_service

CATALOG = """\
id,name,group,sweet,hot
tea,Tea,drinks,0.1,1
bun,Bun,bakes,0.9,0.2
pie,Pie,bakes,0.8,0.6
ice,Ice,ices,1,0
"""


class Running:
    """A server process; `err` is what it said until it was ready."""

    def __init__(self, process):
        self.process = process
        self.err = ""
        assert process.stderr is not None
        for line in process.stderr:
            self.err += line
            if line.startswith("Dashboard:"):
                break
        found = re.search(r"Dashboard: (http://127\.0\.0\.1:\d+)/", self.err)
        assert found, self.err
        self.address = found[1]
        # From now on it answers Ctrl-C by closing in order.
        assert self.call("/health/live")

    def call(self, path, body=None):
        request = urllib.request.Request(
            self.address + path,
            None if body is None else json.dumps(body).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)


@contextmanager
def serving(*words, env=None):
    process = subprocess.Popen(
        [sys.executable, "-m", "firstclick", "serve", "--port", "0", *words],
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
        env={**os.environ, **(env or {})},
    )
    try:
        yield Running(process)
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
    assert process.returncode == 0


def test_a_newcomers_path(folder):
    Path("items.csv").write_text(CATALOG)
    words = ("--catalog", "items.csv", "--policy", "cascade-lin-ts", "--k", "3", "--store", "shop.db")
    with serving(*words) as server:
        for call in re.findall(r"curl .*?\n +(\S+) -d", server.err):
            assert call.startswith(f"{server.address}/v1/models/default/")
        shown = server.call("/v1/models/default/recommend", {})
        assert len(shown["items"]) == 3
        feedback = {"token": shown["token"], "click": 1}
        assert server.call("/v1/models/default/feedback", feedback) == {"status": "accepted", "seq": 2}
    # Some time later: an item more, another name.
    Path("items.csv").write_text(CATALOG.replace("Pie", "Apple pie") + "jam,Jam,bakes,1,0.1\n")
    with serving(*words) as server:
        assert "2 of 5 items of the catalog are new or changed" in server.err
        assert server.call("/v1/models/default/feedback", feedback) == {"status": "duplicate", "seq": 2}
        told = server.call("/v1/models/default")
        assert (told["items"], told["slates"], told["clicks"]) == (5, 1, 1)
        request = urllib.request.Request(server.address + "/v1/models/default/items/ice", method="DELETE")
        urllib.request.urlopen(request, timeout=30).close()
    Path("items.csv").write_text(CATALOG)
    with serving(*words) as server:
        assert "1 items of the catalog were withdrawn and stay so" in server.err
        assert server.call("/v1/models/default/recommend", {"candidates": ["ice", "tea"]})["items"] == ["tea"]
        assert "1 items of model 'default' are not in the catalog file and stay, 'jam' for one" in server.err


@pytest.mark.parametrize(
    ("policy", "said"),
    [
        ("cascade-lin-ts", {}),
        ("context-lin-ts:context=2", {"context": [1, 0]}),
        ("segment-lin-ts:segments=3", {"context": [1]}),
        ("segment-lin-ts:segments=1", {"context": [0]}),
    ],
)
def test_the_call_that_is_printed_says_what_a_policy_wants_to_know(policy, said):
    model = SimpleNamespace(engine=SimpleNamespace(policy=make_policy(policy)))
    assert json.loads(first_request(SimpleNamespace(model=lambda name: model), "shop")) == said


def test_a_model_that_is_broken_does_not_keep_the_server_from_starting(tmp_path):
    with open_service(str(tmp_path / "shop.db")) as service:
        assert first_request(service, "broken or gone") == "{}"


def test_what_becomes_of_columns_and_a_catalog_without_features_are_told(run, folder):
    Path("items.csv").write_text("id,price,sale,unit\na,400,0,kg\nb,20,1,kg\nc,300,1,kg\n")
    with serving("--catalog", "items.csv", "--k", "2", "--policy", "cascade-lin-ts") as server:
        assert "catalog: 3 items, 4 columns -> 2 features (1 number, 1 yes/no); left out: unit" in server.err
    Path("bare.csv").write_text("id,name\na,A\nb,B\n")
    done = run(
        "serve", "--catalog", "bare.csv", "--store", "bare.db", "--port", 0, "--policy", "cascade-lin-ts"
    )
    assert done.code == 2
    assert "needs features, and the items have none" in done.err


@pytest.mark.long
def test_the_default_takes_columns_of_any_size_and_a_catalog_without_features(folder):
    Path("items.csv").write_text("id,price,sale\na,400,0\nb,20,1\nc,300,1\n")
    Path("bare.csv").write_text("id,name\na,A\nb,B\nc,C\n")
    for catalog, n_features in (("items.csv", 2), ("bare.csv", 0)):
        with serving("--catalog", catalog, "--k", "2", "--store", f"{catalog}.db") as server:
            told = server.call("/v1/models/default")
            assert (told["policy"], told["n_features"]) == (DEFAULT_POLICY, n_features)
            shown = server.call("/v1/models/default/recommend", {})
            assert len(shown["items"]) == 2
            feedback = {"token": shown["token"], "click": 1}
            assert server.call("/v1/models/default/feedback", feedback)["status"] == "accepted"


def test_the_demo_learns_while_one_watches(folder):
    with serving("--demo") as server:
        while (told := server.call("/v1/models/cafe"))["slates"] < 60:
            pass
        assert told["clicks"] > 2
    assert list(folder.iterdir()) == []  # the demo leaves nothing behind


def test_settings_come_from_flags_environment_and_file(run, folder, monkeypatch):
    Path("serve.toml").write_text('k = 4\nport = 1234\nname = "menu"\n')
    monkeypatch.setenv("FIRSTCLICK_PORT", "2345")
    monkeypatch.setenv("FIRSTCLICK_STORE", "postgresql://me:secret@host/db")
    done = run("serve", "--config", "serve.toml", "--k", 5, "--print-config")
    assert done.code == 0
    for line in ("k = 5 .*(flag)", "port = 2345 .*(FIRSTCLICK_PORT)", 'name = "menu" .*(serve.toml)'):
        assert re.search(line.replace("(", r"\(").replace(")", r"\)"), done.out)
    assert "secret" not in done.out
    assert not Path("firstclick.db").exists()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--policy", "cascade-lints"], "did you mean 'cascade-lin-ts'"),
        (["--k", "0"], "--k must be a whole number at least 1 and at most 255, got 0"),
        (["--port", "high"], "--port must be"),
        (["--catalog", "missing.csv"], "missing.csv"),
        (["--catalog", "bad.csv"], "id"),
        (
            ["--host", "0.0.0.0"],
            "make one with `firstclick keys create NAME --role admin --store firstclick.db`",
        ),
        (["--demo", "--catalog", "items.csv"], "demo brings its own catalog"),
        (["--config", "missing.toml"], "missing.toml"),
        (["--store", "no/folder/shop.db"], "no/folder"),
        (["--durability", "maybe"], "one of full, relaxed"),
    ],
)
def test_mistakes_are_one_line_and_no_server(run, folder, words, sentence):
    Path("items.csv").write_text(CATALOG)
    Path("bad.csv").write_text("name,x\na,1\n")
    done = run("serve", *words)
    assert done.code == 2
    assert done.err.splitlines()[-1].startswith("error: ")
    assert sentence in done.err


def test_a_server_that_may_not_be_reached_makes_no_model(run, folder):
    Path("items.csv").write_text(CATALOG)
    for words in (["--host", "0.0.0.0"], ["--behind-proxy"]):
        done = run("serve", "--catalog", "items.csv", "--store", "shop.db", "--port", 0, *words)
        assert done.code == 2
        assert "the store has no API keys" in done.err
    with open_service("shop.db") as service:
        assert list(service.names()) == []


def test_another_policy_for_a_model_that_is_there_is_refused(run, folder):
    Path("items.csv").write_text(CATALOG)
    with serving("--catalog", "items.csv", "--k", "2", "--policy", "cascade-lin-ts"):
        done = run("serve", "--catalog", "items.csv", "--port", 0)
        assert done.code == 2
        assert "in use by process" in done.err
    for words, sentence in (
        (["--k", 6], "is in the store with k 2, and k 6 is asked for; say --k 2, or --name"),
        (["--policy", "cascade-ts"], "with policy cascade-lin-ts, and policy cascade-ts is asked for"),
        (["--policy", "cascade-lin-ts:sigma=0.5"], "and policy cascade-lin-ts:sigma=0.5 is asked for"),
    ):
        done = run("serve", "--catalog", "items.csv", "--port", 0, *words)
        assert done.code == 2
        assert sentence in done.err
    # What nobody asks for is as it was stored, whatever the defaults are.
    with serving("--catalog", "items.csv") as server:
        told = server.call("/v1/models/default")
        assert (told["policy"], told["k"]) == ("cascade-lin-ts", 2)
