"""Every learner there is, as a model: its log comes to the same however it is folded."""

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent
# In a process where kernels are plain Python: it takes seconds, where compiling them all takes minutes.
PROGRAM = """
import made_log
from firstclick.registry import make_policy, policy_classes
from firstclick.serve.model import Model
from firstclick.serve.recovery import shelf_at

plain = made_log.made_items

def shares(*arguments, **more):
    return [item._replace(features=abs(item.features) / 3) for item in plain(*arguments, **more)]

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
    changes = [event for event in log.events if event.kind != 1]
    again = Model.restored(1, "made", log.created, content, lambda at: shelf_at(at, changes, log.created))
    again.apply(log.events[17:], log.known_at)
    assert again.digest() == wanted, name
    print(name)
"""


def test_the_log_of_every_learner_comes_to_the_same_however_it_is_folded() -> None:
    environment = os.environ | {
        "NUMBA_DISABLE_JIT": "1",
        "PYTHONPATH": os.pathsep.join([str(HERE), *sys.path]),
    }
    # Hashes wrap on purpose, of which plain NumPy warns.
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert {"cascade-lin-ts", "dcm-lin-ts", "random"} <= set(done.stdout.split())
