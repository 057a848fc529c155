"""The default policy where catalogs are odd, and what its refits cost.

    python -m benchmarks.default_policy [--steps 20000] [--runs 10] [--seed 1]

Odd catalogs: features of noise, one feature, none, copies, shuffled, unlike units; very rare and very common
clicks; very many items; a slate of all items. Regret is in percent of that of random order, beside the
policies one would take instead. Refits: how long one takes if it is done at once, and the longest that one
look of a slate takes while it is spread, which is what a request may have to wait for.
"""

import argparse
import time

import numpy as np

from firstclick import make_policy, make_world, simulate
from firstclick.catalog.search_tree import catalog_arrays
from firstclick.kernels.arrays import NO_LIMITS
from firstclick.kernels.calls import learn_once
from firstclick.kernels.compiling import compiled
from firstclick.kernels.mixed import NEXT, STAGE, refit_now
from firstclick.registry import DEFAULT_POLICY
from firstclick.streams import stream, stream_key
from firstclick.worlds import BernoulliWorld
from firstclick.worlds.base import Stage

PARTLY = "partly:n_items=64,n_features=5,own=0.5"


class Case:
    """A world, its features changed."""

    def __init__(self, spec, change=lambda features, draw: features, k=4, attraction=None):
        self.spec, self.change, self.k, self.attraction = spec, change, k, attraction

    def stage(self, seed, run):
        world = make_world(self.spec).build(int(stream_key(seed, "odd", run)))
        features = world.features
        if self.attraction is not None:
            draw = stream(seed, "attraction", run)
            world = BernoulliWorld(self.attraction * draw.uniform(0.5, 1.0, world.n_items))
        changed = self.change(features, stream(seed, "change", run))
        if changed is not None:
            changed = np.ascontiguousarray(changed)
        return Stage(world, changed, [f"item {item}" for item in range(world.n_items)])


CASES = {
    "as it is": Case(PARTLY),
    "noise features only, 50": Case(PARTLY, lambda x, draw: draw.standard_normal((len(x), 50))),
    "shuffled features": Case(PARTLY, lambda x, draw: draw.permutation(x)),
    "one feature": Case(PARTLY, lambda x, draw: x[:, :1]),
    "no feature": Case(PARTLY, lambda x, draw: None),
    "a copied feature": Case(PARTLY, lambda x, draw: np.hstack([x, x[:, :1]])),
    "a constant feature": Case(PARTLY, lambda x, draw: np.hstack([x, np.full((len(x), 1), 7.0)])),
    "unlike units": Case(PARTLY, lambda x, draw: x * 10.0 ** draw.uniform(-4, 4, x.shape[1]) + 3.0),
    "duplicate items": Case(PARTLY, lambda x, draw: x[np.arange(len(x)) // 2 * 2]),
    "attraction at most 0.002": Case(PARTLY, attraction=0.002),
    "attraction at most 0.9": Case(PARTLY, attraction=0.9),
    "100,000 items": Case("long-tail:n_items=100000,n_features=16"),
    "k = all items": Case("partly:n_items=6,n_features=3,own=0.5", k=6),
}


def odd_cases(steps, runs, seed):
    print(
        "regret in percent of that of random order, and of the worst run: "
        f"{steps:,} steps, {runs} runs, seed {seed}\n"
    )
    print(f"{'':28}{DEFAULT_POLICY:>20}{'cascade-ts':>20}{'vac2-ucb':>20}")
    for name, case in CASES.items():
        has_features = case.stage(seed, 0).features is not None
        # Without features there is no vac2-ucb; with 100,000 items cascade-ts would take hours.
        others = ["cascade-ts"] if "100,000" not in name else []
        others += ["vac2-ucb"] if has_features else []
        played = simulate(
            [DEFAULT_POLICY, *others, "random"], case, k=case.k, steps=steps, runs=runs, seed=seed
        )
        regret = {one.policy: one.expected_regret[:, -1] for one in played.results}
        assert all(np.isfinite(values).all() for values in regret.values()), name
        floor = regret["random"].mean()
        cells = []
        for policy in (DEFAULT_POLICY, "cascade-ts", "vac2-ucb"):
            if policy not in regret:
                cells.append("-")
            elif floor <= 1e-9:
                cells.append("nothing to lose")
            else:
                cells.append(f"{regret[policy].mean() / floor:.1%} ({regret[policy].max() / floor:.1%})")
        print(f"{name:28}" + "".join(f"{cell:>20}" for cell in cells), flush=True)


def refits():
    policy = make_policy(DEFAULT_POLICY)
    learn = compiled(learn_once, type(policy))
    print(f"\n{'refits, 20 features':28}{'looked at':>12}{'at once, ms':>14}{'spread: longest look, ms':>28}")
    for n_items, seen in ((256, 256), (10_000, 10_000), (1_000_000, 20_000), (1_000_000, 200_000)):
        draw = stream(1, "refits", n_items, seen)
        features = draw.standard_normal((n_items, 20))
        catalog = catalog_arrays(features, n_items)
        state = policy.initial_state(n_items, 20, 4)
        rows = draw.choice(n_items, seen, replace=False)
        state.examined[rows] = draw.geometric(0.3, seen)
        state.hits[rows] = draw.binomial(state.examined[rows].astype(int), 0.1)
        state.totals[:] = state.examined.sum(), state.hits.sum()
        refit_now(state, features)  # compiles
        start = time.thread_time()
        refit_now(state, features)
        whole = time.thread_time() - start
        # One look at a time until a refit began and took effect.
        state.refit[NEXT] = state.totals[0]
        clicks, slate, longest, began = np.zeros(1, np.uint8), np.zeros(1, np.int64), 0.0, False
        numbers = policy.numbers(4, features)
        for look in range(int(0.3 * state.totals[0]) + 100):
            slate[0] = rows[look % seen]
            start = time.thread_time()
            learn(numbers, state, catalog, NO_LIMITS, slate, 1, clicks)
            if look > 0:
                longest = max(longest, time.thread_time() - start)
            if began and state.refit[STAGE] == 0.0:
                break
            began = began or state.refit[STAGE] > 0.0
        print(f"{n_items:>20,} items{seen:>14,}{1e3 * whole:>14,.1f}{1e3 * longest:>28,.2f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    odd_cases(given.steps, given.runs, given.seed)
    refits()


if __name__ == "__main__":
    main()
