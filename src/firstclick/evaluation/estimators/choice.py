"""Which estimator to believe: by how users behave, then by cross-validation.

**Behaviour.** RIPS and Cascade-DR are right in every click model that reads from the top. IIPS is right
under PBM alone, and may be chosen only if that is what fits the log. Slate IPS is shown for comparison: it is
right whenever RIPS is, and its weights are larger.

**Cross-validation** (Cief, Kveton and Kompan 2024): the log is cut in two at random, again and again. Each
candidate estimates on one half, RIPS (unbiased) on the other; the mean squared distance is the candidate's
loss. One part of it is the same at every cut: the squared distance on the whole log between the candidate
and RIPS. It is a single draw. For forms of RIPS and Cascade-DR it is noise, and for the others it is taken
as noise up to two standard errors: what noise gives on the average takes its place. Without this RIPS wins
just where its own error is large; in logs of a learning policy the chosen 95 % intervals then held in 92 %.
The smallest loss wins; of equal ones the first in the table. Where PBM fits and the probabilities of places
are known, only estimators by position are compared, unless all of them are too far from RIPS for noise. In a
log without probabilities of prefixes IIPS stands in the place of RIPS.
"""

from typing import NamedTuple

import numpy as np

from firstclick.evaluation.estimators.estimator import Estimator
from firstclick.evaluation.estimators.position_ips import IIPS
from firstclick.evaluation.estimators.prefix_ips import RIPS
from firstclick.evaluation.estimators.weighted_slates import Table

POSITION_BASED = ("pbm",)
FOLDS = 200
SPLITS = 200
# With fewer slates a fold there is nothing to compare.
SLATES_IN_FOLD = 10
DETECTED = 2.0


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


def behaviour(click_model: str | None, *, has_prefixes: bool = True) -> str:
    """A sentence on what the click model allows."""
    if not has_prefixes and click_model not in POSITION_BASED:
        return "The log has probabilities of places alone, so what stands above is taken not to matter: IIPS."
    if click_model is None:
        return (
            "No click model was fitted, so what stands above a click is taken to matter: RIPS and Cascade-DR."
        )
    if click_model in POSITION_BASED:
        return f"{click_model.upper()} fits the log, so what stands above a click does not matter."
    return f"{click_model.upper()} fits the log: what stands above a click matters, so RIPS and Cascade-DR."


def choose(
    candidates: list[Estimator], sums: Table, counts: Table, click_model: str | None, rng: np.random.Generator
) -> Choice:
    """The best of `candidates` (RIPS or IIPS among them), by the sums of their terms in each fold (folds x
    candidates) and the (weighted) number of slates in each fold."""
    names = [one.name for one in candidates]
    unbiased = RIPS if RIPS.name in names else IIPS
    reference, n_folds = names.index(unbiased.name), len(sums)
    losses = np.zeros(len(names))
    for _ in range(SPLITS):
        order = rng.permutation(n_folds)
        one, other = order[: n_folds // 2], order[n_folds // 2 :]
        truth = sums[other, reference].sum() / counts[other].sum()
        losses += (sums[one].sum(axis=0) / counts[one].sum() - truth) ** 2 / SPLITS
    apart = (sums - sums[:, [reference]]) / counts.sum()
    gaps = apart.sum(axis=0) ** 2
    noise = n_folds * apart.var(axis=0)
    other_family = np.array([one.family != unbiased.family for one in candidates])
    biased = other_family & (gaps > DETECTED**2 * noise)
    losses = np.where(biased, losses, losses - gaps + noise)
    by_position = np.array([one.family == IIPS.family for one in candidates]) & ~biased
    preferred = by_position if by_position.any() else np.ones(len(names), np.bool_)
    chosen = int(np.argmin(np.where(preferred, losses, np.inf)))
    told = dict(zip(names, losses.tolist(), strict=True))
    among = "" if preferred.all() else " of estimators by position"
    why = f"{candidates[chosen].title} has the smallest loss{among} in cross-validation."
    if biased.any():
        far = ", ".join(candidates[at].title for at in np.flatnonzero(biased))
        why += f" Too far from RIPS for noise: {far}."
    said = behaviour(click_model, has_prefixes=unbiased is RIPS)
    return Choice(names[chosen], (said, why), told)
