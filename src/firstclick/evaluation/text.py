"""An evaluation in words and tables: the same sentences in the terminal and on the page."""

import io
from collections.abc import Iterator

from rich.console import Console
from rich.table import Table

from firstclick.evaluation.numbers import level_in_words, value_and_interval
from firstclick.evaluation.result import (
    CANNOT_SAY,
    CAUTION,
    MODEL_BASED,
    Estimate,
    Evaluation,
    Played,
    PlayedAnswer,
    PolicyAnswer,
)
from firstclick.report.tables import TableBlock, terminal_table

SHOWN = "what was shown"
UNIT = "clicks per page"
CHOSEN = "(chosen)"
NO_NUMBER = ""
MOST_SENTENCES = 2
# A page of text in a terminal that does not tell its width.
WIDTH = 100

ASSUMPTIONS = (
    "A click depends on the item and on what stands above it, not on what stands below. RIPS and Cascade-DR "
    "need this; slate IPS does not. IIPS needs that what stands above does not matter either (PBM).",
    "The logged probabilities are those with which the slates were drawn.",
    "Users, items and prices are those of the time of the log: nothing else has changed since.",
    "What one page shows does not change what happens on another page.",
    "Every click is counted as much as any other.",
)
NOT_CLAIMED = (
    "Nothing is said of items that the log never showed, nor of longer pages than it has.",
    "An estimate holds for the policy as it is now. A policy that goes on learning becomes another one; it "
    "is played in fitted worlds instead, and that answer is model-based.",
    "Intervals hold for each policy alone. Of many policies the best one looks better than it is.",
    "A policy that has learned from a log looks too good on it. Judge it on slates that it has not learned "
    "from; of a ranker in a file nobody knows here which those are.",
    "“ok” means that the log can answer, not that the policy is better.",
)


def in_words(evaluation: Evaluation) -> str:
    """The evaluation as text."""
    out = io.StringIO()
    console = Console(file=out, width=WIDTH, highlight=False, markup=False, emoji=False, soft_wrap=True)
    for block in blocks(evaluation):
        console.print(block)
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()) + "\n"


def blocks(evaluation: Evaluation) -> Iterator[str | Table]:
    """What is printed, in its order. Model-based answers come last, under a line that says what they are."""
    level = evaluation.level
    for answer in evaluation.answers:
        yield headline(answer, level)
    if evaluation.answers:
        yield ""
        yield terminal_table(overview(evaluation))
        estimators = estimators_block(evaluation)
        if estimators.rows:
            yield ""
            yield "All estimators"
            yield terminal_table(estimators)
        yield ""
        yield from about(evaluation)
        yield f"judged: {judged(evaluation)}"
        if evaluation.click_model:
            yield f"click model: {evaluation.click_model}"
        for note in evaluation.notes:
            yield f"note: {note}"
    if evaluation.played is not None:
        if evaluation.answers:
            yield ""
        yield from _played_blocks(evaluation.played)


def headline(answer: PolicyAnswer | PlayedAnswer, level: float) -> str:
    """The difference from what was shown, in a line."""
    if answer.difference is None:
        if not isinstance(answer, PolicyAnswer):
            return f"{answer.policy}: cannot say"
        why = ". ".join(answer.reasons)
        return f"{answer.policy}: cannot say: {why}" + (
            f". To know: {answer.needed}" if answer.needed else ""
        )
    value, interval = value_and_interval(answer.difference, signed=True)
    doubt = ", with caution" if _doubted(answer) else ""
    reach = f"({level_in_words(level)} interval {interval})"
    return f"{answer.policy}: {value} {UNIT} against {SHOWN} {reach}{doubt}"


def headlines(evaluation: Evaluation) -> str:
    """The answer in a sentence or two, for a page: of many policies the highest and the lowest."""
    answers: list[PolicyAnswer | PlayedAnswer] = list(evaluation.answers)
    said = _few(answers, evaluation.level)
    if evaluation.played is not None:
        said.append(f"{MODEL_BASED.capitalize()}:")
        said += _few(list(evaluation.played.answers), evaluation.played.level)
    return " ".join(said)


def _few(answers: list[PolicyAnswer | PlayedAnswer], level: float) -> list[str]:
    if len(answers) <= MOST_SENTENCES:
        return [f"{headline(answer, level)}." for answer in answers]
    known = sorted(
        (answer for answer in answers if answer.difference is not None),
        key=lambda answer: answer.difference.value if answer.difference is not None else 0.0,
    )
    said = []
    if known:
        # A number to be read with caution must not lead while there are numbers without one.
        sure = [answer for answer in known if not _doubted(answer)] or known
        said.append(f"Highest of {len(answers)}: {headline(sure[-1], level)}.")
        if sure[-1] is not known[-1]:
            said.append(f"Higher, but: {headline(known[-1], level)}.")
    if len(known) > 1:
        said.append(f"Lowest: {headline(known[0], level)}.")
    if unknown := len(answers) - len(known):
        said.append(f"Cannot say: {unknown} of {len(answers)}.")
    return said


def _doubted(answer: PolicyAnswer | PlayedAnswer) -> bool:
    return isinstance(answer, PolicyAnswer) and answer.verdict == CAUTION


def overview(evaluation: Evaluation) -> TableBlock:
    """One row a policy, and what was shown."""
    level = level_in_words(evaluation.level)
    rows = [
        (answer.policy, answer.verdict, *_cells(answer.difference, signed=True), *_cells(answer.value))
        for answer in evaluation.answers
    ]
    rows.append((SHOWN, "", "", "", *_cells(evaluation.shown)))
    return TableBlock(
        f"Difference from what was shown, and value, in {UNIT}, with {level} intervals.",
        ("", "support", "difference", f"{level} interval", "value", f"{level} interval"),
        tuple(rows),
        words=2,
    )


def estimators_block(evaluation: Evaluation) -> TableBlock:
    """What every estimator says of every policy that can be judged."""
    rows = []
    for answer in evaluation.answers:
        if answer.verdict == CANNOT_SAY:
            continue
        named = answer.policy
        for row in answer.estimators:
            title = f"{row.title} {CHOSEN}" if row.chosen else row.title
            cells = (*_cells(row.difference, signed=True), *_cells(row.value))
            rows.append((named, title, *cells))
            named = ""
    level = level_in_words(evaluation.level)
    return TableBlock(
        f"All estimators, in {UNIT}. The headline is that of the chosen one.",
        ("", "estimator", "difference", f"{level} interval", "value", f"{level} interval"),
        tuple(rows),
        words=2,
    )


def played_block(played: Played) -> TableBlock:
    """Policies that go on learning, in fitted worlds."""
    width = level_in_words(played.level)
    rows = [
        (answer.policy, *_cells(answer.difference, signed=True), *_cells(answer.value))
        for answer in played.answers
    ]
    rows.append((SHOWN, "", "", *_cells(played.shown)))
    return TableBlock(
        f"{MODEL_BASED.capitalize()}: {UNIT} of policies that go on learning, in worlds fitted to the log.",
        ("", "difference", f"{width} interval", "value", f"{width} interval"),
        tuple(rows),
    )


def _played_blocks(played: Played) -> Iterator[str | Table]:
    yield MODEL_BASED
    for answer in played.answers:
        yield headline(answer, played.level)
    yield ""
    yield terminal_table(played_block(played))
    yield ""
    yield from played.sentences


def about(evaluation: Evaluation) -> Iterator[str]:
    """Why each policy has its verdict and its estimator, said once for all that share it."""
    for answer in evaluation.answers:
        why = ". ".join(answer.reasons)
        yield f"{answer.policy}: {answer.verdict}" + (f". {why}" if why else "")
        for note in (*([f"to know, {answer.needed}"] if answer.needed else ()), *answer.notes):
            yield f"{answer.policy}: {note}"
    chosen: dict[tuple[str, str], list[str]] = {}
    for answer in evaluation.answers:
        if answer.why:
            chosen.setdefault((answer.estimator, answer.why), []).append(answer.policy)
    for (estimator, why), policies in chosen.items():
        yield f"estimator of {', '.join(policies)}: {estimator}. {why}"


def judged(evaluation: Evaluation) -> str:
    """'9,950 slates of clicks.csv; left out: 50 without a reported outcome'."""
    left = "; ".join(f"{n:,} {reason}" for reason, n in evaluation.left_out.items() if n)
    slates = f"{evaluation.slates:,} slate{'s' * (evaluation.slates != 1)} of {evaluation.log}"
    return slates + (f"; left out: {left}" if left else "")


def _cells(estimate: Estimate | None, *, signed: bool = False) -> tuple[str, str]:
    return (NO_NUMBER, NO_NUMBER) if estimate is None else value_and_interval(estimate, signed=signed)
