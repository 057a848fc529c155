"""Every policy, as a model: its log comes to the same however it is folded, and to what it always did."""

import json
from pathlib import Path

from every_policy import digests

from firstclick import policy_classes

# What each version printed that was stored in a folder. A policy that came later is in a later one.
KNOWN = sorted((Path(__file__).parents[1] / "databases").glob("*/every-policy.json"))


def test_the_log_of_every_policy_comes_to_what_it_did_however_it_is_folded() -> None:
    """Another digest means that stored models learn otherwise: then the policy needs another `version`."""
    found = digests()
    # Not those of tests that were run before in this process.
    ours = {name for name, cls in policy_classes().items() if cls.__module__.startswith("firstclick.")}
    assert set(found) >= ours
    assert KNOWN
    for path in KNOWN:
        known = json.loads(path.read_text())
        assert {name: found.get(name) for name in known} == known, path.parent.name
