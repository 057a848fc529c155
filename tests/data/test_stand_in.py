"""Made-up data of the size and habits of the paper's three sets."""

import numpy as np
import pytest
from scipy.stats import norm

from firstclick.data import feedback_matrix, most_attractive, split, truncated_svd
from firstclick.data.sources import make_source, source_classes
from firstclick.data.sources import stand_in as module
from firstclick.data.sources.stand_in import StandIn, attracted
from firstclick.errors import InvalidInput
from firstclick.streams import stream
from firstclick.worlds.matrix import MatrixWorld

STAND_INS = {name: cls for name, cls in source_classes().items() if issubclass(cls, StandIn)}

# Density, attraction of the top and of the median item, each with its bounds.
LIKE = {
    "synthetic-yelp": ((0.0035, 0.0045), (0.037, 0.045), (0.001, 0.003)),
    "synthetic-million-song": ((0.0027, 0.0033), (0.09, 0.115), (0.0015, 0.0021)),
    "synthetic-movielens": ((0.024, 0.028), (0.47, 0.53), (0.005, 0.009)),
}
# Million Song with a twentieth of its users, the others whole.
SPECS = {name: name + (":n_users=20000" if "song" in name else "") for name in LIKE}


@pytest.fixture(scope="module", params=sorted(LIKE))
def made(request):
    interactions = make_source(SPECS[request.param]).load(None)
    return request.param, interactions, feedback_matrix(interactions)


def attraction(matrix):
    return np.bincount(matrix.indices, minlength=matrix.shape[1]) / matrix.shape[0]


def test_there_is_one_for_each_data_set_of_the_paper_and_all_say_that_they_are_made_up():
    assert set(STAND_INS) == set(LIKE)
    for name, cls in STAND_INS.items():
        assert cls.synthetic
        assert name.startswith("synthetic-")
        assert cls.title.startswith("Synthetic stand-in for ")


def test_by_default_they_have_the_size_of_the_paper():
    sizes = {name: (cls().n_users, cls().n_items) for name, cls in STAND_INS.items()}
    assert sizes == {
        "synthetic-yelp": (20_000, 3000),
        "synthetic-million-song": (400_000, 10_000),
        "synthetic-movielens": (6040, 3706),
    }
    for cls in STAND_INS.values():
        assert sum(cls.kinds.values()) == cls().n_items


def test_density_top_and_middle_are_those_of_the_real_set(made):
    name, _, matrix = made
    share = attraction(matrix)
    for (low, high), value in zip(LIKE[name], (share.mean(), share.max(), np.median(share)), strict=True):
        assert low < value < high


def test_each_pair_is_there_once_and_every_id_is_kept(made):
    name, interactions, matrix = made
    source = make_source(SPECS[name])
    assert matrix.nnz == len(interactions.users)
    assert matrix.shape == (source.n_users, source.n_items)
    assert interactions.attracted.all()
    assert interactions.users.dtype == interactions.items.dtype == np.int32
    assert interactions.user_ids[7] == "user 7"
    assert interactions.item_ids[-1] == f"item {source.n_items - 1}"


def test_names_make_clear_that_they_are_made_up(made):
    name, interactions, _ = made
    thing = {"synthetic-yelp": "restaurant", "synthetic-movielens": "movie"}.get(name, "song")
    assert interactions.names[123] == f"synthetic {thing} 0123"
    assert all(called.startswith("synthetic ") for called in interactions.names)


def test_the_groups_of_the_paper_are_there_and_large_enough_for_its_experiments(made):
    name, interactions, _ = made
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


def test_users_differ_in_activity_and_some_are_idle(made):
    _, _, matrix = made
    liked = np.diff(matrix.indptr)
    low, middle, high = np.quantile(liked, [0.05, 0.5, 0.95])
    assert low < middle / 3
    assert high > middle * 3
    assert 0 < (liked == 0).mean() < 0.05


def test_popular_items_of_one_group_go_together_and_those_of_one_taste_even_more(made):
    name, interactions, matrix = made
    popular = most_attractive(matrix, 100)
    correlation = np.corrcoef(matrix[:, popular].toarray().T)
    tastes = make_source(SPECS[name])._tastes()[popular]
    groups = [set(interactions.item_groups[item]) for item in popular]
    same_taste = tastes[:, None] == tastes
    same_group = np.array([[bool(mine & other) for other in groups] for mine in groups])
    taste = correlation[same_taste & ~np.eye(100, dtype=bool)].mean()
    group = correlation[same_group & ~same_taste].mean()
    assert group > 1.2 * correlation[~same_group].mean()
    assert taste > 1.5 * group


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(LIKE))
def test_a_mixed_slate_covers_more_users_than_the_most_popular_items(name):
    ratios = []
    for seed in range(4):
        matrix = feedback_matrix(make_source(f"{name}:n_users=5000,seed={seed}").load(None))
        world = MatrixWorld(matrix)
        best, popular = world.optimal_slate(4), most_attractive(matrix, 4)
        ratios.append(world.expected_reward(best) / world.expected_reward(popular))
    # Now and then the four most popular items are well mixed by chance.
    assert min(ratios) >= 1
    assert np.mean(ratios) > 1.02


def test_features_from_half_of_the_users_tell_what_goes_together_in_the_other_half(made):
    _, _, matrix = made
    train, test = split(matrix, 3)
    popular = most_attractive(matrix, 60)
    features = truncated_svd(train, 20)[popular]
    # Directions against correlations: popularity alone would explain neither.
    directions = features / np.linalg.norm(features, axis=1, keepdims=True)
    pairs = ~np.eye(60, dtype=bool)
    told = (directions @ directions.T)[pairs]
    seen = np.corrcoef(test[:, popular].toarray().T)[pairs]
    assert np.corrcoef(told, seen)[0, 1] > 0.6


def test_the_seed_decides_and_item_numbers_tell_nothing():
    spec = "synthetic-movielens:n_users=300,n_items=500,seed="
    first, again, other = (make_source(spec + seed).load(None) for seed in "334")
    assert np.array_equal(first.users, again.users)
    assert np.array_equal(first.items, again.items)
    assert first.item_groups == again.item_groups
    assert first.item_groups != other.item_groups
    likes = [np.bincount(made.users, minlength=300) for made in (first, other)]
    # Two users of one number are two persons: the deviation is 0.06.
    assert abs(np.corrcoef(*likes)[0, 1]) < 0.3
    share = np.array([attraction(feedback_matrix(make_source(spec + str(s)).load(None))) for s in range(10)])
    slopes = [np.corrcoef(row, np.arange(500))[0, 1] for row in share]
    # The mean of 10 correlations of independent columns has deviation 0.014; 5 of them are no chance.
    assert abs(np.mean(slopes)) < 0.07


@pytest.mark.parametrize("name", sorted(LIKE))
@pytest.mark.parametrize(("n_users", "n_items"), [(1, 1), (1, 40), (13, 1), (5, 11)])
def test_tiny_sizes_work(name, n_users, n_items):
    made = make_source(f"{name}:n_users={n_users},n_items={n_items}").load(None)
    assert feedback_matrix(made).shape == (n_users, n_items)
    assert len(made.item_groups) == n_items


def test_other_sizes_keep_the_proportions_of_the_groups():
    groups = make_source("synthetic-yelp:n_users=7,n_items=300").load(None).groups()
    assert len(groups["American (New)"]) == 42
    assert len(groups["American"]) == 90


def test_progress_rises_to_the_number_of_items():
    seen = []
    make_source("synthetic-yelp:n_users=20,n_items=333").load(
        None, lambda done, total: seen.append((done, total))
    )
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)
    assert seen[-1] == (333, 333)
    assert {total for _, total in seen} == {333}


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


def test_the_number_of_bins_changes_the_draws_but_not_their_chances(monkeypatch):
    interest = np.sqrt(0.5) * stream(1, "users").standard_normal(50_000)
    for bins in (1, 7, 32):
        monkeypatch.setattr(module, "_BINS", bins)
        users, items = attracted(interest, np.array([0.2, 0.01]), 0.5, stream(2, "test"))
        often, seldom = (len(np.unique(users[items == item])) for item in (0, 1))
        # Bounds of five deviations.
        assert abs(often - 10_000) < 447
        assert abs(seldom - 500) < 112


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("n_users=0", "synthetic-yelp: n_users must be a whole number at least 1, got 0"),
        ("n_items=1.5", "synthetic-yelp: n_items must be a whole number at least 1, got 1.5"),
        ("seed=-1", "synthetic-yelp: seed must be a whole number at least 0, got -1"),
    ],
)
def test_impossible_sizes_are_refused(spec, message):
    with pytest.raises(InvalidInput) as caught:
        make_source("synthetic-yelp:" + spec)
    assert str(caught.value) == message
