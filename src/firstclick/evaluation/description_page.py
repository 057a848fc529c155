"""A described log as one page: what can be asked of it, the counts, and clicks by position."""

import os
import re

from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter

from firstclick.files.writing import write_whole
from firstclick.logs.describe import LogDescription
from firstclick.logs.description_text import counted, facts, positions
from firstclick.report.figures import dress, look
from firstclick.report.page import FigureBlock, Page, Section, html_page
from firstclick.report.style import LOOKS
from firstclick.report.tables import TableBlock
from firstclick.rounding import percent

WIDTH, HEIGHT = 8.6, 3.0  # inches
# Bars have their number above them if they are few.
MOST_NUMBERS = 12
FEW_BARS = 8


def description_page(log: LogDescription, *, command: str = "") -> str:
    """The page as HTML: it loads nothing and runs no script. Same log, same text."""
    said = log.said()
    # Backquotes are for the terminal.
    can, cannot = (
        tuple(re.sub("`([^`]*)`", r"“\1”", sentence) for one, sentence in said if one == kind)
        for kind in ("can", "cannot")
    )
    sections = [
        Section("What can be evaluated", points=can),
        Section("What cannot, and why", points=cannot),
        Section("How it was read", points=log.notes),
        Section("Left out", (f"Rows{counted(log)}:",), tuple(map(str, log.skipped))),
        Section("Kept, but for a part", (f"Rows{counted(log)}:",), tuple(map(str, log.doubtful))),
    ]
    return html_page(
        Page(
            title="A ranked log",
            subtitle=log.log,
            facts=(
                f"{log.slates:,} slates",
                f"{log.items:,} items",
                f"up to {log.k} positions",
                f"{log.clicks:,} clicks",
            ),
            headline=_headline(log),
            overview=TableBlock(
                "Clicks are those of slates with a known outcome.",
                ("", ""),
                tuple(facts(log)),
            ),
            figures=(_figure(log),) if log.reported else (),
            figures_title="Click-through by position",
            explains_regret=False,
            sections=tuple(section for section in sections if section.points),
            tables=(
                TableBlock(
                    "Position 1 is at the top.",
                    ("position", "shown", "clicks", "click-through"),
                    tuple(positions(log)),
                ),
            ),
            tables_title="The numbers behind the figure",
            command=command,
        )
    )


def write_description(log: LogDescription, path: str | os.PathLike[str], *, command: str = "") -> None:
    """Write `description_page` to a file; an older file is replaced whole."""
    write_whole(path, description_page(log, command=command).encode())


def click_through_figure(log: LogDescription) -> Figure:
    """A bar a position: clicks per time shown."""
    places = [one.position for one in log.positions]
    shares = [one.click_through if one.shown else 0.0 for one in log.positions]
    with look():
        figure = Figure(figsize=(WIDTH, HEIGHT))
        axes = figure.add_axes((0.07, 0.17, 0.92, 0.77))
        axes.bar(places, shares, width=0.72, color=LOOKS["blue"].color)
        # Few positions stand in the middle: their bars are no wider than those of others.
        beside = max(0.0, (FEW_BARS - len(places)) / 2)
        axes.set_xlim(0.4 - beside, len(places) + 0.6 + beside)
        axes.set_ylim(0, max(max(shares) * 1.15, 1e-6))
        dress(axes, ticks=(min(len(places), 12), 4))
        if len(places) <= MOST_NUMBERS:
            axes.set_xticks(places)
            for place, share in zip(places, shares, strict=True):
                axes.annotate(
                    percent(share), (place, share), xytext=(0, 3), textcoords="offset points", ha="center"
                )
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{100 * value:.3g}%"))
        axes.set_xlabel("position, 1 at the top")
    return figure


def _figure(log: LogDescription) -> FigureBlock:
    label = "; ".join(f"position {one.position}: {percent(one.click_through)}" for one in log.positions[:20])
    caption = (
        "Clicks per time shown, of slates with a known outcome. Bars that fall are position bias, good items "
        "at the top, or both."
    )
    return FigureBlock("", "", click_through_figure(log), caption, label)


def _headline(log: LogDescription) -> str:
    if not log.reported:
        return log.said()[0][1]
    share = percent(log.clicked_slates / log.reported)
    differ = "one list was" if log.distinct_slates == 1 else f"{log.distinct_slates:,} different slates were"
    return f"{share} of pages with a known outcome have a click; {differ} shown."
