"""Zong et al. 2016 from data to verdicts: its experiments, its two figures, its claims, one report."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from matplotlib.figure import Figure

from firstclick.experiments import Comparison, Dataset
from firstclick.experiments.conduct import conduct
from firstclick.experiments.engines import Engine
from firstclick.experiments.runner import UNWATCHED, Watch
from firstclick.files.reading import as_path
from firstclick.files.writing import write_whole
from firstclick.policies.base import Policy
from firstclick.report.comparisons import plots_of, sweep_plot
from firstclick.report.experiment import (
    CURVES,
    data_table,
    facts_of,
    figure_block,
    learned_block,
    notes_of,
    regret_table,
    save_all,
    training_words,
)
from firstclick.report.grid import grid_figure
from firstclick.report.page import FigureBlock, Page, html_page
from firstclick.report.panel import Plot
from firstclick.report.style import base_name
from firstclick.source_code import installed_versions
from firstclick.studies.paper.claims import OURS, TITLES, WORDS
from firstclick.studies.paper.evidence import evidence_of
from firstclick.studies.paper.experiments import (
    BESIDE,
    EXPERIMENTS,
    Mode,
    dataset_name,
    experiments_of,
    mode_named,
)
from firstclick.studies.paper.judge import METHOD, PAPER_STEPS, as_json, judge
from firstclick.studies.paper.plain_numpy import numpy_seconds_per_step
from firstclick.studies.paper.statistics import CHANCE, fewest_runs
from firstclick.studies.paper.summary import Judged, claim_rows, claims_headline, tally
from firstclick.studies.paper.verdicts import FAILS

# Figure 2 of the paper, column by column: the experiment, what is drawn, and what it is called.
FIGURE_2 = (
    ("2", "expected_regret", "(a) features"),
    ("3", "expected_regret", "(b) features, subset"),
    ("4", "expected_regret", "(c) regret by K"),
    ("4", "reward", "(d) reward by K"),
)
SWEPT = {"sigma": "learning rate sigma", "c": "width c of CascadeLinUCB"}


@dataclass(frozen=True, eq=False)
class Reproduction:
    """What was played, what was found, and one sentence about it."""

    comparisons: list[Comparison]
    claims: dict[str, Any]
    summary: str


def reproduce(
    datasets: Sequence[Dataset],
    folder: str | os.PathLike[str],
    engine: Engine | str = "local",
    *,
    experiments: Sequence[str] = EXPERIMENTS,
    mode: Mode | None = None,
    groups: Mapping[str, str] | None = None,
    policies: Sequence[Policy] = (),
    extras: bool = False,
    overwrite: bool = False,
    steps: int = 100_000,
    runs: int = 10,
    seed: int = 1,
    command: str = "",
    watch: Watch = UNWATCHED,
) -> Reproduction:
    """Play the experiments on the data sets, and write figures, tables, claims.json and report.html.

    Cells that the folder holds already are not played again; all files but speed.csv are the same bytes
    however often it was interrupted and whichever engine played. `groups` are other groups for experiment 3,
    `policies` are played in experiment 1 beside the paper's.
    """
    folder = as_path(folder)
    mode = mode or mode_named("paper")
    declared = experiments_of(
        experiments, mode, [dataset.source for dataset in datasets], groups=groups, steps=steps, runs=runs,
        seed=seed,
    )  # fmt: skip
    declared = [one.with_extras() if extras else one for one in declared]
    declared = [
        replace(one, policies=(*one.policies, *policies)) if one.name == BESIDE else one for one in declared
    ]
    about = {"paper": "Zong et al., UAI 2016", "mode": mode.name}
    comparisons = conduct(
        declared, datasets, folder, engine, overwrite=overwrite, about=about, watch=watch,
        beside_numpy=numpy_seconds_per_step,
    )  # fmt: skip

    # Real data last, so that it counts where its stand-in is played beside it.
    ordered = sorted(datasets, key=lambda dataset: not dataset.source.synthetic)
    evidence, data = {}, {}
    for dataset in ordered:
        name, synthetic = dataset_name(dataset.source), dataset.source.synthetic
        evidence[name] = evidence_of([one for one in comparisons if one.dataset is dataset], mode)
        data[name] = {"title": dataset.title, "synthetic": synthetic, "sha256": dataset.digest}
    judged = judge(evidence)
    claims = as_json(judged, {"mode": mode.name, "steps": steps, "runs": runs, "seed": seed}, data)
    write_whole(folder / "claims.json", (json.dumps(claims, indent=1, ensure_ascii=False) + "\n").encode())
    figures = _figures(comparisons, datasets)
    for stem, block in figures:
        save_all(block.figure, folder / stem)
    # Claims about data that was not played are in claims.json alone.
    played = [(claim, finding) for claim, finding in judged if claim.dataset in evidence]
    page = Page(
        title="Cascading Bandits for Large-Scale Recommendation Problems, reproduced",
        subtitle=" · ".join(dataset.title for dataset in datasets),
        facts=(f"{mode.name} mode", *facts_of(comparisons)),
        headline=claims_headline(played),
        overview=tally(played),
        summary=_told(comparisons, datasets, mode),
        notes=(*_of_made_up(datasets), *notes_of(comparisons)),
        figures=tuple(block for _, block in figures),
        claims=claim_rows(played),
        method=METHOD,
        words={word.phrase: f"{word.of} is {word.limits}: {word.reason}" for word in WORDS},
        tables=tuple(
            regret_table(
                f"{'Sweep' if name in SWEPT else 'Experiment'} {name}: {mine[0].experiment.title}", mine
            )
            for name in experiments
            if (mine := [one for one in comparisons if one.experiment.name == name])
        ),
        data=(data_table(datasets),),
        learned=tuple(learned_block(one) for one in comparisons if one.experiment.name == BESIDE),
        settings=training_words(declared[0]),
        versions=installed_versions(),
        command=command,
    )
    write_whole(folder / "report.html", html_page(page).encode())
    return Reproduction(comparisons, claims, _summary(played, steps, runs))


def _figures(comparisons: Sequence[Comparison], datasets: Sequence[Dataset]) -> list[tuple[str, FigureBlock]]:
    """The file's stem and the figure, for those of the paper's figures that were played."""

    def of(name: str, dataset: Dataset) -> list[Comparison]:
        return [one for one in comparisons if one.experiment.name == name and one.dataset is dataset]

    def block(stem: str, name: str, title: str, figure: Figure, caption: str, *played: str) -> None:
        mine = [one for one in comparisons if one.experiment.name in played]
        found.append((stem, figure_block(name, title, figure, caption, mine)))

    found: list[tuple[str, FigureBlock]] = []
    titles = [dataset.title for dataset in datasets]
    played = {one.experiment.name for one in comparisons}
    if "1" in played:
        rows = [plots_of(of("1", dataset)) for dataset in datasets]
        figure = grid_figure(rows, row_titles=titles)
        block("figure-1", "Figure 1", "Regret as the number of items L grows", figure, CURVES, "1")
    columns = [column for column in FIGURE_2 if column[0] in played]
    if columns:
        drawn = [[_titled(of(name, dataset), *what) for name, *what in columns] for dataset in datasets]
        figure = grid_figure(drawn, row_titles=titles)
        caption = (
            "CascadeLinTS with 256 items: (a) regret for d features, (b) the same on one group of items, "
            "(c) regret and (d) reward for slates of K. Lines are means over runs, bands one standard error "
            "either side."
        )
        block("figure-2", "Figure 2", "Features d and slates of K", figure, caption, "2", "3", "4")
    for name, title in SWEPT.items():
        if name in played:
            swept = [[sweep_plot(one, name) for one in of(name, dataset)] for dataset in datasets]
            figure = grid_figure(swept, row_titles=titles, parameter=name)
            caption = "Expected regret after the last step; bars are one standard error either side."
            block(f"sweep-{name}", f"Sweep of {name}", f"Regret against the {title}", figure, caption, name)
    return found


def _titled(comparisons: Sequence[Comparison], measure: str, title: str) -> Plot:
    (plot,) = plots_of(comparisons, measure)
    group = comparisons[0].setting.group
    return replace(plot, title=f"{title.removesuffix('subset')}{group}" if group else title)


def _told(comparisons: Sequence[Comparison], datasets: Sequence[Dataset], mode: Mode) -> tuple[str, ...]:
    """What was run, in two or three sentences."""
    played = list(dict.fromkeys(one.experiment.name for one in comparisons))
    policies = dict.fromkeys(base_name(one.policy) for each in comparisons for one in each.results.results)
    titles = ", ".join(one.title for one in datasets)
    sentences = [
        f"{_listed(played)} on {titles}, with {', '.join(policies)}. "
        "Regret is counted in clicks against the greedy best slate of each split."
    ]
    if mode.training.one_split:
        sentences.append(
            "All runs share one split of the users and one SVD, as in the authors' code: errors and "
            "intervals are over users and sampling alone, not over splits."
        )
    return tuple(sentences)


def _listed(played: Sequence[str]) -> str:
    """'Experiments 1, 2 of Zong et al. 2016, and sweep of sigma for what it leaves open'."""
    paper = ", ".join(name for name in played if name not in SWEPT)
    swept = " and ".join(name for name in played if name in SWEPT)
    parts = [f"experiment{'s' * (',' in paper)} {paper} of Zong et al. 2016"] if paper else []
    parts += [f"sweep{'s' * (' ' in swept)} of {swept} for what it leaves open"] if swept else []
    text = ", and ".join(parts)
    return text[0].upper() + text[1:]


def _of_made_up(datasets: Sequence[Dataset]) -> tuple[str, ...]:
    made_up = [dataset.title for dataset in datasets if dataset.source.synthetic]
    if not made_up:
        return ()
    return (
        f"{', '.join(made_up)}: made up from a seed, of the size and density of the real data. Figures on it "
        "show that everything works; they say nothing about the paper's claims.",
    )


def _summary(judged: Judged, steps: int, runs: int) -> str:
    """The verdicts counted, the claims that do not hold, and what verdicts need if it was not given."""
    lines = [claims_headline(judged)]
    fewest = fewest_runs(CHANCE / 2)
    if steps != PAPER_STEPS or runs < fewest:
        lines.append(f"Verdicts need {PAPER_STEPS:,} steps, as in the paper, and at least {fewest} runs.")
    lines += [
        f"  {FAILS}: {TITLES[claim.dataset]}: {claim.sentence}"
        for claim, finding in judged
        if finding.verdict == FAILS and claim.section != OURS
    ]
    return "\n".join(lines)
