"""The experiment of Kiyohara et al. (WSDM 2022): how much better Cascade-DR is, by the length of the slate.

    python -m benchmarks.cascade_dr [--runs 360] [--seed 1] [--like-obp]

Set up after the settings of github.com/aiueola/wsdm2022-cascade-dr and the synthetic slates of obp 0.5.7,
in code of our own: 1,000 slates of K of 5 items (an item may come twice), 5 numbers of context, clicks that
depend on the items above ("cascade", additive or decaying, half of the runs each), a softmax logger, and a
target of similarity -0.8, -0.6, ..., 0.8. The model for Cascade-DR is a weighted regression tree of depth 3
for each position, from the last one up. Printed are mean squared errors by that of Cascade-DR. The
published figures are those of the repository's plot for the cascade structure, from 10,000 runs over all K
and three structures.

With `--like-obp` two things are as in the code of obp 0.5.7 and not as in the paper: slate i is rewarded with
the context of slate i // K, and the decaying interaction reads the half of its matrix that is 0.
"""

import argparse
import sys

import numpy as np

from firstclick.evaluation.estimators.all_estimators import ESTIMATORS
from firstclick.evaluation.estimators.weighted_slates import WeightedSlates
from firstclick.streams import stream

N, ITEMS, CONTEXT = 1000, 5, 5
SIMILARITIES = (-0.8, -0.6, -0.4, -0.2, 0.0, 0.2, 0.4, 0.6, 0.8)
LENGTHS = (3, 4, 5, 6, 7)
PUBLISHED_RIPS = dict(zip(LENGTHS, (1.64, 1.89, 1.48, 1.33, 1.34), strict=True))
PUBLISHED_IPS = (2.1, 3.5)
SHOWN = ("slate-ips", "iips", "rips", "sn-rips", "cascade-dr", "sn-cascade-dr")
# The truth is the mean expected reward of so many slates of the target for every context.
TRUTH_SLATES = 60


class Tree:
    """A regression tree: each split takes away the most weighted squared error."""

    def __init__(self, features, values, weights, depth=3):
        total = weights.sum()
        self.value = weights @ values / total if total > 0 else 0.0
        self.feature = None
        best = self._best(features, values, weights) if depth and len(values) > 1 else None
        if best is not None:
            self.feature, self.threshold = best
            low = features[:, self.feature] <= self.threshold
            self.low = Tree(features[low], values[low], weights[low], depth - 1)
            self.high = Tree(features[~low], values[~low], weights[~low], depth - 1)

    @staticmethod
    def _best(features, values, weights):
        order = np.argsort(features, axis=0, kind="stable")
        ranked = np.take_along_axis(features, order, axis=0)
        mass, moment = np.cumsum(weights[order], axis=0), np.cumsum((weights * values)[order], axis=0)
        left, right = mass[:-1], mass[-1] - mass[:-1]
        splits = (ranked[1:] > ranked[:-1]) & (left > 0) & (right > 0)
        if not splits.any():
            return None
        gains = np.where(
            splits,
            moment[:-1] ** 2 / np.where(splits, left, 1)
            + (moment[-1] - moment[:-1]) ** 2 / np.where(splits, right, 1),
            -np.inf,
        )  # fmt: skip
        at, feature = np.unravel_index(np.argmax(gains), gains.shape)
        return feature, (ranked[at, feature] + ranked[at + 1, feature]) / 2

    def predict(self, features):
        if self.feature is None:
            return np.full(len(features), self.value)
        low = features[:, self.feature] <= self.threshold
        found = np.empty(len(features))
        found[low], found[~low] = self.low.predict(features[low]), self.high.predict(features[~low])
        return found


def chances(base, slates, structure, interaction):
    """The click probability at each position, given the items above. `base` has the logit of every item."""
    rows, k = np.arange(len(slates)), slates.shape[1]
    found = np.empty(slates.shape)
    for at in range(k):
        logit = base[rows, slates[:, at]]
        for above in range(at):
            if structure == "additive":
                logit = logit + interaction[slates[:, at], slates[:, above]]
            elif structure == "decay":
                logit = logit - base[rows, slates[:, above]] / (at - above + 1)
        found[:, at] = logit
    return 1.0 / (1.0 + np.exp(-found))


def q_model(context, slates, clicks, weights, target):
    """What is expected of position k and all below: of the item shown, and as a mean over the target."""
    n, k = slates.shape
    shown, expected, following = np.empty((n, k)), np.empty((n, k)), np.zeros(n)
    for at in reversed(range(k)):
        features = np.concatenate([context, slates[:, : at + 1]], axis=1)
        tree = Tree(features, clicks[:, at] + following, weights[:, at])
        shown[:, at] = tree.predict(features)
        expected[:, at] = 0.0
        for item in range(ITEMS):
            features[:, -1] = item
            expected[:, at] += target[item] * tree.predict(features)
        following = expected[:, at]
    return shown, expected


def run(k, structure, similarity, like_obp, rng):
    """The squared error of each estimator in one log."""
    own = rng.random(ITEMS)
    logger, target = (np.exp(one) / np.exp(one).sum() for one in (own, similarity * own))
    context = rng.normal(size=(N, CONTEXT))
    with_one = np.concatenate([np.ones((N, 1)), context], axis=1)
    items = np.concatenate([np.ones((ITEMS, 1)), np.eye(ITEMS)], axis=1)
    of_context, of_item = rng.uniform(-1, 1, CONTEXT + 1), rng.uniform(-1, 1, ITEMS + 1)
    of_both = rng.uniform(-1, 1, (CONTEXT + 1, ITEMS + 1))
    base = (with_one @ of_context)[:, None] + items @ of_item + with_one @ of_both @ items.T
    base -= base.mean() / base.std()  # a z-score whose brackets are missing, as in obp
    if like_obp:
        base = base[np.arange(N) // k]
        structure = "none" if structure == "decay" else structure
    draws = rng.normal(scale=5.0, size=(ITEMS, ITEMS))
    interaction = np.tril(draws) + np.tril(draws, -1).T
    slates = rng.choice(ITEMS, size=(N, k), p=logger)
    clicks = (rng.random((N, k)) < chances(base, slates, structure, interaction)) * 1.0
    many = np.repeat(base, TRUTH_SLATES, axis=0)
    wanted = rng.choice(ITEMS, size=(len(many), k), p=target)
    truth = chances(many, wanted, structure, interaction).sum(axis=1).mean()
    logged, judged = (np.cumprod(one[slates], axis=1) for one in (logger, target))
    predicted, expected = q_model(context, slates, clicks, judged / logged, target)
    arrays = WeightedSlates(
        clicks, logged, judged, logged_places=logger[slates], target_places=target[slates],
        predicted=predicted, predicted_target=expected,
    )  # fmt: skip
    errors = {}
    for one in ESTIMATORS:
        if one.name in SHOWN:
            columns = one.columns(arrays) if one.columns else {}
            means = {key: column.mean(axis=0) for key, column in columns.items()}
            errors[one.name] = (one.terms(arrays, means).mean() - truth) ** 2
    return errors


def ratios(k, runs, seed, like_obp):
    """Mean squared errors by that of Cascade-DR, and the standard error of the ratio of RIPS."""
    rng = stream(seed, "cascade-dr", k)
    found = {name: np.empty(runs) for name in SHOWN}
    for number in range(runs):
        structure = ("additive", "decay")[number % 2]
        similarity = SIMILARITIES[number // 2 % len(SIMILARITIES)]
        for name, error in run(k, structure, similarity, like_obp, rng).items():
            found[name][number] = error
    means = {name: errors.mean() for name, errors in found.items()}
    linear = found["rips"] - means["rips"] / means["cascade-dr"] * found["cascade-dr"]
    spread = linear.std() / means["cascade-dr"] / np.sqrt(runs)
    return {name: mean / means["cascade-dr"] for name, mean in means.items()}, spread


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=360, help="for each K")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--like-obp", action="store_true", help="rewards as obp 0.5.7 indexes them")
    given = parser.parse_args()
    print(f"{given.runs} runs for each K, seed {given.seed}: mean squared error by that of Cascade-DR\n")
    print(
        f"{'K':>2}" + "".join(f"{name:>15}" for name in SHOWN) + f"{'rips published':>17}{'within 1.5':>12}"
    )
    for k in LENGTHS:
        print(f"K = {k}", file=sys.stderr)
        found, spread = ratios(k, given.runs, given.seed, given.like_obp)
        words = [f"{found[name]:.2f}" + (f" ± {spread:.2f}" if name == "rips" else "") for name in SHOWN]
        near = 1 / 1.5 <= found["rips"] / PUBLISHED_RIPS[k] <= 1.5
        print(
            f"{k:>2}" + "".join(f"{word:>15}" for word in words)
            + f"{PUBLISHED_RIPS[k]:>17}{'yes' if near else 'no':>12}",
            flush=True,
        )  # fmt: skip
    print(f"\nslate IPS, published: {PUBLISHED_IPS[0]} to {PUBLISHED_IPS[1]}")


if __name__ == "__main__":
    main()
