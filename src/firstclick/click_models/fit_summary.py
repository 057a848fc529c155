"""A fit in a few numbers: what the model says of positions, and of its most attractive items."""

from dataclasses import dataclass

import numpy as np

from firstclick.catalog.ids import ItemId
from firstclick.click_models.click_fit import SATISFIED_MODELS, ClickFit

# How many items a summary has, and how many looks each of them needs.
TOP, LEAST_LOOKS = 10, 20.0

# What the chances of a model are.
CHANCES = {
    "cm": "",
    "sdbn": "",
    "dcm": "going on after a click, by position",
    "pbm": "being examined, by position",
    "dbn": "going on to the next position",
}


@dataclass(frozen=True)
class FittedItem:
    """An item in a segment."""

    segment: str
    item: ItemId
    attraction: float
    satisfaction: float | None
    looks: float


@dataclass(frozen=True)
class FitSummary:
    """A fit in a few numbers."""

    model: str
    slates: float
    segments: int
    items: int
    shown: int  # items that some slate showed, in some segment
    k: int
    converged: bool
    chances_of: str
    chances: tuple[float, ...]
    attraction: float  # the mean of cells, weighted by looks
    satisfaction: float | None
    top: tuple[FittedItem, ...]  # most attractive first, of those with enough looks


def summarise(fit: ClickFit) -> FitSummary:
    """The fit in a few numbers, and its TOP items of those with at least LEAST_LOOKS looks."""
    attraction, looks = fit.attraction.ravel(), fit.looks.ravel()
    order = np.argsort(-np.where(looks >= LEAST_LOOKS, attraction, -1.0), kind="stable")[:TOP]
    satisfied = fit.model in SATISFIED_MODELS
    weight = looks if looks.sum() else np.ones(len(looks))
    items = [
        FittedItem(
            fit.segments[place // len(fit.items)],
            fit.items[place % len(fit.items)],
            float(attraction[place]),
            float(fit.satisfaction.ravel()[place]) if satisfied else None,
            float(looks[place]),
        )
        for place in order
        if looks[place] >= LEAST_LOOKS
    ]
    return FitSummary(
        model=fit.model,
        slates=fit.slates,
        segments=len(fit.segments),
        items=len(fit.items),
        shown=int((fit.looks > 0).any(axis=0).sum()),
        k=fit.k,
        converged=fit.converged,
        chances_of=CHANCES[fit.model],
        chances=tuple(fit.chances.tolist()),
        attraction=float(np.average(attraction, weights=weight)),
        # By clicks: those are what a user may leave after.
        satisfaction=float(np.average(fit.satisfaction.ravel(), weights=weight * attraction + 1e-12))
        if satisfied
        else None,
        top=tuple(items),
    )
