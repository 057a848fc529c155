"""Draw docs/images/learning.png: clicks per page while policies learn in a made-up shop of 1,500 items.

python docs/scripts/learning_figure.py
"""

from pathlib import Path

import matplotlib
import numpy as np

from firstclick import make_world, simulate

matplotlib.use("Agg")
from matplotlib import pyplot as plt

FILE = Path(__file__).parents[1] / "images" / "learning.png"
STEPS, POINTS = 50_000, 50
DRAWN = {
    "cascade-mixed": ("cascade-mixed, the default", "#3f51b5", "-"),
    "cascade-ts": ("cascade-ts, no features", "#d55e00", "-."),
    "random": ("random order", "#767676", ":"),
}


def main() -> None:
    results = simulate(list(DRAWN), make_world("shop"), k=6, steps=STEPS, runs=5, seed=1)
    figure, axes = plt.subplots(figsize=(7.2, 3.9), dpi=110, layout="constrained")
    edges = np.linspace(0, STEPS, POINTS + 1)
    below = {"cascade-mixed": -18}  # above it is the best slate
    best = float(np.mean(results.optimal_reward))
    axes.axhline(100 * best, color="#009e73", linewidth=1.5, linestyle="--")
    axes.annotate("the best slate", (STEPS, 100 * best), xytext=(0, 5), textcoords="offset points",
                  ha="right", color="#00755a")  # fmt: skip
    for result in results.results:
        label, color, dash = DRAWN[result.policy]
        lost = np.interp(edges, np.r_[0, results.step], np.r_[0, result.mean("expected_regret")])
        rate = 100 * (best - np.diff(lost) / np.diff(edges))
        axes.plot(edges[1:], rate, color=color, linestyle=dash, linewidth=2.2)
        offset = (0, below.get(result.policy, 6))
        axes.annotate(label, (edges[-1], rate[-1]), xytext=offset, textcoords="offset points", ha="right",
                      color=color)  # fmt: skip
        print(
            f"{result.policy}: {rate[0]:.1f} then {rate[-1]:.1f} clicks on 100 pages; best {100 * best:.1f}"
        )
    axes.set(xlabel="pages shown", ylabel="clicks on 100 pages", xlim=(0, STEPS), ylim=(0, 38))
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.spines[["top", "right"]].set_visible(False)
    axes.grid(alpha=0.25)
    figure.savefig(FILE, metadata={"Software": None})


if __name__ == "__main__":
    main()
