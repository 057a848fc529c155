"""Policies that care for variety: each equals a slow reference, and without shared topics its parent."""

import numpy as np
import pytest

import reference
from firstclick import Catalog, InvalidInput, Ranker
from firstclick.kernels.hashing import mix
from firstclick.streams import stream, stream_key
from firstclick.testing import Driver, request
from tests.support.policies import OTHERS, size

N_ITEMS, D, K = 11, 4, 4


def coverage(topics):
    """How far these items, one a row, cover each topic together."""
    return 1 - np.prod(1 - topics, axis=0)


class Greedy:
    def __init__(self, x, n_topics, sigma, c):
        self.x, self.n_topics, self.sigma, self.c = x, n_topics, sigma, c
        self.M, self.B = np.eye(x.shape[1]), np.zeros(x.shape[1])

    def gain(self, item, above):
        """What the item adds to the topics of those above; its other features as they are."""
        t = self.n_topics
        topics = self.x[:, :t]
        added = coverage(topics[[*above, item]]) - coverage(topics[above])
        return np.concatenate([added, self.x[item, t:]])

    def recommend(self, ties, items, k):
        inverse = np.linalg.inv(self.M)
        mean, slate = inverse @ self.B / self.sigma**2, []
        for _ in range(min(k, len(items))):
            left = [e for e in items if e not in slate]
            gains = {e: self.gain(e, slate) for e in left}
            # Rounded, because a topic that is covered adds 0 to each alike, and the hash decides.
            scores = {e: np.round(v @ mean + self.c * np.sqrt(v @ inverse @ v), 12) for e, v in gains.items()}
            slate.append(reference.by_score(scores, ties, left)[0])
        return slate

    def learn(self, slate, click):
        for position, item in enumerate(slate):
            if click is None or position <= click:
                v = self.gain(item, slate[:position])
                self.M += np.outer(v, v) / self.sigma**2
                self.B += v * (position == click)


def some_topics(n_items=N_ITEMS, d=D):
    """Topics with a tie, with items that cover one wholly, and with some that cover nothing but that."""
    draw = stream(1, "features")
    topics = draw.random((n_items, d)) * (draw.random((n_items, d)) < 0.6)
    topics[5] = topics[2]
    topics[3, 0] = topics[7, 0] = 1.0
    topics[8] = topics[9] = np.eye(d)[0] * 0.5
    topics[10] = np.eye(d)[0]
    return topics


@OTHERS
@pytest.mark.parametrize(
    ("policy", "n_topics", "sigma", "c"),
    [
        ("cascade-lsb", 4, 1.0, 1.0),
        ("cascade-lsb:sigma=0.3,c=0.2", 4, 0.3, 0.2),
        ("cascade-hybrid:topics=2,c=0.5", 2, 1.0, 0.5),
    ],
)
def test_slates_equal_the_reference(policy, n_topics, sigma, c):
    features, draw = some_topics(), stream(2, "clicks")
    driver, slow = Driver(policy, features, k=K), Greedy(features, n_topics, sigma, c)
    for step in range(size(250, plain=100)):
        key = np.uint64(mix(stream_key(0, "driver"), np.uint64(step)))
        ties = [mix(key, label) for label in driver.catalog.labels]
        candidates = draw.permutation(N_ITEMS)[:6] if step % 2 else np.arange(N_ITEMS)
        hidden = draw.choice(candidates, 3, replace=False).tolist() if step % 4 == 1 else []
        # Every other time the request brings features of its own, for some candidates.
        slow.x = features[::-1] if step % 2 else features
        asked = request(candidates if step % 2 else [], hidden, N_ITEMS)
        if step % 2:
            asked = asked._replace(features=slow.x[candidates])
        slate = driver.recommend(step, asked)
        left = [e for e in candidates if e not in hidden]
        assert slate == slow.recommend(ties, left, K), f"step {step}"
        position = int(draw.integers(0, len(slate) + 1))
        click = position if position < len(slate) else None
        driver.learn(slate, click, request=asked._replace(features=slow.x[slate]) if step % 2 else asked)
        slow.learn(slate, click)
    np.testing.assert_allclose(driver.state.precision, slow.M, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(driver.state.moment, slow.B, rtol=1e-9, atol=1e-9)


def of_disjoint_topics():
    """Items of which no two share a topic: the first covers two of them."""
    features = np.zeros((39, 40))
    features[np.arange(39), np.arange(39)] = stream(3, "features").uniform(0.2, 1, 39)
    features[0, 39] = 0.5
    return features


@OTHERS
@pytest.mark.parametrize(
    ("policy", "parent", "features", "k"),
    [
        ("cascade-hybrid:topics=0", "cascade-lin-ucb", stream(4, "features").standard_normal((60, 5)), 3),
        ("cascade-lsb:c=0.4", "cascade-lin-ucb:c=0.4", of_disjoint_topics(), 3),
        ("cascade-lsb:sigma=0.5", "cascade-lin-ucb:sigma=0.5", some_topics(60), 1),
        ("cascade-hybrid", "cascade-lsb", some_topics(60), 3),
    ],
)
def test_where_nothing_is_shared_it_is_its_parent_slate_by_slate(policy, parent, features, k):
    driver, plain, draw = Driver(policy, features, k=k), Driver(parent, features, k=k), stream(5, "clicks")
    for step in range(size(600, plain=60)):  # past a refresh of the factor, if compiled
        slate = driver.recommend(step)
        assert slate == plain.recommend(step), f"step {step}"
        position = int(draw.integers(0, k + 1))
        for one in (driver, plain):
            one.learn(slate, position if position < k else None)


@OTHERS
def test_topics_beyond_0_and_1_are_refused_at_the_start_and_later():
    fine = np.array([[0.0, 1.0, -5.0], [0.5, 0.2, 9.0], [0.1, 0.3, 0.0]])
    with pytest.raises(
        InvalidInput, match="between 0 and 1 of what an item covers, got -5 in row 0, column 2"
    ):
        Ranker(Catalog(list("abc"), fine), k=2, policy="cascade-lsb", seed=1)
    with pytest.raises(InvalidInput, match="topics must be at most the number of features, 3"):
        Ranker(Catalog(list("abc"), fine), k=2, policy="cascade-hybrid:topics=4", seed=1)
    ranker = Ranker(Catalog(list("abc"), fine), k=2, policy="cascade-hybrid:topics=2", seed=1)
    with pytest.raises(InvalidInput, match=r"got 1\.5 in row 0, column 1"):
        ranker.add_items(["d"], [[0.0, 1.5, 0.0]])
    ranker.add_items(["d"], [[0.0, 1.0, 2.0]])
    assert len(ranker.catalog.items) == 4
