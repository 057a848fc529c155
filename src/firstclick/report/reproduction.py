"""The page of a reproduction: figures, a ledger of claims, tables, data, and how to repeat it.

It knows nothing of experiments: whoever played them fills in the content.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

from matplotlib.figure import Figure

from firstclick.experiments.results import Shown
from firstclick.report.figures import check_choice
from firstclick.report.page import colors_of, rendered, slate_entries, swatch, themed_svg
from firstclick.report.style import line_styles

# The section of a row that asks what the paper does not say: shown in the ledger, in no count of its claims.
OURS = "ours"

# The words of a verdict, each with a symbol and a class beside the colour, for grey print and for readers who
# see no red or green.
HOLDS, FAILS, UNTESTABLE = "holds", "does not hold", "not testable with this data"
SYMBOLS = {HOLDS: "✓", FAILS: "✗", UNTESTABLE: "○"}
CLASSES = {HOLDS: "yes", FAILS: "no", UNTESTABLE: "open"}
PLURALS = {HOLDS: "hold", FAILS: "do not hold", UNTESTABLE: f"are {UNTESTABLE}"}
SINGULARS = {HOLDS: HOLDS, FAILS: FAILS, UNTESTABLE: f"is {UNTESTABLE}"}


@dataclass(frozen=True, eq=False)
class FigureBlock:
    """A figure under 'name: title'. `label` tells what it shows to those who cannot see it."""

    name: str
    title: str
    figure: Figure
    caption: str
    label: str


@dataclass(frozen=True)
class ClaimRow:
    """One sentence of the paper in our words, what it was taken to mean, what was measured, and the verdict.

    `id` names it in the address of the page and in other files. `reason` says why the verdict is not
    plain from the figures. A verdict other than the three words is InvalidInput.
    """

    id: str
    section: str
    dataset: str
    sentence: str
    rule: str
    measured: tuple[str, ...]
    verdict: str
    reason: str = ""

    def __post_init__(self) -> None:
        check_choice(f"claim {self.id}: verdict", self.verdict, tuple(SYMBOLS))

    @property
    def ours(self) -> bool:
        """Whether the paper does not say this."""
        return self.section == OURS


@dataclass(frozen=True)
class TableBlock:
    """A table of texts; the first cell of a row names it. '812 ± 31' is a value and its error."""

    caption: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class LearnedBlock:
    """The best slate of k items under a title, and the items that each policy showed most."""

    title: str
    k: int
    best: tuple[Shown, ...]
    shown: Mapping[str, tuple[Shown, ...]]


@dataclass(frozen=True, eq=False)
class Page:
    """All that is said on the page; what is empty is left out.

    `facts` are a few words each (mode, steps, runs); `summary` are sentences on what was run; `notes`
    are what a reader must know before believing a figure; `method` and `words` say how the claims were
    judged and what their words were taken to mean.
    """

    title: str
    subtitle: str = ""
    facts: tuple[str, ...] = ()
    summary: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    figures: tuple[FigureBlock, ...] = ()
    claims: tuple[ClaimRow, ...] = ()
    method: tuple[str, ...] = ()
    words: Mapping[str, str] = field(default_factory=dict)
    tables: tuple[TableBlock, ...] = ()
    data: tuple[TableBlock, ...] = ()
    learned: tuple[LearnedBlock, ...] = ()
    settings: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    command: str = ""


def reproduction_page(content: Page) -> str:
    """The content as one HTML page that loads nothing and runs no script; same content, same text."""
    policies = dict.fromkeys(policy for block in content.learned for policy in block.shown)
    styles = line_styles(policies)
    drawn = [
        themed_svg(block.figure, prefix=f"figure-{place}-", label=block.label)
        for place, block in enumerate(content.figures, start=1)
    ]
    used = [color for svg in drawn for color in colors_of(svg)]
    return rendered(
        "reproduction.html",
        colors=dict.fromkeys([*used, *(style.color for style in styles.values())]),
        title=content.title,
        subtitle=content.subtitle,
        facts=content.facts,
        headline=claims_headline(content.claims),
        content=content,
        verdicts=[{"word": word, "symbol": SYMBOLS[word], "kind": CLASSES[word]} for word in SYMBOLS],
        tally=_tally(content.claims),
        figures=[{"block": block, "svg": svg} for block, svg in zip(content.figures, drawn, strict=True)],
        groups=[
            {"heading": _heading(section, dataset), "claims": list(claims)}
            for (section, dataset), claims in groupby(
                content.claims, key=lambda claim: (claim.section, claim.dataset)
            )
        ],
        symbols=SYMBOLS,
        kinds=CLASSES,
        learned=[
            {
                "title": block.title,
                "best": slate_entries(block.best, block.k, best),
                "slates": [
                    {
                        "policy": policy,
                        "swatch": swatch(styles[policy]),
                        "slate": slate_entries(shown, block.k, best),
                    }
                    for policy, shown in block.shown.items()
                ],
            }
            for block in content.learned
            for best in [{shown.item for shown in block.best}]
        ],
    )


def claims_headline(claims: tuple[ClaimRow, ...]) -> str:
    """One sentence: of how many claims how many hold, do not hold, or cannot be tested; '' for no claims.

    Rows of ours are no claims of the paper.
    """
    counts = Counter(claim.verdict for claim in claims if not claim.ours)
    total = counts.total()
    if not total:
        return ""
    *most, last = [
        f"{counts[word]} {SINGULARS[word] if counts[word] == 1 else PLURALS[word]}"
        for word in SYMBOLS
        if counts[word]
    ]
    said = f"{', '.join(most)} and {last}" if most else last
    return f"Of {total} claim{'s' if total > 1 else ''} of the paper {said}."


def _heading(section: str, dataset: str) -> str:
    where = "Our own question, not a claim of the paper" if section == OURS else f"Section {section}"
    return f"{where} · {dataset}"


def _tally(claims: tuple[ClaimRow, ...]) -> list[dict[str, Any]]:
    """How many of the paper's claims about each data set have each verdict."""
    rows = []
    of_the_paper = [claim for claim in claims if not claim.ours]
    for dataset in dict.fromkeys(claim.dataset for claim in of_the_paper):
        counts = Counter(claim.verdict for claim in of_the_paper if claim.dataset == dataset)
        rows.append({"dataset": dataset, "counts": [counts[word] for word in SYMBOLS]})
    return rows
