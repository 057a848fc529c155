"""The same kernels as plain Python: with NUMBA_DISABLE_JIT=1 they give the same, to 1e-12."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from firstclick.registry import USUAL_POLICIES

# Small cases of the usual policies in two kinds of world, written once and run with JIT on and off. All
# others are played without it in tests/serve/log/test_every_policy.py, and with it by the conformance checks.
SCRIPT = """
import json, sys, warnings
import numpy as np
import numba
import firstclick
from firstclick.worlds import MatrixWorld
warnings.filterwarnings("ignore", "overflow encountered", RuntimeWarning)  # hashes wrap on purpose
linear = firstclick.make_world("linear:n_items=9,n_features=3").build(2)
drawn = np.random.default_rng(4).random((150, 9))
matrix = MatrixWorld((drawn < np.linspace(0.002, 0.4, 9)).astype(np.uint8))
out = {"jit": not numba.config.DISABLE_JIT}
for world in (linear, matrix):
    results = firstclick.simulate(
        sys.argv[1:], world, linear.features, k=3, steps=60, seed=5, points=60
    )
    for result in results.results:
        key = f"{result.policy} in {type(world).__name__}"
        out[key] = [result.reward.tolist(), result.expected_regret.tolist(), result.regret.tolist()]
ranker = firstclick.Ranker(
    firstclick.Catalog(list("abcdefghi"), linear.features), k=3, policy="cascade-lin-ts", seed=0
)
slates = []
for click in (0, None, 2, 1):
    slate = ranker.recommend(exclude=["c"])
    ranker.learn(slate, click=click)
    slates.append(slate.items)
out["slates"] = slates
out["moment"], out["factor"] = ranker.state.moment.tolist(), ranker.state.factor.tolist()
print(json.dumps(out))
"""


def run(disable: str, policies) -> dict:
    environment = os.environ | {"NUMBA_DISABLE_JIT": disable}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT, *policies], env=environment, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


# What `make test` compiles for other tests too, and the rest.
SOME = ("cascade-mixed", "cascade-lin-ts", "cascade-ts", "cascade-ucb1", "random")


@pytest.mark.parametrize(
    "policies", [SOME, pytest.param(sorted({*USUAL_POLICIES} - {*SOME}), marks=pytest.mark.long)]
)
def test_kernels_give_the_same_with_and_without_compiling(policies):
    compiled, plain = run("0", policies), run("1", policies)
    assert compiled.pop("jit") is True
    assert plain.pop("jit") is False
    assert compiled.keys() == plain.keys()
    assert compiled.pop("slates") == plain.pop("slates")
    for name, value in compiled.items():
        np.testing.assert_allclose(plain[name], value, rtol=1e-12, atol=1e-12, err_msg=name)
