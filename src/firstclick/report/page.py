"""The page of every report: one look in light and dark, no script, nothing loaded, every text escaped."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from itertools import groupby
from xml.etree import ElementTree

from jinja2 import Environment, FunctionLoader, StrictUndefined
from markupsafe import Markup
from matplotlib.figure import Figure

from firstclick.experiments.results import Shown
from firstclick.report.figures import GRID, INK, check_choice, figure_bytes
from firstclick.report.style import LineStyle, dark_colors, line_styles
from firstclick.report.tables import TableBlock
from firstclick.rounding import percent

# The kinds of a verdict: a symbol beside the colour, for grey print and for readers who see no red or green.
SYMBOLS = {"yes": "✓", "no": "✗", "open": "○"}


@dataclass(frozen=True, eq=False)
class FigureBlock:
    """A figure under 'name: title', if it has one. `label` tells what it shows to those who cannot see it."""

    name: str
    title: str
    figure: Figure
    caption: str
    label: str

    @property
    def wide(self) -> bool:
        """Whether it takes the width of the page; otherwise two fit beside one another."""
        return bool(self.figure.get_size_inches()[0] > 6)


@dataclass(frozen=True)
class LearnedBlock:
    """The best slate of k items under a title, if it has one, and the items that each policy showed most."""

    title: str
    k: int
    best: tuple[Shown, ...]
    shown: Mapping[str, tuple[Shown, ...]]


@dataclass(frozen=True)
class ClaimRow:
    """A claim under a heading, what it was taken to mean, what was measured, and the verdict.

    `id` names it in the address of the page and in other files. `kind` is 'yes', 'no' or 'open'. `reason`
    says why the verdict is not plain from the figures.
    """

    id: str
    heading: str
    sentence: str
    rule: str
    measured: tuple[str, ...]
    verdict: str
    kind: str
    reason: str = ""

    def __post_init__(self) -> None:
        check_choice(f"claim {self.id}: kind", self.kind, tuple(SYMBOLS))


@dataclass(frozen=True)
class Section:
    """A heading, sentences, and a list of points below them."""

    title: str
    sentences: tuple[str, ...] = ()
    points: tuple[str, ...] = ()


@dataclass(frozen=True, eq=False)
class Page:
    """All that is said on the page; what is empty is left out.

    `facts` are a few words each (mode, steps, runs); `headline` is the result in a sentence or two, and
    `overview` the same as a table; `summary` are sentences on what was run; `notes` are what a reader must
    know before believing a figure; `method` and `words` say how the claims were judged and what their words
    were taken to mean. `sections` are texts below the figures. The policy `default` has a badge that says so.
    """

    title: str
    subtitle: str = ""
    facts: tuple[str, ...] = ()
    headline: str = ""
    summary: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    overview: TableBlock | None = None
    figures: tuple[FigureBlock, ...] = ()
    figures_title: str = "How the learning went"
    explains_regret: bool = True
    sections: tuple[Section, ...] = ()
    claims: tuple[ClaimRow, ...] = ()
    method: tuple[str, ...] = ()
    words: Mapping[str, str] = field(default_factory=dict)
    tables: tuple[TableBlock, ...] = ()
    tables_title: str = "The numbers behind the figures"
    data: tuple[TableBlock, ...] = ()
    learned: tuple[LearnedBlock, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    command: str = ""
    default: str = ""


def html_page(content: Page) -> str:
    """The content as one HTML page that loads nothing and runs no script; same content, same text."""
    policies = [policy for block in content.learned for policy in block.shown]
    for table in filter(None, (content.overview, *content.tables)):
        if "policy" in table.columns:
            policies += [row[table.columns.index("policy")] for row in table.rows]
    styles = line_styles(dict.fromkeys(policies))
    dark = dark_colors()
    drawn = [
        (block, _inline_svg(block, f"figure-{place}-", dark))
        for place, block in enumerate(content.figures, start=1)
    ]
    used = [f"#{color}" for _, svg in drawn for color in re.findall(r"var\(--c([0-9a-f]{6})\)", svg)]
    colors = dict.fromkeys([*used, *(style.color for style in styles.values())])
    environment = Environment(
        loader=FunctionLoader(lambda name: files("firstclick.report").joinpath(name).read_text("utf-8")),
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip
    environment.filters |= {"breakable": _breakable, "percent": percent}
    return environment.get_template("page.html").render(
        page=content,
        figures=drawn,
        ledger=[(heading, list(rows)) for heading, rows in groupby(content.claims, lambda row: row.heading)],
        symbols=SYMBOLS,
        swatches={policy: _swatch(style) for policy, style in styles.items()},
        hues={_variable(color): (color, dark[color]) for color in colors},
    )


def _inline_svg(block: FigureBlock, prefix: str, hues: Mapping[str, str]) -> Markup:
    """The figure as an <svg> element in the colours of the page's theme.

    Ids start with `prefix`, so that no two figures clash. Texts take the page's font; coordinates are cut to
    0.01 points.
    """
    colors = {color: f"var({_variable(color)})" for color in hues}
    colors |= {INK: "var(--muted)", GRID: "var(--line)", "#ffffff": "var(--card)"}
    root = ElementTree.fromstring(figure_bytes(block.figure, "svg"))
    for parent in list(root.iter()):
        for child in [child for child in parent if _local(child.tag) == "style"]:
            parent.remove(child)  # it would hold for the whole page
    for element in root.iter():
        element.tag = _local(element.tag)
        attributes = {_local(name): value for name, value in element.attrib.items()}
        element.attrib.clear()
        if element.tag == "g":  # only paths and clips are referred to
            attributes.pop("id", None)
        for name, value in attributes.items():
            if name == "id":
                value = prefix + value
            elif name in ("href", "clip-path"):
                value = value.replace("#", "#" + prefix, 1)
            elif name == "style":
                value = re.sub(r"font-family:[^;]*;?\s*", "", value)
                value = re.sub(r"#[0-9a-f]{6}\b", lambda found: colors.get(found[0], found[0]), value)
            elif name in ("d", "x", "y", "transform"):
                value = _shortened(value)
            if value != "rotate(-0)":
                element.set(name, value)
        if element.tag != "text":
            element.text = None
        element.tail = None
    _, _, width, height = root.attrib["viewBox"].split()
    root.attrib.clear()
    root.attrib.update({"viewBox": f"0 0 {width} {height}", "role": "img", "aria-label": block.label})
    return Markup(ElementTree.tostring(root, encoding="unicode"))


def _local(name: str) -> str:
    return name.rpartition("}")[2]


def _shortened(coordinates: str) -> str:
    coordinates = re.sub(r"rotate\(-0 [^)]*\)", "rotate(-0)", coordinates)
    coordinates = re.sub(r"\d+\.\d{3,}", lambda found: f"{float(found[0]):.2f}", coordinates)
    return re.sub(r"\s*([A-Za-z])\s*", r"\1", coordinates) if "rotate" not in coordinates else coordinates


def _swatch(style: LineStyle) -> Markup:
    """A short piece of a policy's line."""
    dash = " ".join(f"{2 * part:g}" for part in style.dash)
    return Markup(
        '<svg class="swatch" viewBox="0 0 26 8" aria-hidden="true">'
        '<path d="M0 4H26" style="stroke:var({});stroke-dasharray:{}"/></svg>'
    ).format(_variable(style.color), dash or "none")


def _breakable(label: str) -> Markup:
    """A label that is too long for its line breaks between parameters; the style sheet says if elsewhere."""
    parts = re.findall(r"[^:,]*[:,]?", label)
    return Markup("<wbr>").join(Markup("<span>{}</span>").format(part) for part in parts if part)


def _variable(color: str) -> str:
    return "--c" + color.removeprefix("#")
