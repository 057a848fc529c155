"""What all figures share: our look, axes with readable numbers, and files: same data, same bytes."""

import io
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, MaxNLocator, NullLocator

from firstclick.errors import InvalidInput
from firstclick.files.reading import as_path
from firstclick.files.writing import write_whole
from firstclick.parameters import did_you_mean
from firstclick.report.labels import FONT_SIZE
from firstclick.report.rounding import compact

FORMATS = ("svg", "png", "pdf")

INK = "#4a5058"
GRID = "#dfe2e6"


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
