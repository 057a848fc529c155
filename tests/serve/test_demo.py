"""The demo: a café whose users click in a known way, and its list."""

from functools import cache

import numpy as np
import pytest

from firstclick.serve.config import Settings
from firstclick.serve.demo import (
    AT_BEST,
    BY_CHANCE,
    LEAST,
    SEED,
    SLATE,
    DemoUsers,
    demo_catalog,
    demo_list,
    start_beside_the_list,
)
from firstclick.serve.startup import open_for
from tests.support import seam

SEEDS = range(20)


@cache
def attractions(seed):
    users = DemoUsers(seed)
    return np.array([users.attract(item.id) for item in demo_catalog().items])


def click_rate(attractions):
    """Return how often a slate with these attractions is clicked."""
    return 1 - float((1 - attractions).prod())


@pytest.mark.parametrize("seed", SEEDS)
def test_few_slates_are_clicked_by_chance_and_most_at_best(seed):
    attracts = attractions(seed)
    draw = np.random.default_rng(seed)
    by_chance = np.mean([click_rate(draw.permutation(attracts)[:6]) for _ in range(2000)])
    # The standard error of the mean is about 0.004.
    assert by_chance == pytest.approx(BY_CHANCE, abs=0.02)
    assert click_rate(np.sort(attracts)[-6:]) == pytest.approx(AT_BEST, abs=1e-6)
    assert LEAST <= attracts.min() < attracts.max() <= 0.6
    # A policy that is linear in the features can find a slate that is nearly the best.
    rows = np.array([[1.0, *item.features] for item in demo_catalog().items])
    fitted = rows @ np.linalg.lstsq(rows, attracts, rcond=None)[0]
    assert click_rate(attracts[np.argsort(-fitted)[:6]]) > 0.8 * AT_BEST


def test_the_first_item_that_attracts_is_clicked():
    users = DemoUsers(1)
    slate = sorted((item.id for item in demo_catalog().items), key=users.attract)[-3:]
    attracts = np.array([users.attract(item) for item in slate])
    clicks = [users.click(slate) for _ in range(20_000)]
    shares = [clicks.count(position) / len(clicks) for position in range(3)]
    expected = attracts * np.cumprod([1.0, *(1 - attracts[:2])])
    # Five standard errors of a share of at most 0.3: a false alarm in a million seeds, and the seed is fixed.
    assert shares == pytest.approx(expected.tolist(), abs=0.017)
    assert clicks.count(None) / len(clicks) == pytest.approx(1 - click_rate(attracts), abs=0.018)
    assert [DemoUsers(1).click(slate) for _ in range(3)] == [DemoUsers(1).click(slate)] * 3
    assert users.click([]) is None
    assert users.attract("new") == pytest.approx(attractions(1).mean())
    again = DemoUsers(1)
    assert [again.click(slate) for _ in range(500)] == clicks[:500]


def test_the_list_of_the_cafe_is_better_than_chance_and_far_from_the_best():
    users, baseline = DemoUsers(SEED), demo_list()
    assert sorted(baseline) == sorted(item.id for item in demo_catalog().items)
    rate = click_rate(np.array([users.attract(item) for item in baseline[:SLATE]]))
    # The note that the demo prints says one in five.
    assert rate == pytest.approx(0.2, abs=0.02)
    assert 1.2 * BY_CHANCE < rate < AT_BEST / 2


@pytest.fixture
def open_demo(tmp_path):
    """`open_demo()`: the demo's model, and what the server prints."""

    def open_model(**more):
        settings = Settings(
            demo=True, store=str(tmp_path / "demo.db"), name="cafe", policy="cascade-ts", seed=1, **more
        )
        service, _, notes = open_for(settings, given=())
        return seam.model(service, "cafe"), notes

    return open_model


def test_a_new_demo_starts_beside_the_list_and_an_old_one_stays_as_it_is(open_demo):
    cafe, notes = open_demo(max_loss=0.1)
    with cafe:
        lists = [event for event in cafe.events() if event["kind"] == "baseline"]
        assert [(event["items"][0], event["max_loss"]) for event in lists] == [("cappuccino", 0.1)]
        assert cafe.events()[-1]["kind"] == "trial-started"
        # Its owner takes the list away: starting the demo again does not bring it back.
        cafe.stop_trial()
        cafe.remove_baseline()
        seq = cafe.seq
    assert any("one of its slates in five is clicked" in note for note in notes)
    cafe, _ = open_demo()
    with cafe:
        assert cafe.seq == seq


def test_a_model_that_cannot_start_beside_the_list_goes_without(shop):
    (note,) = start_beside_the_list(shop.service, "shop", 0.05)
    assert "cappuccino" in note
    assert shop.seq == 1
