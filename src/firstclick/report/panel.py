"""One small panel of a larger figure: its curves, and the words around them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator
from numpy.typing import NDArray

from firstclick.report.figures import INK, TITLES, dress
from firstclick.report.labels import spread, text_width
from firstclick.report.style import LineStyle, setting_style
from firstclick.rounding import compact

MEASURES = TITLES | {"reward": "Reward (clicks)"}

# Lengths are in points. Nothing is smaller than print needs.
HEIGHT = 92.0
SIZE, TITLE_SIZE = 7.2, 7.8
LINE = 10.0
GAP = 5.0  # above a panel
LEADER = 8.0  # from the end of a curve to its name
MARKER = 3.4

HUGE, NEAR, HEADROOM = 6.0, 3.0, 1.5


@dataclass(frozen=True, eq=False)
class Curve:
    """A mean and its standard error, one each for every `x`: a step, or in a sweep a parameter's value.

    `policy` gives the colour. Curves with a `variant` are one learner in several settings: the number
    gives a shade, a dash and a marker, and the label is written at the end of the curve. The others are
    named in the legend. A standard error that is NaN, as that of one run, is not drawn.
    """

    label: str
    policy: str
    x: NDArray[np.number[Any]]
    mean: NDArray[np.float64]
    stderr: NDArray[np.float64]
    variant: int | None = None

    @property
    def top(self) -> float:
        """The highest mean."""
        return float(np.max(self.mean))


@dataclass(frozen=True, eq=False)
class Plot:
    """What a panel shows. Its axis ends at `ceiling`, and says how high the curves beyond it go."""

    title: str
    curves: tuple[Curve, ...]
    measure: str = "expected_regret"
    ceiling: float | None = None


def ceiling_for(curves: Iterable[Curve]) -> float | None:
    """Where to end a panel's axis so that huge curves do not flatten the others; None if none is huge.

    A curve is huge when it goes more than six times as high as half of the curves do. The axis then
    ends half as high again as the highest curve within three times those.
    """
    tops = sorted(curve.top for curve in curves)
    half = tops[(len(tops) - 1) // 2] if tops else 0.0
    if half <= 0 or tops[-1] <= HUGE * half:
        return None
    return HEADROOM * max(top for top in tops if top <= NEAR * half)


def style_of(curve: Curve, styles: Mapping[str, LineStyle]) -> LineStyle:
    """The policy's style, or that of the curve's setting."""
    return styles[curve.policy] if curve.variant is None else setting_style(curve.policy, curve.variant)


def line_of(style: LineStyle, x: Any = (), y: Any = ()) -> Line2D:
    """A line in the style; without points it is a sample for a legend."""
    return Line2D(
        x, y, color=style.color, linewidth=1.3, linestyle=(0, style.dash) if style.dash else "-",
        dash_capstyle="butt", marker=style.marker, markersize=MARKER, zorder=3,
    )  # fmt: skip


def title_lines(title: str, size: float, width: float) -> list[str]:
    """A bold title on as many lines as this width asks for; a word that is wider stays whole."""
    lines: list[str] = []
    for word in title.split():
        if lines and text_width(f"{lines[-1]} {word}", size, "bold") <= width:
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


class Panel:
    """A plot drawn into a figure: made first, so that its words can be measured, then put in its place."""

    def __init__(
        self, figure: Figure, plot: Plot, styles: Mapping[str, LineStyle], parameter: str | None
    ) -> None:
        self.plot = plot
        self.styles = {curve: style_of(curve, styles) for curve in plot.curves}
        self.axes = figure.add_axes((0, 0, 1, 1), label=str(len(figure.axes)))
        self.axes.set_facecolor("none")
        self.swept = parameter is not None
        self._set_limits(parameter)
        dress(self.axes, ticks=(2, 4))
        self.axes.tick_params(labelsize=SIZE, pad=2.5)
        top = self.axes.get_ylim()[1]
        self.clipped = sorted(
            (curve for curve in plot.curves if curve.top > top), key=lambda curve: -curve.top
        )
        self.named = [
            curve for curve in plot.curves if curve.variant is not None and curve not in self.clipped
        ]
        for curve in plot.curves:
            self._draw(curve, band=parameter is None)

    @property
    def left(self) -> float:
        """What the numbers beside the vertical axis take."""
        low, high = self.axes.get_ylim()
        ticks = self.axes.yaxis.get_major_locator().tick_values(low, high)
        numbers = self.axes.yaxis.get_major_formatter().format_ticks(
            [tick for tick in ticks if low <= tick <= high]
        )
        return 6 + max((text_width(number, SIZE) for number in numbers), default=0.0)

    @property
    def right(self) -> float:
        """What the names at the ends of curves take, or half of the last number below the panel."""
        widths = [text_width(curve.label, SIZE) for curve in self.named]
        return LEADER + 4 + max(widths) if widths else 13.0

    def lines_above(self, across: float) -> int:
        """How many lines the clipped curves need above a panel this wide: none if there is room inside."""
        return 0 if self._fits_inside(across) else len(self.clipped)

    def place(
        self,
        at: tuple[float, float, float, float],
        *,
        across: float,
        left: float,
        title: Sequence[str],
        up: float,
    ) -> None:
        """Put the panel into a rectangle of the figure, `across` points wide, and write its words.

        The first line of the title, as broken, is written `up` points above the panel.
        """
        self.axes.set_position(at)
        if self.swept:
            self._number_values(across)
        for place, line in enumerate(title):
            self._write(line, (3 - left, up - LINE * place), size=TITLE_SIZE, weight="bold")
        self._write_clipped(across)
        self._write_names(across)

    def say_measure(self, *, left: float, up: float) -> None:
        """Write what the vertical axis measures, `up` points above the panel."""
        self._write(MEASURES[self.plot.measure], (3 - left, up), size=SIZE)

    def _set_limits(self, parameter: str | None) -> None:
        curves = self.plot.curves
        low = min(float(np.min(curve.mean - np.nan_to_num(curve.stderr))) for curve in curves)
        high = max(float(np.max(curve.mean + np.nan_to_num(curve.stderr))) for curve in curves)
        first = min(float(np.min(curve.x)) for curve in curves)
        last = max(float(np.max(curve.x)) for curve in curves)
        if parameter is None:
            self.axes.set_xlim(0, last)
        else:
            self.axes.set_xscale("log")
            self.axes.set_xlim(first / 1.4, last * 1.4)
        if parameter is not None and 0 < 10 * low < high:
            self.axes.set_yscale("log")
            self.axes.set_ylim(low / 1.25, self.plot.ceiling or 1.25 * high)
        else:
            self.axes.set_ylim(1.05 * min(low, 0.0), self.plot.ceiling or max(1.05 * high, 0.0) or 1.0)

    def _draw(self, curve: Curve, *, band: bool) -> None:
        style = self.styles[curve]
        line = line_of(style, curve.x, curve.mean)
        seen = np.isfinite(curve.stderr)
        if not band:
            self.axes.errorbar(
                curve.x[seen], curve.mean[seen], curve.stderr[seen], fmt="none", ecolor=style.color,
                elinewidth=0.9, capsize=2.6, capthick=0.9, zorder=2,
            )  # fmt: skip
        else:
            if seen.any():
                lower, upper = curve.mean - curve.stderr, curve.mean + curve.stderr
                self.axes.fill_between(
                    curve.x, lower, upper, color=style.color, alpha=0.18, linewidth=0, zorder=2
                )
            middle = int(np.argmin(np.abs(curve.x - curve.x[-1] / 2)))
            line.set_markevery([middle, len(curve.x) - 1])
        self.axes.add_line(line)
        # The last marker stands on the edge; a curve that leaves must not be drawn beyond it.
        line.set_clip_on(curve in self.clipped)

    def _number_values(self, across: float) -> None:
        """Number the values of a sweep themselves instead of powers of ten, if there is room for all."""
        values = sorted({float(x) for curve in self.plot.curves for x in curve.x})
        places = [self._across(value, across) for value in values]
        halves = [text_width(compact(value), SIZE) / 2 + GAP / 2 for value in values]
        around = zip(pairwise(places), pairwise(halves), strict=True)
        if all(right - left >= sum(both) for (left, right), both in around):
            self.axes.xaxis.set_major_locator(FixedLocator(values))

    def _leaving(self, curve: Curve) -> float:
        """Where a clipped curve first meets the upper edge."""
        top = self.axes.get_ylim()[1]
        place = int(np.argmax(curve.mean > top))
        around = slice(max(place - 1, 0), place + 1)
        return float(np.interp(top, curve.mean[around], curve.x[around]))

    def _across(self, x: float, across: float) -> float:
        """A place on the horizontal axis, in points from the left edge of a panel this wide."""
        low, _ = self.axes.get_ylim()
        fraction = (self.axes.transScale + self.axes.transLimits).transform((x, low))[0]
        return across * float(fraction)

    def _clipped_text(self, curve: Curve, across: float) -> str:
        value = f"{compact(float(f'{curve.top:.3g}'))} ↑"
        text = f"{curve.label} {value}"
        return text if text_width(text, SIZE) + 10 < across else value

    def _fits_inside(self, across: float) -> bool:
        """Whether the clipped curves can be named right of where they leave and above the others."""
        top = self.axes.get_ylim()[1]
        highest = max((curve.top for curve in self.plot.curves if curve not in self.clipped), default=0.0)
        if LINE * len(self.clipped) > HEIGHT * (1 - highest / top):
            return False
        return all(
            self._beyond(across) + 5 + text_width(self._clipped_text(curve, across), SIZE) <= across + 6
            for curve in self.clipped
        )

    def _beyond(self, across: float) -> float:
        return 8 + max(self._across(self._leaving(curve), across) for curve in self.clipped)

    def _write_clipped(self, across: float) -> None:
        """Mark where each clipped curve leaves, and write which one it is and how high it goes."""
        inside = self._fits_inside(across)
        for place, curve in enumerate(self.clipped):
            style, leaving = self.styles[curve], self._leaving(curve)
            text = self._clipped_text(curve, across)
            if inside:
                start, up = self._beyond(across), -7.0 - LINE * place
            else:
                furthest = across + 6 - 5 - text_width(text, SIZE)
                start = max(0.0, min(self._across(leaving, across), furthest))
                up = GAP + LINE * (len(self.clipped) - 1 - place)
            top = self.axes.get_ylim()[1]
            for x, y, transform in (
                (leaving, top, self.axes.transData),
                (start / across, 1 + (up + 2.6) / HEIGHT, self.axes.transAxes),
            ):
                mark = line_of(style, [x], [y])
                mark.set(transform=transform, clip_on=False)
                self.axes.add_artist(mark)
            self._write(
                text, (start + 5, up), size=SIZE, bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.6}
            )

    def _write_names(self, across: float) -> None:
        """Name the settings of a learner at the ends of their curves, pushed apart, with thin leaders."""
        to_axes = self.axes.transScale + self.axes.transLimits
        ends = [to_axes.transform((curve.x[-1], curve.mean[-1])) for curve in self.named]
        wanted = [HEIGHT * float(end[1]) for end in ends]
        heights = spread(wanted, [LINE] * len(wanted), HEIGHT)
        for curve, end, height in zip(self.named, ends, heights, strict=True):
            leader = Line2D(
                [end[0] + 3 / across, 1 + (LEADER - 2) / across, 1 + (LEADER - 1) / across],
                [end[1], height / HEIGHT, height / HEIGHT],
                color=self.styles[curve].color, linewidth=0.8, transform=self.axes.transAxes, clip_on=False,
            )  # fmt: skip
            self.axes.add_artist(leader)
            beside = (across + LEADER, height - HEIGHT)
            self._write(curve.label, beside, size=SIZE, va="center_baseline")

    def _write(self, text: str, offset: tuple[float, float], **look: Any) -> None:
        """Text at some points from the panel's upper left corner; a dollar sign in it is only that."""
        self.axes.annotate(
            text, (0, 1), offset, xycoords="axes fraction", textcoords="offset points", color=INK,
            parse_math=False, **look,
        )  # fmt: skip
