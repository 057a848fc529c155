"""A policy in one number: its regret against that of the best reference, over all worlds."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import exp, log

from firstclick.registry import DEFAULT_POLICY
from firstclick.studies.guide.families import FLOOR
from firstclick.studies.guide.standings import Line

# What a policy is measured by: the default, and those it has to be as good as.
REFERENCES = tuple(
    dict.fromkeys((DEFAULT_POLICY, "cascade-lin-ts", "cascade-lin-ucb", "vac2-ucb", "cascade-ts"))
)
# Of random order's regret: less than this counts as this. Regret may be near 0, where a ratio means little,
# or below it: in a world of data it is measured against the greedy slate, which is not always the best one.
LEAST = 0.001


@dataclass(frozen=True)
class Summary:
    """Times the regret of the best reference: 1 is as good as the best one everywhere."""

    mean: float  # the geometric mean over the worlds in which the policy can be played
    worst: float
    where: str  # the world of the worst


def summaries(lines: Sequence[Line]) -> dict[str, Summary]:
    """The summary of every policy that was played in a world with a reference and with something to lose."""
    floors = {line.world: LEAST * line.expected_regret for line in lines if line.learner == FLOOR}
    played = [line for line in lines if not line.reason and floors[line.world] > 0]
    best: dict[str, float] = {}
    for line in played:
        if line.learner in REFERENCES:
            best[line.world] = min(best.get(line.world, line.expected_regret), line.expected_regret)
    ratios: dict[str, dict[str, float]] = {}
    for line in played:
        if line.world in best:
            least = floors[line.world]
            ratio = max(line.expected_regret, least) / max(best[line.world], least)
            ratios.setdefault(line.learner, {})[line.world] = ratio
    return {policy: _summary(by_world) for policy, by_world in ratios.items()}


def _summary(ratios: dict[str, float]) -> Summary:
    where = max(ratios, key=lambda world: ratios[world])
    return Summary(exp(sum(map(log, ratios.values())) / len(ratios)), ratios[where], where)


def times(ratio: float) -> str:
    """'1.24', '13': two digits after the point below ten, none from there on."""
    return f"{ratio:.2f}" if ratio < 9.995 else f"{ratio:,.0f}"
