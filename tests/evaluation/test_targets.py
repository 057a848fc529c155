"""Targets: how likely each is to show what was logged, and what a click model expects of it."""

from itertools import permutations

import numpy as np
import pytest

from firstclick import Catalog, Ranker
from firstclick.click_models.click_fit import ClickFit
from firstclick.errors import InvalidInput
from firstclick.evaluation.engine_targets import GreedySlate, SamplingPolicy
from firstclick.evaluation.judged_slates import log_facts, some_slates
from firstclick.evaluation.targets import FixedList, Target, Uniform
from firstclick.logs.ranked_log import NO_ITEM
from tests.support.arrays_log import NAMES, ArraysLog

ALL = np.array(list(permutations(range(5), 3)), np.int32)


def batch_of(items, candidates=None):
    log = ArraysLog(items, np.zeros(items.shape), None, candidates=candidates)
    (batch,) = log.batches()
    return log, batch


def fit_of(model):
    """Two models whose clicks below depend on what is above, with items that differ."""
    attraction = np.array([[0.5, 0.3, 0.2, 0.1, 0.05]])
    leaving = np.array([[0.9, 0.2, 0.6, 0.4, 0.5]])
    return ClickFit(
        model=model, items=tuple(NAMES), segments=("",), shares=np.ones(1), attraction=attraction,
        satisfaction=leaving if model == "dbn" else np.empty((0, 0)),
        chances=np.array([0.8]) if model == "dbn" else np.empty(0), looks=np.ones((1, 5)), k=3,
    )  # fmt: skip


def test_a_list_shows_its_first_items_and_nothing_else():
    log, batch = batch_of(np.array([[0, 1, 2], [0, 1, 3], [0, 2, 1], [1, 0, 2], [0, 1, NO_ITEM]]))
    target = FixedList(["tea", "coffee", "cocoa", "milk"])
    target.start(log)
    assert target.prefix_chances(batch).tolist() == [[1, 1, 1], [1, 1, 0], [1, 0, 0], [0, 0, 0], [1, 1, 1]]
    assert target.place_chances(batch).tolist() == [[1, 1, 1], [1, 1, 0], [1, 0, 0], [0, 0, 1], [1, 1, 1]]
    assert target.notes() == ["the first 3 of its 4 items are judged: slates have no more"]


def test_with_candidates_a_list_shows_the_first_that_are_allowed():
    candidates = [[4, 2, 0], [3, 1], [0, 1, 2, 3, 4], [4]]
    log, batch = batch_of(np.zeros((4, 3), np.int32), candidates)
    order = ["water", "cocoa", "wine", "coffee", "tea"]
    target = FixedList(order)
    target.start(log)
    wanted = []
    for allowed in candidates:
        shown = [NAMES.index(item) for item in order if item in NAMES and NAMES.index(item) in allowed][:3]
        wanted.append(shown + [NO_ITEM] * (3 - len(shown)))
    assert target.best_slates(batch).tolist() == wanted
    assert target.refusal() == "", "an item that the log does not know is not among the candidates"


def test_ids_that_a_file_has_turned_into_text_are_found():
    log, batch = batch_of(np.array([[2, 0, 1]]))
    log.items = ["7", "8", "9", "10", "11"]
    target = FixedList([9, 7, 8])
    target.start(log)
    assert target.prefix_chances(batch).tolist() == [[1, 1, 1]]


@pytest.mark.parametrize(
    ("items", "said"),
    [
        (["tea", "coffee"], "the list has 2 items and the log's slates up to 3: a page with fewer places"),
        (["tea", "wine", "beer", "milk"], "no slate of the log shows wine, beer; log pages that may show it"),
    ],
)
def test_a_list_that_the_log_can_say_nothing_of(items, said):
    log, _ = batch_of(ALL)
    target = FixedList(items)
    target.start(log)
    assert target.refusal().startswith(said)


def test_an_item_twice_or_no_item_is_no_list():
    with pytest.raises(InvalidInput, match="item 'tea' is in the list twice; name it once"):
        FixedList(["tea", "milk", "tea"])
    with pytest.raises(InvalidInput, match="a list needs at least one item"):
        FixedList([])


def test_uniform_slates_are_all_as_likely_and_sum_to_one():
    log, batch = batch_of(ALL)
    target = Uniform()
    target.start(log)
    chances = target.prefix_chances(batch)
    assert chances[0].tolist() == pytest.approx([1 / 5, 1 / 20, 1 / 60])
    assert chances[:, 2].sum() == pytest.approx(1)
    log, batch = batch_of(np.array([[0, 3, NO_ITEM], [1, 2, 0]]), [[0, 3], [0, 1, 2, 4]])
    target.start(log)
    assert target.prefix_chances(batch).ravel().tolist() == pytest.approx(
        [1 / 2, 1 / 2, 1 / 2, 1 / 4, 1 / 12, 1 / 24]
    )
    assert target.place_chances(batch).ravel().tolist() == pytest.approx(
        [1 / 2, 1 / 2, 1, 1 / 4, 1 / 4, 1 / 4]
    )


@pytest.mark.parametrize("model", ["cm", "dbn"])
def test_the_mean_of_what_is_expected_over_a_uniform_next_item_is_exact(model):
    """Otherwise Cascade-DR would be biased."""
    log, batch = batch_of(ALL)
    target = Uniform()
    target.start(log)
    expected = target.predictions(batch, fit_of(model))
    for place in range(3):
        for prefix in permutations(range(5), place):
            after = (ALL[:, :place] == np.array(prefix, np.int32)).all(axis=1)
            mean = expected.logged[after, place].mean()
            assert expected.target[after, place] == pytest.approx(mean, abs=1e-12), (place, prefix)


def test_with_candidates_the_mean_is_over_those():
    slates = np.array(list(permutations([0, 2, 4], 2)), np.int32)
    log, batch = batch_of(slates, [[4, 0, 2]] * len(slates))
    target = Uniform()
    target.start(log)
    expected = target.predictions(batch, fit_of("dbn"))
    assert expected.target[:, 0] == pytest.approx(expected.logged[:, 0].mean(), abs=1e-12)
    after_tea = slates[:, 0] == 0
    assert expected.target[after_tea, 1] == pytest.approx(expected.logged[after_tea, 1].mean(), abs=1e-12)


def mixed_candidates(items):
    """Every second slate names candidates; the others allow all items. Their run does not begin at 0."""
    log, batch = batch_of(items, [[0, 2, 4, 1] if row % 2 else [] for row in range(len(items))])
    assert batch.candidates is not None
    assert batch.candidate_starts is not None
    before = np.array([3, 3], np.int32)
    return log, batch._replace(
        candidates=np.concatenate([before, batch.candidates]), candidate_starts=batch.candidate_starts + 2
    )


def test_slates_without_candidates_count_as_chosen_from_all_items():
    candidates = [[], [1, 3], [0, 1, 2], []]
    log = ArraysLog(ALL[:4], np.zeros((4, 3)), np.full((4, 3), 0.1), candidates=candidates)
    assert log_facts(log).candidates == 5 + 2 + 3 + 5


@pytest.mark.parametrize("kind", ["uniform", "list", "greedy", "sample"])
def test_a_slate_that_names_no_candidates_allows_all_items(kind):
    items = np.repeat(np.array([[0, 1, 2], [3, 0, 1], [2, 1, 0]], np.int32), 2, axis=0)
    made = {
        "uniform": Uniform(),
        "list": FixedList(["milk", "tea", "coffee", "cocoa"]),
        "greedy": GreedySlate(ranker("cascade-ts")),
        "sample": SamplingPolicy(ranker("cascade-ts")),
    }
    target = made[kind]
    log, mixed = mixed_candidates(items)
    assert mixed.allowed_counts(5).tolist() == [5, 4] * 3
    assert [mixed.candidates_of(row) is None for row in range(6)] == [True, False] * 3
    plain, named = batch_of(items)[1], batch_of(items, [[0, 1, 2, 4]] * 6)[1]
    chances = []
    for one in (mixed, plain, named):
        target.start(log)  # each for itself: what is kept of one batch must not serve another
        chances.append(target.prefix_chances(one))
    found, all_allowed, some_allowed = chances
    assert found[::2].tolist() == all_allowed[::2].tolist()
    # Milk is no candidate, and no logged slate with it is chosen from those.
    allowed = [1, 5]
    assert found[allowed].tolist() == some_allowed[allowed].tolist()
    assert (all_allowed != some_allowed)[::2].any(), "the candidates make a difference"
    told, all_told, some_told = (target.predictions(one, fit_of("cm")) for one in (mixed, plain, named))
    assert told is not None
    assert all_told is not None
    assert some_told is not None
    assert told.target[::2] == pytest.approx(all_told.target[::2])
    assert told.target[allowed] == pytest.approx(some_told.target[allowed])
    part = some_slates(mixed, np.array([1, 2, 5]))
    assert target.prefix_chances(part).tolist() == found[[1, 2, 5]].tolist()
    assert target.prefix_chances(some_slates(mixed, np.empty(0, np.int64))).shape == (0, 3)


def test_of_a_list_a_model_expects_the_clicks_from_each_place_on():
    log, batch = batch_of(ALL)
    target = FixedList(["cocoa", "tea", "milk"])
    target.start(log)
    fit = fit_of("cm")
    expected = target.predictions(batch, fit)
    a = fit.attraction[0]
    clicks = [a[2], (1 - a[2]) * a[0], (1 - a[2]) * (1 - a[0]) * a[3]]
    for row in expected.target:
        assert row.tolist() == pytest.approx([sum(clicks), sum(clicks[1:]), clicks[2]])


def ranker(policy, k=3):
    """A ranker that has seen tea clicked often and coffee sometimes; its catalog has wine, and no water."""
    found = Ranker(Catalog(["wine", "milk", "cocoa", "coffee", "tea"]), k=k, policy=policy, seed=3)
    for step in range(30):
        slate = found.recommend()
        wanted = "tea" if step % 3 else "coffee"
        found.learn(slate, click=slate.items.index(wanted) if wanted in slate.items else None)
    return found


def test_the_greedy_slate_is_that_of_the_highest_estimates():
    known = ranker("cascade-ts")
    means, _ = known._engine.estimates(np.arange(5))
    order = [known.catalog.items[row] for row in np.argsort(-means, kind="stable")]
    target = GreedySlate(known)
    log, batch = batch_of(ALL)
    target.start(log)
    shown = [NAMES.index(item) if item in NAMES else -2 for item in order[:3]]
    assert target.best_slates(batch)[7].tolist() == shown
    log, batch = batch_of(np.zeros((2, 3), np.int32), [[0, 3], [1, 2, 3, 4]])
    target.start(log)
    allowed = [[item for item in order if item in ("tea", "milk")], [i for i in order if i in NAMES[1:4]]]
    wanted = [[NAMES.index(item) for item in items] + [NO_ITEM] * (3 - len(items)) for items in allowed]
    assert target.best_slates(batch).tolist() == wanted
    assert "the policy does not know water of the log, and never shows it" in target.notes()


def test_a_sampling_policy_is_as_likely_as_it_draws():
    """20,000 draws: an error of 5 standard errors, once in a million, fails this."""
    known = ranker("cascade-ts")
    target = SamplingPolicy(known)
    log, batch = batch_of(np.array([[0, 1, 2], [1, 0, 3], [4, 0, 1]]))
    target.start(log)
    chances = target.prefix_chances(batch)
    engine = known._engine
    slates = engine.recommend_many(
        np.uint64(11), range(20_000), 3, target._request(None)[1].kernel, scored=False
    )
    drawn = [tuple(known.catalog.items[row] for row in rows) for rows, _ in slates]
    for row, slate in enumerate(batch.items[:2]):
        for place in range(3):
            names = tuple(NAMES[item] for item in slate[: place + 1])
            share = np.mean([one[: place + 1] == names for one in drawn])
            error = np.sqrt(max(share * (1 - share), 1e-4) / 20_000)
            assert abs(chances[row, place] - share) < 5 * error
    assert chances[2].tolist() == [0, 0, 0], "water is not in its catalog"


def test_what_is_expected_of_a_sampling_policy_does_not_depend_on_the_logged_item():
    target = SamplingPolicy(ranker("cascade-ts"))
    log, batch = batch_of(ALL)
    target.start(log)
    expected = target.predictions(batch, fit_of("cm"))
    assert (expected.logged == expected.target).all()
    assert (expected.logged == expected.logged[0]).all()
    assert (np.diff(expected.logged[0]) < 0).all(), "fewer clicks from each further place on"


def test_policies_that_cannot_be_frozen_so_say_why():
    wants_context = Ranker(
        Catalog(["a", "b", "c"], np.eye(3)), k=2, policy="context-lin-ts:context=2", seed=1
    )
    with pytest.raises(InvalidInput, match="wants a context with each request"):
        GreedySlate(wants_context)
    target = SamplingPolicy(ranker("cascade-ts", k=2))
    log, _ = batch_of(ALL)
    target.start(log)
    assert target.refusal().startswith("the policy makes slates of 2 items and the log's slates up to 3")


def test_a_target_of_somebody_else_needs_one_method():
    class Mine(Target):
        def prefix_chances(self, slates):
            return np.full(slates.items.shape, 0.5)

    log, batch = batch_of(ALL)
    target = Mine()
    target.start(log)
    assert (target.place_chances(batch), target.predictions(batch, fit_of("cm")), target.refusal()) == (
        None,
        None,
        "",
    )
