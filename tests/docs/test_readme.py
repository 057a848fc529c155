"""The README is a promise: its commands run, in order, and answer as it says; and it stays short."""

import json
import re
import sys

import pytest

from tests.support.page_shell import ROOT, Shell, commands

README = (ROOT / "README.md").read_text(encoding="utf-8")


@pytest.fixture
def shell(tmp_path):
    shell = Shell(tmp_path)
    yield shell
    shell.close()


def test_the_commands_run_in_order_and_answer_as_the_readme_says(shell):
    token = ""
    answered = []
    for command in commands(README):
        text = re.sub(r"127\.0\.0\.1:8000", f"127.0.0.1:{shell.port}", command.text)
        if command.is_python:
            (shell.folder / "readme.py").write_text(text, encoding="utf-8")
            shell.run(f"{sys.executable} readme.py")
        elif text.startswith("make "):
            # They install and test: what they would do is enough here.
            shell.run(f"make -n -C {ROOT} {text.split()[1]}")
        elif text.endswith("&"):
            shell.start(text.removesuffix("&"))
        else:
            printed = shell.run(re.sub(r'"token": "[^"]*"', f'"token": "{token}"', text))
            if command.answer.startswith("{"):
                said, got = json.loads(command.answer), json.loads(printed)
                assert {name: type(value) for name, value in said.items()} == {
                    name: type(value) for name, value in got.items()
                }
                assert said.get("status") == got.get("status")
                token = got.get("token", token)
            else:
                assert without_times(printed) == without_times(command.answer)
        answered.append(text.split()[0])
    assert answered.count("curl") == 2
    assert "make" in answered
    assert answered.count("firstclick") >= 2


def without_times(table):
    """The words of a table's lines without the last one, which is a time."""
    return [line.split()[:-1] for line in table.splitlines()]


def test_it_is_short():
    prose = re.sub(r"```.*?```", "", README, flags=re.DOTALL)
    assert len(prose.split()) <= 600
    assert len(README.splitlines()) <= 150
