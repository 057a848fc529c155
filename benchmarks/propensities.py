"""Probabilities of slates: how long they take, and with how many draws. `python -m benchmarks.propensities`

256 items, slates of 4, after 5,000 steps in a world that is linear in 8 features. Slates are drawn from what
the policy knows then, and the probabilities of their prefixes are computed to 5 %.
"""

import argparse
import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np

from firstclick.catalog.catalog import Catalog
from firstclick.evaluation.propensities.gaussian import gaussian_propensity
from firstclick.evaluation.propensities.places import Places
from firstclick.evaluation.propensities.quadrature import ordered_chances
from firstclick.evaluation.propensities.slate_propensity import propensity_later
from firstclick.online.engine import PolicyEngine
from firstclick.online.request import SlateRequest, read_request
from firstclick.policies.score_laws import GaussianScores
from tests.support.reference.normals import Normals

ITEMS, FEATURES, K, STEPS = 256, 8, 4, 5_000
# The policy, and whether it has features.
POLICIES = {
    "cascade-lin-ts": ("cascade-lin-ts", True),
    "cascade-mixed": ("cascade-mixed", True),
    "cascade-mixed, no features": ("cascade-mixed", False),
    "cascade-ts": ("cascade-ts", False),
}


def taught(policy: str, features: bool) -> tuple[PolicyEngine, SlateRequest]:
    """An engine after STEPS slates in a linear world with clicks of a cascade."""
    draw = np.random.default_rng(1)
    table = draw.normal(size=(ITEMS, FEATURES))
    table /= np.linalg.norm(table, axis=1)[:, None]
    taste = draw.normal(size=FEATURES)
    attraction = np.clip(0.15 + 0.25 * table @ taste / np.linalg.norm(taste), 0.01, 0.9)
    items = [f"i{row}" for row in range(ITEMS)]
    engine = PolicyEngine(policy, Catalog(items, table) if features else Catalog(items), k=K)
    request = read_request(engine)
    for step in range(STEPS):
        ((rows, _),) = engine.recommend_many(np.uint64(5), [step], K, request.kernel, scored=False)
        clicks = (draw.random(K) < attraction[rows]).astype(np.uint8)
        clicks[np.argmax(clicks) + 1 if clicks.any() else K :] = 0
        engine.learn_rows(rows.copy(), clicks)
    return engine, request


def timed(policy: str, features: bool, slates: int, jobs: int) -> dict[str, Any]:
    """The probabilities of so many slates."""
    engine, request = taught(policy, features)
    drawn = engine.recommend_many(np.uint64(77), range(slates), K, request.kernel, scored=False)
    propensity_later(engine, request, drawn[0][0], relative_error=0.05, seed=0)()  # compiled
    began, worked = time.perf_counter(), time.process_time()

    def one(number: int) -> Any:
        return propensity_later(engine, request, drawn[number][0], relative_error=0.05, seed=number)()

    with ThreadPoolExecutor(jobs) as pool:
        found = list(pool.map(one, range(slates)))
    seconds, work = time.perf_counter() - began, time.process_time() - worked
    chances = np.array([one.chances for one in found])
    relative = np.array([one.errors for one in found]) / chances
    return {
        "method": found[0].method,
        "slates": slates,
        "threads": jobs,
        "seconds": round(seconds, 1),
        "processor_seconds": round(work, 1),
        "median_chances": [float(f"{x:.3g}") for x in np.median(chances, 0)],
        "smallest_chance": float(f"{chances.min():.3g}"),
        "worst_relative_error": round(float(relative.max()), 4),
        "above_5_percent": int((relative.max(1) > 0.05).sum()),
        "mean_draws": round(float(np.mean([one.draws for one in found]))),
        # 1 / (p e^2) draws count p to a relative error of e.
        "median_draws_of_counting": round(float(np.median(400 / chances[:, -1]))),
    }


def one_in_a_million() -> dict[str, Any]:
    """A probability of 1e-6 to 10 %: draws beside those of counting, and the truth by quadrature."""
    means, deviations = np.array([0.0, 1.0, 2.2, 0.7, 1.9, 1.0]), np.array([0.7, 0.6, 0.5, 0.6, 0.4, 0.5])
    chosen = Places(np.arange(6), np.array([3, 0, 5, 2]), np.full(6, 4), np.arange(1, 5))
    truth = float(ordered_chances(Normals(means, deviations), np.arange(6), chosen)[4])
    law = GaussianScores(means, np.diag(deviations))
    found = [gaussian_propensity(law, chosen, 0.1, seed) for seed in range(200)]
    errors = np.array([one.chances[3] for one in found]) / truth - 1
    draws = float(np.mean([one.draws for one in found]))
    return {
        "truth": float(f"{truth:.4g}"),
        "root_mean_square_relative_error": round(float(np.sqrt(np.mean(errors**2))), 4),
        "mean_relative_error": round(float(errors.mean()), 4),
        "within_two_standard_errors": round(
            float(np.mean([abs(one.chances[3] - truth) < 2 * one.errors[3] for one in found])), 3
        ),
        "mean_draws": round(draws),
        "draws_of_counting": round(100 / truth),
        "ratio": round(100 / truth / draws),
    }


def main() -> None:
    """Print what was measured as JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--slates", type=int, default=5_000)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--policy", choices=POLICIES, action="append")
    asked = parser.parse_args()
    told: dict[str, Any] = {"one in a million": one_in_a_million()}
    for name in asked.policy or POLICIES:
        print(f"{name} ...", file=sys.stderr)
        told[name] = timed(*POLICIES[name], asked.slates, asked.jobs)
    print(json.dumps(told, indent=2))


if __name__ == "__main__":
    main()
