"""The verdicts on the paper as a sentence, as a table, and as rows of the report."""

from collections import Counter
from collections.abc import Sequence

from firstclick.report.page import SYMBOLS, ClaimRow
from firstclick.report.tables import TableBlock
from firstclick.studies.paper.claims import OURS, TITLES, Claim
from firstclick.studies.paper.verdicts import FAILS, HOLDS, UNTESTABLE, Finding

KINDS = {HOLDS: "yes", FAILS: "no", UNTESTABLE: "open"}
# One claim, and several.
VERBS = {
    HOLDS: (HOLDS, "hold"),
    FAILS: (FAILS, "do not hold"),
    UNTESTABLE: (f"is {UNTESTABLE}", f"are {UNTESTABLE}"),
}

Judged = Sequence[tuple[Claim, Finding]]


def claims_headline(judged: Judged) -> str:
    """One sentence: of how many claims how many hold, do not hold, or cannot be tested; '' for no claims.

    Rows of ours are no claims of the paper.
    """
    counts = Counter(finding.verdict for claim, finding in judged if claim.section != OURS)
    if not counts:
        return ""
    *most, last = [f"{counts[word]} {VERBS[word][counts[word] > 1]}" for word in KINDS if counts[word]]
    said = f"{', '.join(most)} and {last}" if most else last
    return f"Of {counts.total()} claim{'s' if counts.total() > 1 else ''} of the paper {said}."


def tally(judged: Judged) -> TableBlock | None:
    """How many of the paper's claims about each data set have each verdict; None for no claims."""
    counts = Counter((claim.dataset, finding.verdict) for claim, finding in judged if claim.section != OURS)
    rows = tuple(
        (TITLES[dataset], *(str(counts[dataset, word]) for word in KINDS))
        for dataset in dict.fromkeys(dataset for dataset, _ in counts)
    )
    columns = ("data set", *(f"{SYMBOLS[kind]} {word}" for word, kind in KINDS.items()))
    return TableBlock("Verdicts by data set", columns, rows) if rows else None


def claim_rows(judged: Judged) -> tuple[ClaimRow, ...]:
    """The claims for the page, each under its section and data set."""
    return tuple(
        ClaimRow(
            claim.id, f"{_where(claim)} · {TITLES[claim.dataset]}", claim.sentence, claim.criterion.rule,
            finding.measured, finding.verdict, KINDS[finding.verdict], finding.reason,
        )
        for claim, finding in judged
    )  # fmt: skip


def _where(claim: Claim) -> str:
    ours = claim.section == OURS
    return "Our own question, not a claim of the paper" if ours else f"Section {claim.section}"
