"""The claims of Zong et al. 2016 against what was measured: a verdict for every claim."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from firstclick.errors import UnknownName
from firstclick.rounding import whole
from firstclick.studies.paper.claims import CLAIMS, GROUPS, OURS, TITLES, WORDS, Claim
from firstclick.studies.paper.evidence import Case, Evidence
from firstclick.studies.paper.statistics import CHANCE, fewest_runs
from firstclick.studies.paper.verdicts import FAILS, HOLDS, UNEVEN, UNTESTABLE, Finding

FORMAT = "firstclick claims 1"
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
    f"Where nothing else is said there are {Case.items} items, {Case.rank} features and slates of {Case.k}.",
)


def judge(evidence: Mapping[str, Evidence]) -> list[tuple[Claim, Finding]]:
    """Every claim with its finding, from the evidence on each data set by its name.

    Made-up data, other data than the paper's, another group and runs of another length give no verdict on
    the paper: their findings keep the figures, and say what the rule would have given.
    """
    for name in evidence:
        if name not in TITLES:
            raise UnknownName(f"no claim is about data set {name!r}; the paper has {', '.join(TITLES)}")
    different = {name: _different_counts(name, measured) for name, measured in evidence.items()}
    return [
        (claim, _find(claim, evidence[claim.dataset], different[claim.dataset]))
        if claim.dataset in evidence
        else (claim, Finding(UNTESTABLE, (), {}, f"{TITLES[claim.dataset]} was not played"))
        for claim in CLAIMS
    ]


def _different_counts(dataset: str, evidence: Evidence) -> str:
    """Where the source's counts are not those that the paper prints; '' if they all agree."""
    of_data = [one for one in CLAIMS if (one.dataset, one.criterion.experiment) == (dataset, "data")]
    different = [
        f"{whole(figures['count'])} {figures['fact']}, the paper has {figures['printed']}"
        for finding in (claim.criterion.find(evidence) for claim in of_data)
        if finding.verdict == FAILS and "printed" in (figures := finding.figures)
    ]
    return f"this is other data than the paper’s: {'; '.join(different)}" if different else ""


def _find(claim: Claim, evidence: Evidence, different: str) -> Finding:
    finding = claim.criterion.find(evidence)
    if not finding.measured:
        return finding
    experiment, why = claim.criterion.experiment, []
    if experiment == "experiment 3":
        size = evidence.group_sizes.get(evidence.group)
        group = f"the group is {evidence.group}" + ("" if size is None else f", {whole(size)} items")
        figures = {"group": evidence.group, **finding.figures}
        finding = replace(finding, measured=(group, *finding.measured), figures=figures)
    if evidence.synthetic:
        why = [f"the data is synthetic, and made-up data says nothing about {TITLES[claim.dataset]}"]
    elif experiment != "data":
        why = [different] if different else []
        groups = GROUPS[claim.dataset]
        if experiment == "experiment 3" and evidence.group not in groups:
            why.append(f"{evidence.group} was played, not {groups[0]}")
        if evidence.steps != PAPER_STEPS:
            why.append(
                f"the paper plays {whole(PAPER_STEPS)} steps, and these runs have {whole(evidence.steps)}"
            )
    if not why:
        return finding
    verdict, reason = finding.verdict, finding.reason
    alone = reason if verdict == UNTESTABLE else f"{verdict} ({reason})"
    said = f"{'; '.join(why)}; the rule alone would say: {alone}"
    return replace(finding, verdict=UNTESTABLE, reason=said)


def as_json(
    judged: Sequence[tuple[Claim, Finding]], about: Mapping[str, Any], data: Mapping[str, Mapping[str, Any]]
) -> dict[str, Any]:
    """The claims and their findings as plain values, for claims.json.

    `about` comes first (mode, steps, runs, seed); `data` describes what was played (title, sha256,
    synthetic) by the names that `judge` knows. Verdicts are counted for these data sets alone, and only
    on what the paper says.
    """
    counts = Counter((claim.dataset, found.verdict) for claim, found in judged if claim.section != OURS)
    return {
        "format": FORMAT,
        **about,
        "data": {name: dict(described) for name, described in data.items()},
        "verdicts": {
            name: {verdict: counts[name, verdict] for verdict in (HOLDS, FAILS, UNTESTABLE)} for name in data
        },
        "method": list(METHOD),
        "words": [{"phrase": word.phrase, "meaning": word.meaning, "reason": word.reason} for word in WORDS],
        "claims": [
            {
                "id": claim.id,
                "section": claim.section,
                "dataset": claim.dataset,
                "experiment": claim.criterion.experiment,
                "sentence": claim.sentence,
                "rule": claim.criterion.rule,
                **asdict(finding),
                "measured": list(finding.measured),
            }
            for claim, finding in judged
        ],
    }
