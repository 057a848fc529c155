"""The pages of docs/reference/policies: one for each core policy, and one for those of research."""

import csv
from collections.abc import Callable, Sequence
from html import escape
from math import isnan

from pages import DOCS, NOTICE, docstring, first_sentence, parameters

from firstclick import policy_classes
from firstclick.policies.base import Policy
from firstclick.registry import is_research
from firstclick.rounding import microseconds
from firstclick.studies.guide.page import appendix
from firstclick.studies.guide.standings import Line, from_csv

GUIDE = DOCS / "guide" / "guide.csv"
COSTS = DOCS / "research" / "costs.csv"
# Not those of a plug-in that is installed here, or of a test.
POLICIES = {name: cls for name, cls in policy_classes().items() if cls.__module__.startswith("firstclick.")}
CORE = {name: cls for name, cls in POLICIES.items() if not is_research(cls)}
RESEARCH = {name: cls for name, cls in POLICIES.items() if is_research(cls)}
ASSUMED = {
    "cascade": "The user looks from the top and clicks the first item that attracts.",
    "dcm": "The user looks from the top, may click several items, and may leave after each click.",
    "pbm": "A click depends on the item and on its position, not on the items above it.",
}


def policy_page(name: str) -> str:
    """What a policy does, what it assumes, its parameters, how it fares and what it costs."""
    cls = CORE[name]
    lines = [
        NOTICE,
        f"# `{name}`",
        "",
        first_sentence(cls),
        "",
        "| Fact | Value |",
        "|---|---|",
        f'| Write it as | `--policy {name}` or `make_policy("{name}")` |',
        f"| Source | {cls.paper or 'none'} |",
        f"| Item features | {features_of(cls)} |",
        f"| Assumes | {assumption_of(cls)} |",
        f"| Slates | {'drawn at random: its log can be evaluated' if cls.draws else 'follow from the log'} |",
        "",
        "## How it works",
        "",
        *docstring(cls, rest=True),
        "## Parameters",
        "",
        *parameters(cls),
        "## Where it does well",
        "",
        f"![Regret of {name} in each world of the guide, in percent of random order](../../images/policies/{name}.svg)",
        "",
        "Regret in percent of that of random order, 20,000 steps: 0 is the best, 100 is chance. Grey: the other "
        "core policies. Worlds and numbers: [which policy](../../guide/which_policy.md).",
        "",
        "## Cost",
        "",
        *cost_of(name),
    ]
    return "\n".join(lines)


def features_of(cls: type[Policy]) -> str:
    """What a policy does with features."""
    if cls.needs_features:
        return "needed"
    return "used if there are any" if cls.takes_features else "not used"


def assumption_of(cls: type[Policy]) -> str:
    """How it reads clicks."""
    return ASSUMED.get(cls.click_model.name, cls.click_model.name)


def cost_of(name: str) -> list[str]:
    """The time of a step, as `python -m benchmarks.policies` measured it."""
    with COSTS.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    sizes = sorted({int(row["items"]) for row in rows})
    own = {int(row["items"]): row for row in rows if row["policy"] == name}
    cells = [
        f"{microseconds(float(own[size]['microseconds']) / 1e6)} ({own[size]['times_cascade_lin_ts']})"
        if size in own
        else "cannot be played"
        for size in sizes
    ]
    return [
        "Microseconds of a step (recommend, click, learn) with 20 features and 4 places; in brackets, times "
        "`cascade-lin-ts` in the same run (`python -m benchmarks.policies --core`):",
        "",
        f"| {' | '.join(f'{size:,} items' for size in sizes)} |",
        "| ---: " * len(sizes) + "|",
        f"| {' | '.join(cells)} |",
        "",
        "See [benchmarks](../../research/benchmarks.md) for more sizes and other libraries.",
        "",
    ]


def core_page(refusals: Sequence[str], checks: Sequence[str]) -> str:
    """All core policies in a table, and what holds for all."""
    lines = [
        NOTICE,
        "# Core policies",
        "",
        "Write a policy as `name` or `name:param=value,...`, on the command line (`--policy`) and in Python "
        "(`make_policy`, or the class itself). [Which policy](../../guide/which_policy.md) says which one to take.",
        "",
        "| policy | what it does | features | source |",
        "|---|---|---|---|",
    ]
    for name, cls in CORE.items():
        lines.append(
            f"| [`{name}`]({name}.md) | {first_sentence(cls)} | {features_of(cls)} | {cls.paper or '–'} |"
        )
    return "\n".join(
        [
            *lines,
            "",
            "## Requests that some policies refuse",
            "",
            *refusals,
            "## Checks that every policy passes",
            "",
            *checks,
        ]
    )


def research_page() -> str:
    """The others in one table, and everybody in every world."""
    lines = [
        NOTICE,
        "# Research policies",
        "",
        "Policies of papers that we keep for comparison. They work wherever the core policies do. "
        "`firstclick policies --all` lists them, `pydoc` or the file of each has its formula.",
        "",
        "| policy | what it does | parameters and defaults | source |",
        "|---|---|---|---|",
    ]
    for name, cls in RESEARCH.items():
        told = ", ".join(f"`{key}={short(value)}`" for key, value in cls.defaults().items()) or "–"
        lines.append(f"| `{name}` | {first_sentence(cls)} | {told} | {cls.paper or '–'} |")
    return "\n".join([*lines, "", "## All policies in all worlds", "", *appendix(guide_lines())])


def short(value: object) -> str:
    """A default in a table."""
    return "/".join(map(str, value)) if isinstance(value, tuple) else "" if value is None else str(value)


def guide_lines() -> list[Line]:
    return from_csv(GUIDE.read_text(encoding="utf-8"))


# The picture of a policy's row: a line a world, a dot a policy.

WIDTH, LEFT, RIGHT, TOP, ROW = 520, 150, 52, 34, 23


def row_picture(name: str) -> str:
    """Regret in percent of random order, world by world, among the other core policies."""
    lines = [line for line in guide_lines() if line.learner in CORE and not isnan(line.share_of_random)]
    worlds = list(dict.fromkeys(line.world for line in lines if line.learner == name))
    span = WIDTH - LEFT - RIGHT
    bottom = TOP + ROW * len(worlds)

    def x(share: float) -> float:
        return LEFT + span * min(max(share, 0.0), 1.0)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {bottom + 12}" '
        'font-family="DejaVu Sans, Helvetica, Arial, sans-serif" font-size="13">',
        f'<rect width="{WIDTH}" height="{bottom + 12}" fill="#fff"/>',
    ]
    for percent in (0, 25, 50, 75, 100):
        at = x(percent / 100)
        parts.append(f'<path d="M{at:g} {TOP - 8}V{bottom}" stroke="#e0e0e0"/>')
        parts.append(f'<text x="{at:g}" y="{TOP - 14}" text-anchor="middle" fill="#666">{percent} %</text>')
    for place, world in enumerate(worlds):
        y = TOP + ROW * place + ROW / 2
        parts.append(
            f'<text x="{LEFT - 10}" y="{y + 4.5:g}" text-anchor="end" fill="#222">{escape(world)}</text>'
        )
        own = 0.0
        for line in (line for line in lines if line.world == world):
            if line.learner == name:
                own = line.share_of_random
            elif line.learner != "random":
                parts.append(f'<circle cx="{x(line.share_of_random):.1f}" cy="{y:g}" r="3" fill="#c4c4c4"/>')
        parts.append(f'<circle cx="{x(own):.1f}" cy="{y:g}" r="5.5" fill="#3f51b5"/>')
        figure = f"{100 * own:.0f}" if own >= 0.095 else f"{100 * own:.1f}"
        parts.append(
            f'<text x="{WIDTH - 6}" y="{y + 4.5:g}" text-anchor="end" fill="#3f51b5">{figure}</text>'
        )
    return "\n".join([*parts, "</svg>", ""])


def policy_pages() -> dict[str, Callable[[], str]]:
    """Every file of a core policy, and how it is written."""
    found: dict[str, Callable[[], str]] = {}
    for name in CORE:
        found[f"reference/policies/{name}.md"] = lambda name=name: policy_page(name)
        found[f"images/policies/{name}.svg"] = lambda name=name: row_picture(name)
    found["reference/policies/research.md"] = research_page
    return found
