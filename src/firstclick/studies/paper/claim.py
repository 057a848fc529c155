"""The claims of Zong et al. 2016 against what was measured: a verdict for every row of the ledger."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from firstclick.errors import UnknownName
from firstclick.report.claims import FAILS, HOLDS, OURS, UNTESTABLE, Verdict
from firstclick.report.rounding import whole
from firstclick.studies.paper.checks import DATA, Cell, Claim, Evidence, Finding
from firstclick.studies.paper.claims import CLAIMS, EXPERIMENT_3
from firstclick.studies.paper.statistics import CHANCE, fewest_runs
from firstclick.studies.paper.thresholds import GROUPS, UNEVEN, WORDS

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

FORMAT = "firstclick claims 2"
TITLES = {"yelp": "Yelp", "million-song": "Million Song", "movielens": "MovieLens"}
# The number of steps that all the paper's figures and sentences are about.
PAPER_STEPS = 100_000

METHOD = (
    "In a run all learners meet the same users, so runs are compared in pairs. Regret is expected regret, "
    "which has the mean of the realised one and less noise; reward is the clicks won.",
    f"A ratio is that of two means over runs, with Fieller’s {1 - CHANCE:.0%} interval; a difference has "
    "Student’s. Both take the means for normally distributed.",
    "Where a learner gets stuck in a few runs they are not. So the runs one by one must say the same as the "
    "interval, by a sign test with the same chance of an error: on the interval’s side of the limit must be "
    f"more runs than a fair coin explains. Fewer than {fewest_runs(CHANCE / 2)} runs decide nothing. Where "
    f"the largest run is more than {UNEVEN} times the median, both are shown beside the mean.",
    "A comparison is inside the limits of its word if both say so: that is a one-sided test at "
    f"{CHANCE / 2:.1%} against each limit. A claim holds if all its comparisons are inside, which needs no "
    "correction for their number: a false one among them must have passed its own test.",
    f"A claim does not hold if one comparison is outside, with the {CHANCE:.0%} divided by the number of "
    "comparisons. Otherwise, or if interval and sign test differ, it is undecided, and written as not "
    "testable with this data.",
    "Data whose counts are not the paper’s, another group of items than the paper’s and runs of another "
    "length decide nothing about it: their figures are shown, with what the rule alone would say.",
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

    Made-up data, other data than the paper's, another group and runs of another length give no verdict on
    it: their findings keep the figures, and say what the rule would have given.
    """
    for name in evidence:
        if name not in TITLES:
            raise UnknownName(f"no claim is about data set {name!r}; the paper has {', '.join(TITLES)}")
    different = {name: _different_counts(name, measured) for name, measured in evidence.items()}
    return [
        Judged(claim, _find(claim, evidence.get(claim.dataset), different.get(claim.dataset, "")))
        for claim in CLAIMS
    ]


def _find(claim: Claim, evidence: Evidence | None, different: str) -> Finding:
    if evidence is None:
        return Finding(UNTESTABLE, (), {}, f"{TITLES[claim.dataset]} was not played")
    finding = claim.check(evidence)
    if not finding.measured:
        return finding
    if claim.experiment == EXPERIMENT_3:
        finding = _of_group(finding, evidence)
    why = _why_not_the_papers(claim, evidence, different)
    if not why:
        return finding
    undecided = finding.verdict == UNTESTABLE
    alone = finding.reason if undecided else f"{finding.verdict} ({finding.reason})"
    reason = f"{'; '.join(why)}; the rule alone would say: {alone}"
    return replace(finding, verdict=UNTESTABLE, reason=reason)


def _why_not_the_papers(claim: Claim, evidence: Evidence, different: str) -> list[str]:
    """What makes the evidence say nothing about the paper's claim."""
    if evidence.synthetic:
        return [f"the data is synthetic, and made-up data says nothing about {TITLES[claim.dataset]}"]
    if claim.experiment == DATA:
        return []
    why = [different] if different else []
    groups = GROUPS[claim.dataset]
    if claim.experiment == EXPERIMENT_3 and evidence.group not in groups:
        why.append(f"{evidence.group} was played, not {groups[0]}")
    if evidence.steps != PAPER_STEPS:
        why.append(f"the paper plays {whole(PAPER_STEPS)} steps, and these runs have {whole(evidence.steps)}")
    return why


def _different_counts(dataset: str, evidence: Evidence) -> str:
    """Where the source's counts are not those that the paper prints; '' if they all agree."""
    findings = [
        claim.check(evidence) for claim in CLAIMS if (claim.dataset, claim.experiment) == (dataset, DATA)
    ]
    different = [
        f"{whole(figures['count'])} {figures['fact']}, the paper has {figures['printed']}"
        for finding in findings
        if finding.verdict == FAILS and "printed" in (figures := finding.figures)
    ]
    return f"this is other data than the paper’s: {'; '.join(different)}" if different else ""


def _of_group(finding: Finding, evidence: Evidence) -> Finding:
    """The finding with the group that it is about."""
    size = evidence.group_sizes.get(evidence.group)
    said = f"the group is {evidence.group}" + ("" if size is None else f", {whole(size)} items")
    return replace(
        finding,
        measured=(said, *finding.measured),
        figures={"group": evidence.group, **finding.figures},
    )


def as_json(
    judged: Sequence[Judged], about: Mapping[str, Any], data: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """The ledger as plain values, for claims.json.

    `about` is said first (mode, steps, runs, seed); `data` describes what was played (title, sha256,
    synthetic) by the names that `judge` knows. Verdicts are counted for these data sets alone, and only
    on what the paper says.
    """
    return {
        "format": FORMAT,
        **about,
        "data": {name: dict(described) for name, described in data.items()},
        "verdicts": {name: _counted(judged, name) for name in data},
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


def _counted(judged: Sequence[Judged], dataset: str) -> dict[str, int]:
    verdicts = Counter(
        row.finding.verdict for row in judged if row.claim.dataset == dataset and row.claim.section != OURS
    )
    return {verdict: verdicts[verdict] for verdict in (HOLDS, FAILS, UNTESTABLE)}
