"""`firstclick policies`."""

import json
import sys

from firstclick import make_policy, param, policy_classes
from firstclick.parameters import Declared
from firstclick.registry import is_research


def test_json_describes_every_policy_and_every_parameter(run):
    seen = run("policies", "--all", "--json")
    assert (seen.code, seen.err) == (0, "")
    described = {entry["name"]: entry for entry in json.loads(seen.out)}
    assert list(described) == list(policy_classes())
    for name, cls in policy_classes().items():
        entry = described[name]
        facts = [entry[fact] for fact in ("needs_features", "research", "paper")]
        assert facts == [cls.needs_features, is_research(cls), cls.paper]
        # JSON has lists and no tuples.
        defaults = {key: parameter["default"] for key, parameter in entry["parameters"].items()}
        assert defaults == json.loads(json.dumps(cls.defaults()))
    assert described["cascade-ucb1"]["parameters"]["radius"] == {
        "default": 1.5, "help": "weight of the confidence radius", "rule": "above 0",
    }  # fmt: skip


def test_list_shows_the_same_and_defaults_can_be_given_back(run):
    shown = run("policies", "--all").out
    assert "  radius=1.5    weight of the confidence radius (above 0)" in shown
    assert "horizon=  " in shown, "no default, and not 'None'"
    for name, words in (("cascade-lin-ts", "needs"), ("cascade-ts", "no"), ("cascade-mixed", "with")):
        assert f"\n  {words} features" in shown.partition(f"\n{name}  ")[2][:200]
    names = set()
    for line in shown.splitlines():
        word = line.split()[0]
        if not line.startswith(" "):
            name = word
            names.add(name)
        elif "=" in word and not word.endswith("="):
            assert make_policy(f"{name}:{word}").label == name
    assert names == {*policy_classes()}


CORE = {
    "bubble-rank", "c3-ucb", "cascade-hybrid", "cascade-kl-ucb", "cascade-lin-ts", "cascade-lin-ucb",
    "cascade-mixed", "cascade-ts", "cascade-ucb1", "context-lin-ts", "dcm-lin-ucb", "discounted-lin-ucb",
    "random", "ranked-lin-ts", "vac2-ucb",
}  # fmt: skip


def test_without_all_the_core_is_listed_and_no_line_is_folded(run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "40")
    seen = run("policies")
    lines = seen.out.splitlines()
    listed = {line.split()[0] for line in lines if not line.startswith(" ")}
    assert {name for name in listed if policy_classes()[name].__module__.startswith("firstclick.")} == CORE
    assert max(map(len, lines)) > 150
    assert seen.err == "17 research policies are not listed: firstclick policies --all\n"
    assert {entry["name"] for entry in json.loads(run("policies", "--json").out)} == listed


# Not a Policy: that would be in the registry of all tests that come after this one.
class Odd(Declared):
    """Keep [bold]x[0][/] as it is, and :smile: too."""

    name, paper, needs_features, takes_features = "odd-one", "", False, False
    heat: float = param(2.0, "how [hot]", above=0)


def test_brackets_in_the_words_of_a_plug_in_are_shown_as_they_are(run, monkeypatch):
    monkeypatch.setattr(sys.modules["firstclick.cli.policies"], "policy_classes", lambda: {"odd-one": Odd})
    shown = run("policies").out
    assert "odd-one  Keep [bold]x[0][/] as it is, and :smile: too.\n" in shown
    assert "heat=2.0  how [hot] (above 0)" in shown
