"""The claims of Zong et al. 2016 against what was measured: a verdict for every row of the ledger."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from firstclick.errors import UnknownName
from firstclick.paper.checks import FAILS, HOLDS, UNTESTABLE, Cell, Claim, Evidence, Finding, Verdict
from firstclick.paper.ledger import CLAIMS
from firstclick.paper.statistics import CHANCE
from firstclick.paper.words import WORDS
from firstclick.report.rounding import whole

__all__ = [
    "CLAIMS",
    "METHOD",
    "TITLES",
    "WORDS",
    "Claim",
    "Evidence",
    "Finding",
    "Judged",
    "Verdict",
    "as_json",
    "judge",
]

FORMAT = "firstclick claims 1"
TITLES = {"yelp": "Yelp", "million-song": "Million Song", "movielens": "MovieLens"}
# The number of steps that all the paper's figures and sentences are about.
PAPER_STEPS = 100_000

METHOD = (
    "In a run all learners meet the same users, so runs are compared in pairs. Regret is expected regret, "
    "which has the mean of the realised one and less noise; reward is the clicks won.",
    f"A ratio is that of two means over runs, with Fieller’s {1 - CHANCE:.0%} interval; a difference has "
    "Student’s. Both take the means for normally distributed.",
    "A comparison is inside the limits of its word if its interval is: that is a one-sided test at "
    f"{CHANCE / 2:.1%} against each limit. A claim holds if all its comparisons are inside, which needs no "
    "correction for their number: a false one among them must have passed its own test.",
    f"A claim does not hold if one comparison is outside, with the {CHANCE:.0%} divided by the number of "
    "comparisons. Otherwise it is undecided, and written as not testable with this data.",
    "Nothing is corrected for the number of rows: in a long ledger a few verdicts may be wrong by chance.",
    f"Where nothing else is said there are {Cell.items} items, {Cell.rank} features and slates of {Cell.k}.",
)


@dataclass(frozen=True)
class Judged:
    """A claim and what was found."""

    claim: Claim
    finding: Finding


def judge(evidence: Mapping[str, Evidence]) -> list[Judged]:
    """A finding for every claim, in the order of the ledger, from the evidence on each data set by its name.

    Made-up data and runs of another length than the paper's give no verdict on it: their findings keep the
    figures, and say what the rule would have given.
    """
    for name in evidence:
        if name not in TITLES:
            raise UnknownName(f"no claim is about data set {name!r}; the paper has {', '.join(TITLES)}")
    return [Judged(claim, _find(claim, evidence.get(claim.dataset))) for claim in CLAIMS]


def _find(claim: Claim, evidence: Evidence | None) -> Finding:
    title = TITLES[claim.dataset]
    if evidence is None:
        return Finding(UNTESTABLE, (), {}, f"{title} was not played")
    finding = claim.check(evidence)
    if finding.verdict == UNTESTABLE:
        return finding
    if evidence.synthetic:
        why = f"the data is synthetic, and made-up data says nothing about {title}"
    elif claim.experiment != "data" and evidence.steps != PAPER_STEPS:
        why = f"the paper plays {whole(PAPER_STEPS)} steps, and these runs have {whole(evidence.steps)}"
    else:
        return finding
    reason = f"{why}; the rule alone would say: {finding.verdict} ({finding.reason})"
    return replace(finding, verdict=UNTESTABLE, reason=reason)


def as_json(judged: Sequence[Judged]) -> dict[str, Any]:
    """The ledger as plain values, for claims.json."""
    verdicts = Counter(row.finding.verdict for row in judged)
    return {
        "format": FORMAT,
        "verdicts": {verdict: verdicts[verdict] for verdict in (HOLDS, FAILS, UNTESTABLE)},
        "method": list(METHOD),
        "words": [{"phrase": word.phrase, "meaning": word.meaning, "reason": word.reason} for word in WORDS],
        "claims": [
            {
                "id": row.claim.id,
                "section": row.claim.section,
                "dataset": row.claim.dataset,
                "experiment": row.claim.experiment,
                "sentence": row.claim.sentence,
                "rule": row.claim.rule,
                **asdict(row.finding),
                "measured": list(row.finding.measured),
            }
            for row in judged
        ],
    }
