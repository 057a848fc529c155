"""Synthetic data: one matrix, and stand-ins of the size and habits of the paper's three sets."""

import numpy as np
import pytest
from scipy.stats import norm

from firstclick.data import feedback_matrix, most_attractive, synthetic_matrix
from firstclick.data import synthetic as module
from firstclick.data.sources import make_source, source_classes
from firstclick.data.sources.stand_in import StandIn, attracted
from firstclick.errors import InvalidInput
from firstclick.streams import stream
from firstclick.worlds.matrix import MatrixWorld

# Density, attraction of the top and of the median item, each with its bounds.
LIKE = {
    "synthetic-yelp": ((0.0035, 0.0045), (0.037, 0.045), (0.001, 0.003)),
    "synthetic-million-song": ((0.0027, 0.0033), (0.09, 0.115), (0.0015, 0.0021)),
    "synthetic-movielens": ((0.024, 0.028), (0.47, 0.53), (0.005, 0.009)),
}
# Million Song with a twentieth of its users, the others whole.
SPECS = {name: name + (":n_users=20000" if "song" in name else "") for name in LIKE}
THINGS = {"synthetic-yelp": "restaurant", "synthetic-movielens": "movie", "synthetic-million-song": "song"}


@pytest.fixture(scope="module", params=sorted(LIKE))
def stand_in(request):
    interactions = make_source(SPECS[request.param]).load(None)
    return request.param, interactions, feedback_matrix(interactions)


@pytest.fixture(scope="module", params=(0, 20))
def feedback(request):
    return synthetic_matrix(request.param)


def attraction(matrix):
    return np.bincount(matrix.indices, minlength=matrix.shape[1]) / matrix.shape[0]


def activity(matrix):
    """Quantiles of the number of items that attract a user, and the share of idle users."""
    liked = np.diff(matrix.indptr)
    return *np.quantile(liked, [0.05, 0.5, 0.95]), (liked == 0).mean()


def correlations(matrix, n):
    """The correlations of the n most attractive items, and which they are."""
    popular = most_attractive(matrix, n)
    return np.corrcoef(matrix[:, popular].toarray().T), popular


def column_slopes(shares):
    """Return the mean correlation of attraction and column number."""
    return np.mean([np.corrcoef(row, np.arange(len(row)))[0, 1] for row in shares])


def test_synthetic_matrix_is_like_a_real_one(feedback):
    matrix = feedback.matrix
    assert (matrix.shape, matrix.dtype) == ((4000, 2000), np.uint8)
    assert (matrix.data == 1).all()
    assert matrix.has_canonical_format
    assert matrix.indices.dtype == matrix.indptr.dtype == np.int32
    share = np.sort(attraction(matrix))[::-1]
    assert 0.02 < share.mean() < 0.05
    assert 0.45 < share[0] < 0.55
    assert np.median(share) < 0.02
    # Long-tailed: a tenth of the items has about half of all attractions.
    assert 0.4 < share[:200].sum() / share.sum() < 0.7
    low, middle, high, _ = activity(matrix)
    assert low < middle / 4
    assert high > middle * 4
    # A mixed slate covers more users than the most popular items.
    world = MatrixWorld(matrix)
    best = world.expected_reward(world.optimal_slate(4))
    popular = world.expected_reward(most_attractive(matrix, 4))
    assert 0.75 < best < 0.9
    assert 0.015 < best - popular < 0.1


def test_column_numbers_and_group_letters_do_not_reveal_popularity():
    made = [synthetic_matrix(seed, 300, 500) for seed in range(20)]
    shares = [attraction(one.matrix) for one in made]
    # 20 correlations of independent columns: their mean has deviation 0.01; 5 of them are not chance.
    assert abs(column_slopes(shares)) < 0.05
    assert len({int(one.item_groups[share.argmax()]) for one, share in zip(made, shares, strict=True)}) > 3


def test_names_have_number_and_group_and_every_group_has_an_item(feedback):
    for n_users, n_items, n_groups in ((1, 1, 1), (5, 26, 26), (3, 40, 1)):
        made = synthetic_matrix(0, n_users, n_items, n_groups)
        assert made.matrix.shape == (n_users, n_items)
        assert set(made.item_groups.tolist()) == set(range(n_groups))
    assert feedback.item_groups.dtype == np.int64
    assert feedback.item_names == tuple(
        f"item {item:04} (group {'ABCDEFGH'[group]})" for item, group in enumerate(feedback.item_groups)
    )


def test_seed_decides_and_block_size_does_not(monkeypatch):
    first = synthetic_matrix(8, 130, 77, 3)
    monkeypatch.setattr(module, "_BLOCK", 500)
    second, other = (synthetic_matrix(seed, 130, 77, 3) for seed in (8, 9))
    assert (first.matrix != second.matrix).nnz == 0
    assert first.item_names == second.item_names
    assert (first.matrix != other.matrix).nnz > 0


@pytest.mark.parametrize("sizes", [{"n_users": 0}, {"n_items": 7}, {"n_groups": 27}, {"n_groups": 2.0}])
def test_impossible_sizes_are_refused(sizes):
    with pytest.raises(InvalidInput, match=f"^{next(iter(sizes))} must be .*got"):
        synthetic_matrix(0, **sizes)
    for argument, value in (("n_users", "0"), ("n_items", "1.5"), ("seed", "-1")):
        with pytest.raises(InvalidInput, match=f"^synthetic-yelp: {argument} must be .*got {value}"):
            make_source(f"synthetic-yelp:{argument}={value}")


def test_each_data_set_of_the_paper_has_a_stand_in_of_its_size():
    stand_ins = {name: cls for name, cls in source_classes().items() if issubclass(cls, StandIn)}
    assert {name: (cls().n_users, cls().n_items) for name, cls in stand_ins.items()} == {
        "synthetic-yelp": (20_000, 3000),
        "synthetic-million-song": (400_000, 10_000),
        "synthetic-movielens": (6040, 3706),
    }
    assert all(cls.synthetic for cls in stand_ins.values())


def test_stand_in_has_the_density_activity_and_groups_of_the_real_set(stand_in):
    name, interactions, matrix = stand_in
    share = attraction(matrix)
    for (least, most), value in zip(LIKE[name], (share.mean(), share.max(), np.median(share)), strict=True):
        assert least < value < most
    low, middle, high, idle = activity(matrix)
    assert low < middle / 3
    assert high > middle * 3
    assert 0 < idle < 0.05
    sizes = {group: len(items) for group, items in interactions.groups().items()}
    assert min(sizes.values()) >= 256
    assert len(sizes) > 5
    if name == "synthetic-yelp":
        both = sizes["American (New)"] + sizes["American (Traditional)"]
        assert sizes["American"] == both == max(sizes.values())
    elif name == "synthetic-movielens":
        assert sizes["Adventure"] == 283
    else:
        assert sizes["Rock"] == max(sizes.values())
    # Each pair is there once, and every id.
    source = make_source(SPECS[name])
    assert matrix.nnz == len(interactions.users) == interactions.attracted.sum()
    assert matrix.shape == (source.n_users, source.n_items)
    assert (interactions.user_ids[7], interactions.item_ids[-1]) == ("user 7", f"item {source.n_items - 1}")
    assert interactions.names[123] == f"synthetic {THINGS[name]} 0123"


def test_stand_in_items_of_one_taste_go_together_more_than_of_one_group(stand_in):
    name, interactions, matrix = stand_in
    correlation, popular = correlations(matrix, 100)
    tastes = make_source(SPECS[name])._tastes()[popular]
    groups = [set(interactions.item_groups[item]) for item in popular]
    same_taste = tastes[:, None] == tastes
    same_group = np.array([[bool(mine & other) for other in groups] for mine in groups])
    taste = correlation[same_taste & ~np.eye(100, dtype=bool)].mean()
    group = correlation[same_group & ~same_taste].mean()
    assert group > 1.2 * correlation[~same_group].mean()
    assert taste > 1.5 * group


def test_seed_of_a_stand_in_decides_and_item_numbers_reveal_nothing():
    spec = "synthetic-movielens:n_users=300,n_items=500,seed="
    first, again, other = (make_source(spec + seed).load(None) for seed in "334")
    assert np.array_equal(first.users, again.users)
    assert np.array_equal(first.items, again.items)
    assert first.item_groups == again.item_groups != other.item_groups
    shares = [attraction(feedback_matrix(make_source(spec + str(seed)).load(None))) for seed in range(10)]
    # The mean of 10 correlations of independent columns has deviation 0.014; 5 of them are not chance.
    assert abs(column_slopes(shares)) < 0.07


def test_stand_ins_of_other_sizes_keep_the_proportions_of_the_groups():
    for name in LIKE:
        for n_users, n_items in ((1, 1), (1, 40), (13, 1), (5, 11)):
            made = make_source(f"{name}:n_users={n_users},n_items={n_items}").load(None)
            assert feedback_matrix(made).shape == (n_users, n_items)
            assert len(made.item_groups) == n_items
    seen = []
    spec = "synthetic-yelp:n_users=7,n_items=300"
    groups = make_source(spec).load(None, lambda *progress: seen.append(progress)).groups()
    assert (len(groups["American (New)"]), len(groups["American"])) == (42, 90)
    assert (seen, seen[-1]) == (sorted(seen), (300, 300))


def test_pairs_are_drawn_with_exactly_the_chance_of_the_model():
    chance = 0.5
    interest = np.sqrt(1 - chance) * np.repeat(np.linspace(-3, 3, 31), 4000)
    share = np.array([0.6, 0.05, 0.002])
    users, items = attracted(interest, share, chance, stream(5, "test"))
    hit = np.zeros((len(interest), len(share)), bool)
    hit[users, items] = True
    expected = norm.cdf((interest[:, None] - norm.isf(share)) / np.sqrt(chance))
    seen, meant = (values.reshape(31, 4000, 3).sum(axis=1) for values in (hit, expected))
    deviation = np.sqrt(np.maximum((expected * (1 - expected)).reshape(31, 4000, 3).sum(axis=1), 1))
    # 93 deviations of about a standard normal: one above 5 happens once in 20,000 seeds.
    assert (np.abs(seen - meant) / deviation).max() < 5
    assert seen.sum() > 1000
