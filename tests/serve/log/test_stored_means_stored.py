"""What is stored decides what is folded and drawn: no default, label or version of later code changes it."""

import json
import os
import shutil
import subprocess
import sys
from copy import deepcopy
from pathlib import Path

import pytest

import firstclick
from firstclick import Catalog, Ranker
from firstclick.serve import open_service
from tests.support.made_log import K, made_items
from tests.support.policies import OTHERS

# A later firstclick: other defaults, which make other labels of the same settings.
OTHER_DEFAULTS = [
    ("policies/_linear.py", "sigma: float = param(1.0,", "sigma: float = param(0.5,"),
    ("policies/cascade_ts.py", "a: float = param(1.0,", "a: float = param(2.0,"),
    ("policies/research/cascade_swucb.py", "window: int = param(2146,", "window: int = param(20,"),
]
# A parameter of another name: what is stored cannot be read as settings of today.
OTHER_PARAMETERS = [
    ("policies/cascade_ts.py", 'name = "cascade-ts"', 'name = "cascade-ts"\n    version = 2'),
    ("policies/cascade_ts.py", "a: float = param(", "attractions: float = param("),
    ("policies/cascade_ts.py", "numbers.a", "numbers.attractions"),
]
# Prints what models and rankers show, and why others do not.
PROGRAM = """
import hashlib, json, sys
from firstclick import FirstclickError, Ranker
from firstclick.serve import open_service

def ranker_shows(path):
    ranker, shown = Ranker.load(path), []
    for click in (0, 1, None, 2, 0):
        shown.append(ranker.recommend())
        ranker.learn(shown[-1], click=click)
    return [slate.items for slate in shown]

def model_shows(service, name):
    model = service.model(name)
    # Not the digest of all: the log of a model says which build serves it.
    learned = hashlib.sha256(b"".join(array.tobytes() for array in model.engine.state))
    return [model.policy, learned.hexdigest(), [model.recommend(number).items for number in range(10)]]

def or_why_not(call, *arguments):
    try:
        return call(*arguments)
    except FirstclickError as error:
        return str(error)

shown = {}
for path in sys.argv[1:]:
    if path.endswith(".npz"):
        shown["ranker"] = or_why_not(ranker_shows, path)
        continue
    with open_service(path) as service:
        for name in [*service.names(), *service.models.broken]:
            shown[name] = or_why_not(model_shows, service, name)
print(json.dumps(shown))
"""
NOW = Path(firstclick.__file__).parents[1]

pytestmark = OTHERS


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """A folder with a store and a ranker of this version, and what they show."""
    folder = tmp_path_factory.mktemp("stored")
    with open_service(str(folder / "new.db")) as service:
        for name, policy in (
            ("counts", "cascade-ts"),
            ("window", "cascade-swucb:window=20"),
            ("linear", "cascade-lin-ts:sigma=0.5"),
        ):
            service.create(name, policy=policy, k=K, items=made_items(), seed=5)
            for click in (0, None, 2):
                service.feedback(name, service.recommend(name), click)
    ranker = Ranker(Catalog(list("abcdefg")), k=K, policy="cascade-ts", seed=3)
    for click in (0, 1, None, 2):
        ranker.learn(ranker.recommend(), click=click)
    ranker.save(folder / "new.npz")
    return folder, shown_by(NOW, copied(folder, tmp_path_factory.mktemp("copy")))


def copied(folder, to):
    return [str(shutil.copy(folder / name, to)) for name in ("new.db", "new.npz")]


@pytest.fixture
def stored(original, tmp_path):
    """The store and the ranker."""
    return copied(original[0], tmp_path)


@pytest.fixture
def before(original):
    """What they show in this version."""
    return deepcopy(original[1])


def later(folder, edits):
    """A copy of the package with these changes."""
    shutil.copytree(
        Path(firstclick.__file__).parent, folder / "firstclick", ignore=shutil.ignore_patterns("__pycache__")
    )
    for name, old, new in edits:
        file = folder / "firstclick" / name
        source = file.read_text()
        assert old in source, f"{name} has changed: change this test"
        file.write_text(source.replace(old, new))
    return folder


def shown_by(package, stored):
    """What the program prints with this copy of the package, where kernels are plain Python."""
    path = os.pathsep.join(map(str, [package, *sys.path]))
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM, *stored],
        env=os.environ | {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return json.loads(done.stdout)


def test_other_defaults_change_no_slate_of_a_stored_model(tmp_path, stored, before):
    after = shown_by(later(tmp_path / "later", OTHER_DEFAULTS), stored)
    assert after.pop("ranker") == before.pop("ranker")
    labels = {name: (before[name].pop(0), after[name].pop(0)) for name in before}
    assert after == before
    assert labels["counts"] == ("cascade-ts", "cascade-ts:a=1"), "the default is another indeed"
    assert labels["linear"] == ("cascade-lin-ts:sigma=0.5", "cascade-lin-ts")


def test_another_version_of_a_policy_stops_its_models_only(tmp_path, stored, before):
    after = shown_by(later(tmp_path / "later", OTHER_PARAMETERS), stored)
    assert {name for name in before if before[name] != after[name]} == {"counts", "ranker"}
    for name in ("counts", "ranker"):
        assert "by version 1 of cascade-ts, and this firstclick has version 2" in after[name]
    assert "start a new Ranker" in after["ranker"]
    assert "`firstclick relearn counts --name NEW --store STORE`" in after["counts"]
