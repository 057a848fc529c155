"""Panels in rows and columns, as papers print them: curves against the step, or against a parameter."""

import math
from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from firstclick.errors import InvalidInput
from firstclick.report.figures import check_choice, look
from firstclick.report.labels import text_width
from firstclick.report.panel import ALONE, MEASURES, ONE_OF_MANY, Panel, Plot, Sizes, line_of
from firstclick.report.style import base_name, line_styles

Panels = Sequence[Sequence[Panel | None]]

# In points, like the sizes of a panel.
NUMBERS = 4.0  # between a panel and the numbers below it
BETWEEN = 11.0  # two rows
MARGIN = 3.0


def grid_figure(
    rows: Sequence[Sequence[Plot | None]], *, row_titles: Sequence[str], parameter: str | None = None
) -> Figure:
    """One panel per plot, a title over each row, one legend for all; seven inches wide.

    Curves run over steps with a band of one standard error. None leaves a place empty. A plot that is
    alone is a larger panel in a figure of five inches, with its curves named at their ends.

    With a `parameter` curves run over its values on a log axis, with bars of one standard error. The
    vertical axis starts at zero, unless the values differ more than tenfold: then it is logarithmic.
    """
    plots = [plot for row in rows for plot in row if plot]
    if len(row_titles) != len(rows):
        raise InvalidInput(f"must be one per row ({len(rows)}), got {len(row_titles)}", "row_titles")
    if not plots or not all(plot.curves for plot in plots):
        raise InvalidInput("a figure needs at least one plot, and each plot at least one curve")
    for plot in plots:
        check_choice("measure", plot.measure, tuple(MEASURES))
    styles = line_styles(dict.fromkeys(curve.policy for plot in plots for curve in plot.curves))
    sizes = ALONE if len(plots) == 1 else ONE_OF_MANY
    with look():
        figure = Figure()
        figure.patch.set_facecolor("white")
        panels = [
            [Panel(figure, plot, styles, sizes, parameter) if plot else None for plot in row] for row in rows
        ]
        legend = _write_legend(figure, _legend_entries(panels, sizes), sizes)
        _place(figure, panels, row_titles, parameter or "Step", sizes, below=legend)
    return figure


def _place(
    figure: Figure, panels: Panels, row_titles: Sequence[str], axis_name: str, sizes: Sizes, *, below: float
) -> None:
    """Give every panel of the figure, and every row's title, its place `below` the legend."""
    every = [panel for row in panels for panel in row if panel]
    cell = sizes.width / max(len(row) for row in panels)
    left = max(panel.left for panel in every)
    across = max(cell - left - max(panel.right for panel in every), 0.3 * cell)
    tall = max(sizes.height, *(panel.least_height for panel in every))
    row_size, row_line = 1.1 * sizes.title, 1.54 * sizes.title
    row_lines = [_lines(title, row_size, sizes.width - 2 * MARGIN) for title in row_titles]
    heads = {panel: _lines(panel.plot.title, sizes.title, cell - 8) for panel in every}

    # Heights first: the figure is as tall as its rows turn out to be.
    starts, headings, bottoms, down = [], [], [], below
    for place, row in enumerate(panels):
        there = [panel for panel in row if panel]
        lines = max((len(heads[panel]) for panel in there), default=0)
        starts.append(down)
        headings.append(
            sizes.gap + sizes.line * (lines + max((len(panel.clipped) for panel in there), default=0))
        )
        bottoms.append(down + row_line * len(row_lines[place]) + headings[-1] + sizes.line + tall)
        named = any(_is_lowest(panels, place, column) for column in range(len(row)))
        down = bottoms[-1] + NUMBERS + sizes.text + (sizes.line if named else 0.0) + BETWEEN
    height = down - BETWEEN + MARGIN
    figure.set_size_inches(sizes.width / 72, height / 72)

    for place, row in enumerate(panels):
        figure.text(
            MARGIN / sizes.width, 1 - starts[place] / height, "\n".join(row_lines[place]), fontsize=row_size,
            fontweight="bold", va="top", linespacing=1.15, parse_math=False,
        )  # fmt: skip
        for column, panel in enumerate(row):
            if panel is None:
                continue
            neighbour = row[column - 1] if column else None
            panel.place(
                (column * cell + left, height - bottoms[place]), (across, tall), (sizes.width, height),
                left=left, title=heads[panel], up=headings[place],
                measured=neighbour is None or neighbour.plot.measure != panel.plot.measure,
            )  # fmt: skip
            if _is_lowest(panels, place, column):
                panel.axes.set_xlabel(axis_name, fontsize=sizes.text, labelpad=1.5, parse_math=False)


def _lines(title: str, size: float, width: float) -> list[str]:
    """A bold title on as many lines as this width asks for; a word that is wider stays whole."""
    lines: list[str] = []
    for word in title.split():
        if lines and text_width(f"{lines[-1]} {word}", size, "bold") <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


def _is_lowest(panels: Panels, place: int, column: int) -> bool:
    """Whether there is a panel in this place and none below it."""
    column_from_here = [row[column] for row in panels[place:] if column < len(row)]
    return column_from_here[0] is not None and not any(column_from_here[1:])


def _legend_entries(panels: Panels, sizes: Sizes) -> dict[str, Line2D]:
    """A sample for each curve not named at its end, and a plain line for a policy in several settings."""
    entries: dict[str, Line2D] = {}
    for panel in (panel for row in panels for panel in row if panel):
        for curve in panel.plot.curves:
            if curve.variant is not None:
                name = base_name(curve.policy)
                color = line_styles([name])[name].color
                entries.setdefault(name, Line2D([], [], color=color, linewidth=sizes.stroke))
            elif curve not in panel.named:
                entries.setdefault(curve.label, line_of(panel.styles[curve], sizes))
    return entries


def _write_legend(figure: Figure, entries: Mapping[str, Line2D], sizes: Sizes) -> float:
    """Write the legend at the top of the figure; returns the height that it takes."""
    if not entries:
        return 0.0
    widest = 40 + max(text_width(label, sizes.text) for label in entries)
    lines = math.ceil(len(entries) / max(1, int(sizes.width // widest)))
    legend = figure.legend(
        list(entries.values()), list(entries), loc="upper left", bbox_to_anchor=(0, 1),
        ncols=math.ceil(len(entries) / lines), frameon=False, fontsize=sizes.text, handlelength=3.2,
        columnspacing=1.6, borderaxespad=0.3, borderpad=0.1, labelspacing=0.25,
    )  # fmt: skip
    for text in legend.get_texts():
        text.set_parse_math(False)
    return sizes.line * lines + 8
