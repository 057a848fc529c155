"""Comparisons become panels and curves as the paper's figures have them."""

from dataclasses import replace

import numpy as np
import pytest

from firstclick import make_policy
from firstclick.data import Interactions
from firstclick.data.sources import Source
from firstclick.errors import InvalidInput
from firstclick.experiments import Comparison, Dataset, Experiment, Setting, Training
from firstclick.experiments.results import PolicyResult, Results
from firstclick.report.comparisons import plots_of, sweep_plot
from firstclick.report.tables import setting_words


class Shelf(Source):
    """Two users and three books."""

    name = "shelf"
    title = "Shelf"

    def load(self, path, progress=None):
        return Interactions(
            np.array([0, 1, 1]), np.array([0, 1, 2]), np.ones(3, np.bool_), ("u", "v"), ("a", "b", "c")
        )


def result(policy, last):
    curves = np.outer([0.9, 1.1], [last / 4, last / 2, last])
    return PolicyResult(policy, curves, curves, 100 - curves, float("nan"), ())


def comparison(policies, *, items=256, rank=20, k=4, group=""):
    made = tuple(make_policy(label) for label in policies)
    return Comparison(
        experiment=Experiment("1", "Shelves", (Shelf(),), made),
        dataset=Dataset.load(Shelf(), None),
        setting=Setting("shelf", group, items, rank, k, 400, 1, Training()),
        results=Results(
            k=k, steps=400, runs=2, seed=1, n_items=items, optimal_reward=0.5, optimal_items=(),
            step=np.array([100, 200, 400]), results=tuple(result(*one) for one in policies.items()),
            settings={},
        ),
        optimal_rewards=np.array([0.4, 0.6]),
        speeds={},
    )  # fmt: skip


def test_several_learners_have_a_panel_for_each_setting():
    learners = {"cascade-ucb1": 900.0, "cascade-lin-ts": 20.0, "ranked-lin-ts": 30.0}
    plots = plots_of([comparison(learners, items=items) for items in (16, 256, 3706)])
    assert [plot.title for plot in plots] == ["L = 16", "L = 256", "L = 3,706"]
    for plot in plots:
        assert [curve.label for curve in plot.curves] == list(learners)
        assert [curve.variant for curve in plot.curves] == [None, None, None]
        assert plot.ceiling is not None
        assert plot.ceiling < 900
    assert plots[1].curves[2].mean.tolist() == pytest.approx([7.5, 15, 30])


def test_one_learner_has_all_its_settings_in_one_panel():
    comparisons = [comparison({"cascade-lin-ts": 10.0 * rank}, rank=rank) for rank in (10, 20, 40)]
    (plot,) = plots_of(comparisons, "reward")
    assert [curve.label for curve in plot.curves] == ["d = 10", "d = 20", "d = 40"]
    assert [curve.variant for curve in plot.curves] == [0, 1, 2]
    assert {curve.policy for curve in plot.curves} == {"cascade-lin-ts"}
    assert plot.measure == "reward"
    assert [curve.mean[-1] for curve in plot.curves] == pytest.approx([0, -100, -300])


def test_several_things_that_vary_are_all_named():
    comparisons = [comparison({"random": 1.0}, k=k, items=items) for k in (2, 3) for items in (9, 10)]
    (plot,) = plots_of(comparisons)
    assert [curve.label for curve in plot.curves] == [
        "L = 9, K = 2", "L = 10, K = 2", "L = 9, K = 3", "L = 10, K = 3",
    ]  # fmt: skip


def test_a_sweep_is_drawn_against_its_parameter_in_order():
    swept = {"cascade-lin-ts:sigma=3": 30.0, "cascade-lin-ts:sigma=0.1": 50.0, "cascade-lin-ts": 10.0}
    plot = sweep_plot(comparison(swept), "sigma")
    (curve,) = plot.curves
    assert curve.x.tolist() == [0.1, 1.0, 3.0]
    assert curve.mean.tolist() == pytest.approx([50, 10, 30])
    assert curve.stderr.tolist() == pytest.approx([5, 1, 3])
    with pytest.raises(InvalidInput, match="cascade-lin-ts:sigma=3 has no number 'c'"):
        sweep_plot(comparison(swept), "c")


def test_a_setting_is_told_in_words():
    one = comparison({"random": 1.0}, items=3706)
    assert setting_words(one) == "3,706 items, d = 20, K = 4"
    assert setting_words(replace(one, setting=replace(one.setting, group="Rock"))) == (
        "3,706 items of Rock, d = 20, K = 4"
    )
