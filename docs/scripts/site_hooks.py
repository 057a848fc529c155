"""Hooks of mkdocs: write the pages that git does not keep, llms.txt, and each page as Markdown."""

import json
import re
from pathlib import Path
from typing import Any

from api_text import api_text
from generate import BUILT, write
from tutorials import build, sources

# A directive of mkdocstrings, with the level of its heading if that is not 2.
DIRECTIVE = re.compile(r"^::: (\S+)(?:\n +options:\n +heading_level: (\d))?$", re.MULTILINE)
SUMMARY = (
    "A Python library, command line and service for cascading bandits: a page shows K of many items, the "
    "user clicks the first one that attracts, and firstclick learns from that click what to show next."
)
# In the search, what people read comes before lists of fields, options and outputs.
GENERATED, BOOST = ("reference/", "tutorials/"), 4
pages: dict[str, str] = {}  # the address of each page, and its Markdown


def on_pre_build(config: Any) -> None:
    """Write the pages that follow from the code, and run the tutorials that changed."""
    pages.clear()
    write(BUILT)
    for source in sources():
        build(source)


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Keep the text before it becomes HTML, and say how the search ranks it."""
    if not page.url.startswith(GENERATED):
        page.meta["search"] = {"boost": BOOST}
    source = page.file.abs_src_path
    text = notebook_text(Path(source)) if source.endswith(".ipynb") else markdown
    pages[page.url] = DIRECTIVE.sub(lambda found: api_text(found[1], int(found[2] or 2)), text)
    return markdown


def on_post_page(output: str, page: Any, config: Any) -> str:
    """Say where the Markdown is."""
    link = f'<link rel="alternate" type="text/markdown" href="{Path(markdown_name(page.url)).name}">'
    return output.replace("</head>", f"{link}</head>", 1)


def on_post_build(config: Any) -> None:
    """Write llms.txt in the order of the navigation, and the pages beside their HTML."""
    site = Path(config.site_dir)
    lines = ["# firstclick", "", f"> {SUMMARY}", ""]
    for section in config.nav:
        lines += section_lines(section)
    (site / "llms.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    for url, text in pages.items():
        (site / markdown_name(url)).write_text(text, encoding="utf-8")


def section_lines(section: Any) -> list[str]:
    """A heading of llms.txt and its links; sections in sections are one list."""
    ((title, content),) = section.items()
    return [f"## {title}", "", *(f"- [{name}]({address})" for name, address in leaves(title, content)), ""]


def leaves(title: str, content: Any) -> list[tuple[str, str]]:
    """All pages below a part of the navigation, with their titles."""
    if isinstance(content, str):
        return [(title, markdown_name(content))]
    found = []
    for part in content:
        found += leaves(title, part) if isinstance(part, str) else leaves(*next(iter(part.items())))
    return found


def markdown_name(url: str) -> str:
    """'guide/trials.html' or 'guide/trials.md' or a notebook: 'guide/trials.md'."""
    return re.sub(r"\.(html|md|ipynb)$", "", url or "index.html") + ".md"


def notebook_text(path: Path) -> str:
    """A notebook as Markdown: its texts, its code, and what was printed."""
    parts = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(f"```py\n{source}\n```")
        for output in cell["outputs"]:
            text = output.get("text") or output.get("data", {}).get("text/plain", "")
            if text:
                parts.append(f"```\n{''.join(text).rstrip()}\n```")
    return "\n\n".join(parts) + "\n"
