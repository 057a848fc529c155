"""Which policy to take in one world: an answer in plain words, and the table that it stands on."""

from collections.abc import Sequence

from firstclick.registry import DEFAULT_POLICY
from firstclick.report.tables import TableBlock
from firstclick.rounding import rounded, whole, with_error
from firstclick.studies.guide.data_worlds import DataWorld
from firstclick.studies.guide.families import FLOOR
from firstclick.studies.guide.fitted_page import FittedPage
from firstclick.studies.guide.page import guide_table, markdown, sweep_section
from firstclick.studies.guide.standings import INTERVAL, Line, half_width

HOW_TO_READ = (
    "Regret: clicks lost to the best slate, mean of {runs} runs and its standard error. Last column: how "
    "many more than the default policy, compared run by run, with a {interval:.0f} % interval."
)
# The chance that the answer leaves the default policy for one that is no better, if no policy is.
CHANCE = 0.05


def answer(lines: Sequence[Line]) -> str:
    """Which policy to take, or that the runs cannot tell; the lines are those of one world.

    Runs are compared in pairs. To be taken in place of the default, a policy must lose least, and less than
    the default by Student's t; the more policies are compared with the default, the higher is that bar.
    """
    played = sorted((line for line in lines if not line.reason), key=lambda line: line.expected_regret)
    learned = [line for line in played if line.learner != FLOOR]
    floor = next(line for line in played if line.learner == FLOOR)
    best = learned[0]
    after = f"in {whole(best.steps)} steps"
    lost = f"lost least, {_lost(best)} clicks {after}"
    if best.runs < 2:
        return f"One run cannot tell: {best.learner} {lost}, which may be luck. Play more --runs."
    if floor.leads or (best.learner == DEFAULT_POLICY and not floor.more_low > 0):
        nobody = f"no policy is clearly better than random order {after}"
        return f"The runs cannot tell: {nobody}. Play more --steps or --runs."
    default = next((line for line in learned if line.learner == DEFAULT_POLICY), None)
    # Against the default there are intervals; two runs may both be worse by luck.
    unsure = [line for line in learned if best is default and not line.more_low > 0]
    equals = [line.learner for line in learned if line is not best and (line.leads or line in unsure)]
    tied = f"{_listed(equals)} cannot be told from it in {best.runs} runs." if equals else ""
    if default is None or best is default:
        return f"Take {best.learner}: it {lost}; {tied or 'all others lost clearly more.'}"
    fewer = (
        f"{_plain(-best.more_than_default)} fewer than {DEFAULT_POLICY}, the default (90 % interval: "
        f"{_plain(-best.more_high)} to {_plain(-best.more_low)})"
    )
    if not _clearly_less(best, len(learned) - 1):
        luck = f"{best.learner} {lost}, {fewer}, which may be chance"
        return f"The runs cannot tell: {luck}. Take the default, or play more --runs."
    text = [f"Take {best.learner}: it {lost}, {fewer}."]
    if tied:
        text.append(tied)
    if best.worst_run > default.worst_run:
        its, other = _plain(best.worst_run), _plain(default.worst_run)
        text.append(f"But its worst run lost {its}, that of the default {other}.")
    return " ".join(text)


def decision_block(lines: Sequence[Line]) -> TableBlock:
    """Every policy of one world, least regret first, those that lead in bold."""
    played = sorted((line for line in lines if not line.reason), key=lambda line: line.expected_regret)
    return TableBlock(
        "",
        ("policy", "regret", "90th pct.", "worst run", f"more than {DEFAULT_POLICY} (90 %)"),
        tuple(
            (line.learner, _lost(line), _plain(line.p90), _plain(line.worst_run), _more(line))
            for line in played
        ),
        bold=frozenset(line.learner for line in played if line.leads),
    )


def decision_page(lines: Sequence[Line], world: DataWorld | FittedPage, sweep: Sequence[Line] = ()) -> str:
    """guide.md for a file: the answer, its table, and what such a file cannot tell."""
    text = [f"# Which policy for {world.name}?", "", answer(lines), "", *markdown(decision_block(lines)), ""]
    text += [HOW_TO_READ.format(runs=lines[0].runs, interval=100 * INTERVAL), ""]
    text += sweep_section(sweep)
    text += ["## What this file cannot tell", "", *(f"- {limit}" for limit in world.limits), ""]
    return "\n".join([*text, "## The table of the guide", "", *guide_table(lines, [world])])


def _clearly_less(line: Line, compared: int) -> bool:
    """Whether it loses less than the default, being the best of so many that are compared with that."""
    stderr = (line.more_high - line.more_than_default) / half_width(1.0, line.runs, (1 - INTERVAL) / 2)
    return line.more_than_default < -half_width(stderr, line.runs, CHANCE / compared)


def _more(line: Line) -> str:
    """'−120 (−180 to −60)'."""
    if line.more_low != line.more_low:
        return _plain(line.more_than_default)
    return f"{_plain(line.more_than_default)} ({_plain(line.more_low)} to {_plain(line.more_high)})"


def _lost(line: Line) -> str:
    return with_error(line.expected_regret, line.stderr)


def _plain(value: float) -> str:
    return rounded(value)[0]


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
