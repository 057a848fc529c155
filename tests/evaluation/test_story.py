"""docs/guide/log_to_launch.md, command by command: it shows what is printed, and intervals hold the truth."""

import json
import re
import sys

import pytest

from tests.support.page_shell import ROOT, Shell, commands

# A log of 200,000 pages, a server and 3,000 guests.
pytestmark = pytest.mark.long

sys.path.insert(0, str(ROOT / "examples"))
from hand_ordered_page import DRINKS, value  # noqa: E402

PAGE = (ROOT / "docs" / "guide" / "log_to_launch.md").read_text(encoding="utf-8")
POLICIES = ["random", "list:chai,espresso", "greedy:learned.npz"]


@pytest.fixture
def shell(tmp_path):
    shell = Shell(tmp_path)
    yield shell
    shell.close()


def test_the_page_is_what_its_commands_print_and_the_truth_lies_in_its_intervals(shell):
    told = []
    for command in commands(PAGE):
        text = command.text.replace("127.0.0.1:8000", f"127.0.0.1:{shell.port}")
        text = text.replace("examples/", f"{ROOT / 'examples'}/")
        if command.is_python:
            (shell.folder / "learn.py").write_text(text, encoding="utf-8")
            shell.run(f"{sys.executable} learn.py")
        elif text.endswith("&"):
            shell.start(text.removesuffix("&"))
        else:
            printed = shell.run(text)
            told.append(text.split()[1])
            if "trial report" in text:
                # Which guest sees which arm is a matter of the trial's own random key.
                assert "Better: policy gets" in printed
            elif "trial" not in text and "http:" not in text:
                assert without_blanks(printed) == without_blanks(command.answer), text
    assert {"evaluate", "click-model", "trial"} <= set(told)

    words = " ".join(f"--policy {policy}" for policy in POLICIES)
    answer = json.loads(shell.run(f"firstclick evaluate run week2.jsonl {words} --json"))
    found = {policy["policy"]: policy for policy in answer["policies"]}
    for name, truth in truths(shell).items():
        low, high = found[name]["value"]["low"], found[name]["value"]["high"]
        assert low <= truth <= high, name
        row = re.search(rf"^\| `{re.escape(name)}` \|(.*)\|$", PAGE, re.MULTILINE)
        assert row is not None
        assert row.group(1).split("|")[-1].strip() == f"{truth:.3f}"


def truths(shell):
    from firstclick import Ranker

    means, _ = Ranker.load(shell.folder / "learned.npz").estimates(DRINKS)
    best = [DRINKS[place] for place in (-means).argsort()[:2]]
    by_chance = [value([one, other]) for one in DRINKS for other in DRINKS if one != other]
    return {
        "random": sum(by_chance) / len(by_chance),
        "list:chai,espresso": value(["chai", "espresso"]),
        "greedy:learned.npz": value(best),
    }


def without_blanks(text):
    return [" ".join(line.split()) for line in text.splitlines() if line.strip()]
