"""Linear policies beyond the paper: each equals a slow version of itself, and with its extension switched off
its parent, slate by slate."""

import numpy as np
import pytest
from scipy import optimize

import reference
from firstclick import Catalog, Ranker
from firstclick.catalog.search_tree import scanning
from firstclick.errors import InvalidInput
from firstclick.kernels.hashing import fill_normal, mix
from firstclick.kernels.posterior import factorise
from firstclick.policies._discounted import discount
from firstclick.registry import make_policy, make_world
from firstclick.streams import stream, stream_key
from firstclick.testing import Driver, states_differ
from firstclick.testing.checks import unexamined_positions_teach_nothing
from tests.support.policies import OTHERS, size

N_ITEMS, N_FEATURES, K = 11, 4, 3


def features_of(n_items=N_ITEMS, n_features=N_FEATURES):
    return stream(1, "features").standard_normal((n_items, n_features)) / 2


def noise_and_ties(driver, number):
    """What the kernels make of this step's key."""
    key = np.uint64(mix(stream_key(0, "driver"), np.uint64(number)))
    noise = np.empty(driver.policy.noise_size(driver.k, driver.catalog.features.shape[1]))
    fill_normal(key, noise)
    return noise, [mix(key, label) for label in driver.catalog.labels]


def some_clicks(draw, n, most=1):
    """Up to so many different positions out of n."""
    return sorted(draw.choice(n, int(draw.integers(0, most + 1)), replace=False).tolist())


# ------------------------------------------------------------------------------- switched off: the parent


@OTHERS
@pytest.mark.parametrize(
    ("policy", "parent", "most"),
    [
        ("dcm-lin-ts:sigma=0.5", "cascade-lin-ts:sigma=0.5", 1),
        ("dcm-lin-ucb:sigma=0.5", "cascade-lin-ucb:sigma=0.5", 1),
        ("dcm-lin-ucb:stop=1", "dcm-lin-ucb", K),  # Nobody goes on: what comes after a click was not seen.
        ("discounted-lin-ts:discount=1,sigma=0.5", "cascade-lin-ts:sigma=0.5", 1),
        ("discounted-lin-ucb:discount=1,sigma=0.5", "cascade-lin-ucb:sigma=0.5", 1),
        ("lin-ts-cascade:spread=1,sigma=0.5", "cascade-lin-ts:sigma=0.5", 1),
        ("vac2-ucb:variance=1,c=1,sigma=0.5", "cascade-lin-ucb:sigma=0.5", 1),
    ],
)
def test_with_the_extension_switched_off_it_is_its_parent(policy, parent, most):
    features = features_of(40)  # So many that widths are kept.
    mine, plain, draw = Driver(policy, features, k=K), Driver(parent, features, k=K), stream(2, "clicks")
    for step in range(size(400, plain=80)):  # past a refresh of the factor, if compiled
        slate = mine.recommend(step)
        assert slate == plain.recommend(step), f"step {step}"
        clicks = some_clicks(draw, K, most)
        mine.learn(slate, clicks)
        plain.learn(slate, clicks)
    for name in ("precision", "moment", "factor"):
        assert np.array_equal(getattr(mine.state, name), getattr(plain.state, name)), name


# -------------------------------------------------------------------------------------- slow versions


class SlowDependent(reference.LinTS):
    """Several clicks; after the last one the user went on with a chance that Bayes' rule gives.

    If nobody knows how likely it is to leave, `stop` is None: of all clicks but those at the last position,
    it is told from how many are followed by others, and how many would be if everybody went on."""

    def __init__(self, features, sigma, stop=None):
        super().__init__(features, sigma)
        self.stop, self.followed, self.would_be = stop, 0.5, 1.0

    def learn(self, slate, clicks):
        mean = np.linalg.solve(self.M, self.B) / self.sigma**2
        held = np.clip(self.x @ mean, 0, 1)
        last = max(clicks, default=len(slate) - 1)
        tail = slate[last + 1 :]
        left = 1 - min(self.followed / self.would_be, 1) if self.stop is None else self.stop
        went_on = (1 - left) * np.prod([1 - held[e] for e in tail])
        self.followed += sum(position < last for position in clicks)
        self.would_be += sum(1 - np.prod(1 - held[slate[position + 1 :]]) for position in clicks)
        for position, item in enumerate(slate[: last + 1]):
            self.learn_item(item, position in clicks)
        for item in tail:
            x = self.x[item]
            self.M += went_on / (left + went_on) * np.outer(x, x) / self.sigma**2


class SlowForgetting:
    """Keeps the whole log, and sums it up anew: what is n slates old counts discount^n."""

    def __init__(self, policy, share, detector=np.inf):
        self.policy, self.share, self.detector = policy, share, detector
        self.log, self.missing, self.alarms = [], 0.0, 0

    def recommend(self, *asked):
        return self.policy.recommend(*asked)

    def learn(self, slate, clicks):
        x, sigma = self.policy.x, self.policy.sigma
        examined = slate[: clicks[0] + 1] if clicks else slate
        held = np.clip(x @ np.linalg.solve(self.policy.M, self.policy.B) / sigma**2, 0, 1)
        seen = [(item, float(position in clicks)) for position, item in enumerate(examined)]
        for item, clicked in seen:
            self.missing = max(self.missing + held[item] - clicked - 0.1, 0.0)
        if self.missing > self.detector:
            self.log, self.missing, self.alarms = [], 0.0, self.alarms + 1
        self.log.append(seen)
        self.policy.M, self.policy.B = np.eye(x.shape[1]), np.zeros(x.shape[1])
        for age, slate_seen in enumerate(reversed(self.log)):
            for item, clicked in slate_seen:
                self.policy.M += self.share**age * np.outer(x[item], x[item]) / sigma**2
                self.policy.B += self.share**age * x[item] * clicked


class SlowLinTSCascade(reference.LinTS):
    def __init__(self, features, lamda, sub_gaussian, k):
        super().__init__(features, 1.0)
        self.scale, self.t = lamda * 3 * sub_gaussian * np.sqrt(features.shape[1]) * np.sqrt(k), 1

    def theta(self, noise):
        return super().theta(self.scale * np.sqrt(np.log(self.t)) * noise)

    def learn(self, slate, clicks):
        super().learn(slate, clicks[0] if clicks else None)
        self.t += 1


class SlowVAC2(reference.LinUCB):
    def __init__(self, features, c, floor):
        super().__init__(features, 1.0, c)
        self.floor = floor

    def learn(self, slate, clicks):
        inverse = np.linalg.inv(self.M)
        mean, M, B = inverse @ self.B, self.M.copy(), self.B.copy()
        for position, item in enumerate(slate[: clicks[0] + 1] if clicks else slate):
            x = self.x[item]
            width = self.c * np.sqrt(x @ inverse @ x)
            nearest = np.clip(0.5, x @ mean - width, x @ mean + width)  # The one of largest variance.
            variance = max(nearest * (1 - nearest), self.floor)
            M += np.outer(x, x) / variance
            B += x * (position in clicks) / variance
        self.M, self.B = M, B


class SlowLogistic:
    """For each observation the maximum of Gaussian times likelihood, by a general optimiser."""

    def __init__(self, features, prior):
        self.z = np.hstack([features, np.ones((len(features), 1))])
        d = self.z.shape[1]
        self.mean, self.Q = np.zeros(d), prior * np.eye(d)

    def recommend(self, noise, ties, items, k):
        theta = self.mean + np.linalg.inv(np.linalg.cholesky(self.Q).T) @ noise
        return reference.by_score(self.z @ theta, ties, items)[:k]

    def learn(self, slate, clicks):
        for position, item in enumerate(slate[: clicks[0] + 1] if clicks else slate):
            z = self.z[item : item + 1]
            self.mean, self.Q = laplace(self.mean, self.Q, z, np.array([float(position in clicks)]))


def laplace(mean, Q, z, clicked):
    """Where N(mean, Q^-1) times the likelihood of all observations is largest, and the curvature there."""
    sign = 1 - 2 * clicked

    def p(theta):
        return 1 / (1 + np.exp(-z @ theta))

    def curvature(theta):
        return Q + (z.T * (p(theta) * (1 - p(theta)))) @ z

    top = optimize.minimize(
        lambda theta: (theta - mean) @ Q @ (theta - mean) / 2 + np.logaddexp(0, sign * (z @ theta)).sum(),
        mean,
        jac=lambda theta: Q @ (theta - mean) + z.T @ (p(theta) - clicked),
        hess=curvature,
        method="trust-exact",
        options={"gtol": 1e-9},
    ).x
    return top, curvature(top)


SLOW = {
    "dcm-lin-ts:sigma=0.6,stop=0.4": (lambda x: SlowDependent(x, 0.6, 0.4), K),
    "dcm-lin-ts:sigma=0.6,stop=learned": (lambda x: SlowDependent(x, 0.6), K),
    "discounted-lin-ts:discount=0.97,detector=2": (
        lambda x: SlowForgetting(reference.LinTS(x, 1.0), 0.97, 2.0), 1,
    ),
    "discounted-lin-ucb:discount=0.9,sigma=0.5": (
        lambda x: SlowForgetting(reference.LinUCB(x, 0.5, 1.0), 0.9), 1,
    ),
    "lin-ts-cascade:boldness=0.3,noise=0.25": (lambda x: SlowLinTSCascade(x, 0.3, 0.25, K), 1),
    "vac2-ucb:c=1.5,floor=0.15": (lambda x: SlowVAC2(x, 1.5, 0.15), 1),
    "logistic-ts:prior=0.5": (lambda x: SlowLogistic(x, 0.5), 1),
}  # fmt: skip


@OTHERS
@pytest.mark.parametrize("policy", SLOW)
def test_slates_equal_those_of_a_slow_version(policy):
    features = features_of()
    make, most = SLOW[policy]
    driver, slow, draw = Driver(policy, features, k=K), make(features), stream(3, "clicks")
    for step in range(160):
        noise, ties = noise_and_ties(driver, step)
        slate = driver.recommend(step)
        assert slate == slow.recommend(noise, ties, range(N_ITEMS), K), f"step {step}"
        # At first nearly always a click, then hardly any: a detector has something to notice.
        clicks = some_clicks(draw, K, most) if most > 1 else [0] if draw.random() < (step % 80 < 50) else []
        driver.learn(slate, clicks)
        slow.learn(slate, clicks)
    policy = slow.policy if isinstance(slow, SlowForgetting) else slow
    precision = policy.Q if isinstance(slow, SlowLogistic) else policy.M
    np.testing.assert_allclose(driver.state.precision, precision, rtol=1e-6, atol=1e-6)
    if isinstance(slow, SlowForgetting) and slow.detector < np.inf:
        assert slow.alarms >= 2
    if isinstance(slow, SlowLogistic):
        p = 1 / (1 + np.exp(-slow.z @ slow.mean))
        width = np.sqrt(np.einsum("ij,jk,ik->i", slow.z, np.linalg.inv(slow.Q), slow.z))
        np.testing.assert_allclose(driver.estimate(range(N_ITEMS)), [p, p * (1 - p) * width], rtol=1e-6)


# ------------------------------------------------------------------------------------- one by one


@OTHERS
def test_what_the_page_tells_is_sure_whatever_the_chance_of_leaving():
    features = features_of()
    told, plain = Driver("dcm-lin-ts:stop=0.4", features, k=4), Driver("dcm-lin-ts", features, k=4)
    for driver in (told, plain):
        driver.learn([4, 9, 2, 7], [1], told=3)
        driver.learn([3, 1, 8, 0], [])
    assert states_differ(told.state, plain.state) == "going_on"  # and nothing before it
    assert told.state.observations[0] == 3 + 4
    unexamined_positions_teach_nothing(told.policy)


@OTHERS
def test_who_went_on_is_counted_where_it_can_be_told():
    driver = Driver("dcm-lin-ts:stop=learned", features_of(), k=4)
    for clicks, told, went_on, could in [
        ([1], 2, 0, 1),  # The page says that this one left,
        ([1], 3, 1, 2),  # and these looked further.
        ([1], 4, 2, 3),
        ([0, 3], 4, 3, 4),  # After the last position there is nothing to see.
        ([], None, 3, 4),
        ([], 2, 3, 4),
    ]:
        driver.learn([4, 9, 2, 7], clicks, told=told)
        assert driver.state.going_on.tolist() == [went_on, could]
    driver.learn([4, 7, 2, 9], [2])  # Left, or saw the last item and passed it by, though many clicked it.
    assert driver.state.going_on[0] == 3
    assert 4 < driver.state.going_on[1] < 5


@pytest.mark.long
@pytest.mark.parametrize("truth", [0.1, 0.5, 0.9])
def test_the_chance_of_leaving_is_found_out(truth):
    world = make_world(f"linear:n_items=32,n_features=5,best=0.2,clicks=dcm/{truth}").build(1)
    driver = Driver("dcm-lin-ts:stop=learned", world.features, k=4)
    driver.play_in(world, 20_000)
    followed, would_be = driver.state.going_on
    # Some thousand clicks, of which a fifth or so would be followed: 0.1 is four standard errors.
    assert 1 - followed / would_be == pytest.approx(truth, abs=0.1)


@OTHERS
def test_known_leaving_takes_weights_that_depend_on_order_and_is_said_to():
    plain, weighted = make_policy("dcm-lin-ucb"), make_policy("dcm-lin-ucb:stop=0.3")
    assert plain.mergeable
    assert plain.order_free
    assert not weighted.mergeable
    assert not weighted.order_free
    with pytest.raises(InvalidInput, match=r"stop must be above 0 and at most 1 or .*, got 0"):
        make_policy("dcm-lin-ts:stop=0")


@OTHERS
def test_widths_that_grow_as_the_past_fades_are_kept_without_changing_a_slate():
    features = features_of(1200)  # So many that there is a tree.
    policy = "discounted-lin-ucb:discount=0.95,detector=3,sigma=0.3"
    quick, plain = (Driver(policy, features, k=K) for _ in range(2))
    plain.catalog = scanning(plain.catalog)
    draw, restarts = stream(4, "clicks"), 0
    for step in range(size(400, plain=250)):
        slate = quick.recommend(step)
        assert slate == plain.recommend(step), f"step {step}"
        clicks = [0] if draw.random() < (step % 80 < 50) else []
        before = quick.state.missing[0]
        for driver in (quick, plain):
            driver.learn(slate, clicks)
        restarts += before > 2 and quick.state.missing[0] == 0
    assert restarts >= 3


def test_forgetting_keeps_its_digits_where_the_precision_has_none():
    # One direction is known 10^16 times as well as another, which R knows and R'R does not.
    factor = np.array([[1e8, 1e8], [0.0, 1.0]])
    precision, moment = factor.T @ factor, np.array([2.0, 4.0])
    assert not factorise(precision, factor.copy())
    discount(precision, moment, factor, 0.5)
    # Of 0.5 R'R + 0.5 I the last pivot is 0.5 + 0.5 + 0.5, by hand.
    np.testing.assert_allclose(factor, [[1e8 * 0.5**0.5, 1e8 * 0.5**0.5], [0, 1.5**0.5]], rtol=1e-7)
    assert moment.tolist() == [1.0, 2.0]


@OTHERS
def test_one_item_at_a_time_comes_near_the_posterior_of_all_at_once():
    # 2,000 observations of a logistic model with 5 coefficients: each lies within half of its standard
    # deviation (seen: 0.36) of where the whole log puts it; deviations agree within 10 % (seen: 7 %).
    features = features_of(200)
    draw = stream(5, "clicks")
    truth = np.array([1.5, -1.0, 0.5, 2.0])
    rows = draw.integers(0, len(features), 2000)
    clicked = draw.random(2000) < 1 / (1 + np.exp(1.0 - features[rows] @ truth))
    driver = Driver("logistic-ts", features, k=1)
    for row, click in zip(rows, clicked, strict=True):
        driver.learn([row], [0] if click else [])
    z = np.hstack([features[rows], np.ones((2000, 1))])
    top, curvature = laplace(np.zeros(5), np.eye(5), z, clicked.astype(float))
    deviations = np.sqrt(np.diag(np.linalg.inv(curvature)))
    mine = np.sqrt(np.diag(np.linalg.inv(driver.state.precision)))
    assert (np.abs(driver.state.mean - top) < 0.5 * deviations).all()
    np.testing.assert_allclose(mine, deviations, rtol=0.1)


@OTHERS
@pytest.mark.parametrize("policy", ["discounted-lin-ts", "dcm-lin-ts:stop=0.5", "vac2-ucb", "logistic-ts"])
def test_rankers_that_depend_on_order_are_not_merged(policy):
    catalog = Catalog(range(N_ITEMS), features_of())
    first, second = (Ranker(catalog, k=K, policy=policy, seed=seed) for seed in (1, 2))
    with pytest.raises(InvalidInput, match=f"^{policy} cannot merge: order matters to it"):
        first.merge(second)
