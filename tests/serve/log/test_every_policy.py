"""Every policy, as a model: its log comes to the same however it is folded, and to what it always did."""

import json
from pathlib import Path

from every_policy import digests

# What ea10ab1 printed.
KNOWN = Path(__file__).parents[1] / "databases" / "ea10ab1" / "every-policy.json"


def test_the_log_of_every_policy_comes_to_what_it_did_however_it_is_folded() -> None:
    """Another digest means that stored models learn otherwise: then the policy needs another `version`."""
    known = json.loads(KNOWN.read_text())
    found = digests()
    assert {name: found.get(name) for name in known} == known
