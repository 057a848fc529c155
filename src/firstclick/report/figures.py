"""What all figures share: our look, axes with readable numbers, and files: same data, same bytes."""

import io
import math
import os
from contextlib import AbstractContextManager

import matplotlib.style
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from firstclick.errors import InvalidInput
from firstclick.files.reading import as_path
from firstclick.files.writing import write_whole
from firstclick.parameters import did_you_mean
from firstclick.report.labels import FONT_SIZE
from firstclick.rounding import compact

FORMATS = ("svg", "png", "pdf")

INK = "#4a5058"
GRID = "#dfe2e6"

SETTINGS = {
    "svg.fonttype": "none",
    "svg.hashsalt": "firstclick",
    "pdf.fonttype": 42,
    "font.size": FONT_SIZE,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.labelcolor": INK,
}


def save_figure(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Write a figure to a file. An older file is replaced as a whole.

    >>> from firstclick import make_world, simulate
    >>> results = simulate(["random"], make_world("blb:n_items=8,k=2"), k=2, steps=100, runs=2, seed=1)
    >>> from firstclick.report import regret_figure
    >>> save_figure(regret_figure(results), "regret.svg")

    Args:
        figure: A matplotlib figure.
        path: A name that ends in `.svg`, `.png` or `.pdf`.
    """
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


def look() -> AbstractContextManager[None]:
    """Draw with our settings and otherwise matplotlib's defaults, whatever the user's matplotlibrc says."""
    return matplotlib.style.context(["default", SETTINGS])


def dress(axes: Axes, *, ticks: tuple[int, int] = (5, 5)) -> None:
    """Give axes with their scales and limits set our ground line, grid and readable numbers.

    `ticks` is about how many a linear axis has across and up. A log axis has powers of ten, and 2 and 5 times
    them where they are few.
    """
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(INK)
    axes.grid(axis="y", color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    if axes.get_ylim()[0] < 0:
        axes.axhline(0, color=INK, linewidth=0.8, zorder=1)
    for axis, (low, high), most in zip(
        (axes.xaxis, axes.yaxis), (axes.get_xlim(), axes.get_ylim()), ticks, strict=True
    ):
        if axis.get_scale() == "linear":
            axis.set_major_locator(MaxNLocator(most, steps=[1, 2, 2.5, 5, 10]))
        elif axis.get_scale() == "log":
            powers = math.floor(math.log10(high)) - math.ceil(math.log10(low)) + 1
            axis.set_major_locator(LogLocator(subs=(1,) if powers > 2 else (1, 2, 5), numticks=9))
        axis.set_minor_locator(NullLocator())
        axis.set_major_formatter(FuncFormatter(lambda value, _: compact(value)))
    axes.tick_params(axis="y", length=0)
    axes.tick_params(axis="x", length=3)


def check_choice(name: str, value: str, known: tuple[str, ...]) -> None:
    """Pass if the value is one of those known; InvalidInput names them otherwise."""
    if value not in known:
        hint = did_you_mean(str(value), known)
        raise InvalidInput(f"must be one of {', '.join(known)}, got {value!r}{hint}", name)
