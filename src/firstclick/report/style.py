"""One colour, dash and marker per policy name, whatever else is in the figure."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TypeVar
from zlib import crc32

T = TypeVar("T")


@dataclass(frozen=True)
class LineStyle:
    """How a policy's curve looks: `color` on a light ground, `on_dark` on a dark one."""

    color: str
    on_dark: str
    dash: tuple[float, ...]  # on, off, ... in line widths; empty is solid
    marker: str


SOLID: tuple[float, ...] = ()
DASHED = (4.0, 1.6)
DOTTED = (1.0, 1.4)
DASH_DOT = (5.0, 1.5, 1.0, 1.5)
LONG_DASHED = (8.0, 2.0)
SHORT_DASHED = (2.2, 1.2)
DASH_DOT_DOT = (5.0, 1.4, 1.0, 1.4, 1.0, 1.4)

# Okabe and Ito's colours, which differ for colour-blind readers too. Dashes and markers tell the
# curves apart in grey print. Learners with features are cool, learners without are warm.
KNOWN = {
    "random": LineStyle("#767676", "#a0a0a0", DOTTED, "x"),
    "cascade-ucb1": LineStyle("#e69f00", "#f0b429", DASHED, "s"),
    "cascade-kl-ucb": LineStyle("#d55e00", "#ff8038", DASH_DOT, "^"),
    "cascade-ts": LineStyle("#cc79a7", "#e59ac4", SOLID, "v"),
    "cascade-lin-ts": LineStyle("#0072b2", "#3f9fe8", SOLID, "o"),
    "cascade-lin-ucb": LineStyle("#56b4e9", "#9bdcff", LONG_DASHED, "D"),
    "ranked-lin-ts": LineStyle("#009e73", "#2cc796", SHORT_DASHED, "P"),
}

# For plug-ins: from Paul Tol's muted scheme, none of them near one above.
FREE = (
    LineStyle("#882255", "#c2506f", DASH_DOT_DOT, "h"),
    LineStyle("#332288", "#9a8cf0", SHORT_DASHED, "X"),
    LineStyle("#999933", "#c9c95c", DASHED, "p"),
    LineStyle("#44aa99", "#7fd8ca", DASH_DOT, "*"),
    LineStyle("#661100", "#d98a75", LONG_DASHED, "<"),
)

# For the same policy with other parameters: the name's colour, drawn another way.
VARIANTS = (
    (DASHED, "d"),
    (DOTTED, ">"),
    (DASH_DOT_DOT, "p"),
    (SHORT_DASHED, "<"),
    (LONG_DASHED, "8"),
    (SOLID, "*"),
)

# For one policy in several settings, as in a figure of the rank: its colour this much nearer to white
# or black. On a dark ground the order turns round, so that the last stands out most on both.
SHADES = ((0.35, "#ffffff"), (0.0, "#ffffff"), (0.55, "#000000"))
DARK_SHADES = ((0.3, "#000000"), (0.0, "#ffffff"), (0.6, "#ffffff"))
SETTINGS = ((SOLID, "o"), (DASHED, "s"), (DOTTED, "^"), (DASH_DOT, "D"), (SHORT_DASHED, "v"))


def base_name(policy: str) -> str:
    """'cascade-ucb1' for 'cascade-ucb1:radius=0.5'."""
    return policy.partition(":")[0]


def line_styles(policies: Iterable[str]) -> dict[str, LineStyle]:
    """A style for each policy label, in the order given.

    Known names always look the same. A plug-in's colour and a variant's dash come from a hash of the
    text, so they too stay what they are in any company, unless two of them want the same one.
    """
    labels = list(policies)
    names = sorted({base_name(label) for label in labels} - KNOWN.keys())
    styles = KNOWN | dict(zip(names, _spread(names, FREE), strict=True))
    found = {}
    for name in {base_name(label) for label in labels}:
        base = styles[name]
        found[name] = base
        variants = sorted(label for label in set(labels) if label != name and base_name(label) == name)
        others = tuple(variant for variant in VARIANTS if variant[0] != base.dash)
        for label, (dash, marker) in zip(variants, _spread(variants, others), strict=True):
            found[label] = LineStyle(base.color, base.on_dark, dash, marker)
    return {label: found[label] for label in labels}


def setting_style(policy: str, place: int) -> LineStyle:
    """How a policy looks in setting number `place`, from 0: its own colour in another shade, dash and marker.

    Fifteen places differ, and any three in a row differ in all of them.
    """
    style = line_styles([base_name(policy)])[base_name(policy)]
    dash, marker = SETTINGS[place % len(SETTINGS)]
    return replace(_shades(style)[place % len(SHADES)], dash=dash, marker=marker)


def dark_colors() -> dict[str, str]:
    """Every colour that a curve can have on a light ground, and what it is on a dark one."""
    styles = [shade for style in (*KNOWN.values(), *FREE) for shade in _shades(style)]
    return {style.color: style.on_dark for style in styles}


def _shades(style: LineStyle) -> list[LineStyle]:
    return [
        replace(style, color=_mixed(style.color, *light), on_dark=_mixed(style.on_dark, *dark))
        for light, dark in zip(SHADES, DARK_SHADES, strict=True)
    ]


def _mixed(color: str, share: float, other: str) -> str:
    """The colour with a share of another one in it."""
    parts = [(int(color[at : at + 2], 16), int(other[at : at + 2], 16)) for at in (1, 3, 5)]
    return "#" + "".join(f"{round((1 - share) * ours + share * theirs):02x}" for ours, theirs in parts)


def _spread(texts: list[str], choices: tuple[T, ...]) -> list[T]:
    """One choice per text: the one its hash points at, or the next that is free; all again when none is."""
    taken: set[int] = set()
    chosen = []
    for text in texts:
        if len(taken) == len(choices):
            taken.clear()
        place = crc32(text.encode()) % len(choices)
        while place in taken:
            place = (place + 1) % len(choices)
        taken.add(place)
        chosen.append(choices[place])
    return chosen
