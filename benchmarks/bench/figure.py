"""The picture of a benchmark: time against the number of items, and CascadeLinTS against everybody else."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, NullLocator

from benchmarks.bench.cells import SWEPT_ITEMS
from benchmarks.bench.peers.process import PEERS
from benchmarks.bench.results import FLOOR, PASS, PLAIN, POLICY, SCAN, TUNED, Bench, Measured
from benchmarks.bench.tables import MAIN_POLICY, slower_than_us, times
from firstclick.report.figures import GRID, INK, dress, look
from firstclick.report.labels import LINE, spread, text_width
from firstclick.report.style import DASHED, DOTTED, line_styles

# In points.
HEIGHT = 330.0  # of a picture with curves
LEFT, TOP, BOTTOM = 40.0, 30.0, 34.0
ACROSS = 270.0  # of the panel with the curves
DOTS = 190.0  # of the panel with the dots
MARGIN = 60.0  # right of the dots, for the number at the last
GAP = 24.0  # between the panels
LEADER = 12.0
SIZE, TITLE = 8.2, 10.0
ROW = 21.0

# A scan that takes hardly longer than the policy would be drawn on top of it.
WORTH_DRAWING = 1.3


@dataclass(frozen=True)
class Curve:
    """A line of the left panel: microseconds at numbers of items; its name, if it has one, is at its end."""

    name: str
    points: Mapping[int, float]
    color: str
    dash: tuple[float, ...]
    width: float
    marker: str = ""


def bench_figure(bench: Bench) -> Figure:
    """Microseconds per step against items on the left; on the right, ratios at 3,000 items or the most.

    One number of items makes no curve, and without CascadeLinTS there is nothing on the right: the picture
    then has one panel.
    """
    ratios = _ratios(bench)
    several = len({cell.n_items for cell in bench.main}) > 1
    with look():
        figure = Figure(figsize=(1, 1))
        figure.patch.set_facecolor("white")
        curves = _curves(bench) if several or not ratios else []
        title = f"Microseconds per step, {bench.n_features} features, {bench.k} places" + (
            " (dotted: by scans)" if any(curve.dash == DOTTED and not curve.name for curve in curves) else ""
        )
        start = 0.0
        if curves:
            named = max(text_width(curve.name, SIZE) for curve in curves)
            start = LEFT + max(ACROSS + LEADER + named, text_width(title, TITLE)) + GAP
        names = max((text_width(name, SIZE) for name in ratios), default=0.0) + LEADER
        height = HEIGHT if curves else TOP + ROW * len(ratios) + BOTTOM
        across = names + DOTS + MARGIN if ratios else 0.0
        if ratios:
            across = max(across, text_width(_ratios_title(bench), TITLE) + LEADER)
        figure.set_size_inches((start + across) / 72, height / 72)
        if curves:
            _draw_curves(figure, curves, title)
        if ratios:
            _draw_ratios(figure, ratios, _ratios_title(bench), start, names)
        return figure


def _curves(bench: Bench) -> list[Curve]:
    """Each policy, its scan where that differs, and what bounds CascadeLinTS."""
    by_policy: dict[str, list[Measured]] = {}
    for cell in sorted(bench.main, key=lambda cell: cell.n_items):
        by_policy.setdefault(cell.policy, []).append(cell)
    styles = line_styles(by_policy)
    curves = []
    for policy, cells in by_policy.items():
        style = styles[policy]
        curves.append(Curve(policy, _points(cells, POLICY), style.color, style.dash, 1.7, style.marker))
        if len(cells) > 1 and any((cell.ratio(SCAN) or 1.0) > WORTH_DRAWING for cell in cells):
            curves.append(Curve("", _points(cells, SCAN), style.color, DOTTED, 1.2))
    if reference := by_policy.get(MAIN_POLICY):
        curves.append(Curve("one pass over features", _points(reference, PASS), INK, DOTTED, 0.9))
        curves.append(Curve(f"floor of {MAIN_POLICY}", _points(reference, FLOOR), INK, DASHED, 0.9))
    return curves


def _points(cells: Sequence[Measured], name: str) -> dict[int, float]:
    return {cell.n_items: cell.timings[name].seconds * 1e6 for cell in cells}


def _draw_curves(figure: Figure, curves: Sequence[Curve], title: str) -> None:
    width, height = (float(size) * 72 for size in figure.get_size_inches())
    axes = figure.add_axes((LEFT / width, BOTTOM / height, ACROSS / width, 1 - (TOP + BOTTOM) / height))
    axes.set_facecolor("none")
    shown = [value for curve in curves for value in curve.points.values()]
    sizes = sorted({size for curve in curves for size in curve.points})
    axes.set_xscale("log")
    axes.set_yscale("log")
    # One size alone is a column of dots, beside their names.
    axes.set_xlim(min(sizes[0], sizes[-1] / 2), sizes[-1])
    axes.set_ylim(0.5 * min(shown), 2 * max(shown))
    for curve in curves:
        (line,) = axes.plot(
            list(curve.points.keys()), list(curve.points.values()), color=curve.color, linewidth=curve.width,
            linestyle=(0, curve.dash) if curve.dash else "-", zorder=3,
        )  # fmt: skip
        line.set_dash_capstyle("butt")
        if curve.marker:
            line.set(marker=curve.marker, markersize=3.6, clip_on=False)
    axes.set_title(title, loc="left", fontsize=TITLE, color=INK)
    dress(axes)
    axes.xaxis.set_major_locator(FixedLocator(sizes))
    axes.set_xlabel("Items", labelpad=2)
    axes.tick_params(labelsize=SIZE)
    _name_ends(axes, [curve for curve in curves if curve.name], height - TOP - BOTTOM)


def _name_ends(axes: Axes, curves: Sequence[Curve], up: float) -> None:
    """Names to the right of the panel, each at the height where its curve ends, pushed apart."""
    to_axes = axes.transScale + axes.transLimits
    ends = [to_axes.transform(list(curve.points.items())[-1]) for curve in curves]
    wanted = [up * float(end[1]) for end in ends]
    heights = spread(wanted, [LINE] * len(curves), up)
    for curve, start, end in zip(curves, wanted, heights, strict=True):
        axes.plot(
            [1 + 4 / ACROSS, 1 + (LEADER - 2) / ACROSS], [start / up, end / up], transform=axes.transAxes,
            color=curve.color, linewidth=0.8, clip_on=False,
        )  # fmt: skip
        axes.text(
            1 + LEADER / ACROSS, end / up, curve.name, transform=axes.transAxes, fontsize=SIZE,
            va="center_baseline", parse_math=False,
        )  # fmt: skip


def _draw_ratios(
    figure: Figure, ratios: Mapping[str, float | str], title: str, start: float, names: float
) -> None:
    """How many times as long as CascadeLinTS everybody takes on one catalog, as dots on a log scale."""
    width, height = (float(size) * 72 for size in figure.get_size_inches())
    tall = ROW * len(ratios)
    corner = (start + names) / width, 1 - (TOP + tall) / height
    axes = figure.add_axes((*corner, DOTS / width, tall / height))
    axes.set_facecolor("none")
    known = [value for value in ratios.values() if isinstance(value, float)]
    axes.set_xscale("log")
    axes.set_xlim(0.8 * min(known), max(1.1 * max(known), 10.0))
    axes.set_ylim(len(ratios) - 0.5, -0.5)
    dress(axes)
    axes.grid(axis="y", visible=False)
    axes.grid(axis="x", color=GRID, linewidth=0.8)
    axes.axvline(1.0, color=INK, linewidth=0.9, zorder=1)
    axes.yaxis.set_major_locator(NullLocator())
    axes.tick_params(labelsize=SIZE)
    axes.set_xlabel("Log scale; left of 1 is faster", labelpad=2, fontsize=SIZE)
    color = line_styles([MAIN_POLICY])[MAIN_POLICY].color
    for place, (name, value) in enumerate(ratios.items()):
        if isinstance(value, float):
            axes.plot([1.0, value], [place, place], color="#9aa3ad", linewidth=1.4, zorder=2)
            axes.plot(
                value, place, marker="o", markersize=6, color=INK if place else color, zorder=3, clip_on=False
            )
        at, said = (value, times(value)) if isinstance(value, float) else (1.0, value)
        axes.annotate(
            said, (at, place), (7, 0), textcoords="offset points", va="center_baseline", fontsize=SIZE,
            parse_math=False, annotation_clip=False,
        )  # fmt: skip
        axes.annotate(
            name, (0, place), (-5, 0), xycoords=("axes fraction", "data"), textcoords="offset points",
            ha="right", va="center_baseline", fontsize=SIZE, parse_math=False, annotation_clip=False,
        )  # fmt: skip
    axes.annotate(
        title, (0, 1), (5 - names, 6), xycoords="axes fraction", textcoords="offset points",
        fontsize=TITLE, color=INK, annotation_clip=False,
    )  # fmt: skip


def _compared(bench: Bench) -> Measured | None:
    """The cell of CascadeLinTS that others are compared with."""
    ours = [cell for cell in bench.main if cell.policy == MAIN_POLICY]
    return bench.cell(MAIN_POLICY, SWEPT_ITEMS) or max(ours, key=lambda cell: cell.n_items, default=None)


def _ratios_title(bench: Bench) -> str:
    cell = _compared(bench)
    return "" if cell is None else f"Times as long as {MAIN_POLICY}, {cell.n_items:,} items"


def _ratios(bench: Bench) -> Mapping[str, float | str]:
    """A ratio, or why there is none, for each contender, fast peers first; {} without CascadeLinTS."""
    cell = _compared(bench)
    if cell is None:
        return {}
    ratios: dict[str, float | str] = {MAIN_POLICY: 1.0}
    for name, said in ((SCAN, "dense scan, compiled"), (TUNED, "tuned NumPy"), (PLAIN, "plain NumPy")):
        if (ratio := cell.ratio(name)) is not None:
            ratios[said] = ratio
    peers = [peer for peer in bench.peers if peer.n_items == cell.n_items]
    for peer in sorted(peers, key=lambda peer: peer.seconds or float("inf")):
        # What a library said when it failed is on the page.
        failure = "failed" if "failed: " in peer.failure else peer.failure
        ratios[PEERS[peer.peer].title] = slower_than_us(bench, peer) or failure
    return ratios
