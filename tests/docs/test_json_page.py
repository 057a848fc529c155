"""docs/reference/json.md lists the fields that commands print with --json: all of them, and no others."""

import json
import re

import pytest
from json_page import FIELDS
from typer.testing import CliRunner

from firstclick.cli import app
from firstclick.serve import Item
from tests.support.shop import shop_at


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


def write_items(folder):
    (folder / "items.csv").write_text("id,name,kind,price\na,A,x,1.5\nb,B,x,2.5\nc,C,y,3\nd,D,y,4\n")


def write_ratings(folder):
    rows = [f"u{user},i{item}" for user in range(12) for item in range(6) if (user * item) % 4 != 1]
    (folder / "likes.csv").write_text("\n".join(rows) + "\n")


def write_log(folder):
    orders = [["a", "b"], ["b", "a"], ["a", "c"], ["c", "a"], ["b", "c"], ["c", "b"]]
    lines = [
        {"items": orders[number % 6], "click": 0 if number % 3 == 0 else None, "propensity": 1 / 6}
        for number in range(300)
    ]
    (folder / "log.jsonl").write_text("\n".join(map(json.dumps, lines)) + "\n")


def write_store(folder):
    items = [Item("tea"), Item("milk"), Item("jam")]
    with shop_at(folder / "shop.db", policy="random", k=2, items=items, seed=1) as shop:
        shop.feedback(shop.recommend(), 0)
    made = CliRunner().invoke(app, ["keys", "create", "me", "--role", "admin", "--store", "shop.db"])
    assert made.exit_code == 0


WORLD = "--world linear:n_items=16,n_features=3 --k 2 --steps 50 --runs 2 --policy random"
CASES = {
    "simulate, demo": (f"simulate {WORLD} --seed 1", None),
    "compare": ("compare --world few-items --policy random --steps 50 --runs 2 --out out", None),
    "evaluate describe": ("evaluate describe log.jsonl", write_log),
    "evaluate run": ("evaluate run log.jsonl --policy random", write_log),
    "evaluate propensities": ("evaluate propensities shop --store shop.db --out made.parquet", write_store),
    "data describe": ("data describe table --data likes.csv", write_ratings),
    "click-model fit": ("click-model fit log.jsonl", write_log),
    "catalog describe": ("catalog describe items.csv", write_items),
    "features": ("features --interactions likes.csv --rank 2 --out made.csv", write_ratings),
    "policies": ("policies", None),
    "data sources": ("data sources", None),
    "bound": ("bound", None),
    "audit --slates": ("audit --slates --store shop.db", write_store),
    "keys list": ("keys list --store shop.db", write_store),
}


@pytest.mark.parametrize("command", FIELDS)
def test_the_fields_are_those_that_are_printed(command, tmp_path, monkeypatch):
    call, prepare = CASES[command]
    monkeypatch.chdir(tmp_path)
    if prepare is not None:
        prepare(tmp_path)
    done = CliRunner().invoke(app, [*call.split(), "--json"])
    assert done.exit_code == 0, done.stderr
    told = set(FIELDS[command])
    free = [re.escape(path).replace(r"\*", r"[^.]+") + r"(\..*|\[\].*)?" for path in told if "*" in path]
    printed = paths(json.loads(done.stdout))
    printed = {path for path in printed if not any(re.fullmatch(one, path) for one in free)}
    assert printed == {path for path in told if "*" not in path}
