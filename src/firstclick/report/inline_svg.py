"""A figure as part of a page: no clash with other figures, and colours that follow the page's theme."""

import re
from collections.abc import Mapping
from xml.etree import ElementTree

from markupsafe import Markup
from matplotlib.figure import Figure

from firstclick.report.figures import figure_bytes


def inline_svg(figure: Figure, *, prefix: str, label: str, colors: Mapping[str, str]) -> Markup:
    """The figure as an <svg> element for a page.

    Ids start with `prefix`, screen readers read `label`, and each colour in `colors` is replaced by
    its value (such as 'var(--ink)'). Texts take the page's font; coordinates are cut to 0.01 points.
    """
    root = ElementTree.fromstring(figure_bytes(figure, "svg"))
    _drop_style_sheets(root)
    for element in root.iter():
        element.tag = _local(element.tag)
        attributes = {_local(name): value for name, value in element.attrib.items()}
        element.attrib.clear()
        for name, value in attributes.items():
            if name == "id":
                value = prefix + value
            elif name == "href":
                value = value.replace("#", "#" + prefix, 1)
            elif name == "clip-path":
                value = value.replace("url(#", f"url(#{prefix}", 1)
            elif name == "style":
                value = _restyled(value, colors)
            elif name in ("d", "x", "y", "transform"):
                value = _shortened(value)
            if value != "rotate(-0)":
                element.set(name, value)
        if element.tag != "text":
            element.text = None
        element.tail = None
    _drop_unused_ids(root)
    _, _, width, height = root.attrib["viewBox"].split()
    root.attrib.clear()
    root.attrib.update({"viewBox": f"0 0 {width} {height}", "role": "img", "aria-label": label})
    return Markup(ElementTree.tostring(root, encoding="unicode"))


def _local(name: str) -> str:
    return name.rpartition("}")[2]


def _drop_style_sheets(root: ElementTree.Element) -> None:
    """A style sheet inside one figure would hold for the whole page."""
    for parent in list(root.iter()):
        for child in [child for child in parent if _local(child.tag) == "style"]:
            parent.remove(child)


def _drop_unused_ids(root: ElementTree.Element) -> None:
    used = {
        name
        for element in root.iter()
        for attribute in ("href", "clip-path")
        for name in re.findall(r"#([^)]+)", element.get(attribute, ""))
    }
    for element in root.iter():
        if element.get("id") not in used:
            element.attrib.pop("id", None)


def _restyled(style: str, colors: Mapping[str, str]) -> str:
    style = re.sub(r"font-family:[^;]*;?\s*", "", style)
    return re.sub(r"#[0-9a-f]{6}\b", lambda found: colors.get(found[0], found[0]), style)


def _shortened(coordinates: str) -> str:
    coordinates = re.sub(r"rotate\(-0 [^)]*\)", "rotate(-0)", coordinates)
    coordinates = re.sub(r"\d+\.\d{3,}", lambda found: f"{float(found[0]):.2f}", coordinates)
    return re.sub(r"\s*([A-Za-z])\s*", r"\1", coordinates) if "rotate" not in coordinates else coordinates
