"""The forest plot: how much each policy differs from what was shown, with its interval."""

import textwrap
from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator

from firstclick.evaluation.numbers import MINUS, level_in_words, value_and_interval
from firstclick.evaluation.result import CAUTION, Estimate, Evaluation, PlayedAnswer, PolicyAnswer
from firstclick.report.figures import GRID, INK, look
from firstclick.report.labels import FONT_SIZE, text_width
from firstclick.report.style import LOOKS

WIDTH = 8.6  # inches
ROW, FRAME = 0.46, 1.15
NAME_LETTERS, NAME_LINES = 30, 2
COLORS = {"ok": LOOKS["blue"].color, "caution": LOOKS["vermilion"].color, "played": LOOKS["green"].color}
MODEL_BASED_NAME = "model-based: "

Answer = PolicyAnswer | PlayedAnswer


def forest_plot(evaluation: Evaluation) -> Figure:
    """Draw one row per policy: a dot and its interval, in clicks per page.

    >>> from pathlib import Path
    >>> from firstclick.evaluation import Uniform, evaluate
    >>> from firstclick.logs.open_log import open_ranked_log
    >>> slates = "tea|milk,0,0.5\\nmilk|tea,,0.5\\n" * 200
    >>> _ = Path("log.csv").write_text("items,click,propensity\\n" + slates)
    >>> figure = forest_plot(evaluate(open_ranked_log("log.csv"), {"random": Uniform()}))
    >>> len(figure.axes)
    1

    A policy that the log cannot judge has a hatched row without a number. Model-based answers have open
    squares and dashed lines, below a line.

    Args:
        evaluation: From `evaluate`.
    """
    answers: list[Answer] = list(evaluation.answers)
    played = [] if evaluation.played is None else list(evaluation.played.answers)
    rows: list[Answer] = [*answers, *played]
    names = [_short(answer.policy) for answer in answers]
    names += [_short(MODEL_BASED_NAME + answer.policy) for answer in played]
    numbers = ["" if row.difference is None else _number(row.difference) for row in rows]
    with look():
        figure = Figure(figsize=(WIDTH, FRAME + ROW * max(len(rows), 1)))
        left = (max([text_width(name, FONT_SIZE) for name in names] or [0]) + 16) / (72 * WIDTH)
        right = (max([text_width(text, FONT_SIZE) for text in numbers] or [0]) + 22) / (72 * WIDTH)
        height = figure.get_size_inches()[1]
        axes = figure.add_axes(
            (left, 0.62 / height, 1 - left - max(right, 0.03), 1 - (FRAME - 0.18) / height)
        )
        _draw(axes, rows, len(answers))
        axes.set_yticks(range(len(rows)), names)
        for place, text in enumerate(numbers):
            axes.annotate(
                text, (1, place), xycoords=("axes fraction", "data"), xytext=(10, 0),
                textcoords="offset points", va="center", ha="left",
            )  # fmt: skip
        level = level_in_words(evaluation.level)
        axes.set_xlabel(f"clicks per page more or less than what was shown, {level} interval")
    return figure


def _draw(axes: Axes, rows: Sequence[Answer], n_estimated: int) -> None:
    low, high = _limits([row.difference for row in rows if row.difference is not None])
    axes.set_xlim(low, high)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.spines["bottom"].set_color(INK)
    axes.grid(axis="x", color=GRID, linewidth=0.8)
    axes.set_axisbelow(True)
    axes.axvline(0, color=INK, linewidth=1.0, zorder=1.5)
    axes.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: _tick(value)))
    axes.tick_params(axis="y", length=0)
    axes.tick_params(axis="x", length=3)
    if n_estimated and n_estimated < len(rows):
        axes.axhline(n_estimated - 0.5, color=INK, linewidth=0.8)
    for place, row in enumerate(rows):
        if row.difference is None:
            _hatch(axes, place)
        else:
            _interval(axes, place, row, row.difference)


def _interval(axes: Axes, place: int, row: Answer, difference: Estimate) -> None:
    played = isinstance(row, PlayedAnswer)
    careful = isinstance(row, PolicyAnswer) and row.verdict == CAUTION
    color = COLORS["played" if played else "caution" if careful else "ok"]
    axes.plot(
        [difference.low, difference.high], [place, place], color=color, linewidth=2,
        linestyle=(0, (3, 1.5)) if played else "-", solid_capstyle="butt", zorder=2,
    )  # fmt: skip
    # Open marks where a reader should look twice; a shape for each kind, for grey print.
    axes.plot(
        [difference.value], [place], linestyle="", marker="s" if played else "o", markersize=7,
        color=color, markerfacecolor="#ffffff" if played or careful else color, markeredgewidth=1.6, zorder=3,
    )  # fmt: skip
    if careful:
        axes.annotate(
            "caution", (difference.value, place), xytext=(0, -8), textcoords="offset points", ha="center",
            va="top", color=color, fontsize=FONT_SIZE - 1.5,
        )  # fmt: skip


def _hatch(axes: Axes, place: int) -> None:
    """Strokes across the row, and the words in place of a number."""
    low, high = axes.get_xlim()
    n, half = 60, 0.3
    step = (high - low) / n
    strokes = [[(low + i * step, place + half), (low + (i + 1) * step, place - half)] for i in range(n)]
    axes.add_collection(LineCollection(strokes, colors=[GRID], linewidths=1.2, zorder=1.2), autolim=False)
    axes.annotate(
        "cannot say", ((low + high) / 2, place), ha="center", va="center", zorder=4,
        bbox={"facecolor": "#ffffff", "edgecolor": "none", "pad": 2.5},
    )  # fmt: skip


def _limits(differences: Sequence[Estimate]) -> tuple[float, float]:
    """Room for all intervals and for no difference."""
    low = min([0.0, *(one.low for one in differences)])
    high = max([0.0, *(one.high for one in differences)])
    if low == high:
        return -0.01, 0.01
    room = 0.06 * (high - low)
    return low - room, high + room


def _short(name: str) -> str:
    """The name on at most two lines, cut if that is too little."""
    parts = textwrap.wrap(name.replace(",", ", "), NAME_LETTERS, break_on_hyphens=False) or [name]
    lines = [line.replace(", ", ",") for line in parts]
    if len(lines) > NAME_LINES:
        lines = [*lines[: NAME_LINES - 1], lines[NAME_LINES - 1][: NAME_LETTERS - 1] + "…"]
    return "\n".join(lines)


def _number(difference: Estimate) -> str:
    value, interval = value_and_interval(difference, signed=True)
    return f"{value}  ({interval})"


def _tick(value: float) -> str:
    return "0" if abs(value) < 1e-12 else f"{value:+.4g}".replace("-", MINUS)
