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

ROOT = Path(__file__).resolve().parents[2]
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


def test_only_packages_of_an_extra_become_a_missing_extra():
    with pytest.raises(ModuleNotFoundError, match="no_such_package") as caught, needed_by("a test"):
        import no_such_package  # noqa: F401
    assert not isinstance(caught.value, FirstclickError)
    with pytest.raises(MissingExtra, match=r"^a test needs pandas: pip install"), needed_by("a test"):
        raise ModuleNotFoundError("No module named 'pandas._libs'", name="pandas._libs")


REPORT, SERVE = "pip install 'firstclick[report]'", "pip install 'firstclick[serve]'"
OF_A_STORE = [
    "audit --store shop.db", "keys list --store shop.db", "log shop --store shop.db",
    "export shop --store shop.db --out new", "import shop.model",
    "fork shop --policy random --as new --store shop.db",
]  # fmt: skip
COMMANDS = {f"firstclick {words}": f"this command needs msgspec: {SERVE}" for words in OF_A_STORE} | {
    "firstclick serve --demo": f"the server needs uvicorn: {SERVE}",
    "firstclick warm-up": f"the server needs msgspec: {SERVE}",
    "firstclick run films.toml --out new": f"the report needs matplotlib: {REPORT}",
    "firstclick compare --out new": f"the guide needs matplotlib: {REPORT}",
    "firstclick reproduce --dataset synthetic --out new": f"the report needs matplotlib: {REPORT}",
}
FRAME = "frame() needs pandas: pip install 'firstclick[pandas]'"
CODE = {
    "from firstclick.client import Client": f"the client needs httpx: {SERVE}",
    "from firstclick.serve import open_service": f"the service needs msgspec: {SERVE}",
    "from firstclick.report import write_report": f"the report needs matplotlib: {REPORT}",
    "from firstclick import Results; Results.frame(None)": FRAME,
}
WORKS = [f"firstclick {words}" for words in ("--version", "--help", "serve --help", "policies")]
RANKER = """
from firstclick import Catalog, Ranker, make_world, simulate
ranker = Ranker(policy="cascade-ts", catalog=Catalog(["a", "b", "c"]), k=2, seed=1)
ranker.learn(ranker.recommend(), click=0)
print(len(simulate(["cascade-ts"], make_world("bernoulli").build(1), k=2, steps=20).results))
"""
READ = "from firstclick.files.table import read_table; print(len(read_table('items.csv').columns[0]))"
PLAYED = "firstclick simulate --world bernoulli --policy random --steps 20 --runs 1 --k 2 --seed 1 --out new"
AGAIN = PLAYED + " --overwrite"


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """What was printed where no extra is installed, and the folder that all was done in."""
    folder = tmp_path_factory.mktemp("bare")
    for name in ("shop.db", "shop.model"):
        (folder / name).touch()
    (folder / "items.csv").write_text("id,price\na,1\nb,2\nc,3,4\nd,5\n")
    return folder, without(EVERYTHING, [*COMMANDS, *CODE, *WORKS, RANKER, READ, PLAYED, AGAIN], folder)


def test_commands_and_code_name_the_missing_extra(bare):
    for command, sentence in COMMANDS.items():
        assert bare[1][command] == (2, "", f"error: {sentence}\n")
    for code, sentence in CODE.items():
        assert bare[1][code] == (0, f"MissingExtra {sentence}\n", "")


def test_rankers_simulations_catalogs_and_help_need_no_extra(bare):
    for command in WORKS:
        code, out, err = bare[1][command]
        assert (code, bool(out), "pip install" in err) == (0, True, False), command
    assert bare[1][RANKER] == (0, "1\n", "")
    assert bare[1][READ] == (0, "3\n", "")


def test_without_a_report_the_table_and_the_numbers_are_there(bare):
    folder, seen = bare
    for command in (PLAYED, AGAIN):
        assert seen[command].code == 0
        assert re.search(r"^random ", seen[command].out, re.M)
        note = f"results: new (no report: the report needs matplotlib: {REPORT})\n"
        assert seen[command].err.endswith(note)
    assert sorted(path.name for path in (folder / "new").iterdir()) == ["results.csv", "results.json"]


def test_other_extras_are_named_and_an_old_report_does_not_stay(tmp_path):
    (tmp_path / "new").mkdir()
    (tmp_path / "new" / "report.html").touch()
    stored = "firstclick keys list --store postgresql://host/shop"
    played = "firstclick compare --engine dask --out other"
    seen = without(["psycopg", "dask", "distributed", "jinja2"], [stored, played, AGAIN], tmp_path)
    sentence = "a store in PostgreSQL needs psycopg: pip install 'firstclick[postgresql]'"
    assert seen[stored] == (2, "", f"error: {sentence}\n")
    sentence = r"error: engine dask needs (dask|distributed): pip install 'firstclick\[dask\]'\n"
    assert re.fullmatch(sentence, seen[played].err)
    assert seen[AGAIN].code == 0
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == ["results.csv", "results.json"]
