"""Names at the ends of curves, pushed apart so that none covers another."""

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextToPath

FONT_SIZE = 9.5  # points
LINE = 1.28 * FONT_SIZE
LEADER = 15.0  # points between the end of the curves and the names
MOST = 18  # characters in a line of a name, if it can be broken


def place_labels(
    figure: Figure,
    axes: Axes,
    ends: Sequence[tuple[str, float, str]],
    *,
    bottom: float,
    top: float,
) -> None:
    """Write each name to the right of the axes, at the height where its curve ends, with a thin leader.

    `ends` are (name, last value, colour). The axes, with their limits and ticks set, take the room that
    the names and the numbers on the left leave, between margins in inches.
    """
    names = [broken(name) for name, _, _ in ends]
    wide = max(text_width(line, FONT_SIZE) for name in names for line in name.split("\n"))
    low, high = axes.get_ylim()
    ticks = axes.yaxis.get_major_locator().tick_values(low, high)
    numbers = axes.yaxis.get_major_formatter().format_ticks([tick for tick in ticks if low <= tick <= high])
    left = max((text_width(number, FONT_SIZE) for number in numbers), default=0.0) + 8
    width, height = (float(size) * 72 for size in figure.get_size_inches())
    across = max(width - left - LEADER - wide - 8, 0.35 * width)
    up = height - 72 * (bottom + top)
    axes.set_position((left / width, 72 * bottom / height, across / width, up / height))

    to_axes = axes.transScale + axes.transLimits
    right = axes.get_xlim()[1]
    wanted = [up * min(max(float(to_axes.transform((right, value))[1]), 0.0), 1.0) for _, value, _ in ends]
    sizes = [LINE * len(name.split("\n")) for name in names]
    for name, (_, _, color), start, end in zip(names, ends, wanted, spread(wanted, sizes, up), strict=True):
        axes.plot(
            [1 + 3.5 / across, 1 + (LEADER - 4) / across, 1 + (LEADER - 1.5) / across],
            [start / up, end / up, end / up],
            transform=axes.transAxes,
            color=color,
            linewidth=0.9,
            clip_on=False,
            label="_leader",
        )
        axes.text(
            1 + LEADER / across,
            end / up,
            name,
            transform=axes.transAxes,
            fontsize=FONT_SIZE,
            va="center_baseline" if "\n" not in name else "center",
            linespacing=1.1,
            parse_math=False,  # a name may hold a dollar sign
        )


def spread(wanted: Sequence[float], sizes: Sequence[float], highest: float) -> list[float]:
    """Centres between 0 and `highest`, as near as can be to those wanted, in their order, none overlapping.

    Neighbours that collide form a block around the mean of what they want (pool adjacent violators).
    More than fits hangs out at the bottom.
    """
    order = sorted(range(len(wanted)), key=lambda place: wanted[place])
    blocks: list[list[int]] = []
    middles: list[float] = []

    def bounded(block: list[int], middle: float) -> float:
        half = _half(block, sizes)
        lowest = half - sizes[block[0]] / 2
        return min(max(middle, lowest), highest - half + sizes[block[-1]] / 2)

    for place in order:
        block, middle = [place], bounded([place], wanted[place])
        while blocks and middles[-1] + _half(blocks[-1], sizes) > middle - _half(block, sizes) + 1e-9:
            block = blocks.pop() + block
            middles.pop()
            middle = bounded(block, _wanted_middle(block, wanted, sizes))
        blocks.append(block)
        middles.append(middle)

    centres = [0.0] * len(wanted)
    for block, middle in zip(blocks, middles, strict=True):
        bottom = middle - _half(block, sizes)
        for place in block:
            centres[place] = bottom + sizes[place] / 2
            bottom += sizes[place]
    return centres


def _half(block: Sequence[int], sizes: Sequence[float]) -> float:
    return sum(sizes[place] for place in block) / 2


def _wanted_middle(block: Sequence[int], wanted: Sequence[float], sizes: Sequence[float]) -> float:
    offset, total = -_half(block, sizes), 0.0
    for place in block:
        total += wanted[place] - (offset + sizes[place] / 2)
        offset += sizes[place]
    return total / len(block)


def broken(name: str) -> str:
    """The name on several lines if it is long, broken before parameters."""
    lines = [""]
    for part in name.replace(":", "\0:").replace(",", ",\0").split("\0"):
        if lines[-1] and len(lines[-1]) + len(part) > MOST:
            lines.append("")
        lines[-1] += part
    return "\n".join(lines)


def text_width(text: str, size: float, weight: str = "normal") -> float:
    """How wide the text is, in points."""
    font = FontProperties(size=size, weight=weight)
    width, _, _ = TextToPath().get_text_width_height_descent(text, font, ismath=False)
    return float(width)
