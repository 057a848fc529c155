"""Every policy, as a model: its log comes to the same however it is folded."""

from firstclick import policy_classes
from tests.support.every_policy import digests


def test_log_of_every_policy_replays_to_one_state():
    # Not those of tests that were run before in this process.
    ours = {name for name, cls in policy_classes().items() if cls.__module__.startswith("firstclick.")}
    assert set(digests()) >= ours
