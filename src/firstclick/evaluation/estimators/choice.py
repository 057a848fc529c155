"""Which estimator to believe: by how users behave, then by cross-validation.

**Behaviour.** RIPS and Cascade-DR are right in every click model that reads from the top. IIPS and INTERPOL
are right under PBM alone, and may be chosen only if that is what fits the log. Slate IPS is shown for
comparison: it is right whenever RIPS is, and its weights are larger.

**Cross-validation** (Cief, Kveton and Kompan 2024): the log is cut in two at random, again and again. Each
candidate estimates on one half, RIPS (unbiased) on the other; the mean squared distance is the candidate's
loss. RIPS's own noise is in all losses alike, and cancels in their differences. Of all within one standard
error of the smallest loss, the first of the table wins, unbiased before biased.
"""

from typing import NamedTuple

import numpy as np

from firstclick.evaluation.estimators.estimator import Estimator
from firstclick.evaluation.estimators.prefix_ips import RIPS
from firstclick.evaluation.estimators.weighted_slates import Table

POSITION_BASED = ("pbm",)
FOLDS = 20
SPLITS = 100


class Choice(NamedTuple):
    """The estimator, why, and the losses of all candidates."""

    name: str
    reasons: tuple[str, ...]
    losses: dict[str, float]


def may_be_chosen(estimator: Estimator, click_model: str | None) -> bool:
    """Whether the behaviour that fits the log lets the estimator be right."""
    if estimator.family == "cascade":
        return True
    return estimator.family == "position" and click_model in POSITION_BASED


def behaviour(click_model: str | None) -> str:
    """A sentence on what the click model allows."""
    if click_model is None:
        return (
            "No click model was fitted, so what stands above a click is taken to matter: RIPS and Cascade-DR."
        )
    if click_model in POSITION_BASED:
        return f"{click_model.upper()} fits the log, so estimators by position may be chosen as well."
    return f"{click_model.upper()} fits the log: what stands above a click matters, so RIPS and Cascade-DR."


def choose(
    candidates: list[Estimator], sums: Table, counts: Table, click_model: str | None, rng: np.random.Generator
) -> Choice:
    """The best of `candidates` (RIPS among them), by the sums of their terms in each fold (folds x
    candidates) and the (weighted) number of slates in each fold."""
    names = [one.name for one in candidates]
    reference = names.index(RIPS.name)
    losses = np.empty((SPLITS, len(names)))
    for split in range(SPLITS):
        order = rng.permutation(len(sums))
        one, other = order[: len(sums) // 2], order[len(sums) // 2 :]
        truth = sums[other, reference].sum() / counts[other].sum()
        losses[split] = (sums[one].sum(axis=0) / counts[one].sum() - truth) ** 2
    means = losses.mean(axis=0)
    best = int(np.argmin(means))
    # Splits overlap: each slate is in all of them. As many as there are folds are worth something.
    errors = (losses - losses[:, [best]]).std(axis=0) / np.sqrt(FOLDS)
    close = np.flatnonzero(means - means[best] <= errors)
    chosen = min(close, key=lambda at: (not candidates[at].unbiased, at))
    told = dict(zip(names, means.tolist(), strict=True))
    if chosen == best:
        why = f"{candidates[chosen].title} has the smallest loss in cross-validation."
    else:
        why = (
            f"{candidates[chosen].title} comes first in the table of those whose loss in cross-validation is "
            f"within one standard error of the smallest, that of {candidates[best].title}."
        )
    return Choice(names[chosen], (behaviour(click_model), why), told)
