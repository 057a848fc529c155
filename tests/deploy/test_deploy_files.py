"""The files in deploy/ say what is true of the program."""

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
from firstclick.serve.config import Settings, flag, load_settings, variable
from firstclick.serve.http.metrics import Metrics
from firstclick.serve.http.routes import ROUTES
from firstclick.serve.http.server import KEEP_ALIVE
from firstclick.serve.service import open_service

ROOT = Path(__file__).parents[2]
DEPLOY = ROOT / "deploy"
DOCKERFILE = (DEPLOY / "Dockerfile").read_text()
COMPOSE = (DEPLOY / "compose.yaml").read_text()
OTHER_VARIABLES = {"FIRSTCLICK_CACHE_DIR"}


def parsed():
    return dict(yaml.safe_load(COMPOSE))


def test_the_image_has_several_stages_and_runs_as_nobody_special():
    lines = DOCKERFILE.splitlines()
    assert sum(line.startswith("FROM ") for line in lines) == 2
    users = [line for line in lines if line.startswith("USER ")]
    assert users == ["USER 10001:10001"]
    # Kernels are compiled by the user who runs them, after the program is there.
    assert DOCKERFILE.index("COPY --from=build") < DOCKERFILE.index(users[0])
    assert DOCKERFILE.index(users[0]) < DOCKERFILE.index("RUN firstclick warm-up")
    for word in ("HEALTHCHECK", "VOLUME /data", 'CMD ["serve"]', "FIRSTCLICK_STORE=/data/"):
        assert word in DOCKERFILE


def test_health_checks_ask_a_route_that_exists():
    paths = {route.path for route in ROUTES}
    for text in (DOCKERFILE, COMPOSE):
        asked = set(re.findall(r"/health/[a-z/]*[a-z]", text))
        assert asked
        assert asked <= paths


@pytest.mark.parametrize("file", ["Dockerfile", "compose.yaml", "firstclick.service"])
def test_variables_are_settings_of_the_server(file):
    text = (DEPLOY / file).read_text()
    known = {variable(name) for name in Settings.rules()} | OTHER_VARIABLES
    named = set(re.findall(r"\bFIRSTCLICK_[A-Z_]+", text))
    assert named
    assert named <= known


def test_options_in_compose_are_options_of_serve():
    (command,) = re.findall(r"command: (\[.*\])", COMPOSE)
    words = json.loads(command)
    assert words[0] == "serve"
    options = {word for word in words if word.startswith("--")}
    assert options <= {flag(name) for name in Settings.rules()}


def test_compose_publishes_only_the_balancer_and_has_two_replicas():
    assert COMPOSE.count("ports:") == 1
    assert re.search(r"balancer:\n(    .*\n)*?    ports:", COMPOSE)
    assert len(re.findall(r"replica-\d: \*firstclick", COMPOSE)) == 2
    for replica in ("replica-1", "replica-2"):
        assert f"server {replica}:8000" in (DEPLOY / "nginx.conf").read_text()
    assert "POSTGRES_PASSWORD:" not in COMPOSE


def test_pages_may_be_allowed_in_compose_and_none_are_by_default():
    said = parsed()["services"]["replica-1"]["environment"]
    assert said["FIRSTCLICK_ALLOW_ORIGIN"] == "${FIRSTCLICK_ALLOW_ORIGIN:-}"
    assert load_settings({}, {"FIRSTCLICK_ALLOW_ORIGIN": ""})[0].allow_origin == ()


@pytest.mark.parametrize("service", ["replica-1", "replica-2", "balancer"])
def test_what_faces_the_network_has_no_rights_to_spare(service):
    said = parsed()["services"][service]
    assert said["cap_drop"] == ["ALL"]
    assert said["security_opt"] == ["no-new-privileges:true"]
    assert said["read_only"] is True


@pytest.mark.parametrize(
    ("secret", "line"),
    [
        ("pass:wo\\rd\n", "database:5432:firstclick:firstclick:pass\\:wo\\\\rd\n"),
        ("a b$c", "database:5432:firstclick:firstclick:a b$c\n"),
        ("", None),
        (None, None),
    ],
)
def test_a_replica_starts_with_a_password_or_not_at_all(tmp_path, secret, line):
    if secret is not None:
        (tmp_path / "secret").write_text(secret)
    (tmp_path / "firstclick").write_text('#!/bin/sh\necho "$@"\n')
    (tmp_path / "firstclick").chmod(0o700)
    shell, _, script, *rest = parsed()["services"]["replica-1"]["entrypoint"]
    script = script.replace("$$", "$")  # as compose does
    script = script.replace("/run/secrets/postgres_password", str(tmp_path / "secret"))
    script = script.replace("/tmp/pgpass", str(tmp_path / "pgpass"))
    env = {"PATH": f"{tmp_path}:{os.environ['PATH']}"}
    done = subprocess.run(
        [shell, "-c", script, *rest, "serve", "--k", "a b"], env=env, capture_output=True, text=True
    )
    if line is None:
        assert (done.returncode != 0, done.stdout) == (True, "")
        assert not (tmp_path / "pgpass").exists() or not (tmp_path / "pgpass").read_text()
    else:
        assert done.stdout == "serve --k a b\n", done.stderr
        assert (tmp_path / "pgpass").read_text() == line
        assert (tmp_path / "pgpass").stat().st_mode & 0o077 == 0


def test_nginx_closes_connections_before_a_replica_does_and_asks_for_addresses_again():
    text = (DEPLOY / "nginx.conf").read_text()
    (upstream,) = re.findall(r"upstream replicas {(.*?)\n    }", text, re.DOTALL)
    (seconds,) = re.findall(r"keepalive_timeout (\d+)s;", upstream)
    assert int(seconds) < KEEP_ALIVE
    # An address is looked up only once unless all three are there.
    assert "zone replicas" in upstream
    assert len(re.findall(r"server replica-\d:8000 resolve ", upstream)) == 2
    assert re.search(r"resolver 127\.0\.0\.11 valid=\d+s;", text)


def test_the_unit_is_hardened_and_keeps_store_and_kernels():
    unit = configparser.RawConfigParser(strict=False)
    unit.optionxform = str
    unit.read(DEPLOY / "firstclick.service")
    service = unit["Service"]
    assert service["ExecStart"].endswith("firstclick serve")
    assert service["DynamicUser"] == service["NoNewPrivileges"] == service["ProtectHome"] == "yes"
    assert service["ProtectSystem"] == "strict"
    assert service["StateDirectory"] == service["CacheDirectory"] == "firstclick"
    assert service["Restart"] == "on-failure"
    # Machine code is loaded into memory.
    assert "MemoryDenyWriteExecute" not in service


def test_every_metric_of_the_dashboard_is_exported(tmp_path):
    board = json.loads((DEPLOY / "grafana_dashboard.json").read_text())
    asked = [target["expr"] for panel in board["panels"] for target in panel["targets"]]
    asked += [one["query"] for one in board["templating"]["list"]]
    named = set(re.findall(r"\b(?:firstclick|process)_\w+", " ".join(asked)))
    with open_service(str(tmp_path / "shop.db")) as service:
        exported = {
            family.name + suffix
            for family in Metrics(service)._registry.collect()
            for suffix in {"counter": ["_total"], "histogram": ["_bucket", "_sum", "_count"]}.get(
                family.type, [""]
            )
        }
    assert len(named) > 15
    assert named <= exported
    ids = [panel["id"] for panel in board["panels"]]
    assert len(ids) == len(set(ids))


def test_prometheus_sends_a_key():
    text = (DEPLOY / "prometheus.yaml").read_text()
    assert "type: Bearer" in text
    assert "metrics_path: /metrics" in text


def test_the_citation_has_the_version():
    assert f"\nversion: {__version__}\n" in (ROOT / "CITATION.cff").read_text()


def test_only_versions_of_python_that_ci_runs_are_listed():
    classifiers = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["classifiers"]
    listed = {one.rpartition(" ")[2] for one in classifiers if re.search(r":: 3\.\d+$", one)}
    workflow = yaml.safe_load((ROOT / ".github/workflows/tests.yml").read_text())
    assert listed == set(workflow["jobs"]["tests"]["strategy"]["matrix"]["python"])
