"""`firstclick serve` as a newcomer uses it: a catalog, three calls, a restart, and all is there."""

import json
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
from firstclick.serve import open_service

CATALOG = """\
id,name,group,sweet,hot,unit
tea,Tea,drinks,0.1,1,kg
bun,Bun,bakes,0.9,0.2,kg
pie,Pie,bakes,0.8,0.6,kg
ice,Ice,ices,1,0,kg
"""
MODEL = "/v1/models/default"


class Running:
    """A server process; `err` is its stderr until it was ready."""

    def __init__(self, process):
        self.process, self.err = process, ""
        for line in process.stderr:
            self.err += line
            if line.startswith("Dashboard:"):
                break
        found = re.search(r"Dashboard: (http://127\.0\.0\.1:\d+)/", self.err)
        assert found, self.err
        self.address = found[1]
        # From now on it answers Ctrl-C by closing in order.
        assert self.call("/health/live")

    def call(self, path, body=None, method=None):
        content = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(self.address + path, content, headers, method=method)
        with urllib.request.urlopen(request, timeout=30) as answer:
            return json.load(answer)


@contextmanager
def serving(*words):
    process = subprocess.Popen(
        [sys.executable, "-m", "firstclick", "serve", "--port", "0", *words],
        stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    try:
        yield Running(process)
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
    assert process.returncode == 0


def test_newcomers_path_through_restarts_and_other_settings(run, folder):
    items = folder / "items.csv"
    items.write_text(CATALOG)
    words = ("--catalog", "items.csv", "--policy", "cascade-lin-ts", "--k", "3", "--store", "shop.db")
    with serving(*words) as server:
        assert "catalog: 4 items, 6 columns -> 2 features (2 numbers); left out: unit" in server.err
        for call in re.findall(r"curl .*?\n +(\S+) -d", server.err):
            assert call.startswith(f"{server.address}{MODEL}/")
        slate = server.call(f"{MODEL}/recommend", {})
        assert len(slate["items"]) == 3
        feedback = {"token": slate["token"], "click": 1}
        assert server.call(f"{MODEL}/feedback", feedback) == {"status": "accepted", "seq": 2}
        done = run("serve", "--catalog", "items.csv", "--store", "shop.db", "--port", 0)
        assert (done.code, "in use by process" in done.err) == (2, True)
    # Another item, another name. What is not asked for stays as it was stored, whatever the defaults are.
    items.write_text(CATALOG.replace("Pie", "Apple pie") + "jam,Jam,bakes,1,0.1,kg\n")
    with serving("--catalog", "items.csv", "--store", "shop.db") as server:
        assert "2 of 5 items of the catalog are new or changed" in server.err
        assert server.call(f"{MODEL}/feedback", feedback) == {"status": "duplicate", "seq": 2}
        model = server.call(MODEL)
        assert (model["items"], model["slates"], model["clicks"]) == (5, 1, 1)
        assert (model["policy"], model["k"]) == ("cascade-lin-ts", 3)
        server.call(f"{MODEL}/items/ice", method="DELETE")
    items.write_text(CATALOG)
    with serving(*words) as server:
        assert "1 items of the catalog were withdrawn and stay so" in server.err
        assert server.call(f"{MODEL}/recommend", {"candidates": ["ice", "tea"]})["items"] == ["tea"]
        assert "1 items of model 'default' are not in the catalog file and stay, 'jam' for one" in server.err
    for other, sentence in (
        (["--k", 6], "is in the store with k 3, and k 6 is asked for; say --k 3, or --name"),
        (["--policy", "cascade-ts"], "with policy cascade-lin-ts, and policy cascade-ts is asked for"),
        (["--policy", "cascade-lin-ts:sigma=0.5"], "and policy cascade-lin-ts:sigma=0.5 is asked for"),
    ):
        done = run("serve", "--catalog", "items.csv", "--store", "shop.db", "--port", 0, *other)
        assert (done.code, sentence in done.err) == (2, True)


@pytest.mark.parametrize(
    ("policy", "body"),
    [
        ("cascade-lin-ts", {}),
        ("context-lin-ts:context=2", {"context": [1, 0]}),
        ("segment-lin-ts:segments=1", {"context": [0]}),
    ],
)
def test_first_call_that_is_printed_has_the_context_of_the_policy(policy, body):
    model = SimpleNamespace(engine=SimpleNamespace(policy=make_policy(policy)))
    assert json.loads(first_request(SimpleNamespace(model=lambda name: model), "shop")) == body


def test_model_in_trouble_does_not_keep_the_server_from_starting(tmp_path):
    with open_service(str(tmp_path / "shop.db")) as service:
        assert first_request(service, "broken or gone") == "{}"


def test_catalog_without_features_is_refused_if_the_policy_needs_them(run, folder):
    Path("bare.csv").write_text("id,name\na,A\nb,B\n")
    done = run("serve", "--catalog", "bare.csv", "--store", "bare.db", "--policy", "cascade-lin-ts")
    assert (done.code, "needs features, and the items have none" in done.err) == (2, True)


@pytest.mark.long
def test_default_accepts_columns_of_any_size_and_a_catalog_without_features(folder):
    Path("items.csv").write_text("id,price,sale\na,400,0\nb,20,1\nc,300,1\n")
    Path("bare.csv").write_text("id,name\na,A\nb,B\nc,C\n")
    for catalog, n_features in (("items.csv", 2), ("bare.csv", 0)):
        with serving("--catalog", catalog, "--k", "2", "--store", f"{catalog}.db") as server:
            model = server.call(MODEL)
            assert (model["policy"], model["n_features"]) == ("cascade-mixed", n_features)
            slate = server.call(f"{MODEL}/recommend", {})
            assert len(slate["items"]) == 2
            feedback = {"token": slate["token"], "click": 1}
            assert server.call(f"{MODEL}/feedback", feedback)["status"] == "accepted"


def test_demo_learns_while_one_watches(folder):
    with serving("--demo") as server:
        while (model := server.call("/v1/models/cafe"))["slates"] < 60:
            pass
        assert model["clicks"] > 2
    assert list(folder.iterdir()) == []  # the demo leaves nothing behind


def test_settings_come_from_flags_environment_and_file(run, folder, monkeypatch):
    Path("serve.toml").write_text('k = 4\nport = 1234\nname = "menu"\n')
    monkeypatch.setenv("FIRSTCLICK_PORT", "2345")
    monkeypatch.setenv("FIRSTCLICK_STORE", "postgresql://me:secret@host/db")
    done = run("serve", "--config", "serve.toml", "--k", 5, "--print-config")
    assert done.code == 0
    for line in (
        r"k = 5 .*\(flag\)",
        r"port = 2345 .*\(FIRSTCLICK_PORT\)",
        r'name = "menu" .*\(serve.toml\)',
    ):
        assert re.search(line, done.out)
    assert "secret" not in done.out
    assert not Path("firstclick.db").exists()


def test_server_that_may_not_be_reached_makes_no_model(run, folder):
    Path("items.csv").write_text(CATALOG)
    for words in (["--host", "0.0.0.0"], ["--behind-proxy"]):
        done = run("serve", "--catalog", "items.csv", "--store", "shop.db", "--port", 0, *words)
        assert done.code == 2
        assert "the store has no API keys" in done.err
        assert "`firstclick keys create NAME --role admin --store shop.db`" in done.err
    with open_service("shop.db") as service:
        assert list(service.names()) == []
