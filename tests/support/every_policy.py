"""Replay the log of every policy in several ways, and print a name and a digest per line.

Run in a process where kernels are plain Python: that takes seconds, where compiling them all takes minutes.
"""

import os
import subprocess
import sys

from firstclick.registry import make_policy, policy_classes
from firstclick.serve.model.model import Model
from tests.support import made_log

plain = made_log.made_items


def digests():
    """Run this file in a process with plain kernels, and return the digests that it prints."""
    environment = os.environ | {
        "NUMBA_DISABLE_JIT": "1",
        "PYTHONPATH": os.pathsep.join(sys.path),
    }
    # Hashes wrap on purpose, of which plain NumPy warns.
    command = [sys.executable, "-W", "ignore", "-m", "tests.support.every_policy"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    return dict(line.split() for line in done.stdout.splitlines())


def shares(*arguments, **more):
    return [item._replace(features=abs(item.features) / 3) for item in plain(*arguments, **more)]


def main():
    for name in sorted(policy_classes()):
        policy = make_policy(name)
        made_log.made_items = shares if policy.unit_features else plain
        log = made_log.Log(name)
        log.play(12)
        if policy.growable:
            log.put(made_log.made_items(2, first=50))
        log.withdraw("i2")
        log.play(8, seed=1)
        log.roll_back(9)
        log.play(5, seed=2)
        log.model.warm_up()
        wanted = log.model.digest()
        assert log.model_at(len(log.events)).digest() == wanted, name
        _, content = log.model_at(17).snapshot()
        again = Model.restored(1, "made", content, log.created)
        again.apply(log.events[17:], log.known_at)
        assert again.digest() == wanted, name
        print(name, wanted)
        if policy.growable:
            log.put([*made_log.made_items(seed=5)[4:7], *made_log.made_items(1, first=60)])
            log.set_available(off=("i3",))
            log.play(6, seed=3)
            assert log.model_at(len(log.events)).digest() == log.model.digest(), name
            assert "i3" not in log.model.recommend(0).items


if __name__ == "__main__":
    main()
