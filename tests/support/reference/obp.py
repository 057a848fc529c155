"""Writes obp.json: arrays made up here, and what obp 0.5.7 estimates from them.

Run it in an environment of its own, not in that of the tests. obp 0.5.7 asks for an old Python, but its
estimators for slates need NumPy, pandas and scikit-learn alone:

    pip download obp==0.5.7 --no-deps --no-binary :all: --ignore-requires-python && tar xzf obp-0.5.7.tar.gz
    pip install numpy pandas scikit-learn
    python tests/support/reference/obp.py obp-0.5.7 tests/support/reference/obp.json
"""

import importlib
import itertools
import json
import sys
import types
from pathlib import Path

import numpy as np

N, K, ITEMS = 40, 3, 5


def slate_estimators(folder):
    """obp.ope.estimators_slate, without the packages that the rest of obp imports."""
    torch = types.ModuleType("torch")
    torch.tensor = torch.Tensor = object
    sys.modules["torch"] = torch
    for name, path in (("obp", folder / "obp"), ("obp.ope", folder / "obp" / "ope")):
        package = types.ModuleType(name)
        package.__path__ = [str(path)]
        sys.modules[name] = package
    return importlib.import_module("obp.ope.estimators_slate")


def plackett_luce(scores, slates):
    """For every slate: the chances of its prefixes, of its items at their places whatever is above, and of
    each item at each place after the items above."""
    power = np.exp(scores)
    prefixes, places, after = np.empty((N, K)), np.zeros((N, K)), np.zeros((N, K, ITEMS))
    for i, slate in enumerate(slates):
        left = np.ones(ITEMS, bool)
        for k, item in enumerate(slate):
            after[i, k, left] = power[i, left] / power[i, left].sum()
            prefixes[i, k] = after[i, k, item] * (prefixes[i, k - 1] if k else 1.0)
            left[item] = False
        for other in itertools.permutations(range(ITEMS), K):
            chance, left = 1.0, np.ones(ITEMS, bool)
            for item in other:
                chance *= power[i, item] / power[i, left].sum()
                left[item] = False
            places[i] += np.where(np.array(other) == slate, chance, 0.0)
    return prefixes, places, after


def main():
    obp = slate_estimators(Path(sys.argv[1]))
    rng = np.random.default_rng(20)
    logged, target = rng.normal(size=(2, N, ITEMS))
    slates = np.array([np.argsort(-(one + rng.gumbel(size=ITEMS)))[:K] for one in logged])
    clicks = (rng.random((N, K)) < 0.2 + 0.1 * slates).astype(int)
    prefixes, places, _ = plackett_luce(logged, slates)
    prefixes_target, places_target, after = plackett_luce(target, slates)
    q = rng.random((N, K, ITEMS))
    slate_id, position = np.repeat(np.arange(N), K), np.tile(np.arange(K), N)
    common = {"slate_id": slate_id, "reward": clicks.ravel(), "position": position}
    whole = {
        "pscore": np.repeat(prefixes[:, -1], K),
        "evaluation_policy_pscore": np.repeat(prefixes_target[:, -1], K),
    }
    cascade = {
        "pscore_cascade": prefixes.ravel(),
        "evaluation_policy_pscore_cascade": prefixes_target.ravel(),
    }
    single = {
        "pscore_item_position": places.ravel(),
        "evaluation_policy_pscore_item_position": places_target.ravel(),
    }
    estimates = {
        "slate-ips": obp.SlateStandardIPS(K).estimate_policy_value(**common, **whole),
        "iips": obp.SlateIndependentIPS(K).estimate_policy_value(**common, **single),
        "rips": obp.SlateRewardInteractionIPS(K).estimate_policy_value(**common, **cascade),
        "sn-slate-ips": obp.SelfNormalizedSlateStandardIPS(K).estimate_policy_value(**common, **whole),
        "sn-iips": obp.SelfNormalizedSlateIndependentIPS(K).estimate_policy_value(**common, **single),
        "sn-rips": obp.SelfNormalizedSlateRewardInteractionIPS(K).estimate_policy_value(**common, **cascade),
        "cascade-dr": obp.SlateCascadeDoublyRobust(K, ITEMS).estimate_policy_value(
            **common, **cascade, action=slates.ravel(), q_hat=q.ravel(),
            evaluation_policy_action_dist=after.ravel(),
        ),
    }  # fmt: skip
    arrays = {
        "slates": slates, "clicks": clicks, "logged": prefixes, "target": prefixes_target,
        "logged_places": places, "target_places": places_target, "q": q, "after": after,
    }  # fmt: skip
    told = {name: array.tolist() for name, array in arrays.items()}
    Path(sys.argv[2]).write_text(json.dumps({"obp": "0.5.7", "estimates": estimates, **told}) + "\n")


if __name__ == "__main__":
    main()
