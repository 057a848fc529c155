"""Click models of a log as one page."""

import numpy as np
from matplotlib.figure import Figure

from firstclick.click_models.fit_summary import FitSummary
from firstclick.click_models.quality import LEAST_CHANCE
from firstclick.click_models.verdict import (
    CLOSE_NATS,
    LEAST_CLICKED,
    MOST_SECOND_CLICKS,
    SIMPLEST_FIRST,
    Comparison,
    Verdict,
)
from firstclick.report.click_model_tables import fit_block, item_block, model_block, rank_block
from firstclick.report.figures import dress, look
from firstclick.report.page import FigureBlock, Page, Section, html_page
from firstclick.report.style import line_styles
from firstclick.rounding import percent, whole

RULES = (
    f"A model is close to the best if it is at most two standard errors worse, or {CLOSE_NATS:g} nats a "
    "click: that much is lost if all click chances are 10 % off.",
    f"Take the simplest model that is close to the best, in the order {', '.join(SIMPLEST_FIRST)}.",
    "A cascade is good enough if cm is close down to the first click, and at most "
    f"{percent(MOST_SECOND_CLICKS)} of the clicked slates have a second click.",
    f"With fewer than {LEAST_CLICKED} clicked slates held out, nothing is said.",
)
MEANINGS = (
    "Models are fitted to four fifths of the slates and predict the clicks of the others.",
    "Log-likelihood: that of a slate's clicks, each given the clicks above it, in nats; chances below "
    f"{LEAST_CHANCE:g} count as {LEAST_CHANCE:g}. Differences and their standard errors are taken slate by "
    "slate.",
    "Perplexity at a rank: 2 to the minus mean log2 of the chance given to what happened there; 1 is "
    "perfect. Given the items alone; “conditional”: given also the clicks above. One number is the "
    "mean over ranks.",
)


def click_model_page(
    name: str, compared: Comparison, said: Verdict, fit: FitSummary, *, command: str = ""
) -> str:
    """Which model fits a log, as one HTML page that loads nothing."""
    return html_page(
        Page(
            title=f"Click models of {name}",
            facts=(
                f"{whole(compared.slates)} held-out slates",
                f"{whole(compared.clicked)} of them clicked",
                f"{percent(compared.second_clicks / max(compared.clicked, 1))} of these more than once",
            ),
            headline=said.sentences[0] if said.sentences else f"{fit.model}, fitted to {name}",
            summary=said.sentences[1:],
            overview=model_block(compared, said),
            figures=(_rank_figure(compared, said.best),) if said.best else (),
            figures_title="Where models differ",
            explains_regret=False,
            sections=(Section("The rules", points=RULES), Section("What the numbers mean", points=MEANINGS)),
            tables=tuple(filter(None, (rank_block(compared), fit_block(fit), item_block(fit)))),
            tables_title="The numbers",
            command=command,
        )
    )


def _rank_figure(compared: Comparison, best: str) -> FigureBlock:
    """How much larger the conditional perplexity of each model is than the best one's, rank by rank."""
    styles = line_styles(dict.fromkeys(compared.qualities))
    base = compared.qualities[best].conditional_perplexity
    above = {
        name: one.conditional_perplexity - base for name, one in compared.qualities.items() if name != best
    }
    with look():
        figure = Figure(figsize=(6.4, 3.2), layout="constrained")
        axes = figure.subplots()
        for name, difference in above.items():
            ranks = np.arange(1, len(difference) + 1)
            color = styles[name].color
            axes.plot(ranks, difference, color=color, marker="o", markersize=3, label=name)
        # A cascade pays 13.8 nats for every second click: beside it nothing else could be seen.
        shown = [values for name, values in above.items() if name != "cm"] or list(above.values())
        low, high = float(np.nanmin(shown)), float(np.nanmax(shown))
        room = max(high - low, 1e-4)
        axes.set_ylim(min(low, 0.0) - 0.1 * room, high + 0.3 * room)
        axes.set_xlabel("rank")
        axes.set_ylabel(f"perplexity above {best}")
        axes.legend(frameon=False, ncols=4, loc="upper right", fontsize="small")
        dress(axes)
    ends = "; ".join(f"{name} {float(np.nanmean(values)):.4f}" for name, values in above.items())
    return FigureBlock(
        "", "", figure,
        f"Conditional perplexity by rank, above that of {best}. cm may leave the figure.",
        f"Conditional perplexity above that of {best}, mean over ranks: {ends}.",
    )  # fmt: skip
