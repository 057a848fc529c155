"""The world `shop`: its attractions are what it says in every draw, and its features look like a shop's."""

import numpy as np
import pytest

from firstclick import InvalidInput, make_world


def shop(seed=1, **parameters):
    return make_world("shop:" + ",".join(f"{name}={value}" for name, value in parameters.items())).build(seed)


def explained(world, numbers):
    """The share of the variance of these numbers that a linear function of the features explains."""
    table = np.column_stack([world.features, np.ones(world.n_items)])
    left = numbers - table @ np.linalg.lstsq(table, numbers)[0]
    return 1 - left.var() / numbers.var()


@pytest.mark.parametrize("size", [{}, {"n_items": 1000, "n_features": 20}, {"own": 0}, {"own": 1}])
def test_attractions_are_those_of_a_shop_in_every_draw(size):
    clicks = []
    for seed in range(30):
        world = shop(seed, **size)
        best = np.sort(world.attractions)[:-8:-1]
        assert np.median(world.attractions) == pytest.approx(0.003, rel=0.01)
        assert world.attractions.mean() == pytest.approx(0.006)
        assert (best[0], best[5]) == (pytest.approx(0.1), pytest.approx(0.05))
        assert best[6] < best[5]
        assert world.attractions.min() > 1e-7
        clicks.append(world.optimal_reward(6))
    # A standard deviation of 0.018 between shops; 5 standard errors.
    assert np.mean(clicks) == pytest.approx(0.346, abs=0.017)


def test_the_best_six_attract_as_much_in_a_catalog_of_another_size():
    for size in ({"n_items": 20, "n_features": 5}, {"n_items": 50}, {"n_items": 20_000}):
        for seed in range(5):
            attractions = np.sort(shop(seed, **size).attractions)
            assert (attractions[-1], attractions[-6]) == (pytest.approx(0.1), pytest.approx(0.05))
            assert (np.diff(attractions) > 0).all()


def test_features_explain_the_share_of_the_score_that_is_not_an_items_own():
    for own in (0, 0.4, 1):
        worlds = [shop(seed, own=own) for seed in range(6)]
        shares = [explained(world, np.log(world.attractions)) for world in worlds]
        # 51 columns explain 51 / 1500 of pure noise. The bend, and chance correlations, take the rest.
        assert np.mean(shares) == pytest.approx(1 - own + own * 51 / 1500, abs=0.03)


def test_categories_and_brands_are_words_and_numbers_are_scaled():
    features = shop().features
    category, brand, numbers = features[:, :20], features[:, 20:42], features[:, 42:]
    for words in (category, brand):
        assert set(words.ravel()) == {0.0, 1.0}
        assert (words.sum(axis=1) == 1).all()
        items = words.sum(axis=0)
        # Shares of 0.28 and 0.27 for the first, a twentieth of that for the last; 5 standard errors.
        assert abs(items[0] / 1500 - 0.275) < 0.065
        assert 2 <= items[-1] < 60
    np.testing.assert_allclose(numbers.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(numbers.std(axis=0), 1)


def test_four_numbers_have_an_effect_and_four_have_none():
    effects = []
    for seed in range(8):
        world = shop(seed, own=0)
        effects.append(np.linalg.lstsq(world.features, np.log(world.attractions))[0][42:])
    price, rating, year, discount, *others = np.mean(effects, axis=0)
    assert price < -0.2
    assert min(rating, year, discount) > 0.15
    assert np.abs(others).max() < 0.04


def test_raw_units_are_very_unlike_and_leave_the_items_as_they_are():
    scaled, raw = shop(), shop(units="raw")
    assert np.array_equal(raw.attractions, scaled.attractions)
    assert np.array_equal(raw.features[:, :42], scaled.features[:, :42])
    price, rating, year, discount, weight, *_ = raw.features[:, 42:].T
    assert 2_000 < np.median(price) < 4_500
    assert np.array_equal(price, price.round())
    assert 1 <= rating.min() < rating.max() <= 5
    assert 2005 <= year.min() < year.max() <= 2025
    assert 0 <= discount.min() < discount.max() <= 1
    assert weight.max() > 5_000
    sizes = np.sqrt((raw.features**2).mean(axis=0))
    assert sizes.max() / sizes.min() > 10_000


@pytest.mark.parametrize("units", ["scaled", "raw"])
def test_no_feature_is_constant_and_no_two_are_the_same(units):
    sizes = [(1500, 50), (50, 50), *((20, n_features) for n_features in (*range(5, 16), 20))]
    for n_items, n_features in sizes:
        for seed in range(8):
            features = shop(seed, n_items=n_items, n_features=n_features, units=units).features
            assert features.shape == (n_items, n_features)
            assert (np.ptp(features, axis=0) > 0).all()
            assert len(np.unique(features, axis=1).T) == n_features


def test_seed_decides_the_shop_and_wrong_parameters_are_refused():
    first, again, other = shop(3), shop(3), shop(4)
    for table in ("features", "attractions"):
        assert np.array_equal(getattr(first, table), getattr(again, table))
        assert not np.array_equal(getattr(first, table), getattr(other, table))
    for wrong in ({"n_items": 19, "n_features": 5}, {"n_features": 4}, {"n_items": 40}, {"units": "metric"}):
        with pytest.raises(InvalidInput, match=f"{next(iter(wrong))} must be"):
            shop(**wrong)
