"""The picture of a benchmark: time against the number of items, and CascadeLinTS against everybody else."""

from collections.abc import Mapping, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, NullLocator

from firstclick.bench.cells import SWEPT_ITEMS
from firstclick.bench.peers.process import PEERS
from firstclick.bench.results import FLOOR, LEARNER, PASS, PLAIN, SCAN, TUNED, Bench, Measured
from firstclick.report.bench_page import MAIN_POLICY, slower_than_us, times
from firstclick.report.figures import GRID, INK, dress, look
from firstclick.report.labels import LINE, spread, text_width
from firstclick.report.style import DASHED, DOTTED, line_styles

# In points.
WIDTH, HEIGHT = 780.0, 330.0
LEFT, TOP, BOTTOM = 40.0, 30.0, 34.0
ACROSS = 270.0  # of the panel with the curves
BARS = 190.0  # of the panel with the bars
MARGIN = 60.0  # right of the bars, for the number at the longest
LEADER = 12.0
SIZE = 8.2
ROW = 21.0


def bench_figure(bench: Bench) -> Figure:
    """Microseconds per step against items on the left; on the right, bars at 3,000 items or the most."""
    with look():
        figure = Figure(figsize=(WIDTH / 72, HEIGHT / 72))
        figure.patch.set_facecolor("white")
        _draw_curves(figure, bench)
        _draw_bars(figure, bench)
        return figure


def _draw_curves(figure: Figure, bench: Bench) -> None:
    axes = figure.add_axes((LEFT / WIDTH, BOTTOM / HEIGHT, ACROSS / WIDTH, 1 - (TOP + BOTTOM) / HEIGHT))
    axes.set_facecolor("none")
    by_policy: dict[str, list[Measured]] = {}
    for cell in sorted(bench.main, key=lambda cell: cell.n_items):
        by_policy.setdefault(cell.policy, []).append(cell)
    styles = line_styles(by_policy)
    shown = [timing.seconds * 1e6 for cells in by_policy.values() for cell in cells
             for name, timing in cell.timings.items() if name in (LEARNER, SCAN)]  # fmt: skip
    sizes = sorted({cell.n_items for cell in bench.main})
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(sizes[0], max(sizes[-1], 2 * sizes[0]))
    axes.set_ylim(0.5 * min(shown), 2 * max(shown))
    ends: list[tuple[str, float, str]] = []
    for policy, cells in by_policy.items():
        style = styles[policy]
        curve = _curve(axes, cells, LEARNER, style.color, style.dash, 1.7)
        curve.set(marker=style.marker, markersize=3.6, clip_on=False)
        ends.append((policy, cells[-1].seconds * 1e6, style.color))
        if any((cell.ratio(SCAN) or 1.0) > 1.3 for cell in cells):
            _curve(axes, cells, SCAN, style.color, DOTTED, 1.2)
    if reference := by_policy.get(MAIN_POLICY):
        _curve(axes, reference, PASS, INK, DOTTED, 0.9)
        ends.append(("one pass over features", reference[-1].timings[PASS].seconds * 1e6, INK))
        _curve(axes, reference, FLOOR, INK, DASHED, 0.9)
        ends.append((f"floor of {MAIN_POLICY}", reference[-1].timings[FLOOR].seconds * 1e6, INK))
    axes.set_title(
        f"Microseconds per step, d = {bench.n_features}, K = {bench.k} (dotted: by scans)", loc="left",
        fontsize=10, color=INK,
    )  # fmt: skip
    dress(axes)
    axes.xaxis.set_major_locator(FixedLocator(sizes))
    axes.set_xlabel("Items", labelpad=2)
    axes.tick_params(labelsize=SIZE)
    _name_ends(axes, ends)


def _curve(
    axes: Axes, cells: Sequence[Measured], name: str, color: str, dash: tuple[float, ...], width: float
) -> Line2D:
    x = [cell.n_items for cell in cells]
    y = [cell.timings[name].seconds * 1e6 for cell in cells]
    (line,) = axes.plot(x, y, color=color, linewidth=width, linestyle=(0, dash) if dash else "-", zorder=3)
    line.set_dash_capstyle("butt")
    return line


def _name_ends(axes: Axes, ends: Sequence[tuple[str, float, str]]) -> None:
    """Names to the right of the panel, each at the height where its curve ends, pushed apart."""
    up = HEIGHT - TOP - BOTTOM
    to_axes = axes.transScale + axes.transLimits
    right = axes.get_xlim()[1]
    wanted = [up * min(max(float(to_axes.transform((right, end))[1]), 0.0), 1.0) for _, end, _ in ends]
    heights = spread(wanted, [LINE] * len(ends), up)
    for (name, _, color), start, end in zip(ends, wanted, heights, strict=True):
        axes.plot(
            [1 + 4 / ACROSS, 1 + (LEADER - 2) / ACROSS], [start / up, end / up], transform=axes.transAxes,
            color=color, linewidth=0.8, clip_on=False,
        )  # fmt: skip
        axes.text(
            1 + LEADER / ACROSS, end / up, name, transform=axes.transAxes, fontsize=SIZE,
            va="center_baseline", parse_math=False,
        )  # fmt: skip


def _draw_bars(figure: Figure, bench: Bench) -> None:
    """How many times as long as CascadeLinTS everybody takes on one catalog."""
    ours = [cell for cell in bench.main if cell.policy == MAIN_POLICY]
    if not ours:
        return
    cell = bench.cell(MAIN_POLICY, SWEPT_ITEMS) or max(ours, key=lambda cell: cell.n_items)
    bars = _bars(bench, cell)
    named = max(text_width(name, SIZE) for name in bars)
    tall = ROW * len(bars)
    corner = (WIDTH - BARS - MARGIN) / WIDTH, 1 - (TOP + tall) / HEIGHT
    axes = figure.add_axes((*corner, BARS / WIDTH, tall / HEIGHT))
    axes.set_facecolor("none")
    longest = max((value for value in bars.values() if isinstance(value, float)), default=1.0)
    axes.set_xscale("log")
    axes.set_xlim(0.8, max(longest, 10.0))
    axes.set_ylim(len(bars) - 0.5, -0.5)
    for place, (name, value) in enumerate(bars.items()):
        color = line_styles([MAIN_POLICY])[MAIN_POLICY].color if place == 0 else "#9aa3ad"
        if isinstance(value, float):
            axes.barh(place, value, height=0.62, color=color, zorder=2)
        at, said = (value, times(value)) if isinstance(value, float) else (0.8, value)
        axes.annotate(
            said, (max(at, 0.8), place), (4, 0), textcoords="offset points", va="center_baseline",
            fontsize=SIZE, parse_math=False, annotation_clip=False,
        )  # fmt: skip
        axes.annotate(
            name, (0, place), (-5, 0), xycoords=("axes fraction", "data"), textcoords="offset points",
            ha="right", va="center_baseline", fontsize=SIZE, parse_math=False, annotation_clip=False,
        )  # fmt: skip
    axes.xaxis.set_major_locator(NullLocator())
    axes.xaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_locator(NullLocator())
    for side in ("top", "right", "bottom"):
        axes.spines[side].set_visible(False)
    axes.spines["left"].set_color(GRID)
    axes.annotate(
        f"Times as long as {MAIN_POLICY}, {cell.n_items:,} items", (0, 1), (-named - 5, 6),
        xycoords="axes fraction", textcoords="offset points", fontsize=10, color=INK, annotation_clip=False,
    )  # fmt: skip


def _bars(bench: Bench, cell: Measured) -> Mapping[str, float | str]:
    """A ratio, or why there is none, for each contender, the fastest first."""
    bars: dict[str, float | str] = {MAIN_POLICY: 1.0}
    for name, said in ((SCAN, "dense scan, compiled"), (TUNED, "tuned NumPy"), (PLAIN, "plain NumPy")):
        if (ratio := cell.ratio(name)) is not None:
            bars[said] = ratio
    peers = [peer for peer in bench.peers if peer.n_items == cell.n_items]
    for peer in sorted(peers, key=lambda peer: peer.seconds or float("inf")):
        bars[PEERS[peer.peer].title] = slower_than_us(bench, peer) or peer.failure.partition(" (")[0]
    return bars
