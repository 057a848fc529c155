"""Click models of a log as tables, and as one page."""

import numpy as np
from matplotlib.figure import Figure

from firstclick.click_models.fit_summary import FitSummary
from firstclick.click_models.quality import LEAST_CHANCE
from firstclick.click_models.verdict import Comparison, Verdict
from firstclick.report.click_model_tables import fit_block, item_block, model_block, rank_block
from firstclick.report.figures import dress, look
from firstclick.report.page import FigureBlock, Page, html_page
from firstclick.report.style import line_styles
from firstclick.rounding import percent, whole

METHOD = (
    "Log-likelihood: that of a slate's clicks, position after position, each given the clicks above it, in "
    f"nats; chances below {LEAST_CHANCE:g} count as {LEAST_CHANCE:g}.",
    "Perplexity at a rank: 2 to the minus mean log2 of the chance given to what happened there; 1 is "
    "perfect. “Perplexity” is given the items alone, “conditional” given also the clicks above; means over "
    "ranks.",
    "“Worse” and its standard error are from differences slate by slate.",
)


def click_model_page(
    name: str, compared: Comparison, said: Verdict, fit: FitSummary, *, command: str = ""
) -> str:
    """Which model fits a log, as one HTML page that loads nothing."""
    slates = whole(compared.slates)
    return html_page(
        Page(
            title=f"Click models of {name}",
            facts=(
                f"{slates} held-out slates",
                f"{whole(compared.clicked)} of them clicked",
                f"{percent(compared.second_clicks / max(compared.clicked, 1))} of these clicked twice",
            ),
            headline=said.sentences[0] if said.sentences else "",
            summary=said.sentences[1:],
            overview=model_block(compared, said),
            figures=(_perplexity_figure(compared),),
            tables=tuple(filter(None, (rank_block(compared), fit_block(fit), item_block(fit)))),
            method=METHOD,
            command=command,
        )
    )


def _perplexity_figure(compared: Comparison) -> FigureBlock:
    styles = line_styles(dict.fromkeys(compared.qualities))
    with look():
        figure = Figure(figsize=(6.4, 3.2), layout="constrained")
        axes = figure.subplots()
        for model, quality in compared.qualities.items():
            ranks = np.arange(1, len(quality.conditional_perplexity) + 1)
            axes.plot(
                ranks, quality.conditional_perplexity, color=styles[model].color, marker="o", markersize=3,
                label=model,
            )  # fmt: skip
        axes.set_xlabel("rank")
        axes.set_ylabel("conditional perplexity")
        # The cascade pays 13.8 nats for every second click: without a limit nothing else could be seen.
        others = [one.conditional_perplexity for name, one in compared.qualities.items() if name != "cm"]
        if others:
            high = float(np.nanmax(others))
            axes.set_ylim(1.0, 1.0 + 1.3 * max(high - 1.0, 0.01))
        axes.legend(frameon=False, ncols=5, loc="upper right")
        dress(axes)
    ends = "; ".join(
        f"{model} {float(np.nanmean(quality.conditional_perplexity)):.4f}"
        for model, quality in compared.qualities.items()
    )
    return FigureBlock(
        "", "", figure, "Conditional perplexity by rank; a cascade may lie above the figure.",
        f"Conditional perplexity, mean over ranks: {ends}.",
    )  # fmt: skip
