"""The guide's table: for every policy, what it loses in every stock world, as a share of random order."""

from collections.abc import Sequence

from rich.table import Table

from firstclick.registry import is_research
from firstclick.report.tables import TableBlock, terminal_table
from firstclick.rounding import MISSING, with_error
from firstclick.studies.guide.families import FLOOR, class_of, family_of, in_order
from firstclick.studies.guide.standings import Line, worlds_in
from firstclick.studies.guide.stock import StockWorld


def policies_by_family(lines: Sequence[Line]) -> dict[str, list[str]]:
    """The policies of these lines, family by family; random order has no family."""
    families: dict[str, list[str]] = {}
    for policy in sorted(dict.fromkeys(line.learner for line in lines), key=in_order):
        families.setdefault(family_of(policy), []).append(policy)
    return families


def by_cell(lines: Sequence[Line]) -> dict[tuple[str, str], Line]:
    """The line of each policy and world."""
    return {(line.learner, line.world): line for line in lines}


def share_in_words(line: Line) -> str:
    """'7': percent of what random order loses, one digit more below ten."""
    percent = 100 * line.share_of_random
    if percent != percent:
        return MISSING
    return f"{percent:.1f}".replace("-", "−") if abs(percent) < 9.95 else f"{percent:.0f}".replace("-", "−")


def guide_page(lines: Sequence[Line], *, everything: bool = False) -> str:
    """guide.md: the core in a table, and everything in an appendix; or everything in one table."""
    text = ["# Every policy in every stock world", ""]
    if everything:
        return "\n".join([*text, *guide_table(lines)])
    return "\n".join([*text, *guide_table(core_of(lines)), "## Appendix: all policies", "", *appendix(lines)])


def core_of(lines: Sequence[Line]) -> list[Line]:
    """The lines of core policies, and of plug-ins."""
    return [line for line in lines if not is_research(class_of(line.learner))]


def guide_table(lines: Sequence[Line]) -> list[str]:
    """The table, and below it how to read it, the worlds, and the reasons for dashes."""
    worlds, cells = worlds_in(lines), by_cell(lines)
    steps, runs = lines[0].steps, max(line.runs for line in lines)
    text = [
        f"Regret after {steps:,} steps as a percentage of that of random order, mean of {runs} "
        f"run{'s' * (runs > 1)}: 0 would be the best slates from the first step on, 100 is no better than "
        "chance. **Bold**: nobody is clearly better there (in every run, or by two standard errors). "
        "°: the world its paper has in mind. –: it cannot be played there, see below.",
        "",
        *_rows(lines, worlds),
        "",
        "The worlds, each time another one of its kind:",
        "",
    ]
    for world in worlds:
        floor = cells[FLOOR, world.name]
        lost = with_error(floor.expected_regret, floor.stderr)
        call = f"--world {world.spec} --k {world.k}"
        text.append(f"- **{world.name}**: {world.why} `{call}`; random order loses {lost}.")
    return [*text, "", *_told(lines), *_reasons(lines)]


def appendix(lines: Sequence[Line]) -> list[str]:
    """The same table with the research policies in it, and what is to be said of these."""
    research = [line for line in lines if is_research(class_of(line.learner))]
    text = ["The table above, with the research policies in it (`firstclick policies --all` lists them).", ""]
    return [*text, *_rows(lines, worlds_in(lines)), "", *_told(research), *_reasons(research)]


def _rows(lines: Sequence[Line], worlds: Sequence[StockWorld]) -> list[str]:
    """The table itself."""
    cells = by_cell(lines)
    text = [
        "| | " + " | ".join(world.name for world in worlds) + " |",
        "|---|" + "--:|" * len(worlds),
    ]
    for family, policies in policies_by_family(lines).items():
        if family:
            text.append(f"| **{family}** |" + " |" * len(worlds))
        for policy in policies:
            row = []
            for world in worlds:
                line = cells[policy, world.name]
                share = share_in_words(line)
                marked = "°" if world.name in class_of(policy).made_for else ""
                row.append((f"**{share}**" if line.leads else share) + marked)
            text.append(f"| `{policy}` | " + " | ".join(row) + " |")
    return text


def _told(lines: Sequence[Line]) -> list[str]:
    """Which policies did not play with their defaults alone."""
    told: dict[str, dict[str, list[str]]] = {}
    for line in lines:
        if not line.reason and line.policy != line.learner:
            told.setdefault(line.learner, {}).setdefault(line.policy, []).append(line.world)
    if not told:
        return []
    everywhere = {asked: {line.world for line in lines if line.learner == asked and not line.reason}
                  for asked in told}  # fmt: skip
    text = ["Policies have their defaults, and are told what their papers assume known:", ""]
    for asked, policies in told.items():
        parts = [
            f"`{policy}`" + ("" if set(worlds) == everywhere[asked] else f" in {', '.join(worlds)}")
            for policy, worlds in policies.items()
        ]
        text.append(f"- {'; '.join(parts)}")
    return [*text, ""]


def _reasons(lines: Sequence[Line]) -> list[str]:
    """Why a policy is missing in a world; those without features in one line."""
    missing = [line for line in lines if line.reason]
    if not missing:
        return []
    text = ["Dashes:", ""]
    for world in dict.fromkeys(line.world for line in missing):
        here = [line for line in missing if line.world == world]
        blind = [line.learner for line in here if "needs features" in line.reason]
        if blind:
            text.append(f"- {world}: {', '.join(f'`{name}`' for name in blind)} need features.")
        text += [f"- {world}: {line.reason}." for line in here if line.learner not in blind]
    return [*text, ""]


def leaders_table(lines: Sequence[Line]) -> Table:
    """For the terminal: who leads in each world; fits 80 columns."""
    rows, cells = [], by_cell(lines)
    for world in worlds_in(lines):
        here = [line for line in lines if line.world == world.name and not line.reason]
        here.sort(key=lambda line: line.expected_regret)
        leaders = ", ".join(line.learner for line in here if line.leads)
        least = with_error(here[0].expected_regret, here[0].stderr)
        rows.append((world.name, leaders, least, with_error(cells[FLOOR, world.name].expected_regret)))
    columns = ("world", "nobody clearly better than", "least regret", "random")
    return terminal_table(TableBlock("", columns, tuple(rows), words=2))
