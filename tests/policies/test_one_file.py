"""A policy is one file: put into the package, it is in the guide, legends, docs, lists and checks."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import firstclick

PACKAGE = Path(firstclick.__file__).parent
ROOT = Path(__file__).parents[2]

POLICY = '''
import numpy as np

from firstclick.kernels.ranking import rank, rows_of
from firstclick.parameters import param
from firstclick.policies._counts import CountPolicy


class SwingAlong(CountPolicy):
    """Rank items by their click rate, cautiously."""

    name = "{name}"
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
from firstclick.studies.guide.stock import STOCK, chosen

def load(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module

NAMES = ["swing-along", "sway-along"]
asked = policies_named([*NAMES, "discounted-lin-ucb"])
played = compare(asked, chosen(["switch", "drift"], STOCK), "out", steps=30, runs=1)
world = make_world("blb:n_items=6,k=2").build(1)
results = simulate([*NAMES, "cascade-ts"], world, k=2, steps=9, runs=1)
lines = {line.get_label(): to_hex(line.get_color()) for line in regret_figure(results).axes[0].get_lines()}
styles = line_styles(NAMES)
generate = load(Path("docs/scripts/generate.py"))
print(json.dumps({
    "everybody plays": [one.name for one in policies_named()],
    "guide": guide_page(lines_of(played, 30)),
    "looks of the family": [
        styles[name] in family_looks("changes") and styles[name].color == lines[name] for name in NAMES
    ],
    "legend": html_report(results, title="t"),
    "docs": {name: page() for name, page in generate.BUILT.items() if name.startswith("reference/policies/")},
    "list": CliRunner().invoke(app, ["policies"]).stdout,
    "everything": CliRunner().invoke(app, ["policies", "--all"]).stdout,
    "conformance": [case.id for case in load(Path(sys.argv[1]) / "policies" / "test_conformance.py").cases()],
}))
"""


def test_a_new_file_is_a_policy_everywhere(tmp_path):
    """Two files: one among the policies that users choose from, and one of research."""
    shutil.copytree(PACKAGE, tmp_path / "src" / "firstclick", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "docs", tmp_path / "docs", ignore=shutil.ignore_patterns("*.png"))
    policies = tmp_path / "src" / "firstclick" / "policies"
    (policies / "swing_along.py").write_text(POLICY.format(name="swing-along"))
    (policies / "research" / "sway_along.py").write_text(POLICY.format(name="sway-along"))
    path = [
        tmp_path / "src",
        tmp_path / "docs" / "scripts",
        ROOT,
        *map(os.path.abspath, filter(None, sys.path)),
    ]
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", LOOK, str(ROOT / "tests")],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(map(str, path)), "NUMBA_DISABLE_JIT": "1"},
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    seen = json.loads(done.stdout)
    assert seen["looks of the family"] == [True, True]
    main, _, appendix = seen["guide"].partition("## Appendix: all policies\n")
    for name, tables in (("swing-along", (main, appendix)), ("sway-along", (appendix,))):
        assert name in seen["everybody plays"]
        for table in tables:
            rows = table[table.index("| **Moving tastes** |") : table.index("| `random` |")].splitlines()
            (own,) = (row for row in rows if row.startswith(f"| `{name}` | "))
            assert own.count("°") == 1, "switch is its own world, drift is not"
        assert f"- `{name}:caution=30`" in seen["guide"], "told the number of steps"
        assert name in seen["legend"]
        assert f"{name}  Rank items" in seen["everything"]
        assert f"{name}-gives_k_distinct_items" in seen["conformance"]
    assert "sway-along" not in main
    assert "swing-along  Rank items" in seen["list"]
    assert "sway-along  Rank items" not in seen["list"]

    pages = {name.removeprefix("reference/policies/"): text for name, text in seen["docs"].items()}
    assert (
        "| `sway-along` | Rank items by their click rate, cautiously. | `caution=7` |" in pages["research.md"]
    )
    assert "[`swing-along`](swing-along.md)" in pages["index.md"]
    own = pages["swing-along.md"]
    assert "# `swing-along`\n\nRank items by their click rate, cautiously.\n" in own
    assert "| `caution` | 7 | a whole number at least 1 | misses that each item starts with |" in own
