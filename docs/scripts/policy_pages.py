"""The pages of docs/reference/policies: one for each core policy, and one for those of research."""

import csv
from collections.abc import Callable, Sequence

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
        "[Which policy](../../guide/which_policy.md) compares its regret with that of the others.",
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


def policy_pages() -> dict[str, Callable[[], str]]:
    """Each page, with the function that writes it."""
    found: dict[str, Callable[[], str]] = {}
    for name in CORE:
        found[f"reference/policies/{name}.md"] = lambda name=name: policy_page(name)
    found["reference/policies/research.md"] = research_page
    return found
