"""What our pages share: one look in light and dark, no script, nothing loaded, every text escaped."""

import re
from collections.abc import Iterable
from importlib.resources import files
from typing import Any

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup
from matplotlib.figure import Figure

from firstclick.experiments.results import Shown
from firstclick.report.figures import GRID, INK
from firstclick.report.inline_svg import inline_svg
from firstclick.report.style import LineStyle, dark_colors
from firstclick.rounding import percent


def rendered(template: str, *, colors: Iterable[str], **content: Any) -> str:
    """One of our templates filled with content; the page knows the given colours of curves in both themes."""
    environment = Environment(
        loader=FunctionLoader(_source),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["breakable"] = _breakable
    dark = dark_colors()
    hues = {_variable(color): {"light": color, "dark": dark[color]} for color in colors}
    return environment.get_template(template).render(hues=hues, **content)


def themed_svg(figure: Figure, *, prefix: str, label: str) -> Markup:
    """The figure for a card of a page, in the colours of its theme; screen readers read `label`."""
    colors = {color: f"var({_variable(color)})" for color in dark_colors()}
    colors |= {INK: "var(--muted)", GRID: "var(--line)", "#ffffff": "var(--card)"}
    return inline_svg(figure, prefix=prefix, label=label, colors=colors)


def colors_of(svg: Markup) -> list[str]:
    """The colours of curves that a themed figure uses, each once."""
    return ["#" + color for color in dict.fromkeys(re.findall(r"var\(--c([0-9a-f]{6})\)", svg))]


def swatch(style: LineStyle) -> Markup:
    """A short piece of a policy's line."""
    dash = " ".join(f"{2 * part:g}" for part in style.dash)
    return Markup(
        '<svg class="swatch" viewBox="0 0 26 8" aria-hidden="true">'
        '<path d="M0 4H26" style="stroke:var({});stroke-dasharray:{}"/></svg>'
    ).format(_variable(style.color), dash or "none")


def slate_entries(shown: Iterable[Shown], k: int, best: set[str]) -> dict[str, Any]:
    """The k items shown most and the rest, those of the best slate marked."""
    entries = [
        {
            "item": entry.item,
            "share": percent(entry.share),
            "width": f"{100 * min(max(entry.share, 0.0), 1.0):.1f}",
            "best": entry.item in best,
        }
        for entry in shown
    ]
    return {"first": entries[:k], "rest": entries[k:]}


def _source(template: str) -> str:
    return files("firstclick.report").joinpath(template).read_text(encoding="utf-8")


def _breakable(label: str) -> Markup:
    """A label that is too long for its line breaks between parameters; the style sheet says if elsewhere."""
    parts = re.findall(r"[^:,]*[:,]?", label)
    return Markup("<wbr>").join(Markup("<span>{}</span>").format(part) for part in parts if part)


def _variable(color: str) -> str:
    return "--c" + color.removeprefix("#")
