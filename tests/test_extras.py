"""What an installation without extras does, and how it names what is missing."""

import json
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

import pytest

from firstclick.errors import FirstclickError
from firstclick.extras import EXTRAS, MissingExtra, needed_by

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
EVERYTHING = [package for packages in EXTRAS.values() for package in packages]

# Commands and code, one after the other in one process, where these packages are not installed.
WITHOUT = """
import io, json, sys
from contextlib import redirect_stderr, redirect_stdout

packages, tried = json.loads(sys.argv[1])

class Missing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in packages:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Missing())
from firstclick.cli import main

seen = {}
for one in tried:
    out, err, code = io.StringIO(), io.StringIO(), 0
    words = one.split()
    with redirect_stdout(out), redirect_stderr(err):
        try:
            if words[0] == "firstclick":
                sys.argv = words
                main()
            exec(one)
        except ImportError as error:
            print(type(error).__name__, error)
        except SystemExit as end:
            code = end.code
    seen[one] = code, out.getvalue(), err.getvalue()
print(json.dumps(seen))
"""


class Seen(NamedTuple):
    code: int
    out: str
    err: str


def without(packages, tried, cwd):
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT, json.dumps([packages, tried])],
        # Not compiled, which would take longer than the tests; hashes wrap on purpose.
        env=os.environ | {"NUMBA_DISABLE_JIT": "1", "PYTHONWARNINGS": "ignore::RuntimeWarning"},
        cwd=cwd, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return {one: Seen(*seen) for one, seen in json.loads(done.stdout).items()}


def test_the_extras_are_those_of_pyproject():
    declared = dict(PROJECT["optional-dependencies"])
    assert declared.pop("all") == [f"firstclick[{','.join(EXTRAS)}]"]
    assert declared.keys() == EXTRAS.keys()
    for extra, packages in declared.items():
        names = {re.split(r"[\[<>=;]", one)[0].replace("-", "_") for one in packages}
        assert names <= set(EXTRAS[extra]), extra


def test_other_import_errors_are_left_alone():
    with pytest.raises(ModuleNotFoundError, match="no_such_package") as caught, needed_by("a test"):
        import no_such_package  # noqa: F401
    assert not isinstance(caught.value, FirstclickError)


def test_a_missing_extra_is_an_import_error_and_one_of_ours():
    with pytest.raises(ImportError) as caught, needed_by("a test"):
        raise ModuleNotFoundError("No module named 'pandas._libs'", name="pandas._libs")
    assert isinstance(caught.value, MissingExtra)
    assert str(caught.value) == "a test needs pandas: pip install 'firstclick[pandas]'"


REPORT, SERVE = "pip install 'firstclick[report]'", "pip install 'firstclick[serve]'"

COMMANDS = {
    "firstclick serve --demo": f"the server needs uvicorn: {SERVE}",
    "firstclick warm-up": f"the server needs msgspec: {SERVE}",
    "firstclick audit --store shop.db": f"this command needs msgspec: {SERVE}",
    "firstclick keys list --store shop.db": f"this command needs msgspec: {SERVE}",
    "firstclick log shop --store shop.db": f"this command needs msgspec: {SERVE}",
    "firstclick export shop --store shop.db --out new": f"this command needs msgspec: {SERVE}",
    "firstclick import shop.model": f"this command needs msgspec: {SERVE}",
    "firstclick fork shop --policy random --as new --store shop.db": f"this command needs msgspec: {SERVE}",
    "firstclick relearn shop --name new --store shop.db": f"this command needs msgspec: {SERVE}",
    "firstclick run films.toml --out new": f"the report needs matplotlib: {REPORT}",
    "firstclick compare --out new": f"the guide needs matplotlib: {REPORT}",
    "firstclick reproduce --dataset synthetic --out new": f"the report needs matplotlib: {REPORT}",
}
CODE = {
    "from firstclick.client import Client": f"the client needs httpx: {SERVE}",
    "from firstclick.serve import open_service": f"the service needs msgspec: {SERVE}",
    "from firstclick.report import write_report": f"the report needs matplotlib: {REPORT}",
    "from firstclick import Results; Results.frame(None)": (
        "frame() needs pandas: pip install 'firstclick[pandas]'"
    ),
}
WORKS = [f"firstclick {words}" for words in ("--version", "--help", "serve --help", "policies")]
RANKER = """
from firstclick import Catalog, Ranker, make_world, simulate
ranker = Ranker(policy="cascade-ts", catalog=Catalog(["a", "b", "c"]), k=2, seed=1)
ranker.learn(ranker.recommend(), click=0)
print(len(simulate(["cascade-ts"], make_world("bernoulli").build(1), k=2, steps=20).results))
"""
PLAYED = "firstclick simulate --world bernoulli --policy random --steps 20 --runs 1 --k 2 --seed 1 --out new"
AGAIN = PLAYED + " --overwrite"


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """What was seen where no extra is installed, and the folder that all was done in."""
    folder = tmp_path_factory.mktemp("bare")
    for name in ("shop.db", "shop.model"):
        (folder / name).touch()
    return folder, without(EVERYTHING, [*COMMANDS, *CODE, *WORKS, RANKER, PLAYED, AGAIN], folder)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_names_the_extra_that_is_missing_in_one_line(bare, command):
    assert bare[1][command] == (2, "", f"error: {COMMANDS[command]}\n")


@pytest.mark.parametrize("code", CODE)
def test_python_names_the_extra_that_is_missing(bare, code):
    assert bare[1][code] == (0, f"MissingExtra {CODE[code]}\n", "")


@pytest.mark.parametrize("command", WORKS)
def test_commands_that_need_no_extra(bare, command):
    code, out, err = bare[1][command]
    assert code == 0
    assert "pip install" not in err
    assert out


def test_rankers_and_simulations_need_no_extra(bare):
    assert bare[1][RANKER] == (0, "1\n", "")


def test_a_catalog_in_a_text_file_needs_no_extra(tmp_path):
    (tmp_path / "items.csv").write_text("id,price\na,1\nb,2\nc,3,4\nd,5\n")
    read = "from firstclick.files.table import read_table; print(len(read_table('items.csv').columns[0]))"
    assert without(EVERYTHING, [read], tmp_path)[read] == (0, "3\n", "")


@pytest.mark.parametrize("command", [PLAYED, AGAIN])
def test_without_a_report_the_table_and_the_numbers_are_there(bare, command):
    folder, seen = bare
    assert seen[command].code == 0
    assert re.search(r"^random ", seen[command].out, re.M)
    told = f"results: new (no report: the report needs matplotlib: {REPORT})\n"
    assert seen[command].err.endswith(told)
    assert sorted(path.name for path in (folder / "new").iterdir()) == ["results.csv", "results.json"]


def test_a_report_of_other_results_does_not_stay(tmp_path):
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "report.html").touch()
    assert without(["jinja2"], [AGAIN], tmp_path)[AGAIN].code == 0
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["results.csv", "results.json"]


def test_a_database_and_a_cluster_name_their_extras(tmp_path):
    stored = "firstclick keys list --store postgresql://host/shop"
    played = "firstclick compare --engine dask --out new"
    seen = without(["psycopg", "dask", "distributed"], [stored, played], tmp_path)
    told = "error: a store in PostgreSQL needs psycopg: pip install 'firstclick[postgresql]'\n"
    assert seen[stored] == (2, "", told)
    told = r"error: engine dask needs (dask|distributed): pip install 'firstclick\[dask\]'\n"
    assert re.fullmatch(told, seen[played].err)
