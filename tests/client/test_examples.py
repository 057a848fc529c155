"""The examples that need a server; the others are run in tests/test_docs.py."""

import subprocess
import sys
from pathlib import Path

from tests.support.serving import a_server

EXAMPLES = Path(__file__).parents[2] / "examples"


def shop(*arguments):
    call = [sys.executable, str(EXAMPLES / "shop.py"), *arguments]
    return subprocess.run(call, capture_output=True, text=True, check=False, timeout=120)


def test_the_shop_runs_against_a_server(tmp_path):
    with a_server(tmp_path) as server:
        done = shop(server.address, "shop")
        assert done.returncode == 0, done.stderr
        model = server._service.model("shop")
        assert (model.click_stats.slates, model.seq) == (53, 54)
    lines = done.stdout.splitlines()
    assert lines[0].startswith(f"{model.click_stats.clicks} of 50 visits ended with a click")
    assert [line.partition(":")[0] for line in lines[1:4]] == ["in the log"] * 3
    assert lines[4] == f"shop: 53 slates and {model.click_stats.clicks} clicks so far"


def test_the_shop_says_how_to_start_it():
    done = shop()
    assert done.returncode == 1
    assert "firstclick serve --demo" in done.stderr
