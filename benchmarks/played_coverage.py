"""How often the interval of `play_on_log` holds the true difference: made-up logs of a page that is known.

    python -m benchmarks.played_coverage [--click-model pbm] [--pages 2000] [--refits 20] [--logs 40]

The page: 12 items, slates of four. A log shows the first four items in their order, and on a share of pages
(--explored) four items at random. The policy is played for as many pages in the true world, 40 times; what it
gets there over the logged slates is the truth.
"""

import argparse
import sys

import numpy as np

from firstclick import simulate
from firstclick.click_models import ClickFit
from firstclick.evaluation.played import play_on_log
from firstclick.files.progress import silent
from firstclick.logs.ranked_log import NOT_TOLD, RankedLog, SlateBatch
from firstclick.worlds.fitted import FittedWorld

ITEMS, K = 12, 4
CHANCES = {"pbm": np.array([1.0, 0.7, 0.5, 0.3]), "dbn": np.array([0.9])}


class ArrayLog(RankedLog):
    """Slates and clicks as a log."""

    name, k = "made-up", K
    items = tuple(f"item {item}" for item in range(ITEMS))

    def __init__(self, slates, clicks):
        n = len(slates)
        self.batch = SlateBatch(
            slates,
            clicks.astype(np.uint8),
            np.full(n, NOT_TOLD, np.int32),
            np.ones(n, np.bool_),
            np.arange(n),
        )

    def batches(self, progress=silent):
        yield self.batch


def true_page(model, pages):
    """The page as a fit that is right."""
    draw = np.random.default_rng(1)
    attraction = np.sort(draw.beta(1.2, 8, ITEMS))[::-1].copy()
    draw.shuffle(attraction)
    satisfaction = draw.uniform(0.2, 0.8, (1, ITEMS))
    return ClickFit(
        model=model, items=ArrayLog.items, segments=("",), shares=np.ones(1), attraction=attraction[None],
        satisfaction=satisfaction if model == "dbn" else np.empty((0, 0)), chances=CHANCES[model],
        looks=np.ones((1, ITEMS)), k=K, slates=float(pages),
    )  # fmt: skip


def made_log(page, pages, explored, draw):
    """Slates, and what users of the page click."""
    slates = np.tile(np.arange(K), (pages, 1)).astype(np.int32)
    free = draw.random(pages) < explored
    slates[free] = np.argsort(draw.random((int(free.sum()), ITEMS)), axis=1)[:, :K]
    attraction = page.attraction[0, slates]
    if page.model == "pbm":
        return slates, draw.random(slates.shape) < attraction * page.chances
    clicks, looking = np.zeros(slates.shape, np.bool_), np.ones(pages, np.bool_)
    for position in range(K):
        clicks[:, position] = looking & (draw.random(pages) < attraction[:, position])
        satisfied = clicks[:, position] & (draw.random(pages) < page.satisfaction[0, slates[:, position]])
        looking &= ~satisfied & (draw.random(pages) < page.gamma)
    return slates, clicks


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--click-model", choices=list(CHANCES), default="pbm")
    parser.add_argument("--pages", type=int, default=2000)
    parser.add_argument("--explored", type=float, default=0.2)
    parser.add_argument("--refits", type=int, default=20)
    parser.add_argument("--logs", type=int, default=40)
    parser.add_argument("--policy", default="cascade-ts")
    given = parser.parse_args()
    page = true_page(given.click_model, given.pages)
    results = simulate([given.policy], FittedWorld(page), k=K, steps=given.pages, runs=40, seed=9)
    lost = results[given.policy].mean("expected_regret")[-1] / given.pages
    true_value = results.optimal_reward - lost
    rows = []
    for number in range(given.logs):
        print(f"log {number + 1} of {given.logs}", end="\r", file=sys.stderr)
        slates, clicks = made_log(page, given.pages, given.explored, np.random.default_rng(100 + number))
        shown = page.click_chances(slates, np.zeros(given.pages, np.int32)).sum() / given.pages
        played = play_on_log(
            ArrayLog(slates, clicks),
            [given.policy],
            model=given.click_model,
            refits=given.refits,
            seed=number,
        )
        value, low, high = played.policies[0].difference
        truth = true_value - shown
        rows.append((truth, value - truth, low <= truth <= high, high - low))
    truth, error, held, width = np.mean(np.array(rows, float), axis=0)
    print(
        f"{given.click_model}, {given.pages:,} pages, {given.explored:.0%} explored, {given.refits} refits: "
        f"the interval held the truth in {held:.0%} of {given.logs} logs; mean width {width:.4f}, mean error "
        f"{error:+.4f}, true difference {truth:+.4f}"
    )


if __name__ == "__main__":
    main()
