"""An evaluation as one page: the headline, the table, the forest plot, support, and what is not claimed."""

import os

from firstclick.evaluation.figure import forest_plot
from firstclick.evaluation.numbers import level_in_words
from firstclick.evaluation.result import MODEL_BASED, Evaluation
from firstclick.evaluation.text import (
    ASSUMPTIONS,
    NOT_CLAIMED,
    about,
    estimators_block,
    headline,
    headlines,
    judged,
    overview,
    played_block,
)
from firstclick.files.writing import write_whole
from firstclick.report.page import FigureBlock, Page, Section, html_page
from firstclick.report.tables import TableBlock

TITLE = "What would other policies have earned?"


def evaluation_page(evaluation: Evaluation, *, command: str = "") -> str:
    """The page as HTML: it loads nothing and runs no script. Same evaluation, same text."""
    level = level_in_words(evaluation.level)
    n = len(evaluation.answers) + (len(evaluation.played.answers) if evaluation.played else 0)
    sections = (
        [
            Section(
                "Support",
                ("Whether the log can answer: ok, caution, or cannot say.",),
                tuple(_support(evaluation)),
            )
        ]
        if evaluation.answers
        else []
    )
    if evaluation.played is not None:
        sections.append(
            Section(
                MODEL_BASED.capitalize(),
                evaluation.played.sentences,
                tuple(headline(answer, evaluation.played.level) for answer in evaluation.played.answers),
                played_block(evaluation.played),
            )
        )
    sections += [Section("Assumptions", (), ASSUMPTIONS), Section("What is not claimed", (), NOT_CLAIMED)]
    estimators = estimators_block(evaluation)
    return html_page(
        Page(
            title=TITLE,
            subtitle=evaluation.log,
            facts=(
                f"{evaluation.slates:,} slates judged",
                f"{evaluation.items:,} items",
                f"up to {evaluation.k} places",
                f"{n} polic{'y' if n == 1 else 'ies'}",
                f"{level} intervals",
            ),
            headline=headlines(evaluation).replace(" %", "\N{NO-BREAK SPACE}%"),
            notes=tuple(map(_sentence, (f"judged: {judged(evaluation)}", *evaluation.notes))),
            overview=overview(evaluation) if evaluation.answers else None,
            figures=(_figure(evaluation),),
            figures_title="Difference from what was shown",
            explains_regret=False,
            sections=tuple(sections),
            tables=(estimators,) if estimators.rows else (),
            tables_title="All estimators",
            data=_description(evaluation),
            settings={"seed": str(evaluation.seed), "interval level": level, "log": evaluation.log},
            versions=dict(evaluation.versions),
            command=command,
        )
    )


def write_page(evaluation: Evaluation, path: str | os.PathLike[str], *, command: str = "") -> None:
    """Write an evaluation as one HTML page: table, figure, reasons and assumptions.

    >>> from pathlib import Path
    >>> from firstclick.evaluation import Uniform, evaluate
    >>> from firstclick.logs.open_log import open_ranked_log
    >>> slates = "tea|milk,0,0.5\\nmilk|tea,,0.5\\n" * 200
    >>> _ = Path("log.csv").write_text("items,click,propensity\\n" + slates)
    >>> write_page(evaluate(open_ranked_log("log.csv"), {"random": Uniform()}), "page.html")
    >>> Path("page.html").exists()
    True

    The page loads nothing and runs no script. An older file is replaced as a whole.

    Args:
        evaluation: From `evaluate`.
        path: The file to write.
        command: The command that repeats it, to print on the page.
    """
    write_whole(path, evaluation_page(evaluation, command=command).encode())


def _support(evaluation: Evaluation) -> list[str]:
    said = [f"{line.removesuffix('.')}." for line in about(evaluation)]
    if evaluation.click_model:
        said.append(f"Click model: {evaluation.click_model}.")
    return said


def _sentence(note: str) -> str:
    """A note with a capital and a full stop."""
    return f"{note[:1].upper()}{note[1:].removesuffix('.')}."


def _figure(evaluation: Evaluation) -> FigureBlock:
    caption = (
        "Dots are estimates, lines their intervals; the upright line is what was shown. An open circle: look "
        "at the support first. A hatched row: the log cannot say."
    )
    if evaluation.played is not None:
        caption += " Open squares are model-based, not estimates from the log."
    return FigureBlock("", "", forest_plot(evaluation), caption, headlines(evaluation))


def _description(evaluation: Evaluation) -> tuple[TableBlock, ...]:
    if not evaluation.description:
        return ()
    return (TableBlock("The log in short.", ("", ""), evaluation.description),)
