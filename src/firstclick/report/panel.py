"""One panel of a figure: its curves, and the words around them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator
from numpy.typing import NDArray

from firstclick.report.figures import INK, dress
from firstclick.report.labels import FONT_SIZE, LINE, broken, spread, text_width
from firstclick.report.style import LineStyle, setting_style
from firstclick.rounding import compact

MEASURES = {
    "expected_regret": "Expected regret (clicks)",
    "regret": "Realised regret (clicks)",
    "reward": "Reward (clicks)",
    "rate": "Clicks per step, so far",
}

HUGE, NEAR, HEADROOM = 6.0, 3.0, 1.5


@dataclass(frozen=True)
class Sizes:
    """Lengths in points, and about how many numbers a linear axis has across and up."""

    width: float  # of the figure
    height: float  # of a panel, at least
    text: float
    title: float
    line: float
    stroke: float
    marker: float
    gap: float  # above a panel
    leader: float  # from the end of a curve to its name
    ticks: tuple[int, int]


# A panel alone, and one of many in a figure as wide as a page. Nothing is smaller than print needs.
ALONE = Sizes(360, 198, FONT_SIZE, FONT_SIZE, LINE, 1.7, 4.0, 9, 15, (5, 5))
ONE_OF_MANY = Sizes(504, 92, 7.2, 7.8, 10, 1.3, 3.4, 5, 8, (2, 4))


@dataclass(frozen=True, eq=False)
class Curve:
    """A mean and its standard error, one each for every `x`: a step, or in a sweep a parameter's value.

    `policy` gives the colour. Curves with a `variant` are one policy in several settings: the number
    gives a shade, a dash and a marker. They are named at their ends, and so are all curves of a panel
    that is alone; the others are named in the legend. A standard error that is NaN, as that of one run,
    is not drawn.
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
    """What a panel shows. Its axis ends at `ceiling`, and says how high the curves beyond it go.

    `log` makes both axes logarithmic; where a mean is zero or less the vertical one is linear near zero.
    `level` is the value of the best fixed slate, a dashed line.
    """

    title: str
    curves: tuple[Curve, ...]
    measure: str = "expected_regret"
    ceiling: float | None = None
    log: bool = False
    level: float | None = None

    @property
    def linear_within(self) -> float | None:
        """Between minus and plus this value a log axis is linear; None if all means are above zero."""
        if not self.log or min(float(np.min(curve.mean)) for curve in self.curves) > 0:
            return None
        return 0.01 if self.measure == "rate" else 1.0


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


def line_of(style: LineStyle, sizes: Sizes, x: Any = (), y: Any = ()) -> Line2D:
    """A line in the style; without points it is a sample for a legend."""
    return Line2D(
        x, y, color=style.color, linewidth=sizes.stroke, linestyle=(0, style.dash) if style.dash else "-",
        dash_capstyle="butt", marker=style.marker, markersize=sizes.marker, zorder=3,
    )  # fmt: skip


class Panel:
    """A plot drawn into a figure: made first, so that its words can be measured, then put in its place.

    `across` and `height` are its size in points, set by `place`. In a sweep there is a `parameter`.
    """

    def __init__(
        self, figure: Figure, plot: Plot, styles: Mapping[str, LineStyle], sizes: Sizes, parameter: str | None
    ) -> None:
        self.plot, self.sizes, self.swept = plot, sizes, parameter is not None
        self.across = self.height = 0.0
        self.styles = {
            curve: styles[curve.policy]
            if curve.variant is None
            else setting_style(curve.policy, curve.variant)
            for curve in plot.curves
        }
        self.axes = figure.add_axes((0, 0, 1, 1), label=str(len(figure.axes)))
        self.axes.set_facecolor("none")
        self._set_limits()
        dress(self.axes, ticks=sizes.ticks)
        self.axes.tick_params(labelsize=sizes.text, pad=2.5)
        self.axes.tick_params(axis="y", pad=4)
        top = self.axes.get_ylim()[1]
        by_height = sorted(plot.curves, key=lambda curve: -curve.top)
        self.clipped = [curve for curve in by_height if curve.top > top]
        inside = [curve for curve in plot.curves if curve.top <= top]
        self.named = [curve for curve in inside if curve.variant is not None or sizes is ALONE]
        for curve in plot.curves:
            self._draw(curve)
        # The name, colour and last point of what is named to the right.
        self.ends = [
            (broken(curve.label), self.styles[curve].color, (curve.x[-1], curve.mean[-1]))
            for curve in self.named
        ]
        if plot.level is not None:
            self.axes.axhline(plot.level, color=INK, linewidth=1.1, linestyle=(0, (4, 3)), zorder=1)
            self.ends.append(("best fixed slate", INK, (self.axes.get_xlim()[1], plot.level)))

    @property
    def left(self) -> float:
        """What the numbers beside the vertical axis take."""
        low, high = self.axes.get_ylim()
        ticks = self.axes.yaxis.get_major_locator().tick_values(low, high)
        numbers = [compact(tick) for tick in ticks if low <= tick <= high]
        return 7 + max((text_width(number, self.sizes.text) for number in numbers), default=0.0)

    @property
    def right(self) -> float:
        """What the names at the ends of curves take, or half of the last number below the panel."""
        widths = [text_width(name, self.sizes.text) for name, _, _ in self.ends]
        return self.sizes.leader + 4 + max(widths) if widths else 13.0

    @property
    def least_height(self) -> float:
        """What the names at the ends of curves take one above the other."""
        return self.sizes.line * sum(name.count("\n") + 1 for name, _, _ in self.ends)

    def place(
        self, corner: tuple[float, float], size: tuple[float, float], figure: tuple[float, float], *,
        left: float, title: Sequence[str], up: float, measured: bool,
    ) -> None:  # fmt: skip
        """Put the panel's lower left corner here in a figure of this size, and write its words.

        The first line of the title, as broken, is written `up` points above the panel, and if `measured`
        what the vertical axis measures below it.
        """
        (x, y), (width, height) = corner, figure
        self.across, self.height = size
        self.axes.set_position((x / width, y / height, self.across / width, self.height / height))
        for line in title:
            self._write(line, (3 - left, up), size=self.sizes.title, weight="bold")
            up -= self.sizes.line
        if measured:
            self._write(MEASURES[self.plot.measure], (3 - left, up), size=self.sizes.text)
        if self.swept:
            self._number_values()
        self._write_clipped()
        self._write_names()

    def _set_limits(self) -> None:
        axes, plot = self.axes, self.plot
        low = min(float(np.min(curve.mean - np.nan_to_num(curve.stderr))) for curve in plot.curves)
        high = max(float(np.max(curve.mean + np.nan_to_num(curve.stderr))) for curve in plot.curves)
        high = high if plot.level is None else max(high, plot.level)
        first = min(float(np.min(curve.x)) for curve in plot.curves)
        last = max(float(np.max(curve.x)) for curve in plot.curves)
        if self.swept:
            axes.set_xscale("log")
            axes.set_xlim(first / 1.4, last * 1.4)
        elif plot.log:
            axes.set_xscale("log")
            axes.set_xlim(first, max(last, 2 * first))
        else:
            axes.set_xlim(0, last)
        if near := plot.linear_within:
            axes.set_yscale("symlog", linthresh=near, linscale=0.6)
            axes.set_ylim(min(1.4 * low, -0.25 * near), max(1.4 * high, near))
        elif plot.log or (self.swept and 0 < 10 * low < high):
            lowest = low if self.swept else min(float(np.min(curve.mean)) for curve in plot.curves)
            axes.set_yscale("log")
            axes.set_ylim(lowest / 1.25, plot.ceiling or 1.25 * high)
        elif plot.measure == "rate" and low >= 0.4 * high > 0:  # rates that are all high need no zero below
            room = 0.05 * (high - low) or 0.05 * high
            axes.set_ylim(low - room, high + room)
        else:
            axes.set_ylim(1.05 * min(low, 0.0), plot.ceiling or max(1.05 * high, 0.0) or 1.0)

    def _draw(self, curve: Curve) -> None:
        style = self.styles[curve]
        line = line_of(style, self.sizes, curve.x, curve.mean)
        line.set_label(curve.label)
        seen = np.isfinite(curve.stderr)
        if self.swept:
            self.axes.errorbar(
                curve.x[seen], curve.mean[seen], curve.stderr[seen], fmt="none", ecolor=style.color,
                elinewidth=0.9, capsize=2.6, capthick=0.9, zorder=2,
            )  # fmt: skip
        else:
            if seen.any():
                lower = np.maximum(curve.mean - curve.stderr, self.axes.get_ylim()[0])
                upper = curve.mean + curve.stderr
                self.axes.fill_between(
                    curve.x, lower, upper, color=style.color, alpha=0.17, linewidth=0, zorder=2
                )
            middle = int(np.argmin(np.abs(curve.x - curve.x[-1] / 2)))
            last = len(curve.x) - 1
            line.set_markevery([last] if curve in self.named else [middle, last])
        self.axes.add_line(line)
        # The last marker stands on the edge; a curve that leaves must not be drawn beyond it.
        line.set_clip_on(curve in self.clipped)

    def _number_values(self) -> None:
        """Number the values of a sweep themselves instead of powers of ten, if there is room for all."""
        values = sorted({float(x) for curve in self.plot.curves for x in curve.x})
        places = [self._across(value) for value in values]
        halves = [text_width(compact(value), self.sizes.text) / 2 + 2.5 for value in values]
        around = zip(pairwise(places), pairwise(halves), strict=True)
        if all(right - left >= sum(both) for (left, right), both in around):
            self.axes.xaxis.set_major_locator(FixedLocator(values))

    def _leaving(self, curve: Curve) -> float:
        """Where a clipped curve first meets the upper edge."""
        top = self.axes.get_ylim()[1]
        place = int(np.argmax(curve.mean > top))
        around = slice(max(place - 1, 0), place + 1)
        return float(np.interp(top, curve.mean[around], curve.x[around]))

    def _across(self, x: float) -> float:
        """A place on the horizontal axis, in points from the left edge."""
        low, _ = self.axes.get_ylim()
        return self.across * float((self.axes.transScale + self.axes.transLimits).transform((x, low))[0])

    def _clipped_text(self, curve: Curve) -> str:
        value = f"{compact(float(f'{curve.top:.3g}'))} ↑"
        text = f"{curve.label} {value}"
        return text if text_width(text, self.sizes.text) + 10 < self.across else value

    def _write_clipped(self) -> None:
        """Mark where each clipped curve leaves, and write above which one it is and how high it goes."""
        for place, curve in enumerate(self.clipped):
            leaving, text = self._leaving(curve), self._clipped_text(curve)
            furthest = self.across + 1 - text_width(text, self.sizes.text)
            start = max(0.0, min(self._across(leaving), furthest))
            up = self.sizes.gap + self.sizes.line * (len(self.clipped) - 1 - place)
            for x, y, transform in (
                (leaving, self.axes.get_ylim()[1], self.axes.transData),
                (start / self.across, 1 + (up + 2.6) / self.height, self.axes.transAxes),
            ):
                mark = line_of(self.styles[curve], self.sizes, [x], [y])
                mark.set(transform=transform, clip_on=False)
                self.axes.add_artist(mark)
            self._write(text, (start + 5, up), size=self.sizes.text)

    def _write_names(self) -> None:
        """Name what ends at the right edge, pushed apart, with thin leaders."""
        to_axes, leader = self.axes.transScale + self.axes.transLimits, self.sizes.leader / self.across
        ends = [to_axes.transform(end) for _, _, end in self.ends]
        lines = [self.sizes.line * (name.count("\n") + 1) for name, _, _ in self.ends]
        heights = spread([self.height * float(end[1]) for end in ends], lines, self.height)
        for (name, color, _), end, height in zip(self.ends, ends, heights, strict=True):
            self.axes.add_artist(
                Line2D(
                    [end[0] + 3.3 / self.across, 1 + 0.75 * leader, 1 + 0.9 * leader],
                    [end[1], height / self.height, height / self.height],
                    color=color, linewidth=0.8, transform=self.axes.transAxes, clip_on=False,
                )
            )  # fmt: skip
            beside = (self.across + self.sizes.leader, height - self.height)
            centre = "center" if "\n" in name else "center_baseline"
            self._write(name, beside, size=self.sizes.text, va=centre, linespacing=1.1)

    def _write(self, text: str, offset: tuple[float, float], **look: Any) -> None:
        """Text at some points from the panel's upper left corner; a dollar sign in it is only that."""
        self.axes.annotate(
            text, (0, 1), offset, xycoords="axes fraction", textcoords="offset points", color=INK,
            parse_math=False, **look,
        )  # fmt: skip
