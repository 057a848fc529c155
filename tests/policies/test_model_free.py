"""Rankers that need no click model: BubbleRank is safe at every step, and single facts."""

import numpy as np
import pytest

from firstclick import Catalog, InvalidInput, Ranker
from firstclick.catalog.search_tree import catalog_arrays
from firstclick.kernels.clicks import answer, examined_positions
from firstclick.kernels.compiling import compiled, learn, recommend
from firstclick.kernels.design import g_optimal, spanning
from firstclick.kernels.hashing import mix
from firstclick.policies import bubble_rank
from firstclick.registry import make_policy
from firstclick.streams import stream, stream_key
from firstclick.testing import Driver, request
from firstclick.testing.checks import keeps_what_it_knows_when_items_are_added as check_growth
from firstclick.worlds.bernoulli import BernoulliWorld
from tests.support.policies import OTHERS


@OTHERS
def test_top_rank_puts_a_circle_last_and_does_not_hang():
    driver = Driver("top-rank:horizon=2", np.eye(4), k=2)
    for i, j in [(1, 2), (2, 3), (3, 1), (0, 1), (0, 2), (0, 3)]:
        driver.state.beats[i, j] = 1
    while not driver.state.block.any():
        driver.learn([0, 1], 0, request=request([0, 1]))  # until 0 beats 1, which is news
        driver.state.beats[0, 1] *= driver.state.wins[0, 1] > 10
    assert driver.state.block.tolist() == [0, 1, 1, 1]


@OTHERS
def test_bubble_rank_takes_from_late_feedback_only_what_confirms_the_list():
    driver = Driver("bubble-rank", np.eye(5), k=5)
    # First pairing: the second with the third, the fourth with the fifth. This slate has the other one.
    driver.learn([1, 0, 3, 2, 4], [0, 2])
    assert not driver.state.wins.any()
    driver = Driver("bubble-rank", np.eye(5), k=5)
    driver.learn([0, 2, 1, 3, 4], [1, 4])
    assert sorted(zip(*np.nonzero(driver.state.wins), strict=True)) == [(2, 1), (4, 3)]


@OTHERS
def test_bubble_rank_pairs_what_a_slate_shows():
    driver = Driver("bubble-rank", np.eye(5), k=5)
    driver.learn([0, 3, 2, 4], [1, 3])  # Without 1 the second and the third are 2 and 3.
    assert np.argwhere(driver.state.wins).tolist() == [[3, 2]]


def most_wrong_pairs(numbers, state, catalog, asked, world, click_model, keys, steps, slate):
    """The most pairs that any slate shows in the wrong order."""
    clicks, noise, most = np.empty(len(slate), np.uint8), np.empty(0), 0
    for step in range(steps):
        n = recommend(numbers, state, catalog, asked, mix(keys[0], np.uint64(step)), noise, slate)
        wrong = 0
        for a in range(n):
            for b in range(a + 1, n):
                wrong += world.attraction[0, slate[a]] < world.attraction[0, slate[b]]
        most = max(most, wrong)
        _, told = answer(world, mix(keys[1], np.uint64(step)), 0, 0, slate, n, clicks)
        examined = examined_positions(click_model, clicks, n, told)
        learn(numbers, state, catalog, asked, slate[:n], examined, clicks[:n])
    return most


def wrong_pairs(attractions):
    """How many pairs of the list have the less attractive item above."""
    k = len(attractions)
    return sum(attractions[a] < attractions[b] for a in range(k) for b in range(a + 1, k))


# By the authors' lemma a run breaks the rule with a chance of at most K^2 / horizon = 0.0005; all 16 of them
# with one of 0.008. (Azuma's inequality alone gives far less: n K^2 / 2 delta^2, with delta = horizon^-4.)
@pytest.mark.long
@pytest.mark.parametrize("clicks", ["cascade", "dcm/0.6/0.3", "pbm", "scroll"])
def test_bubble_rank_shows_few_more_wrong_pairs_than_its_first_list(clicks):
    k, policy = 7, bubble_rank.BubbleRank()
    # A list without fault leaves no room for a wrong exchange that stays, nor for a fourth one at once.
    # One has a row in the middle that was withdrawn: exchanges go round it.
    mixed = stream(0, "list").permutation(k)
    lists = [(range(k), []), ([1, 0, 2, 3, 4, 6, 5], []), (mixed, [3]), (mixed, [])]
    for seed, (given, gone) in enumerate(lists):
        attractions = np.linspace(0.8, 0.1, k)[given]
        world = BernoulliWorld(attractions, clicks)
        state = policy.initial_state(k, 0, k)
        keys = np.array([stream_key(seed, "policy"), stream_key(seed, "world")])
        most = compiled(most_wrong_pairs, bubble_rank.BubbleRank)(
            policy.numbers(k, np.empty((k, 0))), state, catalog_arrays(None, k),
            request(hidden=gone, n_items=k), world.arrays(), policy.click_model.kind, keys, 30_000,
            np.empty(k, np.int64),
        )  # fmt: skip
        start = wrong_pairs(np.delete(attractions, gone))
        assert most <= start + k // 2, f"list {seed}: {most} wrong pairs, {start} at the start"
    # It is not safe by standing still: the last list had much to mend.
    assert wrong_pairs(attractions[np.argsort(state.place)]) < start


@OTHERS
@pytest.mark.parametrize(("n", "d", "rank"), [(40, 5, 5), (40, 5, 3), (4, 6, 4), (1, 3, 1)])
def test_the_design_knows_all_items_nearly_as_well_as_can_be(n, d, rank):
    draw = stream(6, "design", n, rank)
    x = draw.standard_normal((n, rank)) @ draw.standard_normal((rank, d)) * draw.uniform(0.01, 1, (n, 1))
    taken, z = spanning(x)
    assert len(taken) == rank
    assert np.allclose(z @ z.T, x @ x.T)
    weights, width = g_optimal(taken, z)
    assert weights.min() >= 0
    assert weights.sum() == pytest.approx(1)
    inverse = np.linalg.pinv(x.T @ (weights[:, None] * x), rcond=1e-9, hermitian=True)
    assert width == pytest.approx(max(row @ inverse @ row for row in x))
    # Kiefer and Wolfowitz: no design has less than the rank.
    assert rank * (1 - 1e-9) <= width <= 1.1 * rank


@OTHERS
def test_too_many_items_are_refused():
    for name in ("top-rank", "bubble-rank"):
        with pytest.raises(InvalidInput, match="at most 2,000"):
            Driver(name, np.zeros((2001, 1)))


@OTHERS
def test_top_rank_says_which_of_its_settings_takes_items_later():
    assert not make_policy("top-rank").growable
    check_growth(make_policy("top-rank:pairs=shown"))


@OTHERS
def test_items_that_come_later_start_where_their_policy_says():
    catalog = Catalog(["a", "b", "c", "d"], np.eye(4))
    names = ("top-rank:pairs=shown", "bubble-rank", "batch-rank")
    rankers = {name: Ranker(catalog, k=2, policy=name) for name in names}
    for ranker in rankers.values():
        ranker.learn(ranker.recommend(), click=0)
    rankers["batch-rank"].state.stage[1] = 0  # as after a split
    catalog.add(["e"], np.eye(4)[:1])
    for ranker in rankers.values():
        ranker.recommend()
    assert rankers["top-rank:pairs=shown"].state.block[4] == 0
    assert rankers["bubble-rank"].state.place[4] == 4
    assert rankers["batch-rank"].state.batch[4] == 1


@OTHERS
def test_a_withdrawn_item_is_no_wall_in_the_list_of_bubble_rank():
    attractions = {"a": 0.05, "gone": 0.5, "best": 0.95, "b": 0.05, "c": 0.05}
    ranker = Ranker(Catalog(list(attractions), np.eye(5)), k=2, policy="bubble-rank:horizon=3", seed=3)
    draw = stream(7, "withdrawn")
    tops = []
    for step in range(1200):
        if step == 20:
            ranker.withdraw_items(["gone"])
        slate = ranker.recommend()
        ranker.learn(slate, clicks=[p for p, i in enumerate(slate.items) if draw.random() < attractions[i]])
        tops.append(slate.items[0])
    assert tops[-100:].count("best") == 100
