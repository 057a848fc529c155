"""CascadeUCB1 in B_LB once more, in plain NumPy that shares no code with firstclick: a check of its figures.

    python -m benchmarks.independent_ucb1 --items 16 --k 8 --gap 0.15 --runs 200

All runs go through the steps together. Prints the mean expected regret and its standard error.
"""

import argparse

import numpy as np


def expected_regret(items: int, k: int, p: float, gap: float, steps: int, runs: int, seed: int) -> np.ndarray:
    """The regret of each run, as in Kveton et al. 2015: start from one true observation of each item."""
    rng = np.random.default_rng(seed)
    attraction = np.full(items, p - gap)
    attraction[:k] = p
    clicks = (rng.random((runs, items)) < attraction).astype(float)
    examined = np.ones((runs, items))
    best = 1 - (1 - p) ** k
    regret = np.zeros(runs)
    for t in range(1, steps + 1):
        bound = clicks / examined + np.sqrt(1.5 * np.log(max(t - 1, 1)) / examined)
        bound += 1e-9 * rng.random((runs, items))  # ties at random
        slate = np.argsort(-bound, axis=1)[:, :k]
        regret += best - (1 - np.prod(1 - attraction[slate], axis=1))
        attracted = rng.random((runs, k)) < attraction[slate]
        looking = np.ones(runs, dtype=bool)
        for position in range(k):
            run = np.flatnonzero(looking)
            examined[run, slate[run, position]] += 1
            clicks[run, slate[run, position]] += attracted[run, position]
            looking &= ~attracted[:, position]
    return regret


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name, default in (("items", 16), ("k", 2), ("steps", 100_000), ("runs", 200), ("seed", 123)):
        parser.add_argument(f"--{name}", type=int, default=default)
    for name, default in (("p", 0.2), ("gap", 0.15)):
        parser.add_argument(f"--{name}", type=float, default=default)
    regret = expected_regret(**vars(parser.parse_args()))
    print(f"{regret.mean():.1f} +- {regret.std(ddof=1) / np.sqrt(len(regret)):.1f}")


if __name__ == "__main__":
    main()
