"""The time of a step of every policy, against cascade-lin-ts in the same world.

    python -m benchmarks.policies                                   # core policies and research policies
    python -m benchmarks.policies --core --out docs/research/costs.csv

All are played in turns within one run, several times over, and the best time of each counts: machines are
noisy, ratios less so. Later steps of a large catalog are faster than the first ones, so 20,000 are played, or
as many as fit into a few seconds. Policies with contexts get users with vectors, those with topics items with
topics.
`docs/scripts/generate.py` puts the file into the pages of the policies.
"""

import argparse
from pathlib import Path

from firstclick import policy_classes, simulate
from firstclick.errors import FirstclickError
from firstclick.files.writing import write_whole
from firstclick.registry import is_research

N_FEATURES, K, ROUNDS = 20, 4, 3
N_ITEMS = (256, 3000, 100_000)
MOST_STEPS, TRIED, SECONDS = 20_000, 100, 5.0
PARENT = "cascade-lin-ts"
PLAIN = "long-tail:n_items={},n_features=20"
OWN_WORLDS = {
    "c3-ucb": "vectors:n_items={},n_features=20,n_context=3,users=50",
    "context-lin-ts": "vectors:n_items={},n_features=20,n_context=3,users=50",
    "segment-lin-ts": "types:n_items={},n_features=20,types=4",
    "cascade-hybrid": "topics:n_items={},topics=20",
    "cascade-lsb": "topics:n_items={},topics=20",
}
COLUMNS = ("policy", "items", "microseconds", "times_cascade_lin_ts")


def best_times(world: str, policies: list[str]) -> dict[str, float]:
    """Microseconds of a step, by policy; one that refuses the world is left out."""
    times, steps = dict.fromkeys(policies, float("inf")), {}
    for name in policies:
        try:
            steps[name] = min(MOST_STEPS, max(TRIED, int(SECONDS / seconds_per_step(name, world, TRIED))))
        except FirstclickError as refusal:
            print(refusal)
            del times[name]
    for turn in range(ROUNDS):
        for name in times:
            times[name] = min(times[name], 1e6 * seconds_per_step(name, world, steps[name], turn))
    return times


def seconds_per_step(policy: str, world: str, steps: int, seed: int = 0) -> float:
    (result,) = simulate([policy], world, k=K, steps=steps, seed=seed).results
    return result.seconds_per_step


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--core", action="store_true", help="without the policies of research")
    parser.add_argument("--out", type=Path, metavar="FILE", help="write the table as CSV")
    asked = parser.parse_args()
    names = [name for name, cls in policy_classes().items() if not (asked.core and is_research(cls))]
    worlds: dict[str, list[str]] = {}
    for name in names:
        worlds.setdefault(OWN_WORLDS.get(name, PLAIN), [PARENT]).append(name)
    lines = []
    print(f"microseconds a step, and times {PARENT} there; {N_FEATURES} features, k = {K}")
    for n_items in N_ITEMS:
        for world, policies in worlds.items():
            times = best_times(world.format(n_items), list(dict.fromkeys(policies)))
            for name in sorted(set(times) & set(policies), key=times.__getitem__):
                if name != PARENT or world == PLAIN:
                    ratio = times[name] / times[PARENT]
                    print(f"{name:20}{n_items:10,}{times[name]:12.1f}{ratio:10.2f}")
                    lines.append((name, n_items, f"{times[name]:.1f}", f"{ratio:.2f}"))
    if asked.out:
        text = [",".join(COLUMNS), *(",".join(map(str, line)) for line in sorted(lines))]
        write_whole(asked.out, ("\n".join(text) + "\n").encode())


if __name__ == "__main__":
    main()
