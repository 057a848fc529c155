"""Panels in rows and columns, as papers print them: curves against the step, or against a parameter."""

import math
from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from firstclick.errors import InvalidInput
from firstclick.report.figures import check_choice, look
from firstclick.report.labels import text_width
from firstclick.report.panel import (
    GAP,
    HEIGHT,
    LINE,
    MEASURES,
    SIZE,
    TITLE_SIZE,
    Curve,
    Panel,
    Plot,
    line_of,
    style_of,
    title_lines,
)
from firstclick.report.style import LineStyle, base_name, line_styles

Rows = Sequence[Sequence[Plot | None]]

# In points, like the lengths of a panel.
WIDTH = 7.0 * 72
ROW_SIZE, ROW_LINE = 8.6, 12.0
NUMBERS = 11.0  # the height of the numbers below a panel
BETWEEN = 11.0  # two rows
MARGIN = 3.0


def grid_figure(rows: Rows, *, row_titles: Sequence[str]) -> Figure:
    """A figure seven inches wide: one panel per plot, a title over each row, one legend for all.

    Curves run over steps on linear axes from zero, with a band of one standard error. None leaves a
    place empty.
    """
    return _figure(rows, row_titles, None)


def sweep_figure(rows: Rows, *, row_titles: Sequence[str], parameter: str) -> Figure:
    """Like `grid_figure`, with a parameter's values on a log axis across, and bars of one standard error.

    The vertical axis starts at zero, unless the values differ more than tenfold: then it is logarithmic.
    """
    return _figure(rows, row_titles, parameter)


def _figure(rows: Rows, row_titles: Sequence[str], parameter: str | None) -> Figure:
    plots = [plot for row in rows for plot in row if plot]
    if len(row_titles) != len(rows):
        raise InvalidInput(f"must be one per row ({len(rows)}), got {len(row_titles)}", "row_titles")
    if not plots or not all(plot.curves for plot in plots):
        raise InvalidInput("a figure needs at least one plot, and each plot at least one curve")
    for plot in plots:
        check_choice("measure", plot.measure, tuple(MEASURES))
    curves = [curve for plot in plots for curve in plot.curves]
    styles = line_styles(dict.fromkeys(curve.policy for curve in curves))
    with look():
        figure = Figure()
        figure.patch.set_facecolor("white")
        panels = [[Panel(figure, plot, styles, parameter) if plot else None for plot in row] for row in rows]
        entries = _legend_entries(curves, styles)
        widest = 40 + max(text_width(label, SIZE) for label in entries)
        lines = math.ceil(len(entries) / max(1, int(WIDTH // widest)))
        _write_legend(figure, entries, columns=math.ceil(len(entries) / lines))
        _place(figure, panels, row_titles, parameter or "Step", below=LINE * lines + 8)
    return figure


def _place(
    figure: Figure,
    panels: Sequence[Sequence[Panel | None]],
    row_titles: Sequence[str],
    axis_name: str,
    *,
    below: float,
) -> None:
    """Give every panel of the figure, and every row's title, its place `below` the legend."""
    every = [panel for row in panels for panel in row if panel]
    columns = max(len(row) for row in panels)
    cell, left = WIDTH / columns, max(panel.left for panel in every)
    across = max(cell - left - max(panel.right for panel in every), 0.3 * cell)
    row_lines = [title_lines(title, ROW_SIZE, WIDTH - 2 * MARGIN) for title in row_titles]
    heads = {panel: title_lines(panel.plot.title, TITLE_SIZE, cell - 8) for panel in every}

    # Heights first: the figure is as tall as its rows turn out to be.
    headings, tops, bottom = [], [], below
    for place, row in enumerate(panels):
        there = [panel for panel in row if panel]
        lines = max((len(heads[panel]) for panel in there), default=0)
        heading = GAP + LINE * (lines + max((panel.lines_above(across) for panel in there), default=0))
        headings.append(heading)
        tops.append(bottom + ROW_LINE * len(row_lines[place]) + heading + LINE)
        named = any(_is_lowest(panels, place, column) for column in range(len(row)))
        bottom = tops[-1] + HEIGHT + NUMBERS + (LINE if named else 0.0) + BETWEEN
    height = bottom - BETWEEN + MARGIN
    figure.set_size_inches(WIDTH / 72, height / 72)

    for place, (row, heading, top) in enumerate(zip(panels, headings, tops, strict=True)):
        figure.text(
            MARGIN / WIDTH, 1 - (top - heading - LINE - ROW_LINE * len(row_lines[place])) / height,
            "\n".join(row_lines[place]), fontsize=ROW_SIZE, fontweight="bold", va="top", linespacing=1.15,
            parse_math=False,
        )  # fmt: skip
        for column, panel in enumerate(row):
            if panel is None:
                continue
            corner = ((column * cell + left) / WIDTH, 1 - (top + HEIGHT) / height)
            title, size = heads[panel], (across / WIDTH, HEIGHT / height)
            panel.place((*corner, *size), across=across, left=left, title=title, up=heading)
            neighbour = row[column - 1] if column else None
            if neighbour is None or neighbour.plot.measure != panel.plot.measure:
                panel.say_measure(left=left, up=heading - LINE * len(title))
            if _is_lowest(panels, place, column):
                panel.axes.set_xlabel(axis_name, fontsize=SIZE, labelpad=1.5, parse_math=False)


def _is_lowest(panels: Sequence[Sequence[Panel | None]], place: int, column: int) -> bool:
    """Whether there is a panel in this place and none below it."""
    column_from_here = [row[column] for row in panels[place:] if column < len(row)]
    return column_from_here[0] is not None and not any(column_from_here[1:])


def _legend_entries(curves: Sequence[Curve], styles: Mapping[str, LineStyle]) -> dict[str, Line2D]:
    """A sample for each label; a learner in several settings, named at their ends, has one plain line."""
    entries: dict[str, Line2D] = {}
    for curve in curves:
        if curve.variant is None:
            entries.setdefault(curve.label, line_of(style_of(curve, styles)))
        else:
            name = base_name(curve.policy)
            entries.setdefault(name, Line2D([], [], color=line_styles([name])[name].color, linewidth=1.3))
    return entries


def _write_legend(figure: Figure, entries: Mapping[str, Line2D], *, columns: int) -> None:
    legend = figure.legend(
        list(entries.values()), list(entries), loc="upper left", bbox_to_anchor=(0, 1), ncols=columns,
        frameon=False, fontsize=SIZE, handlelength=3.2, columnspacing=1.6, borderaxespad=0.3, borderpad=0.1,
        labelspacing=0.25,
    )  # fmt: skip
    for text in legend.get_texts():
        text.set_parse_math(False)
