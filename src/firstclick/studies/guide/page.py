"""The guide's table: for every learner, what it loses in every stock world, as a share of random order."""

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from firstclick.rounding import MISSING, with_error
from firstclick.studies.guide.families import FLOOR, family_of
from firstclick.studies.guide.standings import Line, worlds_in


def learners_by_family(lines: Sequence[Line]) -> dict[str, list[str]]:
    """The learners in the order of the lines, which is the guide's; random order has no family."""
    families: dict[str, list[str]] = {}
    for learner in dict.fromkeys(line.learner for line in lines):
        families.setdefault(family_of(learner.partition(":")[0]), []).append(learner)
    return families


def by_cell(lines: Sequence[Line]) -> dict[tuple[str, str], Line]:
    """The line of each learner and world."""
    return {(line.learner, line.world): line for line in lines}


def share_in_words(line: Line) -> str:
    """'7': percent of what random order loses, one digit more below ten."""
    percent = 100 * line.share_of_random
    if percent != percent:
        return MISSING
    return f"{percent:.1f}".replace("-", "−") if abs(percent) < 9.95 else f"{percent:.0f}".replace("-", "−")


def guide_page(lines: Sequence[Line]) -> str:
    """guide.md: the table as Markdown, what the worlds are, and why some learners are missing somewhere."""
    return "\n".join(["# Every learner in every stock world", "", *guide_table(lines)])


def guide_table(lines: Sequence[Line]) -> list[str]:
    """The table, and below it how to read it, the worlds, and the reasons for dashes."""
    worlds, cells = worlds_in(lines), by_cell(lines)
    steps, runs = lines[0].steps, max(line.runs for line in lines)
    own = {world.name: world.own_ground for world in worlds}
    text = [
        f"Regret after {steps:,} steps as a percentage of that of random order, mean of {runs} "
        f"run{'s' * (runs > 1)}: 0 would be the best slates from the first step on, 100 is no better than "
        "chance. **Bold**: nobody is clearly better there (in every run, or by two standard errors). "
        "°: the world its paper has in mind. –: it cannot be played there, see below.",
        "",
        "| | " + " | ".join(world.name for world in worlds) + " |",
        "|---|" + "--:|" * len(worlds),
    ]
    for family, learners in learners_by_family(lines).items():
        if family:
            text.append(f"| **{family}** |" + " |" * len(worlds))
        for learner in learners:
            row = []
            for world in worlds:
                line = cells[learner, world.name]
                share = share_in_words(line)
                marked = "°" if learner.partition(":")[0] in own[world.name] else ""
                row.append((f"**{share}**" if line.leads else share) + marked)
            text.append(f"| `{learner}` | " + " | ".join(row) + " |")
    text += ["", "The worlds, each time another one of its kind:", ""]
    for world in worlds:
        floor = cells[FLOOR, world.name]
        lost = with_error(floor.expected_regret, floor.stderr)
        call = f"--world {world.spec} --k {world.k}"
        text.append(f"- **{world.name}**: {world.why} `{call}`; random order loses {lost}.")
    return [*text, "", *_told(lines), *_reasons(lines)]


def _told(lines: Sequence[Line]) -> list[str]:
    """Which learners did not play with their defaults alone."""
    told: dict[str, dict[str, list[str]]] = {}
    for line in lines:
        if not line.reason and line.policy != line.learner:
            told.setdefault(line.learner, {}).setdefault(line.policy, []).append(line.world)
    if not told:
        return []
    everywhere = {learner: {line.world for line in lines if line.learner == learner and not line.reason}
                  for learner in told}  # fmt: skip
    text = ["Learners have their defaults, and are told what their papers assume known:", ""]
    for learner, policies in told.items():
        parts = [
            f"`{policy}`" + ("" if set(worlds) == everywhere[learner] else f" in {', '.join(worlds)}")
            for policy, worlds in policies.items()
        ]
        text.append(f"- {'; '.join(parts)}")
    return [*text, ""]


def _reasons(lines: Sequence[Line]) -> list[str]:
    """Why a learner is missing in a world; those without features in one line."""
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
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("world", no_wrap=True)
    table.add_column("nobody clearly better than", overflow="fold")
    table.add_column("least regret", justify="right", no_wrap=True)
    table.add_column("random", justify="right", no_wrap=True)
    cells = by_cell(lines)
    for world in worlds_in(lines):
        here = [line for line in lines if line.world == world.name and not line.reason]
        best = min(here, key=lambda line: line.expected_regret)
        leaders = sorted((line for line in here if line.leads), key=lambda line: line.expected_regret)
        table.add_row(
            world.name,
            Text(", ".join(line.learner for line in leaders)),
            with_error(best.expected_regret, best.stderr),
            with_error(cells[FLOOR, world.name].expected_regret),
        )
    return table
