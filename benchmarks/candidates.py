"""What candidates cost: microseconds of `Ranker.recommend` with none, with a list of ids, with a subset.

    python -m benchmarks.candidates [--items 10000] [--candidates 1000] [--features 8] [--json]

The fastest of many rounds, because other work on the machine only adds to them; the rounds of the kinds of
requests take turns. "by the list" is what a list of ids costs more than a request without candidates.
"""

import argparse
import json
import time
from collections.abc import Callable

from firstclick import Catalog, Ranker
from firstclick.streams import stream

POLICIES = ("cascade-mixed", "cascade-lin-ts", "cascade-lin-ucb", "cascade-ts")
ROUNDS, CALLS = 200, 20


def fastest(calls: dict[str, Callable[[], object]]) -> dict[str, float]:
    """Microseconds of each call."""
    best = dict.fromkeys(calls, float("inf"))
    for _ in range(ROUNDS):
        for name, call in calls.items():
            start = time.perf_counter()
            for _ in range(CALLS):
                call()
            best[name] = min(best[name], (time.perf_counter() - start) / CALLS * 1e6)
    return best


def measured(
    policy: str, n_items: int, n_candidates: int, n_features: int, *, texts: bool
) -> dict[str, float]:
    """Microseconds of the requests of a ranker that has learned from some slates."""
    draw = stream(1, "candidates")
    ids = [f"item {row}" if texts else row for row in range(n_items)]
    ranker = Ranker(Catalog(ids, draw.random((n_items, n_features))), k=5, policy=policy, seed=1)
    chosen = [ids[row] for row in draw.permutation(n_items)[:n_candidates].tolist()]
    for step in range(500):
        slate = ranker.recommend(candidates=chosen) if step % 2 else ranker.recommend()
        ranker.learn(slate, click=(0, None, 2)[step % 3])
    subset = ranker.catalog.subset(chosen)
    calls: dict[str, Callable[[], object]] = {
        "none": ranker.recommend,
        "ids": lambda: ranker.recommend(candidates=chosen),
        "lookup": lambda: ranker.catalog.rows(chosen),
        "subset": lambda: ranker.recommend(candidates=subset),
    }
    return fastest(calls)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, default in (("items", 10_000), ("candidates", 1000), ("features", 8)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    rows = []
    for policy in POLICIES:
        for texts in (True, False):
            found = measured(policy, given.items, given.candidates, given.features, texts=texts)
            rows.append({"policy": policy, "ids are": "texts" if texts else "numbers", **found})
    if given.json:
        print(json.dumps(rows))
        return
    print(f"{given.candidates:,} of {given.items:,} items, {given.features} features; microseconds")
    print("policy           ids are   none  ids  of it lookup  subset  by the list")
    for row in rows:
        subset = f"{row['subset']:.0f}" if "subset" in row else "-"
        print(
            f"{row['policy']:17}{row['ids are']:8}{row['none']:6.0f}{row['ids']:5.0f}{row['lookup']:11.0f}"
            f"{subset:>11}{row['ids'] - row['none']:10.0f}"
        )


if __name__ == "__main__":
    main()
