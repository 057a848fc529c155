"""One colour, dash and marker per policy, whatever else is in the figure. They follow from its family."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TypeVar
from zlib import crc32

from firstclick.policies.base import FAMILIES
from firstclick.registry import policy_classes

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

DASHES = (SOLID, DASHED, DOTTED, DASH_DOT, LONG_DASHED, SHORT_DASHED, DASH_DOT_DOT)
MARKERS = "o^sDvPX*ph<>d"

# Looks that a policy's class may ask for by name: those of the paper's figures stay what they are. The
# colours are Okabe and Ito's, which differ for colour-blind readers too. Dashes and markers tell curves apart
# in grey print.
LOOKS = {
    "grey": LineStyle("#767676", "#a0a0a0", DOTTED, "x"),
    "amber": LineStyle("#e69f00", "#f0b429", DASHED, "s"),
    "vermilion": LineStyle("#d55e00", "#ff8038", DASH_DOT, "^"),
    "pink": LineStyle("#cc79a7", "#e59ac4", SOLID, "v"),
    "blue": LineStyle("#0072b2", "#3f9fe8", SOLID, "o"),
    "sky": LineStyle("#56b4e9", "#9bdcff", LONG_DASHED, "D"),
    "green": LineStyle("#009e73", "#2cc796", SHORT_DASHED, "P"),
    "black": LineStyle("#111111", "#f4f4f4", SOLID, "*"),  # the default
}

# For policies without a family: from Paul Tol's muted scheme, none of them near one above.
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


def display_name(policy: str, default: str) -> str:
    """A policy's label as tables and curves show it, which say of the default that it is the default."""
    return f"{policy}, the default" if default and policy == default else policy


@cache
def family_looks(family: str) -> tuple[LineStyle, ...]:
    """The looks of a family: its three colours, each with several dashes. Looks with a name are left out."""
    colors = {
        "counts": (LOOKS["amber"], LOOKS["vermilion"], LOOKS["pink"]),
        "features": (LOOKS["blue"], LOOKS["sky"], LOOKS["green"]),
        **dict(zip(("clicks", "users", "changes", "variety", "ranking"), map(_shades, FREE), strict=True)),
    }[family]
    named = {(style.color, style.dash) for style in (*LOOKS.values(), *FREE)}
    looks = (
        replace(colors[i % 3], dash=DASHES[i % 7], marker=MARKERS[i % len(MARKERS)]) for i in range(3 * 7)
    )
    return tuple(style for style in looks if (style.color, style.dash) not in named)


def line_styles(policies: Iterable[str]) -> dict[str, LineStyle]:
    """A style for each policy label, in the order given.

    A policy has the look that its class names, or one of its family's, by a hash of its name. So it looks the
    same in any company. Of policies without a family, and of variants of one policy, two may want the same
    look; then one gives way.
    """
    labels = list(policies)
    names = sorted({base_name(label) for label in labels})
    known = _known_styles()
    free = [name for name in names if name not in known]
    styles = known | dict(zip(free, _spread(free, FREE), strict=True))
    taken = {(styles[name].color, styles[name].dash) for name in names}
    found = {}
    for name in names:
        base = styles[name]
        found[name] = base
        variants = sorted(label for label in set(labels) if label != name and base_name(label) == name)
        others = tuple(variant for variant in VARIANTS if variant[0] != base.dash)
        avoid = [variant for variant in others if (base.color, variant[0]) in taken]
        for label, (dash, marker) in zip(variants, _spread(variants, others, avoid), strict=True):
            found[label] = LineStyle(base.color, base.on_dark, dash, marker)
    return {label: found[label] for label in labels}


def _known_styles() -> dict[str, LineStyle]:
    """The styles of all policies that name a look or have a family, each by its name."""
    classes = policy_classes()
    looks = {name: vars(cls).get("look") for name, cls in classes.items()}
    styles = {name: LOOKS[look] for name, look in looks.items() if look in LOOKS}
    for family in filter(None, FAMILIES):
        members = [name for name, cls in classes.items() if cls.family == family and name not in styles]
        # Ours come first: a plug-in takes no look from one of them.
        members.sort(key=lambda name: not classes[name].__module__.startswith("firstclick."))
        styles |= zip(members, _spread(members, family_looks(family)), strict=True)
    return styles


def setting_style(policy: str, place: int) -> LineStyle:
    """How a policy looks in setting number `place`, from 0: its own colour in another shade, dash and marker.

    Fifteen places differ, and any three in a row differ in all of them.
    """
    style = line_styles([base_name(policy)])[base_name(policy)]
    dash, marker = SETTINGS[place % len(SETTINGS)]
    return replace(_shades(style)[place % len(SHADES)], dash=dash, marker=marker)


def dark_colors() -> dict[str, str]:
    """Every colour that a curve can have on a light ground, and what it is on a dark one."""
    looks = [look for family in filter(None, FAMILIES) for look in family_looks(family)]
    styles = [shade for style in (*LOOKS.values(), *FREE, *looks) for shade in _shades(style)]
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


def _spread(texts: list[str], choices: tuple[T, ...], avoid: Sequence[T] = ()) -> list[T]:
    """One choice per text: the one its hash points at, or the next that is free; all again when none is."""
    taken = {place for place, choice in enumerate(choices) if choice in avoid}
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
