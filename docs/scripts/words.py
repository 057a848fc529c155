"""Count the words of the site that people wrote: outside code blocks, and without what is generated.

python docs/scripts/words.py [FOLDER]
"""

import re
import sys
from pathlib import Path

from tutorials import cells_of

DOCS = Path(__file__).parents[1]
GENERATED_PAGE = re.compile(r"\s*<!-- Written by ")
# Between a comment that says "written by", and the comment that ends it.
GENERATED_PART = re.compile(r"<!-- [^\n]*?written by .*?<!-- The end of [^\n]*?-->", re.DOTALL)
CODE = re.compile(r"```.*?```", re.DOTALL)


def page_words(text: str) -> int:
    """The words of a page in Markdown, tables included."""
    if GENERATED_PAGE.match(text):
        return 0
    words = CODE.sub("", GENERATED_PART.sub("", text)).split()
    return sum(any(map(str.isalnum, word)) for word in words)  # the lines of a table are not words


def tutorial_words(text: str) -> int:
    """Count the words between the cells of code."""
    return sum(page_words(cell.source) for cell in cells_of(text) if cell.kind == "markdown")


def count_words(docs: Path = DOCS) -> dict[str, int]:
    """Count the words of each page and tutorial below a folder."""
    words = {}
    for path in sorted([*docs.rglob("*.md"), *docs.glob("tutorials/*.py")]):
        count = tutorial_words if path.suffix == ".py" else page_words
        words[path.relative_to(docs).as_posix()] = count(path.read_text(encoding="utf-8"))
    return words


def main() -> None:
    pages = count_words(Path(sys.argv[1]) if len(sys.argv) > 1 else DOCS)
    for name, words in pages.items():
        print(f"{words:6,}  {name}")
    print(f"{sum(pages.values()):6,}  in all")


if __name__ == "__main__":
    main()
