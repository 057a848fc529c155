"""The picture of the guide: policies against worlds, the darker the more they lose."""

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from firstclick.report.figures import INK, look
from firstclick.report.labels import text_width
from firstclick.studies.guide.families import class_of
from firstclick.studies.guide.page import policies_by_family, share_in_words, summaries_shown
from firstclick.studies.guide.standings import Line, by_cell, worlds_in
from firstclick.studies.guide.summary import Summary, times

# In points.
ROW, COLUMN = 15.0, 40.0
BETWEEN = 14.0  # between families, where the name of the next one stands
ABOVE, BOTTOM, LEFT = 44.0, 34.0, 12.0
BESIDE = 10.0  # between the worlds and their summary
SIZE, TITLE = 8.2, 11.5

# From what loses nothing to what is no better than chance: light to dark, so that it prints in grey.
SCALE = ((0.0, "#f3f8ef"), (0.1, "#cfe6c3"), (0.3, "#9cc7c0"), (0.6, "#5b8fb0"), (1.0, "#3a4a78"))
color_of = LinearSegmentedColormap.from_list("share of random order's regret", SCALE)
NOT_PLAYED = "#f1f1f1"
DARK_FROM = 0.45  # from here on white letters
OWN = "#d55e00"

HEADING = "What each policy loses, in percent of what random order loses"
# Over the two columns of the summary.
MEAN, WORST = "× best reference", "worst world"
BOX = 20.0
# Colour, frame, words and weight of the letters.
LEGEND = (
    (SCALE[0][1], "", "0: the best slates at once", "normal"),
    (SCALE[-1][1], "", "100: no better than chance", "normal"),
    ("", OWN, "the world its paper has in mind", "normal"),
    ("", "", "bold: nobody is clearly better", "bold"),
)


def guide_figure(lines: Sequence[Line]) -> Figure:
    """A cell for every policy and world: its colour and number are the share of random order's regret.

    The world that the policy's paper has in mind has a frame; who leads a world is in bold. Beside them, if
    there are several worlds, stands the summary: the mean against the best reference, and the worst.
    """
    worlds, families, summary = worlds_in(lines), policies_by_family(lines), summaries_shown(lines)
    policies = [policy for group in families.values() for policy in group]
    titles = max(text_width(family, SIZE, "bold") for family in families)
    names = LEFT + max(max(text_width(policy, SIZE) for policy in policies), titles) + 8
    tall = ROW * len(policies) + BETWEEN * len(families)
    wide = COLUMN * len(worlds)
    subheading = f"Mean of {max(line.runs for line in lines)} runs of {lines[0].steps:,} steps"
    # Names of worlds lean to the right. There is room for what stands above and below, however few they are.
    headings = {name: COLUMN * (place + 0.5) for place, name in enumerate(worlds)}
    if summary:
        headings |= {MEAN: wide + BESIDE + COLUMN / 2, WORST: wide + BESIDE + 1.5 * COLUMN}
    leaning = 0.75 * max(text_width(name, SIZE) for name in headings)
    worst = max((text_width(_worst(one), SIZE) for one in summary.values()), default=0.0)
    above = ABOVE + leaning
    width = max(
        names + max(headings.values()) + leaning + COLUMN / 4,
        names + wide + (BESIDE + 1.25 * COLUMN + worst + LEFT) * bool(summary),
        2 * LEFT + text_width(HEADING, TITLE),
        2 * LEFT + _explained(),
    )
    height = above + tall + BOTTOM
    with look():
        figure = Figure(figsize=(width / 72, height / 72))
        figure.patch.set_facecolor("white")
        axes = figure.add_axes((names / width, BOTTOM / height, wide / width, tall / height))
        axes.set_xlim(0, wide)
        axes.set_ylim(tall, 0)
        axes.set_axis_off()
        cells, down = by_cell(lines), 0.0
        for family, members in families.items():
            down += BETWEEN
            if family:
                _write(axes, LEFT - names, down - 4, family, ha="left", weight="bold")
            for policy in members:
                _write(axes, -5, down + ROW / 2, policy, ha="right")
                for place, world in enumerate(worlds):
                    own = world in class_of(policy).made_for
                    _draw(axes, COLUMN * place, down, cells[policy, world], own)
                if policy in summary:
                    middle, right = down + ROW / 2, wide + BESIDE
                    _write(axes, right + COLUMN / 2, middle, times(summary[policy].mean), ha="center")
                    _write(axes, right + 1.25 * COLUMN, middle, _worst(summary[policy]), ha="left")
                down += ROW
        for name, across in headings.items():
            axes.text(
                across, BETWEEN - 4, name, rotation=45, ha="left", va="baseline", rotation_mode="anchor",
                fontsize=SIZE, color=INK, clip_on=False, parse_math=False,
            )  # fmt: skip
        _write(axes, LEFT - names, 14 - above, HEADING, ha="left", size=TITLE)
        _write(axes, LEFT - names, 30 - above, subheading, ha="left")
        _explain(axes, LEFT - names, tall + 16)
        return figure


def _worst(summary: Summary) -> str:
    return f"{times(summary.worst)} {summary.where}"


def _draw(axes: Axes, left: float, top: float, line: Line, own: bool) -> None:
    unknown = line.share_of_random != line.share_of_random
    color = NOT_PLAYED if unknown else color_of(line.share_of_random)
    _box(axes, (left + 0.6, top + 0.6), (COLUMN - 1.2, ROW - 1.2), facecolor=color)
    if own:
        _box(axes, (left + 1.3, top + 1.3), (COLUMN - 2.6, ROW - 2.6), edgecolor=OWN)
    dark = line.share_of_random > DARK_FROM
    _write(
        axes, left + COLUMN / 2, top + ROW / 2, share_in_words(line), ha="center",
        weight="bold" if line.leads else "normal", color="white" if dark else "black" if line.leads else INK,
    )  # fmt: skip


def _explain(axes: Axes, left: float, down: float) -> None:
    """Below: what colours, frames and bold letters mean."""
    for color, frame, said, weight in LEGEND:
        if color or frame:
            _box(axes, (left, down - 6), (BOX, 11), facecolor=color or "none", edgecolor=frame or "none")
            left += BOX + 5
        _write(axes, left, down, said, ha="left", weight=weight)
        left += text_width(said, SIZE, weight) + 14


def _explained() -> float:
    """How wide the legend is."""
    return sum(
        text_width(said, SIZE, weight) + 14 + (BOX + 5 if color or frame else 0)
        for color, frame, said, weight in LEGEND
    )


def _box(axes: Axes, corner: tuple[float, float], size: tuple[float, float], **colors: Any) -> None:
    look: dict[str, Any] = {
        "facecolor": "none",
        "edgecolor": "none",
        "linewidth": 1.5,
        "clip_on": False,
    } | colors
    axes.add_patch(Rectangle(corner, *size, **look))


def _write(
    axes: Axes, across: float, down: float, text: str, *, ha: str, size: float = SIZE, weight: str = "normal",
    color: str = INK,
) -> None:  # fmt: skip
    axes.text(
        across, down, text, ha=ha, va="center_baseline", fontsize=size, fontweight=weight, color=color,
        parse_math=False, clip_on=False,
    )  # fmt: skip
