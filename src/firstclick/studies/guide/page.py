"""The guide's table: for every policy, what it loses in every world, as a share of random order."""

from collections.abc import Sequence

from rich.table import Table

from firstclick.registry import DEFAULT_POLICY, is_research
from firstclick.report.tables import TableBlock, terminal_table
from firstclick.rounding import MISSING, with_error
from firstclick.studies.guide.data_worlds import DataWorld
from firstclick.studies.guide.families import FLOOR, class_of, family_of, in_order
from firstclick.studies.guide.fitting import ONLY_IF_NAMED
from firstclick.studies.guide.standings import Line, by_cell, worlds_in
from firstclick.studies.guide.summary import LEAST, REFERENCES, Summary, summaries, times
from firstclick.studies.guide.sweep import sweep_block
from firstclick.studies.guide.worlds import NAMED, GuideWorld

SUMMARY = "times the best reference"
SPLIT = (
    "In a world of data each run splits the users anew: one half teaches the features, by SVD, and the other "
    "answers with clicks."
)


def policies_by_family(lines: Sequence[Line]) -> dict[str, list[str]]:
    """The policies of these lines, family by family; random order has no family."""
    families: dict[str, list[str]] = {}
    for policy in sorted(dict.fromkeys(line.learner for line in lines), key=in_order):
        families.setdefault(family_of(policy), []).append(policy)
    return families


def share_in_words(line: Line) -> str:
    """'7': percent of what random order loses, one digit more below ten."""
    percent = 100 * line.share_of_random
    if percent != percent:
        return MISSING
    return f"{percent:.1f}".replace("-", "−") if abs(percent) < 9.95 else f"{percent:.0f}".replace("-", "−")


def guide_page(lines: Sequence[Line], sweep: Sequence[Line] = (), *, everything: bool = False) -> str:
    """guide.md: the core in a table, and everything in an appendix; or everything in one table."""
    text = ["# Every policy in every world", "", *guide_table(lines if everything else core_of(lines))]
    text += sweep_section(sweep)
    if not everything:
        text += ["## Appendix: all policies", "", *appendix(lines)]
    return "\n".join(text)


def sweep_section(sweep: Sequence[Line]) -> list[str]:
    """The default policy with slates of other sizes, if it was played with them."""
    if not sweep:
        return []
    about = f"`{DEFAULT_POLICY}` with slates of k items, beside random order."
    return ["## How many items to show", "", about, "", *markdown(sweep_block(sweep)), ""]


def markdown(block: TableBlock) -> list[str]:
    """The table for a page of Markdown."""
    rules = ["---" if place < block.words else "--:" for place in range(len(block.columns))]
    rows = [block.columns, rules, *block.rows]
    return ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]


def core_of(lines: Sequence[Line]) -> list[Line]:
    """The lines of core policies, and of plug-ins."""
    return [line for line in lines if not is_research(class_of(line.learner))]


def guide_table(lines: Sequence[Line], worlds: Sequence[GuideWorld] = NAMED) -> list[str]:
    """The table, and below it how to read it, the worlds, and the reasons for dashes.

    `worlds` describe those of the lines.
    """
    cells = by_cell(lines)
    steps, runs = lines[0].steps, max(line.runs for line in lines)
    text = [
        f"Regret after {steps:,} steps as a percentage of that of random order, mean of {runs} "
        f"run{'s' * (runs > 1)}: 0 would be the best slates from the first step on, 100 is no better than "
        "chance. **Bold**: nobody is clearly better there (in every run, or by two standard errors). "
        "°: the world its paper has in mind. –: it cannot be played there, see below.",
        "",
        *summary_note(lines),
        *_rows(lines),
        "",
        "The worlds, each time another one of its kind:",
        "",
    ]
    described = {world.name: world for world in worlds}
    played = [described[name] for name in worlds_in(lines)]
    for world in played:
        floor = cells[FLOOR, world.name]
        lost = with_error(floor.expected_regret, floor.stderr)
        text.append(f"- **{world.name}**: {world.why} `{world.call}`; random order loses {lost}.")
    if any(isinstance(world, DataWorld) for world in played):
        text += ["", SPLIT]
    return [*text, "", *_told(lines), *_reasons(lines)]


def summary_note(lines: Sequence[Line]) -> list[str]:
    """How to read the summary; nothing where the table has none."""
    if not summaries_shown(lines):
        return []
    played = {line.learner for line in lines}
    names = ", ".join(f"`{name}`" for name in REFERENCES if name in played)
    return [
        f"**{SUMMARY}**: regret over that of the best reference ({names}) in the same world, as the "
        "geometric mean over the worlds in which the policy can be played, and where that is worst. Regret "
        f"below {100 * LEAST:g} % of random order's counts as that much: in worlds of data it can be "
        "negative, because it is measured against a greedy slate, which is not always the best one.",
        "",
    ]


def summaries_shown(lines: Sequence[Line]) -> dict[str, Summary]:
    """The summary of each policy; none of a single world, where the table says it all."""
    return summaries(lines) if len(worlds_in(lines)) > 1 else {}


def summary_in_words(summary: Summary | None) -> str:
    """'1.24, worst 4.10 in types'."""
    if summary is None:
        return MISSING
    return f"{times(summary.mean)}, worst {times(summary.worst)} in {summary.where}"


def appendix(lines: Sequence[Line]) -> list[str]:
    """The same table with the research policies in it, and what is to be said of these."""
    research = [line for line in lines if is_research(class_of(line.learner))]
    text = ["The table above, with the research policies in it (`firstclick policies --all` lists them).", ""]
    return [*text, *_rows(lines), "", *_told(research), *_reasons(research)]


def _rows(lines: Sequence[Line]) -> list[str]:
    """The table itself."""
    worlds, cells, summary = worlds_in(lines), by_cell(lines), summaries_shown(lines)
    columns = [SUMMARY] * bool(summary) + worlds
    text = [
        "| | " + " | ".join(columns) + " |",
        "|---|" + "---|" * bool(summary) + "--:|" * len(worlds),
    ]
    for family, policies in policies_by_family(lines).items():
        if family:
            text.append(f"| **{family}** |" + " |" * len(columns))
        for policy in policies:
            row = [summary_in_words(summary.get(policy))] * bool(summary)
            for world in worlds:
                line = cells[policy, world]
                share = share_in_words(line)
                marked = "°" if world in class_of(policy).made_for else ""
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
    research = list(dict.fromkeys(line.world for line in missing if ONLY_IF_NAMED in line.reason))
    if research:
        text.append(f"- {', '.join(research)}: research policies play there only if `--policy` names them.")
    for world in dict.fromkeys(line.world for line in missing):
        here = [line for line in missing if line.world == world and ONLY_IF_NAMED not in line.reason]
        blind = [line.learner for line in here if "needs features" in line.reason]
        if blind:
            text.append(f"- {world}: {', '.join(f'`{name}`' for name in blind)} need features.")
        text += [f"- {world}: {line.reason}." for line in here if line.learner not in blind]
    return [*text, ""]


def leaders_table(lines: Sequence[Line]) -> Table:
    """For the terminal: who leads in each world; fits 80 columns."""
    rows, cells = [], by_cell(lines)
    for world in worlds_in(lines):
        here = [line for line in lines if line.world == world and not line.reason]
        here.sort(key=lambda line: line.expected_regret)
        leaders = ", ".join(line.learner for line in here if line.leads)
        least = with_error(here[0].expected_regret, here[0].stderr)
        rows.append((world, leaders, least, with_error(cells[FLOOR, world].expected_regret)))
    columns = ("world", "nobody clearly better than", "least regret", "random")
    return terminal_table(TableBlock("", columns, tuple(rows), words=2))
