"""Names at the ends of curves: how wide they are, where they break, and how they keep apart."""

from collections.abc import Sequence
from statistics import fmean

from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextToPath

FONT_SIZE = 9.5  # points
LINE = 1.28 * FONT_SIZE
MOST = 18  # characters in a line of a name, if it can be broken


def spread(wanted: Sequence[float], sizes: Sequence[float], highest: float) -> list[float]:
    """Centres between 0 and `highest`, as near as can be to those wanted, in their order, none overlapping.

    Neighbours that collide form a block around the mean of what they want (pool adjacent violators).
    More than fits hangs out at the bottom.
    """
    if not wanted:
        return []
    order = sorted(range(len(wanted)), key=lambda place: wanted[place])
    packed, total = [], 0.0
    for place in order:
        packed.append(total + sizes[place] / 2)
        total += sizes[place]
    blocks: list[list[float]] = []
    for place, at in zip(order, packed, strict=True):
        block = [wanted[place] - at]
        while blocks and fmean(blocks[-1]) > fmean(block):
            block = blocks.pop() + block
        blocks.append(block)
    least, most = -sizes[order[0]] / 2, highest - total + sizes[order[-1]] / 2
    moved = [min(max(fmean(block), least), most) for block in blocks for _ in block]
    centres = dict(zip(order, (at + by for at, by in zip(packed, moved, strict=True)), strict=True))
    return [centres[place] for place in range(len(wanted))]


def broken(name: str) -> str:
    """The name on several lines if it is long, broken before parameters."""
    lines = [""]
    for part in name.replace(":", "\0:").replace(",", ",\0").split("\0"):
        if lines[-1] and len(lines[-1]) + len(part) > MOST:
            lines.append("")
        lines[-1] += part
    return "\n".join(line.strip() for line in lines)


def text_width(text: str, size: float, weight: str = "normal") -> float:
    """How wide the text is, in points: that of its widest line."""
    font = FontProperties(size=size, weight=weight)
    return max(
        float(TextToPath().get_text_width_height_descent(line, font, ismath=False)[0])
        for line in text.split("\n")
    )
