"""Names at the ends of curves: how wide they are, where they break, and how they keep apart."""

from collections.abc import Sequence

import numpy as np
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import TextToPath
from scipy.optimize import isotonic_regression

FONT_SIZE = 9.5  # points
LINE = 1.28 * FONT_SIZE
MOST = 18  # characters in a line of a name, if it can be broken


def spread(wanted: Sequence[float], sizes: Sequence[float], highest: float) -> list[float]:
    """Centres between 0 and `highest`, as near as can be to those wanted, in their order, none overlapping.

    Neighbours that collide form a block around the mean of what they want. More than fits hangs out at the
    bottom.
    """
    if not wanted:
        return []
    order = np.argsort(wanted, kind="stable")
    heights = np.array(sizes)[order]
    packed = np.cumsum(heights) - heights / 2
    moved = isotonic_regression(np.array(wanted)[order] - packed).x
    least, most = -heights[0] / 2, highest - heights.sum() + heights[-1] / 2
    centres = np.empty(len(order))
    centres[order] = packed + np.minimum(np.maximum(moved, least), most)
    return [float(centre) for centre in centres]


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
