"""The files in deploy/ are true of the program."""

import configparser
import json
import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

from firstclick import __version__
from firstclick.serve import open_service
from firstclick.serve.config import Settings, flag, load_settings, variable
from firstclick.serve.http.metrics import Metrics
from firstclick.serve.http.routes import ROUTES
from firstclick.serve.http.server import KEEP_ALIVE

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
TEXTS = {path.name: path.read_text() for path in DEPLOY.iterdir() if path.is_file()}
DOCKERFILE, COMPOSE, NGINX = (TEXTS[name] for name in ("Dockerfile", "compose.yaml", "nginx.conf"))
SERVICES = yaml.safe_load(COMPOSE)["services"]


def test_image_has_two_stages_and_runs_without_root():
    user = "USER 10001:10001"
    assert re.findall("^USER .*", DOCKERFILE, re.MULTILINE) == [user]
    # Kernels are compiled by the user who runs them, after the program is there.
    order = [DOCKERFILE.index(line) for line in ("COPY --from=build", user, "RUN firstclick warm-up")]
    assert order == sorted(order)
    assert "VOLUME /data" in DOCKERFILE
    assert "FIRSTCLICK_STORE=/data/" in DOCKERFILE


def test_routes_variables_and_options_exist():
    for text in (DOCKERFILE, COMPOSE):
        paths = set(re.findall(r"/health/[a-z/]*[a-z]", text))
        assert paths
        assert paths <= {route.path for route in ROUTES}
    variables = {variable(name) for name in Settings.rules()} | {"FIRSTCLICK_CACHE_DIR"}
    for file in ("Dockerfile", "compose.yaml", "firstclick.service"):
        named = set(re.findall(r"\bFIRSTCLICK_[A-Z_]+", TEXTS[file]))
        assert named
        assert named <= variables
    (command,) = re.findall(r"command: (\[.*\])", COMPOSE)
    serve, *words = json.loads(command)
    assert serve == "serve"
    assert {word for word in words if word.startswith("--")} <= {flag(name) for name in Settings.rules()}
    assert "metrics_path: /metrics" in TEXTS["prometheus.yaml"]


def test_compose_publishes_only_the_balancer_and_has_no_rights_to_spare():
    assert [name for name, service in SERVICES.items() if "ports" in service] == ["balancer"]
    assert "POSTGRES_PASSWORD:" not in COMPOSE
    for replica in ("replica-1", "replica-2"):
        assert f"server {replica}:8000" in NGINX
        # Pages may be allowed, and none are by default.
        environment = SERVICES[replica]["environment"]
        assert environment["FIRSTCLICK_ALLOW_ORIGIN"] == "${FIRSTCLICK_ALLOW_ORIGIN:-}"
    assert load_settings({}, {"FIRSTCLICK_ALLOW_ORIGIN": ""})[0].allow_origin == ()
    for name in ("replica-1", "replica-2", "balancer"):
        assert SERVICES[name]["cap_drop"] == ["ALL"]
        assert SERVICES[name]["security_opt"] == ["no-new-privileges:true"]
        assert SERVICES[name]["read_only"] is True


@pytest.mark.parametrize(
    ("secret", "line"),
    [("pa $s:wo\\rd\n", "database:5432:firstclick:firstclick:pa $s\\:wo\\\\rd\n"), ("", None), (None, None)],
)
def test_replica_starts_with_a_password_or_not_at_all(tmp_path, secret, line):
    if secret is not None:
        (tmp_path / "secret").write_text(secret)
    (tmp_path / "firstclick").write_text('#!/bin/sh\necho "$@"\n')
    (tmp_path / "firstclick").chmod(0o700)
    shell, _, script, *rest = SERVICES["replica-1"]["entrypoint"]
    script = script.replace("$$", "$")  # as compose does
    script = script.replace("/run/secrets/postgres_password", str(tmp_path / "secret"))
    script = script.replace("/tmp/pgpass", str(tmp_path / "pgpass"))
    env = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    command = [shell, "-c", script, *rest, "serve", "--k", "a b"]
    done = subprocess.run(command, env=env, capture_output=True, text=True)
    if line is None:
        assert (done.returncode != 0, done.stdout) == (True, "")
        assert not (tmp_path / "pgpass").exists() or not (tmp_path / "pgpass").read_text()
    else:
        assert done.stdout == "serve --k a b\n", done.stderr
        assert (tmp_path / "pgpass").read_text() == line
        assert (tmp_path / "pgpass").stat().st_mode & 0o077 == 0


def test_nginx_closes_connections_before_a_replica_does_and_asks_for_addresses_again():
    (upstream,) = re.findall(r"upstream replicas {(.*?)\n    }", NGINX, re.DOTALL)
    (seconds,) = re.findall(r"keepalive_timeout (\d+)s;", upstream)
    assert int(seconds) < KEEP_ALIVE
    # An address is looked up only once unless all three are there.
    assert "zone replicas" in upstream
    assert len(re.findall(r"server replica-\d:8000 resolve ", upstream)) == 2
    assert re.search(r"resolver 127\.0\.0\.11 valid=\d+s;", NGINX)


def test_unit_is_hardened_and_keeps_store_and_kernels():
    unit = configparser.RawConfigParser(strict=False)
    unit.optionxform = str
    unit.read_string(TEXTS["firstclick.service"])
    service = unit["Service"]
    assert service["ExecStart"].endswith("firstclick serve")
    assert service["DynamicUser"] == service["NoNewPrivileges"] == service["ProtectHome"] == "yes"
    assert service["ProtectSystem"] == "strict"
    assert service["StateDirectory"] == service["CacheDirectory"] == "firstclick"
    assert service["Restart"] == "on-failure"
    # Machine code is loaded into memory.
    assert "MemoryDenyWriteExecute" not in service


SUFFIXES = {"counter": ["_total"], "histogram": ["_bucket", "_sum", "_count"]}


def test_every_metric_of_the_dashboard_is_exported(tmp_path):
    board = json.loads(TEXTS["grafana_dashboard.json"])
    queries = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    queries += [variable["query"] for variable in board["templating"]["list"]]
    named = set(re.findall(r"\b(?:firstclick|process)_\w+", " ".join(queries)))
    with open_service(str(tmp_path / "shop.db")) as service:
        families = list(Metrics(service)._registry.collect())
    exported = {family.name + suffix for family in families for suffix in SUFFIXES.get(family.type, [""])}
    assert len(named) > 15
    assert named <= exported


def test_citation_and_classifiers_have_the_version_and_the_pythons_of_ci():
    assert f"\nversion: {__version__}\n" in (ROOT / "CITATION.cff").read_text()
    classifiers = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["classifiers"]
    pythons = {line.rpartition(" ")[2] for line in classifiers if re.search(r":: 3\.\d+$", line)}
    workflow = yaml.safe_load((ROOT / ".github/workflows/tests.yml").read_text())
    assert pythons == set(workflow["jobs"]["tests"]["strategy"]["matrix"]["python"])
