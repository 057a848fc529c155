"""The report of an experiment: its figure, its tables, its data, and how to repeat it."""

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

from firstclick.experiments import Comparison, Dataset, Experiment
from firstclick.files.reading import as_path
from firstclick.files.writing import write_whole
from firstclick.report.comparisons import plots_of
from firstclick.report.figures import FORMATS, save_figure
from firstclick.report.grid import grid_figure
from firstclick.report.page import FigureBlock, LearnedBlock, Page, html_page
from firstclick.report.tables import TableBlock, setting_words, share_of_best
from firstclick.report.winner import final_with_error
from firstclick.rounding import percent, whole, with_error
from firstclick.source_code import installed_versions

# The steps at which tables give regret, besides the last.
TOLD = (1_000, 10_000)


def write_experiment(
    comparisons: Sequence[Comparison], folder: str | os.PathLike[str], *, command: str = ""
) -> None:
    """Write the figure and the report of one experiment, carried out in the folder."""
    folder = as_path(folder)
    experiment = comparisons[0].experiment
    datasets = list(dict.fromkeys(one.dataset for one in comparisons))
    rows = [plots_of([one for one in comparisons if one.dataset is dataset]) for dataset in datasets]
    figure = grid_figure(rows, row_titles=[dataset.title for dataset in datasets])
    save_all(figure, folder / "regret")
    page = Page(
        title=experiment.title,
        subtitle=", ".join(dataset.title for dataset in datasets),
        facts=facts_of(comparisons),
        notes=notes_of(comparisons),
        figures=(figure_block("Figure", "expected regret", figure, CURVES, comparisons),),
        tables=(regret_table(experiment.title, comparisons),),
        data=(data_table(datasets),),
        learned=tuple(learned_block(one) for one in comparisons),
        settings=training_words(experiment),
        versions=installed_versions(),
        command=command,
    )
    write_whole(folder / "report.html", html_page(page).encode())


CURVES = (
    "Clicks lost to the best fixed slate: a straight climb is no learning, a flat curve has learned. Lines "
    "are means over runs, bands one standard error either side; where a curve leaves its panel its highest "
    "value is written."
)


def save_all(figure: Figure, stem: Path) -> None:
    """The figure as stem.svg, stem.png and stem.pdf."""
    for kind in FORMATS:
        save_figure(figure, stem.with_name(f"{stem.name}.{kind}"))


def figure_block(
    name: str, title: str, figure: Figure, caption: str, comparisons: Sequence[Comparison]
) -> FigureBlock:
    """The figure, with its last values in words for those who cannot see it."""
    ends = "; ".join(
        f"{one.dataset.title}, {setting_words(one)}, {result.policy} {final_with_error(result)}"
        for one in comparisons
        for result in one.results.results
    )
    return FigureBlock(name, title, figure, caption, f"{title}. Expected regret after the last step: {ends}.")


def regret_table(caption: str, comparisons: Sequence[Comparison]) -> TableBlock:
    """Regret along the way and at the end, and the clicks won, for every policy in every setting."""
    steps = comparisons[0].setting.steps
    told = [step for step in TOLD if step < steps] + [steps]
    several = len({one.dataset.title for one in comparisons}) > 1
    rows = []
    for one in comparisons:
        words = f"{one.dataset.title}, {setting_words(one)}" if several else setting_words(one)
        at = np.searchsorted(one.results.step, told)
        for result in one.results.results:
            means, errors = result.mean("expected_regret")[at], result.stderr("expected_regret")[at]
            regrets = map(with_error, means.tolist(), errors.tolist())
            clicks = final_with_error(result, "reward"), percent(share_of_best(result))
            rows.append((words, result.policy, *regrets, *clicks))
    columns = ("setting", "policy", *(f"regret at {whole(step)}" for step in told), "reward", "of best")
    return TableBlock(caption, columns, tuple(rows), words=2)


def data_table(datasets: Sequence[Dataset]) -> TableBlock:
    """What was played on, with the hash that the manifest has in full."""
    columns = ("data", "users", "items", "attracted pairs", "density", "users attracted by nothing", "sha256")
    rows = []
    for dataset in datasets:
        (users, items), pairs = dataset.matrix.shape, dataset.matrix.nnz
        idle = int(np.count_nonzero(np.diff(dataset.matrix.indptr) == 0))
        shares = percent(pairs / (users * items)), percent(idle / users)
        rows.append((dataset.title, *map(whole, (users, items, pairs)), *shares, dataset.digest[:12]))
    return TableBlock("Data", columns, tuple(rows))


def learned_block(comparison: Comparison) -> LearnedBlock:
    """What each policy showed most at the end, beside the best slate."""
    results = comparison.results
    return LearnedBlock(
        title=f"{comparison.dataset.title}, {setting_words(comparison)}",
        k=results.k,
        best=results.optimal_items,
        shown={result.policy: result.shown for result in results.results},
    )


def facts_of(comparisons: Sequence[Comparison]) -> tuple[str, ...]:
    """Steps and runs in a few words."""
    steps = sorted({one.setting.steps for one in comparisons})
    runs = sorted({one.results.runs for one in comparisons})
    return (
        f"{' or '.join(map(whole, steps))} steps",
        "1 run" if runs == [1] else f"{' or '.join(map(whole, runs))} runs",
        f"seed {comparisons[0].setting.seed}",
    )


def notes_of(comparisons: Sequence[Comparison]) -> tuple[str, ...]:
    """What policies had to say, each once."""
    return tuple(dict.fromkeys(note for one in comparisons for note in one.results.notes))


KEPT = {
    "popular": "the most attractive",
    "random": "random ones of each run",
    "source": "the first as the source ranks them, or else the most attractive",
}


def training_words(experiment: Experiment) -> dict[str, str]:
    """How users were split and features learned, in words."""
    training = experiment.training
    return {
        "features": ("V Sigma" if training.scaled else "V")
        + (" and an intercept" if training.intercept else ""),
        "SVD": "of the kept items alone" if training.cut_first else "of all items, before the cut",
        "items kept": KEPT[training.pick],
        "users for features": "half as many as there are, drawn with replacement; the others click"
        if training.with_replacement
        else "a random half; the others click",
        "split": "one for all runs" if training.one_split else "a new one for each run",
    }
