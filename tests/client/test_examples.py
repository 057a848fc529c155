"""The examples that need a server; the others are run in tests/docs/test_docs.py."""

import subprocess
import sys
from pathlib import Path

from firstclick.client import Client
from tests.support.serving import a_server

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_the_shop_runs_against_a_server_and_says_how_to_start_one(tmp_path):
    call = [sys.executable, str(EXAMPLES / "shop.py")]
    with a_server(tmp_path) as server, Client(server.address, "shop") as shop:
        arguments = [server.address, "shop"]
        done = subprocess.run([*call, *arguments], capture_output=True, text=True, check=False, timeout=120)
        assert done.returncode == 0, done.stderr
        model = shop.describe()
    assert (model["slates"], model["seq"]) == (53, 54)
    lines = done.stdout.splitlines()
    assert lines[0].startswith(f"{model['clicks']} of 50 visits ended with a click")
    assert [line.partition(":")[0] for line in lines[1:4]] == ["in the log"] * 3
    assert lines[4] == f"shop: 53 slates and {model['clicks']} clicks so far"
    done = subprocess.run(call, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 1
    assert "firstclick serve --demo" in done.stderr
