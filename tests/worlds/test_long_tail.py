"""The long tail: few large items, many small ones, and attraction that follows from features."""

import numpy as np
import pytest

from firstclick import make_world


def test_norms_fade_as_declared():
    spec = "long-tail:n_items=4000,n_features=9,best=0.4,fading=0.7,tail=0.45"
    world = make_world(spec).build(3)
    norms = np.sort(np.linalg.norm(world.features, axis=1))[::-1]
    np.testing.assert_allclose(norms, np.arange(1, 4001) ** -0.45)
    assert not np.array_equal(np.linalg.norm(world.features, axis=1), norms), "items are shuffled"
    assert (world.features[:, 0] >= 0).all()
    sizes = np.sqrt(np.mean((world.features / np.linalg.norm(world.features, axis=1)[:, None]) ** 2, axis=0))
    assert sizes[2:] / sizes[1:-1] == pytest.approx(0.7, abs=0.08)
    np.testing.assert_array_equal(world.attractions, np.maximum(world.features @ world.theta, 0))
    assert world.attractions.max() == pytest.approx(0.4)
    assert (world.attractions == 0).any()
    again = make_world(spec).build(3)
    np.testing.assert_array_equal(again.features, world.features)
    assert not np.array_equal(make_world(spec).build(4).features, world.features)


@pytest.mark.parametrize("seed", range(8))
def test_tiny_world_has_its_best_item(seed):
    # With one feature, which is never negative, theta may point away from all items.
    world = make_world("long-tail:n_items=3,n_features=1").build(seed)
    assert world.attractions.max() == pytest.approx(0.5)
