"""Click models of a log as tables of texts."""

import numpy as np

from firstclick.click_models.fit_summary import FitSummary
from firstclick.click_models.verdict import Comparison, Verdict
from firstclick.report.tables import TableBlock
from firstclick.rounding import MISSING, whole

# Ranks that a table shows; further ones are in the JSON.
RANKS_SHOWN = 12


def model_block(compared: Comparison, said: Verdict) -> TableBlock:
    """One row a model, best first."""
    order = sorted(compared.qualities.values(), key=lambda one: -one.log_likelihood)
    rows = []
    for one in order:
        page, first = said.pages.get(one.model), said.first_clicks.get(one.model)
        rows.append(
            (
                one.model,
                _number(one.log_likelihood),
                f"{page.worse:.4f} ± {page.error:.4f}" if page else MISSING,
                f"{first.worse:.4f} ± {first.error:.4f}" if first else MISSING,
                _number(float(np.nanmean(one.perplexity))),
                _number(float(np.nanmean(one.conditional_perplexity))),
            )
        )
    return TableBlock(
        "On held-out slates, in nats a slate. “Worse”: than the best model; “to first click”: counting "
        "clicks down to the first one only.",
        ("model", "log-likelihood", "worse", "to first click", "perplexity", "conditional"),
        tuple(rows),
        bold=frozenset({said.take} if len(rows) > 1 else ()),
        badge="take this",
    )


def rank_block(compared: Comparison) -> TableBlock:
    """Conditional perplexity by rank, one row a model."""
    shown = min(RANKS_SHOWN, max(len(one.perplexity) for one in compared.qualities.values()))
    return TableBlock(
        "Conditional perplexity by rank.",
        ("model", *(str(rank + 1) for rank in range(shown))),
        tuple(
            (name, *(_number(value, 3) for value in one.conditional_perplexity[:shown]))
            for name, one in compared.qualities.items()
        ),
    )


def fit_block(fit: FitSummary) -> TableBlock | None:
    """The chances by position, if the model has any."""
    if not fit.chances:
        return None
    chances = fit.chances[:RANKS_SHOWN]
    return TableBlock(
        f"{fit.model}: chances of {fit.chances_of}.",
        tuple(str(place + 1) for place in range(len(chances))) if len(chances) > 1 else ("gamma",),
        (tuple(_number(chance, 3) for chance in chances),),
        words=0,
    )


def item_block(fit: FitSummary) -> TableBlock | None:
    """The most attractive items, if any was seen often enough."""
    if not fit.top:
        return None
    by_segment = fit.segments > 1
    satisfied = fit.satisfaction is not None
    columns = ("item", *(["segment"] * by_segment), "attraction", *(["satisfaction"] * satisfied), "looks")
    rows = tuple(
        (
            str(one.item),
            *([one.segment] * by_segment),
            _number(one.attraction),
            *([_number(one.satisfaction or 0.0)] * satisfied),
            whole(round(one.looks)),
        )
        for one in fit.top
    )
    return TableBlock("Most attractive items, of those with 20 looks.", columns, rows, words=1 + by_segment)


def _number(value: float, digits: int = 4) -> str:
    return MISSING if value != value else f"{value:.{digits}f}".replace("-", "−")
