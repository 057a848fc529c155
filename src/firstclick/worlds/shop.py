"""A world like a shop's catalog: categories, brands, prices, and clicks that are rare."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from firstclick.errors import InvalidInput
from firstclick.parameters import param
from firstclick.streams import stream
from firstclick.worlds.base import WorldSpec
from firstclick.worlds.bernoulli import BernoulliWorld

Numbers = NDArray[np.float64]

# The attractions of every shop: of the median item, of the sixth best, of the best, and their mean.
MEDIAN, SIXTH, BEST, MEAN = 0.003, 0.05, 0.1, 0.006

# How far the map from score to attraction may bend. At 1 it would be flat somewhere.
MOST_BENT = 0.8


class Column(NamedTuple):
    """A number that a shop knows of each item: as its database has it, and as a model would like it."""

    effect: float  # of one standard deviation, on the score
    drawn: Callable[[np.random.Generator, int], Numbers]
    scaled: Callable[[Numbers], Numbers] = np.asarray


# The first three are always there. The last four have no effect: a policy has to find that out.
COLUMNS = {
    "price in cents": Column(
        -0.5, lambda draw, n: np.ceil(draw.lognormal(8.0, 0.9, n)), scaled=np.log
    ),
    "rating in stars": Column(0.5, lambda draw, n: (1 + 4 * draw.beta(6.0, 2.0, n)).round(2)),
    "year": Column(0.3, lambda draw, n: 2005 + np.floor(21 * draw.beta(3.0, 1.2, n))),
    "discount": Column(0.4, lambda draw, n: draw.beta(1.0, 4.0, n).round(3)),
    "weight in grams": Column(
        0.0, lambda draw, n: np.ceil(draw.lognormal(6.0, 1.2, n)), scaled=np.log
    ),
    "letters in the title": Column(0.0, lambda draw, n: draw.normal(60.0, 15.0, n).round()),
    "pictures": Column(0.0, lambda draw, n: 1 + draw.poisson(5.0, n).astype(float)),
    "items in stock": Column(0.0, lambda draw, n: np.ceil(draw.lognormal(3.0, 1.0, n)), scaled=np.log),
}  # fmt: skip


class Shop(WorldSpec):
    """A shop's catalog: features as its database has them, and clicks that are rare.

    The features are a category and a brand as 0/1 columns, and up to eight numbers: with 50 features 20
    categories, 22 brands and 8 numbers. Categories and brands are of unequal size: the r-th has a share of
    the items in proportion to 1/r. Price, rating, year and discount have an effect, the other four numbers
    have none.

    An item's score is the sum of the effects of its features and of a part of its own. The own part has the
    share `own` of the score's variance. The logarithm of attraction grows with the score, nearly in a line:
    with own = 0.4 features explain 60 % of its variance, and 41 % of the variance of attraction itself.

    In every shop of 1,000 to 2,000 items the median attraction is 0.3 %, the mean 0.6 %, and the best six
    items attract with 5 to 10 %. Shown together, these get a click on 30 to 43 % of the pages, 35 % on
    average. In a smaller catalog the mean is higher, because the best six are more of it; in a larger one it
    may be slightly lower.

    With `units=scaled` numbers have mean 0 and variance 1, some after taking logarithms. With `units=raw`
    they are as a database has them, beside the 0/1 columns: price in cents, weight in grams, the year.
    The items and their attractions are the same.
    """

    name = "shop"
    n_items: int = param(1_500, "number of items, not below that of features", at_least=20, at_most=10**9)
    n_features: int = param(50, "number of features", at_least=5, at_most=10**6)
    own: float = param(0.4, "share of the score's variance that is an item's own", at_least=0, at_most=1)
    units: str = param("scaled", "units of prices and other numbers", words=("scaled", "raw"))

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.n_items < self.n_features:
            raise InvalidInput(
                f"{self.name}: n_items must be at least n_features, "
                f"got n_items={self.n_items}, n_features={self.n_features}"
            )

    def build(self, seed: int) -> BernoulliWorld:
        draw = stream(seed, "world", self.name)
        n_numbers = min(len(COLUMNS), max(3, self.n_features // 3))
        table = np.empty((self.n_items, self.n_features))
        n_words = self.n_features - n_numbers
        score = _fill_words(table[:, :n_words], draw)
        for place, column in enumerate(list(COLUMNS.values())[:n_numbers], start=n_words):
            raw = column.drawn(draw, self.n_items)
            scaled = _standardised(column.scaled(raw))
            score += column.effect * draw.uniform(0.5, 1.5) * scaled
            table[:, place] = raw if self.units == "raw" else scaled
        own = _standardised(draw.standard_normal(self.n_items))
        score = np.sqrt(1 - self.own) * _standardised(score) + np.sqrt(self.own) * own
        return BernoulliWorld(_attractions(score), self.clicks, features=table)


def _fill_words(table: Numbers, draw: np.random.Generator) -> Numbers:
    """Write 0/1 columns of a category and a brand into the table; returns their effects on items' scores."""
    n_items, n_columns = table.shape
    # A brand more than there are categories, or no brand at all where there is no room for two of each.
    categories = (n_columns - 1) // 2 if n_columns >= 5 else n_columns
    brands = n_columns - categories
    # No column is constant and no two are equal: every level has an item, and two items of each category
    # are of different brands.
    sure = draw.permutation(n_items)[: max(2 * categories, brands)]
    table[:] = 0.0
    effects = np.zeros(n_items)
    for first, levels, size in ((0, categories, 0.6), (categories, brands, 0.5)):
        if levels:
            shares = 1 / np.arange(1.0, levels + 1)
            level = draw.choice(levels, n_items, p=shares / shares.sum())
            level[sure] = np.arange(len(sure)) % levels
            table[np.arange(n_items), first + level] = 1.0
            effects += size * draw.standard_normal(levels)[level]
    return effects


def _attractions(score: Numbers) -> Numbers:
    """Attractions that grow with the score.

    The logarithm of attraction is linear in the score between the best and the sixth, and a parabola from the
    sixth to the median, which goes on as a line below it. The parabola is bent so that the mean is right.
    """
    best = np.sort(score)[:-7:-1]
    # 0 is the median item and 1 the sixth best.
    height = (score - np.median(score)) / (best[-1] - np.median(score))
    inside = np.clip(height, 0.0, 1.0)
    beyond = np.maximum(score - best[-1], 0.0) / (best[0] - best[-1])

    def bent(bend: float) -> Numbers:
        rise = inside + bend * inside * (1 - inside) + (1 + bend) * np.minimum(height, 0.0)
        return np.asarray(MEDIAN * np.exp(np.log(SIXTH / MEDIAN) * rise + np.log(BEST / SIXTH) * beyond))

    low, high = -MOST_BENT, MOST_BENT
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (middle, high) if bent(middle).mean() < MEAN else (low, middle)
    return bent(low)


def _standardised(numbers: Numbers) -> Numbers:
    """The numbers with mean 0 and variance 1."""
    return np.asarray((numbers - numbers.mean()) / numbers.std())
