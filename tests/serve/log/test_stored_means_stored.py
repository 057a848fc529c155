"""What is stored decides what is folded and drawn: no default, label or version of later code changes it."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import firstclick
from firstclick import Catalog, Ranker
from firstclick.serve.service import open_service
from tests.support.made_log import K, made_items
from tests.support.policies import OTHERS

HERE = Path(__file__).parents[1]
# A later firstclick: other defaults, which make other labels of the same settings.
OTHER_DEFAULTS = [
    ("policies/_linear.py", "sigma: float = param(1.0,", "sigma: float = param(0.5,"),
    ("policies/cascade_ts.py", "a: float = param(1.0,", "a: float = param(2.0,"),
    ("policies/research/cascade_swucb.py", "window: int = param(2146,", "window: int = param(20,"),
]
OTHER_VERSION = [("policies/cascade_ts.py", 'name = "cascade-ts"', 'name = "cascade-ts"\n    version = 2')]
# A parameter of another name: what is stored cannot be read as settings of today.
OTHER_PARAMETERS = [
    *OTHER_VERSION,
    ("policies/cascade_ts.py", "a: float = param(", "attractions: float = param("),
    ("policies/cascade_ts.py", "numbers.a", "numbers.attractions"),
]
# Prints what models and rankers show, and why others do not.
PROGRAM = """
import hashlib, json, sys
from firstclick import FirstclickError, Ranker
from firstclick.serve.service import open_service

told = {}
for path in sys.argv[1:]:
    if path.endswith(".npz"):
        try:
            ranker, shown = Ranker.load(path), []
            for click in (0, 1, None, 2, 0):
                shown.append(ranker.recommend())
                ranker.learn(shown[-1], click=click)
            told[path] = [slate.items for slate in shown]
        except FirstclickError as error:
            told[path] = str(error)
        continue
    with open_service(path) as service:
        for name in [*service.names(), *service.models.broken]:
            try:
                model = service.model(name)
                # Not the digest of all: the log of a model says which build serves it.
                learned = hashlib.sha256(b"".join(array.tobytes() for array in model.engine.state))
                told[f"{path} {name}"] = [
                    model.policy, learned.hexdigest(), [model.recommend(number).items for number in range(10)]
                ]
            except FirstclickError as error:
                told[f"{path} {name}"] = str(error)
print(json.dumps(told))
"""


pytestmark = OTHERS


@pytest.fixture
def stored(tmp_path):
    """A store and a ranker of this version."""
    path = str(tmp_path / "new.db")
    with open_service(path) as service:
        for name, policy in (
            ("counts", "cascade-ts"),
            ("window", "cascade-swucb:window=20"),
            ("linear", "cascade-lin-ts:sigma=0.5"),
        ):
            service.create(name, policy=policy, k=K, items=made_items(), seed=5)
            for click in (0, None, 2):
                service.feedback(name, service.recommend(name), click)
    new = Ranker(Catalog(list("abcdefg")), k=K, policy="cascade-ts", seed=3)
    for click in (0, 1, None, 2):
        new.learn(new.recommend(), click=click)
    new.save(tmp_path / "new.npz")
    return [path, str(tmp_path / "new.npz")]


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


def run(package, *arguments, code=0):
    """What a program prints with this copy of the package, where kernels are plain Python."""
    environment = os.environ | {
        "NUMBA_DISABLE_JIT": "1",
        "PYTHONPATH": os.pathsep.join(map(str, [package, HERE, *sys.path])),
    }
    done = subprocess.run(
        [sys.executable, "-W", "ignore", *arguments], env=environment, capture_output=True, text=True
    )
    assert done.returncode == code, done.stderr[-3000:]
    return done.stdout if code == 0 else done.stderr


def told_by(package, stored):
    told = json.loads(run(package, "-c", PROGRAM, *stored))
    return told


def test_another_default_changes_no_slate_of_what_is_stored(tmp_path, stored):
    before = told_by(later(tmp_path / "now", []), stored)
    after = told_by(later(tmp_path / "later", OTHER_DEFAULTS), stored)
    assert before.keys() == after.keys()
    for name in before:
        assert before[name][-2:] == after[name][-2:] if "db" in name else before[name] == after[name], name
    labels = {name: (before[name][0], after[name][0]) for name in before if "db" in name}
    assert labels[f"{stored[0]} counts"] == ("cascade-ts", "cascade-ts:a=1"), "the default is another indeed"
    assert labels[f"{stored[0]} linear"] == ("cascade-lin-ts:sigma=0.5", "cascade-lin-ts")


def test_another_version_of_its_arithmetic_stops_a_model_and_no_other(tmp_path, stored):
    before = told_by(later(tmp_path / "now", []), stored)
    package = later(tmp_path / "later", OTHER_VERSION)
    after = told_by(package, stored)
    stopped = {f"{stored[0]} counts", stored[1]}
    assert {name for name in before if before[name] != after[name]} == stopped
    for name in stopped:
        assert (
            "learned by version 1 of cascade-ts, and this firstclick has version 2" in after[name]
            or "saved by version 1 of cascade-ts, and this firstclick has version 2" in after[name]
        )
    assert "start a new Ranker" in after[stored[1]]
    assert "`firstclick relearn counts --name NEW --store STORE`" in after[f"{stored[0]} counts"]
    # The way out: a new model of the same items and slates, learned by the other version.
    told = run(package, "-m", "firstclick", "audit", "--store", stored[0])
    # After a minute there is one more event, which counts recommended slates.
    assert re.search(r"counts: not folded, [45] events: it was learned by version 1", told)
    for taken in ("counts", "window"):
        command = ("-m", "firstclick", "relearn", "counts", "--name", taken, "--store", stored[0])
        assert f"{taken!r} is taken by another model" in run(package, *command, code=2)
    run(package, "-m", "firstclick", "relearn", "counts", "--name", "again", "--store", stored[0])
    again = told_by(package, stored[:1])
    assert again.keys() == {f"{stored[0]} {name}" for name in ("counts", "window", "linear", "again")}
    assert again[f"{stored[0]} again"] == before[f"{stored[0]} counts"], "only the number has changed"
    slates = run(package, "-m", "firstclick", "log", "counts", "--store", stored[0], "--kind", "feedback")
    assert len(slates.splitlines()) == 3


def test_a_version_with_other_parameters_is_told_as_such(tmp_path, stored):
    told = told_by(later(tmp_path / "later", OTHER_PARAMETERS), stored)
    for name in (f"{stored[0]} counts", stored[1]):
        assert "by version 1 of cascade-ts, and this firstclick has version 2" in told[name]
    assert isinstance(told[f"{stored[0]} window"], list), "others are served"


def test_an_export_of_another_version_is_imported_by_learning_it_again(tmp_path, stored):
    now, package = later(tmp_path / "now", []), later(tmp_path / "later", OTHER_VERSION)
    before = told_by(now, stored[:1])
    file, store = str(tmp_path / "counts.model"), str(tmp_path / "other.db")
    run(now, "-m", "firstclick", "export", "counts", "--store", stored[0], "--out", file)
    refused = run(package, "-m", "firstclick", "import", file, "--store", store, code=2)
    assert "the file was learned by version 1 of cascade-ts" in refused
    assert "firstclick import --relearn" in refused
    run(package, "-m", "firstclick", "import", file, "--store", store, "--relearn")
    assert told_by(package, [store])[f"{store} counts"] == before[f"{stored[0]} counts"]
