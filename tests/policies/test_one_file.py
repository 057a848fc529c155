"""A policy is one file: put into the package, it is in the guide, legends, docs, lists and checks."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import firstclick

PACKAGE = Path(firstclick.__file__).parent
ROOT = Path(__file__).parents[2]

POLICY = '''
"""SwingAlong."""

import numpy as np

from firstclick.kernels.ranking import rank, rows_of
from firstclick.parameters import param
from firstclick.policies._counts import CountPolicy


class SwingAlong(CountPolicy):
    """Rank items by their click rate, cautiously."""

    name = "swing-along"
    paper = "Nobody 1999"
    family = "changes"
    made_for = ("switch",)
    caution: int = param(7, "misses that each item starts with", at_least=1, told="horizon")

    @staticmethod
    def recommend(numbers, state, catalog, request, key, noise, slate):
        rows = rows_of(catalog, request)
        scores = np.empty(len(rows))
        for j in range(len(rows)):
            scores[j] = state.hits[rows[j]] / (state.examined[rows[j]] + numbers.caution)
        return rank(rows, scores, catalog, request, key, slate)
'''

# Run in the root of the copy, with the folder of these tests as its argument.
LOOK = """
import importlib.util, json, sys
from pathlib import Path
from typer.testing import CliRunner
from matplotlib.colors import to_hex
from firstclick import make_world, simulate
from firstclick.cli import app
from firstclick.report import html_report, regret_figure
from firstclick.report.style import family_looks, line_styles
from firstclick.studies.guide.conduct import compare, policies_named
from firstclick.studies.guide.page import guide_page
from firstclick.studies.guide.standings import lines_of
from firstclick.studies.guide.stock import stock_worlds

def load(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module

asked = policies_named(["swing-along", "discounted-lin-ucb"])
played = compare(asked, stock_worlds(["switch", "drift"]), "out", steps=30, runs=1)
world = make_world("blb:n_items=6,k=2").build(1)
results = simulate(["swing-along", "cascade-ts"], world, k=2, steps=9, runs=1)
lines = {line.get_label(): to_hex(line.get_color()) for line in regret_figure(results).axes[0].get_lines()}
style = line_styles(["swing-along"])["swing-along"]
generate = load(Path("docs/scripts/generate.py"))
print(json.dumps({
    "everybody plays": [one.name for one in policies_named()],
    "guide": guide_page(lines_of(played, 30)),
    "look of the family": style in family_looks("changes") and style.color == lines["swing-along"],
    "legend": html_report(results, title="t"),
    "docs": {name: page() for name, page in generate.BUILT.items() if name.startswith("reference/policies/")},
    "list": CliRunner().invoke(app, ["policies"]).stdout,
    "everything": CliRunner().invoke(app, ["policies", "--all"]).stdout,
    "conformance": [case.id for case in load(Path(sys.argv[1]) / "policies" / "test_conformance.py").cases()],
}))
"""


@pytest.mark.parametrize("folder", ["policies", "policies/research"])
def test_a_new_file_is_a_policy_everywhere(folder, tmp_path):
    shutil.copytree(PACKAGE, tmp_path / "src" / "firstclick", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "docs", tmp_path / "docs", ignore=shutil.ignore_patterns("*.png"))
    (tmp_path / "src" / "firstclick" / folder / "swing_along.py").write_text(POLICY)
    tests = ROOT / "tests"
    path = [
        str(tmp_path / "src"),
        str(tmp_path / "docs" / "scripts"),
        str(ROOT),
        *filter(None, map(os.path.abspath, sys.path)),
    ]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", LOOK, str(tests)],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(path), "NUMBA_DISABLE_JIT": "1"},
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    seen = json.loads(done.stdout)
    research = folder != "policies"

    assert "swing-along" in seen["everybody plays"]
    main, _, appendix = seen["guide"].partition("## Appendix: all policies\n")
    for table in (appendix,) if research else (main, appendix):
        rows = table[table.index("| **Moving tastes** |") : table.index("| `random` |")].splitlines()
        assert sum(row.startswith("| `swing-along` | ") for row in rows) == 1
        (own,) = (row for row in rows if row.startswith("| `swing-along` | "))
        assert own.count("°") == 1, "switch is its own world, drift is not"
    assert ("swing-along" in main) != research
    assert "- `swing-along:caution=30`" in seen["guide"], "told the number of steps"

    assert seen["look of the family"]
    assert "swing-along" in seen["legend"]

    pages = {name: text for name, text in seen["docs"].items() if "swing-along" in text}
    if research:
        row = "| `swing-along` | Rank items by their click rate, cautiously. | `caution=7` |"
        assert row in pages["reference/policies/research.md"]
    else:
        assert "[`swing-along`](swing-along.md)" in pages["reference/policies/index.md"]
        own = pages["reference/policies/swing-along.md"]
        assert "# `swing-along`\n\nRank items by their click rate, cautiously.\n" in own
        assert "| `caution` | 7 | a whole number at least 1 | misses that each item starts with |" in own

    assert ("swing-along  Rank items" in seen["list"]) != research
    assert "swing-along  Rank items" in seen["everything"]
    assert "swing-along-gives_k_distinct_items" in seen["conformance"]
