"""Targets: how likely each is to show what was logged, and what a click model expects of it."""

from itertools import permutations

import numpy as np
import pytest

from firstclick import Catalog, Ranker
from firstclick.click_models.click_fit import ClickFit
from firstclick.errors import InvalidInput
from firstclick.evaluation.engine_targets import GreedySlate, SamplingPolicy
from firstclick.evaluation.judged_slates import log_facts, some_slates
from firstclick.evaluation.targets import FixedList, Uniform
from firstclick.logs.ranked_log import NO_ITEM
from tests.support.memory_log import DRINKS, InMemoryLog

ALL = np.array(list(permutations(range(5), 3)), np.int32)


def started(target, items, candidates=None, names=DRINKS):
    """The target on a log of these slates, and the slates."""
    log = InMemoryLog(items, np.zeros(np.shape(items)), names=names, candidates=candidates)
    target.start(log)
    return target, log.whole


def fit_of(model):
    """Two models whose clicks below depend on what is above, with items that differ."""
    attraction = np.array([[0.5, 0.3, 0.2, 0.1, 0.05]])
    leaving = np.array([[0.9, 0.2, 0.6, 0.4, 0.5]])
    return ClickFit(
        model=model, items=tuple(DRINKS), segments=("",), shares=np.ones(1), attraction=attraction,
        satisfaction=leaving if model == "dbn" else np.empty((0, 0)),
        chances=np.array([0.8]) if model == "dbn" else np.empty(0), looks=np.ones((1, 5)), k=3,
    )  # fmt: skip


def test_list_shows_its_first_items_and_nothing_else():
    slates = [[0, 1, 2], [0, 1, 3], [0, 2, 1], [1, 0, 2], [0, 1, NO_ITEM]]
    target, batch = started(FixedList(["tea", "coffee", "cocoa", "milk"]), slates)
    assert target.prefix_chances(batch).tolist() == [[1, 1, 1], [1, 1, 0], [1, 0, 0], [0, 0, 0], [1, 1, 1]]
    assert target.place_chances(batch).tolist() == [[1, 1, 1], [1, 1, 0], [1, 0, 0], [0, 0, 1], [1, 1, 1]]
    assert "first 3 of its 4 items" in target.notes()[0]
    # Ids that a file has turned into text are found.
    target, batch = started(FixedList([9, 7, 8]), [[2, 0, 1]], names=["7", "8", "9", "10", "11"])
    assert target.prefix_chances(batch).tolist() == [[1, 1, 1]]


def test_list_shows_the_first_candidates():
    candidates = [[4, 2, 0], [3, 1], [0, 1, 2, 3, 4], [4]]
    order = ["water", "cocoa", "wine", "coffee", "tea"]
    target, batch = started(FixedList(order), np.zeros((4, 3), np.int32), candidates)
    wanted = []
    for allowed in candidates:
        shown = [DRINKS.index(item) for item in order if item in DRINKS and DRINKS.index(item) in allowed][:3]
        wanted.append(shown + [NO_ITEM] * (3 - len(shown)))
    assert target.best_slates(batch).tolist() == wanted
    assert target.refusal() == "", "an item that the log does not know is not among the candidates"


def test_list_without_support_in_the_log_is_refused():
    assert "has 2 items" in started(FixedList(["tea", "coffee"]), ALL)[0].refusal()
    assert "shows wine, beer" in started(FixedList(["tea", "wine", "beer", "milk"]), ALL)[0].refusal()
    for names, problem in ((["tea", "milk", "tea"], "'tea' is in the list twice"), ([], "at least one")):
        with pytest.raises(InvalidInput, match=problem):
            FixedList(names)


def test_uniform_slates_are_equally_likely_and_sum_to_one():
    target, batch = started(Uniform(), ALL)
    chances = target.prefix_chances(batch)
    assert chances[0].tolist() == pytest.approx([1 / 5, 1 / 20, 1 / 60])
    assert chances[:, 2].sum() == pytest.approx(1)
    target, batch = started(Uniform(), [[0, 3, NO_ITEM], [1, 2, 0]], [[0, 3], [0, 1, 2, 4]])
    prefixes, places = [[1 / 2] * 3, [1 / 4, 1 / 12, 1 / 24]], [[1 / 2, 1 / 2, 1], [1 / 4] * 3]
    np.testing.assert_allclose(target.prefix_chances(batch), prefixes)
    np.testing.assert_allclose(target.place_chances(batch), places)


@pytest.mark.parametrize("model", ["cm", "dbn"])
def test_mean_of_predictions_over_a_uniform_next_item_is_exact(model):
    """Otherwise Cascade-DR would be biased."""
    target, batch = started(Uniform(), ALL)
    expected = target.predictions(batch, fit_of(model))
    for place in range(3):
        for prefix in permutations(range(5), place):
            after = (ALL[:, :place] == np.array(prefix, np.int32)).all(axis=1)
            mean = expected.logged[after, place].mean()
            assert expected.target[after, place] == pytest.approx(mean, abs=1e-12), (place, prefix)
    # With candidates the mean is over those.
    slates = np.array(list(permutations([0, 2, 4], 2)), np.int32)
    target, batch = started(Uniform(), slates, [[4, 0, 2]] * len(slates))
    expected = target.predictions(batch, fit_of(model))
    assert expected.target[:, 0] == pytest.approx(expected.logged[:, 0].mean(), abs=1e-12)
    after_tea = slates[:, 0] == 0
    assert expected.target[after_tea, 1] == pytest.approx(expected.logged[after_tea, 1].mean(), abs=1e-12)


@pytest.mark.parametrize("kind", ["uniform", "list", "greedy", "sample"])
def test_slate_without_candidates_allows_all_items(kind):
    """Every second slate names candidates, not milk; the others allow all items."""
    items = np.repeat([[0, 1, 2], [3, 0, 1], [2, 1, 0]], 2, axis=0)
    some = [0, 1, 2, 4]
    target = {
        "uniform": Uniform,
        "list": lambda: FixedList(["milk", "tea", "coffee", "cocoa"]),
        "greedy": lambda: GreedySlate(ranker("cascade-ts")),
        "sample": lambda: SamplingPolicy(ranker("cascade-ts")),
    }[kind]()
    # The first two slates are left out, so that the run of candidates does not begin at 0.
    log = InMemoryLog(
        np.concatenate([items[:2], items]),
        np.zeros((8, 3)),
        names=DRINKS,
        candidates=[[3], [3], *([[], some] * 3)],
    )
    mixed = log.whole._replace(items=log.whole.items[2:], candidate_starts=log.whole.candidate_starts[2:])
    assert mixed.allowed_counts(5).tolist() == [5, 4] * 3
    chances = []
    for candidates in (None, [some] * 6):
        _, batch = started(target, items, candidates)
        chances.append((target.prefix_chances(batch), target.predictions(batch, fit_of("cm")).target))
    target.start(log)
    result, predicted = target.prefix_chances(mixed), target.predictions(mixed, fit_of("cm")).target
    # Milk is not a candidate, and no logged slate with it is chosen from those.
    for rows, (expected, expected_prediction) in zip(([0, 2, 4], [1, 5]), chances, strict=True):
        assert result[rows].tolist() == expected[rows].tolist()
        assert predicted[rows] == pytest.approx(expected_prediction[rows])
    assert (chances[0][0] != chances[1][0])[::2].any(), "the candidates make a difference"
    assert (
        target.prefix_chances(some_slates(mixed, np.array([1, 2, 5]))).tolist() == result[[1, 2, 5]].tolist()
    )
    assert target.prefix_chances(some_slates(mixed, np.empty(0, np.int64))).shape == (0, 3)


def test_slates_without_candidates_count_as_chosen_from_all_items():
    log = InMemoryLog(
        ALL[:4], np.zeros((4, 3)), np.full((4, 3), 0.1), names=DRINKS, candidates=[[], [1, 3], [0, 1, 2], []]
    )
    assert log_facts(log).candidates == 5 + 2 + 3 + 5


def test_list_is_predicted_the_clicks_from_each_position_on():
    target, batch = started(FixedList(["cocoa", "tea", "milk"]), ALL)
    fit = fit_of("cm")
    a = fit.attraction[0]
    clicks = [a[2], (1 - a[2]) * a[0], (1 - a[2]) * (1 - a[0]) * a[3]]
    for row in target.predictions(batch, fit).target:
        assert row.tolist() == pytest.approx([sum(clicks), sum(clicks[1:]), clicks[2]])


def ranker(policy, k=3):
    """A ranker that has seen tea clicked often and coffee sometimes; its catalog has wine, and no water."""
    found = Ranker(Catalog(["wine", "milk", "cocoa", "coffee", "tea"]), k=k, policy=policy, seed=3)
    for step in range(30):
        slate = found.recommend()
        wanted = "tea" if step % 3 else "coffee"
        found.learn(slate, click=slate.items.index(wanted) if wanted in slate.items else None)
    return found


def test_greedy_slate_is_that_of_the_highest_estimates():
    known = ranker("cascade-ts")
    means, _ = known.estimates(["wine", "milk", "cocoa", "coffee", "tea"])
    order = [known.catalog.items[row] for row in np.argsort(-means, kind="stable")]
    target, batch = started(GreedySlate(known), ALL)
    shown = [DRINKS.index(item) if item in DRINKS else -2 for item in order[:3]]
    assert target.best_slates(batch)[7].tolist() == shown
    candidates = [[0, 3], [1, 2, 3, 4]]
    target, batch = started(target, np.zeros((2, 3), np.int32), candidates)
    for row, rows in zip(target.best_slates(batch).tolist(), candidates, strict=True):
        allowed = [DRINKS.index(item) for item in order if item in DRINKS and DRINKS.index(item) in rows]
        # Water is not in the catalog of the ranker.
        assert row == allowed + [NO_ITEM] * (3 - len(allowed))
    assert any("water" in note for note in target.notes())


def test_sampling_policy_is_as_likely_as_it_draws():
    """20,000 draws: an error of 5 standard errors, once in a million, fails this."""
    known = ranker("cascade-ts")
    target, batch = started(SamplingPolicy(known), [[0, 1, 2], [1, 0, 3], [4, 0, 1]])
    chances = target.prefix_chances(batch)
    kernel = target._request(None)[1].kernel
    slates = known._engine.recommend_many(np.uint64(11), range(20_000), 3, kernel, scored=False)
    drawn = [tuple(known.catalog.items[row] for row in rows) for rows, _ in slates]
    for row, slate in enumerate(batch.items[:2]):
        for place in range(3):
            names = tuple(DRINKS[item] for item in slate[: place + 1])
            share = np.mean([one[: place + 1] == names for one in drawn])
            error = np.sqrt(max(share * (1 - share), 1e-4) / 20_000)
            assert abs(chances[row, place] - share) < 5 * error
    assert chances[2].tolist() == [0, 0, 0], "water is not in its catalog"


def test_prediction_of_a_sampling_policy_does_not_depend_on_the_logged_item():
    target, batch = started(SamplingPolicy(ranker("cascade-ts")), ALL)
    expected = target.predictions(batch, fit_of("cm"))
    assert (expected.logged == expected.target).all()
    assert (expected.logged == expected.logged[0]).all()
    assert (np.diff(expected.logged[0]) < 0).all(), "fewer clicks from each further position on"


def test_policies_that_cannot_be_frozen_are_refused():
    wants_context = Ranker(
        Catalog(["a", "b", "c"], np.eye(3)), k=2, policy="context-lin-ts:context=2", seed=1
    )
    with pytest.raises(InvalidInput, match="context with each request"):
        GreedySlate(wants_context)
    target, _ = started(SamplingPolicy(ranker("cascade-ts", k=2)), ALL)
    assert "slates of 2 items" in target.refusal()
