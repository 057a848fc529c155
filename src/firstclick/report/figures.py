"""Curves of regret and reward, the same bytes for the same results."""

import io
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator
from numpy.typing import NDArray

from firstclick.errors import InvalidInput
from firstclick.experiments.results import Results
from firstclick.files.reading import as_path
from firstclick.files.writing import write_whole
from firstclick.parameters import did_you_mean
from firstclick.report.labels import FONT_SIZE, LINE, broken, place_labels
from firstclick.report.style import line_styles
from firstclick.rounding import compact

TITLES = {
    "expected_regret": "Expected regret (clicks)",
    "regret": "Realised regret (clicks)",
    "reward": "Clicks per step, so far",
}
SCALES = ("linear", "log")
FORMATS = ("svg", "png", "pdf")

INK = "#4a5058"
GRID = "#dfe2e6"

WIDTH, HEIGHT = 5.0, 3.6  # inches
BOTTOM, TOP = 0.48, 0.36

# Between minus and plus this value a log axis that must show zero or less is linear.
LINEAR_WITHIN = {"expected_regret": 1.0, "regret": 1.0, "reward": 0.01}

# The first steps of a rate are a few coin tosses, and on a linear axis a stroke up and down the left edge.
UNSETTLED = 0.02


def regret_figure(results: Results, *, measure: str = "expected_regret", scale: str = "linear") -> Figure:
    """A figure of one measure against the step: the mean over runs, and a band of one standard error.

    `measure` is 'expected_regret', 'regret' or 'reward' (drawn as clicks per step, with the optimum).
    `scale` 'log' is logarithmic on both axes; where a curve is zero or negative the vertical one is
    linear near zero. Every curve has its name at its end. One run has no band.
    """
    check_choice("measure", measure, tuple(TITLES))
    check_choice("scale", scale, SCALES)
    with look():
        return _draw(results, measure, scale)


def caption(results: Results, *, measure: str = "expected_regret", scale: str = "linear") -> str:
    """What a reader must know of `regret_figure` with the same arguments."""
    if measure == "reward":
        sentences = ["Clicks so far divided by steps so far; the dashed line is the best fixed slate."]
        if scale == "linear":
            sentences.append(f"The first {UNSETTLED:.0%} of the steps are left out.")
    elif scale == "log":
        sentences = [
            "Both axes logarithmic, which gives early steps room: a curve that bends down is learning."
        ]
    else:
        sentences = [
            "Clicks lost to the best fixed slate: a straight climb is no learning, a flat curve has learned."
        ]
    if scale == "log" and _reaches_zero(results, measure):
        near = f"{LINEAR_WITHIN[measure]:g}"
        sentences.append(
            f"The vertical axis is linear between −{near} and {near}, to show zero and negative values."
        )
    if results.runs > 1:
        sentences.append(f"Lines are means of {results.runs} runs, bands one standard error either side.")
    else:
        sentences.append("One run, so no bands.")
    return " ".join(sentences)


def save_figure(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Write the figure as .svg, .png or .pdf; an older file is replaced whole."""
    target = as_path(path)
    kind = target.suffix.lower().removeprefix(".")
    if kind not in FORMATS:
        raise InvalidInput(f"{target}: a figure's name must end in .svg, .png or .pdf")
    write_whole(target, figure_bytes(figure, kind))


def figure_bytes(figure: Figure, kind: str) -> bytes:
    """The figure as a file's content; it depends on nothing but the figure and matplotlib's version."""
    undated = {
        "svg": {"Date": None, "Creator": None, "Format": None, "Type": None},
        "pdf": {"CreationDate": None},
        "png": {"Software": None},
    }
    content = io.BytesIO()
    with look():
        figure.savefig(content, format=kind, dpi=200, metadata=undated[kind])
    return content.getvalue()


@contextmanager
def look() -> Iterator[None]:
    """Draw with our settings and otherwise matplotlib's defaults, whatever the user's matplotlibrc says."""
    settings: dict[Any, Any] = {
        name: value for name, value in matplotlib.rcParamsDefault.items() if name.partition(".")[0] in DRAWING
    }
    settings |= {
        "svg.fonttype": "none",
        "svg.hashsalt": "firstclick",
        "pdf.fonttype": 42,
        "font.size": FONT_SIZE,
        "text.color": INK,
        "xtick.color": INK,
        "ytick.color": INK,
        "axes.labelcolor": INK,
    }
    with matplotlib.rc_context(settings):
        yield


# The groups of settings that change what a figure looks like, as against backends and windows.
DRAWING = (
    "axes", "errorbar", "figure", "font", "grid", "hatch", "image", "legend", "lines", "markers", "mathtext",
    "patch", "path", "pdf", "savefig", "scatter", "svg", "text", "xaxis", "xtick", "yaxis", "ytick",
)  # fmt: skip


def _draw(results: Results, measure: str, scale: str) -> Figure:
    drawn = np.full(len(results.step), True)
    if measure == "reward" and scale == "linear":
        drawn = results.step >= UNSETTLED * results.step[-1]
    step = results.step[drawn]
    curves = []
    for result in results.results:
        mean, stderr = _curve(results, result.policy, measure)
        curves.append((result.policy, mean[drawn], stderr[drawn]))
    styles = line_styles(result.policy for result in results.results)
    lines = 1 + sum(broken(policy).count("\n") + 1 for policy, _, _ in curves)
    figure = Figure(figsize=(WIDTH, max(HEIGHT, lines * LINE / 72 + BOTTOM + TOP)))
    figure.patch.set_facecolor("white")
    axes = figure.add_subplot()
    axes.set_facecolor("none")

    _set_limits(axes, results, measure, scale, curves)
    floor = axes.get_ylim()[0]
    for policy, mean, stderr in curves:
        style = styles[policy]
        if results.runs > 1:
            lower = np.maximum(mean - stderr, floor) if axes.get_yscale() == "log" else mean - stderr
            axes.fill_between(
                step, lower, mean + stderr, color=style.color, alpha=0.16, linewidth=0, zorder=2
            )
        (line,) = axes.plot(step, mean, color=style.color, linewidth=1.7, zorder=3, label=policy)
        line.set_dash_capstyle("butt")
        if style.dash:
            line.set_linestyle((0, style.dash))
        line.set_marker(style.marker)
        line.set_markersize(4)
        line.set_markevery([len(step) - 1])
        line.set_clip_on(False)

    ends = [(policy, float(mean[-1]), styles[policy].color) for policy, mean, _ in curves]
    if measure == "reward":
        axes.axhline(results.optimal_reward, color=INK, linewidth=1.1, linestyle=(0, (4, 3)), zorder=1)
        ends.append(("best fixed slate", results.optimal_reward, INK))
    _dress(axes, measure)
    place_labels(figure, axes, ends, bottom=BOTTOM, top=TOP)
    return figure


def _curve(results: Results, policy: str, measure: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    result = results[policy]
    per = results.step if measure == "reward" else 1
    return result.mean(measure) / per, result.stderr(measure) / per


def _reaches_zero(results: Results, measure: str) -> bool:
    return any(np.min(_curve(results, result.policy, measure)[0]) <= 0 for result in results.results)


def _set_limits(
    axes: Axes,
    results: Results,
    measure: str,
    scale: str,
    curves: list[tuple[str, NDArray[np.float64], NDArray[np.float64]]],
) -> None:
    """Scales and limits that hold every mean and band; they are needed before anything is drawn."""
    first, last = int(results.step[0]), int(results.step[-1])
    means = np.array([mean for _, mean, _ in curves])
    errors = np.nan_to_num(np.array([stderr for _, _, stderr in curves]))
    if scale == "linear":
        axes.set_xlim(0, last)
        low, high = float(np.min(means - errors)), float(np.max(means + errors))
        if measure == "reward":
            high = max(high, results.optimal_reward)
        if measure != "reward" or low < 0.4 * high:  # rates that are all high need no zero below them
            low = min(low, 0.0)
        room = 0.05 * ((high - low) or 1.0)
        axes.set_ylim(low - room if low else 0.0, high + room)
        return

    axes.set_xscale("log")
    axes.set_xlim(first, max(last, 2 * first))
    high = float(np.max(means + errors))
    if measure == "reward":
        high = max(high, results.optimal_reward)
    if _reaches_zero(results, measure):
        near = LINEAR_WITHIN[measure]
        axes.set_yscale("symlog", linthresh=near, linscale=0.6)
        low = float(np.min(means - errors))
        axes.set_ylim(min(1.4 * low, -0.25 * near), max(1.4 * high, near))
    else:
        axes.set_yscale("log")
        axes.set_ylim(0.8 * float(np.min(means)), 1.25 * high)


def _dress(axes: Axes, measure: str) -> None:
    axes.set_title(TITLES[measure], loc="left", fontsize=10, color=INK, pad=7)
    axes.set_xlabel("Step", labelpad=3)
    dress(axes, near=LINEAR_WITHIN[measure])
    axes.tick_params(axis="y", pad=5)


def dress(axes: Axes, *, ticks: tuple[int, int] = (5, 5), near: float = 1.0) -> None:
    """Give axes with their scales and limits set our ground line, grid and readable numbers.

    `ticks` is about how many a linear axis has across and up; `near` is where a log axis turns linear.
    """
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(INK)
    axes.grid(axis="y", color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    low, high = axes.get_ylim()
    if low < 0:
        axes.axhline(0, color=INK, linewidth=0.8, zorder=1)
    for axis, limits, most in ((axes.xaxis, axes.get_xlim(), ticks[0]), (axes.yaxis, (low, high), ticks[1])):
        if axis.get_scale() == "linear":
            axis.set_major_locator(MaxNLocator(most, steps=[1, 2, 2.5, 5, 10]))
        else:
            axis.set_major_locator(FixedLocator(_log_ticks(*limits, near=near)))
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(FuncFormatter(lambda value, _: compact(value)))
    axes.tick_params(axis="y", length=0)
    axes.tick_params(axis="x", length=3)


def _log_ticks(low: float, high: float, *, near: float) -> list[float]:
    """Powers of ten within the limits, and 2 and 5 times them when they are few; both signs and zero."""
    if low > 0:
        ticks = _powers(low, high, (1,))
        return ticks if len(ticks) > 2 else _powers(low, high, (1, 2, 5))
    return sorted(
        [-value for value in _powers(near, max(-low, near), (1,)) if value <= -low]
        + [0.0]
        + [value for value in _powers(near, max(high, near), (1,)) if value <= high]
    )


def _powers(low: float, high: float, factors: tuple[int, ...]) -> list[float]:
    """The powers of ten between two positive numbers, times each factor; every second one of many."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    every = 1 if last - first < 9 else 2
    values = [factor * 10.0**power for power in range(first, last + 1, every) for factor in factors]
    return [value for value in values if low * (1 - 1e-9) <= value <= high * (1 + 1e-9)]


def check_choice(name: str, value: str, known: tuple[str, ...]) -> None:
    """Pass if the value is one of those known; InvalidInput names them otherwise."""
    if value not in known:
        hint = did_you_mean(str(value), known)
        raise InvalidInput(f"must be one of {', '.join(known)}, got {value!r}{hint}", name)
