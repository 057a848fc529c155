"""Examples in docstrings give what they say, and whatever a user calls has one."""

import doctest
import importlib
import inspect
from pathlib import Path

import pytest

import firstclick
from tests.test_public_names import PUBLIC

PACKAGE = Path(firstclick.__file__).parent
WITH_EXAMPLES = sorted(
    ".".join(["firstclick", *path.relative_to(PACKAGE).with_suffix("").parts]).removesuffix(".__init__")
    for path in PACKAGE.rglob("*.py")
    if ">>> " in path.read_text(encoding="utf-8")
)
WITHOUT = {
    # To be derived from: examples/skeleton_policy.py and docs/research/add_a_policy.md are their examples.
    "Policy", "Scenario", "PolicyTests", "Check", "DeterministicTarget", "Predictions", "request",
    # What other functions return, or take from a file: the example is theirs.
    "SyntheticFeedback", "Evaluation", "PolicyAnswer", "SamplingPolicy", "WorkFailed",
    # The parts of `firstclick run`, which docs/guide/experiments.md shows as a whole.
    "Cell", "CellStore", "Comparison", "Dataset", "Experiment", "Setting", "Training", "conduct", "plan",
}  # fmt: skip


@pytest.mark.parametrize("module", WITH_EXAMPLES)
def test_examples_give_what_they_say(module, tmp_path, monkeypatch):
    found = importlib.import_module(module)
    monkeypatch.chdir(tmp_path)  # some write files
    failed, tried = doctest.testmod(found)
    assert (failed, tried > 0) == (0, True)


@pytest.mark.parametrize("package", PUBLIC)
def test_what_a_user_calls_has_an_example(package):
    found = importlib.import_module(package)
    things = {name: getattr(found, name) for name in found.__all__}
    called = {
        name: thing for name, thing in things.items() if inspect.isroutine(thing) or inspect.isclass(thing)
    }
    lacking = {name for name, thing in called.items() if ">>> " not in (thing.__doc__ or "")}
    assert lacking == WITHOUT & called.keys(), "if it has an example now, take it off the list"
