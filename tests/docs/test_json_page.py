"""docs/reference/json.md lists the fields that commands print with --json: all of them, and no others."""

import json
import re

import pytest
from json_page import FIELDS
from typer.testing import CliRunner

from firstclick.cli import app
from firstclick.serve import Item, open_service


def paths(value, at=""):
    """Every field: '[]' for entries of lists."""
    found = set()
    if isinstance(value, dict):
        for name, inner in value.items():
            here = f"{at}.{name}" if at else name
            found |= {here} | paths(inner, here)
    if isinstance(value, list):
        for inner in value:
            found |= paths(inner, f"{at}[]")
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with a catalog, likes, a log of slates and a store."""
    folder = tmp_path_factory.mktemp("json")
    (folder / "items.csv").write_text("id,name,kind,price\na,A,x,1.5\nb,B,x,2.5\nc,C,y,3\nd,D,y,4\n")
    rows = [f"u{user},i{item}" for user in range(12) for item in range(6) if (user * item) % 4 != 1]
    (folder / "likes.csv").write_text("\n".join(rows) + "\n")
    orders = [["a", "b"], ["b", "a"], ["a", "c"], ["c", "a"], ["b", "c"], ["c", "b"]]
    lines = [
        {"items": orders[number % 6], "click": 0 if number % 3 == 0 else None, "propensity": 1 / 6}
        for number in range(300)
    ]
    (folder / "log.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n")
    with open_service(str(folder / "shop.db")) as service:
        items = [Item("tea"), Item("milk"), Item("jam")]
        service.create("shop", policy="random", k=2, items=items, seed=1)
        service.feedback("shop", service.recommend("shop").token, 0)
    key = ["keys", "create", "me", "--role", "admin", "--store", str(folder / "shop.db")]
    assert CliRunner().invoke(app, key).exit_code == 0
    return folder


WORLD = "--world linear:n_items=16,n_features=3 --k 2 --steps 50 --runs 2 --policy random"
CASES = {
    "simulate, demo": f"simulate {WORLD} --seed 1",
    "compare": "compare --world few-items --policy random --steps 50 --runs 2 --out out",
    "evaluate describe": "evaluate describe log.jsonl",
    "evaluate run": "evaluate run log.jsonl --policy random",
    "evaluate propensities": "evaluate propensities shop --store shop.db --out made.parquet",
    "data describe": "data describe table --data likes.csv",
    "click-model fit": "click-model fit log.jsonl",
    "catalog describe": "catalog describe items.csv",
    "features": "features --interactions likes.csv --rank 2 --out made.csv",
    "policies": "policies",
    "data sources": "data sources",
    "bound": "bound",
    "audit --slates": "audit --slates --store shop.db",
    "keys list": "keys list --store shop.db",
}


@pytest.mark.parametrize("command", FIELDS)
def test_the_fields_are_those_that_are_printed(command, folder, monkeypatch):
    monkeypatch.chdir(folder)
    done = CliRunner().invoke(app, [*CASES[command].split(), "--json"])
    assert done.exit_code == 0, done.stderr
    fields = set(FIELDS[command])
    free = [re.escape(path).replace(r"\*", r"[^.]+") + r"(\..*|\[\].*)?" for path in fields if "*" in path]
    printed = paths(json.loads(done.stdout))
    printed = {path for path in printed if not any(re.fullmatch(pattern, path) for pattern in free)}
    assert printed == {path for path in fields if "*" not in path}
