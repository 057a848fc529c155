"""Does the encoder learn as fast as features that a careful person prepares by hand?

    python -m benchmarks.encoding [--steps 20000] [--runs 20] [--seed 1] [--jobs 2] [--only VARIANT]

A made-up shop of 1,500 items. Its table is as people have them: decimal commas and euro signs, missing
cells, wild numbers, a copy, a constant, titles. What truly attracts is in `made_up_shop`: log price, brand,
category, yes/no columns, the rating (where it is missing, nobody knows it), the age, and a little that no
column explains. Every run has a shop of its own, and the same users for all variants.

A ratio is mean regret over that of the features by hand, with a 90 % interval by resampling runs, which are
paired. Variants change the encoder in one way each.

`--files CATALOG TRUTH PREPARED` plays a shop of your own: its catalog, a CSV of id and attraction, and a CSV
of id and features that somebody prepared by hand. Runs then differ in their users alone.
"""

import argparse
from datetime import date, timedelta
from multiprocessing import Pool

import numpy as np

from firstclick import make_policy
from firstclick.catalog import decisions
from firstclick.catalog.encoded_column import CategoryColumn, FlagColumn, NumberColumn
from firstclick.catalog.encoder import Encoder
from firstclick.catalog.file import read_catalog
from firstclick.experiments.loop import Task
from firstclick.files.table import read_table
from firstclick.online.engine import scale_for
from firstclick.streams import stream
from firstclick.worlds.base import Stage
from firstclick.worlds.bernoulli import BernoulliWorld

ITEMS, K = 1500, 6
BRANDS, CATEGORIES = 80, 12
POLICIES = ("cascade-mixed", "cascade-lin-ucb", "cascade-lin-ts")
NEWEST = date(2025, 3, 1)


def made_up_shop(seed, run, numbers=1.0, categories=1.0):
    """The attraction of each item, the table as people have it, and what is behind its cells."""
    draw = stream(seed, "shop", run)
    brand = np.minimum(draw.zipf(1.4, ITEMS) - 1, BRANDS - 1)
    category = draw.integers(CATEGORIES, size=ITEMS)
    log_price = draw.normal(3, 0.9, ITEMS) + draw.normal(0, 0.5, CATEGORIES)[category]
    organic, on_sale = draw.random(ITEMS) < 0.25, draw.random(ITEMS) < 0.1
    rating = np.clip(draw.normal(3.9, 0.6, ITEMS), 1, 5).round(1)
    reviews = np.floor(draw.lognormal(2, 1.5, ITEMS))
    age = np.floor(draw.exponential(300, ITEMS))
    weight = draw.lognormal(0, 1, ITEMS)

    # The truth.
    z_price = (log_price - log_price.mean()) / log_price.std()
    attraction = (
        0.05
        - 0.015 * numbers * z_price
        + draw.normal(0, 0.02 * categories, BRANDS)[brand]
        + draw.normal(0, 0.02 * categories, CATEGORIES)[category]
        + 0.015 * organic
        + 0.02 * on_sale
        + 0.01 * numbers * (rating - rating.mean()) / rating.std()
        - 0.005 * numbers * np.clip((age - 300) / 300, -1, 3)
        + draw.normal(0, 0.005, ITEMS)
    )
    attraction = np.clip(attraction, 0.002, 0.6)

    price = np.exp(log_price)
    no_price, no_rating = draw.random(ITEMS) < 0.02, draw.random(ITEMS) < 0.12
    wild = draw.random(ITEMS) < 0.005
    table = {
        "title": [f"Article {draw.integers(10**9)}" for _ in range(ITEMS)],
        "ean": draw.permutation(10**12 + np.arange(ITEMS)).tolist(),
        "price": ["n/a" if no else _german(one) + " €" for one, no in zip(price, no_price, strict=True)],
        "price_cents": [None if no else round(one * 100) for one, no in zip(price, no_price, strict=True)],
        "brand": [f"Brand {one}" if draw.random() > 0.05 else f" BRAND {one} " for one in brand],
        "category": [f"category {'ABCDEFGHIJKL'[one]}" for one in category],
        "organic": np.where(organic, "yes", "no").tolist(),
        "on_sale": np.where(on_sale, "x", "").tolist(),
        "rating": ["" if no else str(one) for one, no in zip(rating, no_rating, strict=True)],
        "reviews": reviews.astype(int).tolist(),
        "released": [(NEWEST - timedelta(int(one))).isoformat() for one in age],
        "weight_kg": [f"{one * (1000 if bad else 1):.3f}" for one, bad in zip(weight, wild, strict=True)],
        "currency": ["EUR"] * ITEMS,
    }
    facts = (np.where(no_price, np.nan, price), brand, category, organic, on_sale)
    return attraction, table, (*facts, np.where(no_rating, np.nan, rating), reviews, age, weight)


def own_shop(catalog, truth, prepared, encoding):
    """The same of files: a catalog, the attraction of each id, and features that somebody prepared."""
    file = read_catalog(catalog, encoding=encoding or None)
    attraction = {id: float(value) for id, value in zip(*_columns(truth), strict=True)}
    ids, *features = _columns(prepared)
    rows = dict(zip(ids, np.array(features, np.float64).T, strict=True))
    return (
        np.array([attraction[id] for id in file.ids]),
        file.columns,
        np.array([rows[id] for id in file.ids]),
    )


def _columns(path):
    return [column.tolist() for column in read_table(path).columns]


def _german(number):
    return f"{number:,.2f}".translate(str.maketrans(",.", ".,"))


def by_hand(facts):
    """What a careful person writes with pandas, who knows what each column means."""
    price, brand, category, organic, on_sale, rating, reviews, age, weight = facts

    def standard(values):
        values = np.where(np.isnan(values), np.nanmean(values), values)
        return (values - values.mean()) / values.std()

    kinds, brand = np.unique(brand, return_inverse=True)
    missing = np.isnan(rating)
    numbers = [standard(one) for one in (np.log(price), rating, np.log1p(reviews), age, np.log(weight))]
    return np.column_stack(
        [*numbers, missing, organic, on_sale, np.eye(len(kinds))[brand], np.eye(CATEGORIES)[category]]
    )


def encoded(table, variant):
    """The encoder's features, or those of a variant of it."""
    scale_of = decisions._scale_of
    try:
        if variant == "no log":
            decisions._scale_of = lambda values: ""
        encoder = Encoder.fitted(table)
    finally:
        decisions._scale_of = scale_of
    features, _ = encoder.encode(encoder.values_of(table, len(next(iter(table.values())))))
    of_kind = {
        kind: [place for column, block in zip(encoder.columns, encoder.blocks, strict=True)
               for place in block if isinstance(column, kind)]
        for kind in (NumberColumn, CategoryColumn, FlagColumn)
    }  # fmt: skip
    numbers, ones = of_kind[NumberColumn], of_kind[FlagColumn] + of_kind[CategoryColumn]
    if variant == "numbers at half":
        features[:, numbers] /= 2
    if variant.endswith("times"):
        features[:, numbers] *= float(variant.split()[2])
    if variant == "0/1 standardised":
        features[:, ones] -= features[:, ones].mean(axis=0)
        features[:, ones] /= np.maximum(features[:, ones].std(axis=0), 1e-9)
    if variant == "0/1 centred":
        features[:, ones] -= features[:, ones].mean(axis=0)
    return features


VARIANTS = (
    "by hand",
    "encoder",
    "no log",
    "numbers at half",
    "numbers at 2 times",
    "0/1 standardised",
    "0/1 centred",
)


def played(task):
    """The regret of each policy with each kind of features, in one run."""
    variants, policies, truth, steps, seed, run = task
    files = truth[0] if isinstance(truth[0], tuple) else None
    attraction, table, facts = own_shop(*files) if files else made_up_shop(seed, run, *truth)
    world = BernoulliWorld(attraction)
    regret = np.empty((len(variants), len(policies)))
    for i, variant in enumerate(variants):
        prepared = facts if files else by_hand(facts)
        features = prepared if variant == "by hand" else encoded(table, variant)
        for j, name in enumerate(policies):
            policy = make_policy(name)
            scale = scale_for(policy, features, K)
            stage = Stage(world, features if scale is None else scale.apply(features), range(len(attraction)))
            optimal, best = world.optimal_slates(K), world.optimal_reward(K)
            cell = Task(0, policy, stage, optimal, best, run, np.array([steps]), seed)
            regret[i, j] = cell.play(lambda done: None)[1].expected_regret[-1]
    return regret


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=20_000)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--only", action="append", help="a variant, beside `by hand`; again for more")
    parser.add_argument("--policy", action="append", help="a policy; again for more")
    parser.add_argument("--numbers", type=float, default=1.0, help="how much numbers matter, times the usual")
    parser.add_argument("--categories", type=float, default=1.0, help="how much brand and category matter")
    parser.add_argument("--files", nargs=3, metavar=("CATALOG", "TRUTH", "PREPARED"), help="a shop of yours")
    parser.add_argument("--encoding", default="", help="of CATALOG")
    given = parser.parse_args()
    variants = ("by hand", *given.only) if given.only else VARIANTS
    policies = tuple(given.policy or POLICIES)
    truth = (given.numbers, given.categories)
    if given.files:
        truth = ((*given.files, given.encoding),)
    tasks = [(variants, policies, truth, given.steps, given.seed, run) for run in range(given.runs)]
    with Pool(given.jobs) as pool:
        regret = np.array(pool.map(played, tasks, chunksize=1))
    print(f"{given.steps:,} steps, {given.runs} runs, seed {given.seed}\n")
    draw = stream(given.seed, "interval")
    for j, policy in enumerate(policies):
        for i, variant in enumerate(variants):
            mine, other = regret[:, i, j], regret[:, 0, j]
            picks = draw.integers(len(mine), size=(4000, len(mine)))
            low, high = np.quantile(mine[picks].mean(axis=1) / other[picks].mean(axis=1), (0.05, 0.95))
            print(
                f"{policy:18}{variant:20}{mine.mean():>8,.0f}  "
                f"{mine.mean() / other.mean():.3f} [{low:.3f}, {high:.3f}]"
            )


if __name__ == "__main__":
    main()
