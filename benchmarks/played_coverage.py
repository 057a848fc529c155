"""How often the interval of `play_on_log` holds the true difference: made-up logs of a page that is known.

    python -m benchmarks.played_coverage [--click-model pbm] [--pages 2000] [--refits 20] [--logs 40]
    python -m benchmarks.played_coverage --equal --click-model cm --pages 1000 --steps 20000

The page: 12 items, slates of four. A log shows the first four items in their order, and on a share of pages
(--explored) four items at random. The policy is played for --steps pages (as many as the log has) in the true
world, 40 times; what it gets there over the logged slates is the truth.

With --equal: 50 items of the same attraction, slates of three, all at random. No policy can gain anything
there: the truth is 0.
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

CHANCES = {"pbm": np.array([1.0, 0.7, 0.5, 0.3]), "dbn": np.array([0.9]), "cm": np.empty(0)}


class ArrayLog(RankedLog):
    """Slates and clicks as a log."""

    name = "made-up"

    def __init__(self, page, slates, clicks):
        n, self.k, self.items = len(slates), page.k, page.items
        self.batch = SlateBatch(
            slates,
            clicks.astype(np.uint8),
            np.full(n, NOT_TOLD, np.int32),
            np.ones(n, np.bool_),
            np.arange(n),
        )

    def batches(self, progress=silent):
        yield self.batch


def true_page(model, pages, equal):
    """The page as a fit that is right."""
    draw = np.random.default_rng(1)
    items, k = (50, 3) if equal else (12, 4)
    attraction = np.sort(draw.beta(1.2, 8, items))[::-1].copy()
    draw.shuffle(attraction)
    satisfaction = draw.uniform(0.2, 0.8, (1, items))
    if equal:
        attraction[:], satisfaction[:] = 0.1, 0.5
    return ClickFit(
        model=model, items=tuple(f"item {item}" for item in range(items)), segments=("",), shares=np.ones(1),
        attraction=attraction[None], satisfaction=satisfaction if model == "dbn" else np.empty((0, 0)),
        chances=CHANCES[model][:k], looks=np.ones((1, items)), k=k, slates=float(pages),
    )  # fmt: skip


def made_log(page, pages, explored, draw):
    """Slates, and what users of the page click."""
    slates = np.tile(np.arange(page.k), (pages, 1)).astype(np.int32)
    free = draw.random(pages) < explored
    slates[free] = np.argsort(draw.random((int(free.sum()), len(page.items))), axis=1)[:, : page.k]
    attraction = page.attraction[0, slates]
    if page.model == "pbm":
        return slates, draw.random(slates.shape) < attraction * page.chances
    leaving = page.satisfaction[0, slates] if page.model == "dbn" else np.ones(slates.shape)
    clicks, looking = np.zeros(slates.shape, np.bool_), np.ones(pages, np.bool_)
    for position in range(page.k):
        clicks[:, position] = looking & (draw.random(pages) < attraction[:, position])
        satisfied = clicks[:, position] & (draw.random(pages) < leaving[:, position])
        looking &= ~satisfied & (draw.random(pages) < page.gamma)
    return slates, clicks


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--click-model", choices=list(CHANCES), default="pbm")
    parser.add_argument("--pages", type=int, default=2000)
    parser.add_argument("--explored", type=float, default=0.2)
    parser.add_argument("--equal", action="store_true", help="a page whose items do not differ")
    parser.add_argument("--steps", type=int)
    parser.add_argument("--refits", type=int, default=20)
    parser.add_argument("--logs", type=int, default=40)
    parser.add_argument("--policy", default="cascade-ts")
    given = parser.parse_args()
    steps, explored = given.steps or given.pages, 1.0 if given.equal else given.explored
    page = true_page(given.click_model, given.pages, given.equal)
    results = simulate([given.policy], FittedWorld(page), k=page.k, steps=steps, runs=40, seed=9)
    lost = results[given.policy].mean("expected_regret")[-1] / steps
    true_value = results.optimal_reward - lost
    rows = []
    for number in range(given.logs):
        print(f"log {number + 1} of {given.logs}", end="\r", file=sys.stderr)
        slates, clicks = made_log(page, given.pages, explored, np.random.default_rng(100 + number))
        shown = page.click_chances(slates, np.zeros(given.pages, np.int32)).sum() / given.pages
        played = play_on_log(
            ArrayLog(page, slates, clicks),
            [given.policy],
            model=given.click_model,
            refits=given.refits,
            steps=steps,
            seed=number,
        )
        value, low, high = played.policies[0].difference
        truth = true_value - shown
        rows.append((truth, value - truth, low <= truth <= high, high - low))
    truth, error, held, width = np.mean(np.array(rows, float), axis=0)
    print(
        f"{'equal items, ' if given.equal else ''}{given.click_model}, {given.pages:,} pages, "
        f"{explored:.0%} explored, {given.refits} refits, {steps:,} steps: "
        f"the interval held the truth in {held:.0%} of {given.logs} logs; mean width {width:.4f}, mean error "
        f"{error:+.4f}, true difference {truth:+.4f}"
    )


if __name__ == "__main__":
    main()
