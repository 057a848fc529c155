"""Policies that are told of the user: each equals a slow reference, and without a context its parent."""

import numpy as np
import pytest

import reference
from firstclick import Catalog, InvalidInput, Ranker, make_policy
from firstclick.catalog.search_tree import scanning
from firstclick.kernels.hashing import fill_normal, mix
from firstclick.online.request import read_context
from firstclick.streams import stream, stream_key
from firstclick.testing import Driver, request, states_differ
from tests.support.policies import OTHERS

N_ITEMS, D, K = 11, 3, 3


class Told(Driver):
    """A driver that says which user asks."""

    user = np.empty(0)

    def asked(self, request):
        return request._replace(context=np.asarray(self.user, float))


def concatenation(user, x):
    return np.hstack([x, np.tile(user, (len(x), 1))])


def product(user, x):
    return x * user


def bilinear(user, x):
    return np.array([np.kron(user, row) for row in x])


def of_rank_two(user, x):
    return np.hstack([x, bilinear(user, x[:, :2])])


class C3(reference.LinUCB):
    """As the authors write it: V = lambda I + sum of g^2k z z', theta = V^-1 sum of g^2k z w."""

    def __init__(self, z, lam, g, beta):
        super().__init__(z, 1.0, None)
        self.M, self.g, self.beta, self.t = lam * np.eye(z.shape[1]), g, beta, 1

    def recommend(self, noise, ties, items, k):
        self.c = self.beta(self.t)
        return super().recommend(noise, ties, items, k)

    def learn(self, slate, click):
        for position, item in enumerate(slate):
            if click is None or position <= click:
                weight, z = self.g ** (2 * position), self.x[item]
                self.M += weight * np.outer(z, z)
                self.B += weight * z * (position == click)
        self.t += 1


def authors_beta(lam, g, d, delta, t):
    total = sum(g ** (2 * position) for position in range(K))
    return 0.5 * np.sqrt(np.log((1 + total * t / (lam * d)) ** d / delta**2)) + np.sqrt(lam)


REFERENCES = {
    "context-lin-ts:context=2,combine=concatenation": (concatenation, lambda z: reference.LinTS(z, 1.0)),
    "context-lin-ts:context=3,combine=product,sigma=0.4": (product, lambda z: reference.LinTS(z, 0.4)),
    "context-lin-ts:context=2": (bilinear, lambda z: reference.LinTS(z, 1.0)),
    "context-lin-ts:context=2,rank=2": (of_rank_two, lambda z: reference.LinTS(z, 1.0)),
    "c3-ucb:context=2,combine=concatenation": (
        concatenation, lambda z: C3(z, 1.0, 0.9, lambda t: 1.0),
    ),
    "c3-ucb:context=3,combine=product,sigma=2,discount=0.5": (
        product, lambda z: C3(z, 4.0, 0.5, lambda t: 2.0),
    ),
    "c3-ucb:context=2,c=theory,sigma=0.5,delta=0.2": (
        bilinear, lambda z: C3(z, 0.25, 0.9, lambda t: authors_beta(0.25, 0.9, 6, 0.2, t)),
    ),
    "c3-ucb:context=2,rank=2": (of_rank_two, lambda z: C3(z, 1.0, 0.9, lambda t: 1.0)),
    "c3-ucb": (lambda user, x: x, lambda z: C3(z, 1.0, 0.9, lambda t: 1.0)),
}  # fmt: skip


def noise_and_ties(driver, number):
    key = np.uint64(mix(stream_key(0, "driver"), np.uint64(number)))
    noise = np.empty(driver.policy.noise_size(driver.k, driver.catalog.features.shape[1]))
    fill_normal(key, noise)
    return noise, [mix(key, label) for label in driver.catalog.labels]


def some_features(n_items=N_ITEMS, d=D):
    features = stream(1, "features").standard_normal((n_items, d))
    features[5] = features[2]  # a tie at every step
    return features


def some_click(draw, slate):
    position = int(draw.integers(0, len(slate) + 1))
    return position if position < len(slate) else None


@OTHERS
@pytest.mark.parametrize("policy", REFERENCES)
def test_slates_and_estimates_equal_the_reference(policy):
    features, draw = some_features(), stream(2, "clicks")
    driver = Told(policy, features, k=K)
    n = driver.policy.n_context
    together, make = REFERENCES[policy]
    slow = make(together(np.ones(n), features))
    for step in range(200):
        noise, ties = noise_and_ties(driver, step)
        driver.user = np.round(draw.standard_normal(n), 1)  # with a 0 now and then
        # Every other time the request brings features of its own, for some candidates.
        candidates = draw.permutation(N_ITEMS)[:6] if step % 2 else np.arange(N_ITEMS)
        hidden = draw.choice(candidates, 2, replace=False).tolist() if step % 4 == 1 else []
        x = features + (draw.standard_normal(features.shape) if step % 2 else 0)
        slow.x = together(driver.user, x)
        asked = request(candidates if step % 2 else [], hidden, N_ITEMS)
        if step % 2:
            asked = asked._replace(features=x[candidates])
        slate = driver.recommend(step, asked)
        left = [e for e in candidates if e not in hidden]
        assert slate == slow.recommend(noise, ties, left, K), f"step {step}"
        click = some_click(draw, slate)
        driver.learn(slate, click, request=asked._replace(features=x[slate]) if step % 2 else asked)
        slow.learn(slate, click)
    z, sigma = together(driver.user, features), driver.policy.sigma
    # The reference of C3 has sigma^2 M for M, and the mean is the same.
    inverse = np.linalg.inv(slow.M) * (sigma**2 if isinstance(slow, C3) else 1)
    means = z @ inverse @ slow.B / sigma**2
    held = driver.estimate(range(N_ITEMS))
    np.testing.assert_allclose(held, [means, np.sqrt(np.sum(z @ inverse * z, axis=1))], rtol=1e-9, atol=1e-9)


class Segments:
    """One posterior of all tastes, written out: z = [sqrt(share) x ; sqrt(1 - share) e_s kron x]."""

    def __init__(self, x, n, share, sigma):
        self.x, self.n, self.share, self.sigma = x, n, share, sigma
        size = x.shape[1] * (1 + n)
        self.M, self.B = np.eye(size), np.zeros(size)

    def z(self, segment, x):
        own = np.kron(np.eye(self.n)[segment], x)
        return np.concatenate([np.sqrt(self.share) * x, np.sqrt(1 - self.share) * own])

    def theta(self, segment, noise):
        """The part of a draw that this segment needs: its own taste first, then the shared one."""
        d, inverse = self.x.shape[1], np.linalg.inv(self.M)
        places = [*range(d * (1 + segment), d * (2 + segment)), *range(d)]
        precision = np.linalg.inv(inverse[np.ix_(places, places)])
        mean = (inverse @ self.B / self.sigma**2)[places]
        drawn = mean + np.linalg.inv(np.linalg.cholesky(precision).T) @ np.roll(noise, d)
        return np.sqrt(1 - self.share) * drawn[:d] + np.sqrt(self.share) * drawn[d:]

    def estimates(self, segment):
        inverse = np.linalg.inv(self.M)
        zs = np.array([self.z(segment, x) for x in self.x])
        return zs @ inverse @ self.B / self.sigma**2, np.sqrt(np.sum(zs @ inverse * zs, axis=1))

    def learn(self, segment, slate, click):
        for position, item in enumerate(slate):
            if click is None or position <= click:
                z = self.z(segment, self.x[item])
                self.M += np.outer(z, z) / self.sigma**2
                self.B += z * (position == click)


@OTHERS
@pytest.mark.parametrize("share", [0.3, 0.0, 1.0])
def test_segments_equal_the_whole_posterior_written_out_and_merge(share):
    features, draw = some_features(), stream(3, "clicks")
    policy = f"segment-lin-ts:segments=4,share={share},sigma=0.6"
    driver, halves = Told(policy, features, k=K), [Told(policy, features, k=K) for _ in range(2)]
    slow = Segments(features, 4, share, 0.6)
    for step in range(200):
        noise, ties = noise_and_ties(driver, step)
        segment = int(draw.integers(0, 4))
        for told in (driver, *halves):
            told.user = [segment]
        slate = driver.recommend(step)
        assert slate == reference.by_score(features @ slow.theta(segment, noise), ties, range(N_ITEMS))[:K]
        click = some_click(draw, slate)
        slow.learn(segment, slate, click)
        for told in (driver, halves[step % 2]):
            told.learn(slate, click)
    merged = driver.policy.merge(halves[0].state, halves[1].state)
    assert not states_differ(driver.state, merged, 1e-11)
    for segment in range(4):
        driver.user = [segment]
        np.testing.assert_allclose(
            driver.estimate(range(N_ITEMS)), slow.estimates(segment), rtol=1e-9, atol=1e-9
        )


def nobody(draw):
    return []


def the_same(draw):
    return [1.0]


def someone_of_three(draw):
    return [float(draw.integers(0, 3))]


@OTHERS
@pytest.mark.parametrize(
    ("policy", "parent", "who"),
    [
        ("context-lin-ts", "cascade-lin-ts", nobody),
        ("context-lin-ts:context=1,sigma=0.5", "cascade-lin-ts:sigma=0.5", the_same),
        ("segment-lin-ts", "cascade-lin-ts", nobody),
        ("segment-lin-ts:segments=3,share=1,sigma=2", "cascade-lin-ts:sigma=2", someone_of_three),
        ("c3-ucb:discount=1", "cascade-lin-ucb", nobody),
        ("c3-ucb:discount=1,sigma=0.5,c=0.7,context=1", "cascade-lin-ucb:sigma=0.5,c=0.7", the_same),
    ],
)
def test_without_a_context_it_is_its_parent_slate_by_slate(policy, parent, who):
    features, draw = some_features(60, 5), stream(4, "clicks")
    driver, plain = Told(policy, features, k=K), Driver(parent, features, k=K)
    for step in range(600):  # past a refresh of the factor
        driver.user = who(draw)
        slate = driver.recommend(step)
        assert slate == plain.recommend(step), f"step {step}"
        click = some_click(draw, slate)
        driver.learn(slate, click)
        plain.learn(slate, click)


@OTHERS
def test_segments_that_share_nothing_learn_alone():
    features, draw = some_features(), stream(5, "clicks")
    driver = Told("segment-lin-ts:segments=2,share=0", features, k=K)
    alone = [Driver("cascade-lin-ts", features, k=K) for _ in range(2)]
    for _ in range(100):
        segment, slate = int(draw.integers(0, 2)), draw.permutation(N_ITEMS)[:K]
        driver.user = [segment]
        for one in (driver, alone[segment]):
            one.learn(slate, int(slate[0]) % K)
    for segment in range(2):
        driver.user = [segment]
        np.testing.assert_allclose(
            driver.estimate(range(N_ITEMS)), alone[segment].estimate(range(N_ITEMS)), rtol=1e-9
        )


@OTHERS
@pytest.mark.parametrize(
    "policy", ["context-lin-ts:context=2", "context-lin-ts:context=3,rank=2", "segment-lin-ts:segments=3"]
)
def test_the_index_gives_the_slates_of_a_scan(policy):
    draw = stream(6, "clicks")
    features = draw.standard_normal((2500, 5)) * (np.arange(1, 2501) ** -0.5)[:, None]
    driver, without = Told(policy, features, k=4), Told(policy, features, k=4)
    assert driver.catalog.tree.covered == 2500
    without.catalog, without.state = scanning(without.catalog), driver.state
    for step in range(300):
        n = driver.policy.n_context
        driver.user = without.user = draw.integers(0, 3, 1) if n == 1 else draw.standard_normal(n)
        slate = driver.recommend(step)
        assert slate == without.recommend(step), f"step {step}"
        driver.learn(slate, some_click(draw, slate))
    assert driver.catalog.tree.scans[0] == 0  # It searched.


@OTHERS
def test_how_many_numbers_it_wants_is_told_or_taken_from_the_world():
    for name in ("context-lin-ts", "c3-ucb"):
        assert make_policy(name).n_context == 0
        assert make_policy(name).with_context(3).n_context == 3
        assert make_policy(f"{name}:context=0").with_context(3).n_context == 0
        assert make_policy(f"{name}:context=2").with_context(3).n_context == 2
    assert make_policy("segment-lin-ts").with_context(1).segments == 10
    assert make_policy("segment-lin-ts:segments=3").with_context(1).segments == 3
    assert make_policy("segment-lin-ts").with_context(2).n_context == 0


@OTHERS
@pytest.mark.parametrize(
    ("policy", "context", "words"),
    [
        (
            "context-lin-ts:context=3,combine=product",
            None,
            "as many numbers of context as there are features, 2",
        ),
        ("c3-ucb:context=1,rank=3", None, "rank must be at most the number of features, 2"),
        ("c3-ucb:context=1,rank=1,combine=product", None, "rank only goes with combine=bilinear"),
        ("segment-lin-ts:segments=3", [1.5], "a segment, 0 to 2, got 1.5"),
        ("segment-lin-ts:segments=3", [3], "a segment, 0 to 2, got 3"),
        ("segment-lin-ts:segments=3", [-1], "a segment, 0 to 2, got -1"),
        ("segment-lin-ts:segments=3", None, "wants a context of 1 number"),
    ],
)
def test_what_makes_no_sense_is_refused(policy, context, words):
    with pytest.raises(InvalidInput, match=words):
        read_context(Ranker(Catalog(list("abc"), np.eye(3, 2)), k=2, policy=policy).policy, context)
    assert read_context(make_policy("segment-lin-ts:segments=3"), [2]) == [2.0]


@OTHERS
def test_rotations_alone_keep_the_digits_of_the_factor():
    driver = Told("segment-lin-ts:segments=2,sigma=0.1", some_features(), k=K)
    driver.user, draw = [1], stream(7, "clicks")
    for _ in range(4000):
        driver.learn(draw.permutation(N_ITEMS)[:K], None)
    merged = driver.policy.merge(driver.state, driver.policy.initial_state(N_ITEMS, D, K))
    np.testing.assert_allclose(driver.state.shared_factor, merged.shared_factor, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(driver.state.factor, merged.factor, rtol=1e-9, atol=1e-9)
