"""Claims of a paper on a page: each with its rule, what was measured, and the verdict."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from firstclick.report.figures import check_choice
from firstclick.report.tables import TableBlock

HOLDS, FAILS, UNTESTABLE = "holds", "does not hold", "not testable with this data"

# The section of a row that asks what the paper does not say: shown in the ledger, in no count of its claims.
OURS = "ours"

# A symbol and a class beside the colour, for grey print and for readers who see no red or green.
SYMBOLS = {HOLDS: "✓", FAILS: "✗", UNTESTABLE: "○"}
CLASSES = {HOLDS: "yes", FAILS: "no", UNTESTABLE: "open"}
# One claim, and several.
VERBS = {
    HOLDS: (HOLDS, "hold"),
    FAILS: (FAILS, "do not hold"),
    UNTESTABLE: (f"is {UNTESTABLE}", f"are {UNTESTABLE}"),
}


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

    @property
    def heading(self) -> str:
        """Where the paper says it, and about which data."""
        where = "Our own question, not a claim of the paper" if self.ours else f"Section {self.section}"
        return f"{where} · {self.dataset}"


def claims_headline(claims: Sequence[ClaimRow]) -> str:
    """One sentence: of how many claims how many hold, do not hold, or cannot be tested; '' for no claims.

    Rows of ours are no claims of the paper.
    """
    counts = Counter(claim.verdict for claim in claims if not claim.ours)
    total = counts.total()
    if not total:
        return ""
    *most, last = [f"{counts[word]} {VERBS[word][counts[word] > 1]}" for word in SYMBOLS if counts[word]]
    said = f"{', '.join(most)} and {last}" if most else last
    return f"Of {total} claim{'s' if total > 1 else ''} of the paper {said}."


def tally(claims: Sequence[ClaimRow]) -> TableBlock | None:
    """How many of the paper's claims about each data set have each verdict."""
    counts = Counter((claim.dataset, claim.verdict) for claim in claims if not claim.ours)
    rows = tuple(
        (dataset, *(str(counts[dataset, word]) for word in SYMBOLS))
        for dataset in dict.fromkeys(dataset for dataset, _ in counts)
    )
    return TableBlock("Verdicts by data set", ("data set", *SYMBOLS), rows) if rows else None


def grouped(claims: Sequence[ClaimRow]) -> list[tuple[str, list[ClaimRow]]]:
    """The claims under their headings."""
    return [(heading, list(rows)) for heading, rows in groupby(claims, key=lambda claim: claim.heading)]
