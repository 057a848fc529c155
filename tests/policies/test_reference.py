"""Each policy equals its slow version slate by slate; switched off, an extension equals its parent."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firstclick import policy_classes
from firstclick.streams import stream
from firstclick.testing import Driver, request
from tests.support.policies import OTHERS, PLAIN, policies
from tests.support.reference.policies import SLOW, Step

BY_POSITION = np.array([1.0, 0.8, 0.6, 0.4])


class UsersDriver(Driver):
    """A driver with a user who may differ from request to request."""

    user = None

    def asked(self, request):
        return request._replace(context=np.ones(self.policy.n_context) if self.user is None else self.user)


def settings_of(policy):
    """The settings in a description, such as {"sigma": 0.3} of cascade-lin-ts:sigma=0.3."""

    def value(text):
        try:
            return float(text) if "." in text or "e" in text else int(text)
        except ValueError:
            return [float(part) for part in text.split("/")] if "/" in text else text

    parts = [part.partition("=") for part in policy.partition(":")[2].split(",") if part]
    return {name: value(text) for name, _, text in parts}


def linear_features(n_items=11, d=4):
    x = stream(1, "features").standard_normal((n_items, d)) / 2
    x[5 % n_items] = x[2]  # a tie at every step
    return x


def topics(n_items=11, d=4):
    """Topics with a tie, with items that cover one wholly, and with some that cover nothing but that."""
    draw = stream(1, "features")
    x = draw.random((n_items, d)) * (draw.random((n_items, d)) < 0.6)
    x[5] = x[2]
    x[3, 0] = x[7, 0] = 1.0
    x[8] = x[9] = np.eye(d)[0] * 0.5
    x[10] = np.eye(d)[0]
    return x


def explained_features():
    """One direction is the attraction, so that the model of recur-rank holds; one of five is not needed."""
    other = stream(5, "features").standard_normal((8, 3))
    x = np.column_stack([RECUR, other, other[:, 0] - other[:, 1]])
    return x @ stream(6, "features").standard_normal((5, 5))


RECUR = np.array([0.95, 0.6, 0.55, 0.5, 0.12, 0.02, 0.3, 0.25])

# How each is played: by default 150 slates of 3 items out of 11, whose attractions change after 50 and 100.
LINEAR = {
    policy: {}
    for policy in (
        "cascade-lin-ts", "cascade-lin-ts:sigma=0.3", "cascade-lin-ts:sigma=4", "cascade-lin-ucb",
        "cascade-lin-ucb:c=3,sigma=0.5", "cascade-lin-ucb:c=theory,horizon=1000,sigma=0.5,theta_norm=2",
        "ranked-lin-ts", "ranked-lin-ts:sigma=0.6", "random", "dcm-lin-ts", "dcm-lin-ts:sigma=0.6,stop=0.4",
        "dcm-lin-ts:sigma=0.6,stop=learned", "dcm-lin-ucb", "dcm-lin-ucb:stop=0.3,sigma=0.5",
        "dcm-lin-ucb:stop=learned", "dcm-lin-ucb:stop=1", "discounted-lin-ts", "discounted-lin-ts:discount=1",
        "discounted-lin-ucb",
        "discounted-lin-ucb:discount=0.9,sigma=0.5", "discounted-lin-ucb:detector=0.5", "lin-ts-cascade",
        "lin-ts-cascade:boldness=0.3,noise=0.25", "vac2-ucb", "vac2-ucb:c=1.5,floor=0.15", "logistic-ts",
        "logistic-ts:prior=0.5",
    )
} | {"discounted-lin-ts:discount=0.97,detector=1": {"phase": 25}}  # fmt: skip
CONTEXTS = {
    policy: {"user": lambda n, draw: np.round(draw.standard_normal(n), 1)}  # with a 0 now and then
    for policy in (
        "context-lin-ts", "context-lin-ts:context=2,combine=concatenation",
        "context-lin-ts:context=4,combine=product,sigma=0.4", "context-lin-ts:context=2",
        "context-lin-ts:context=2,rank=2", "c3-ucb", "c3-ucb:context=2,combine=concatenation",
        "c3-ucb:context=4,combine=product,sigma=2,discount=0.5", "c3-ucb:context=2,rank=2",
        "c3-ucb:discount=1",
        "c3-ucb:context=2,c=theory,sigma=0.5,delta=0.2", "c3-ucb:c=theory,discount=0.5,delta=0.9",
    )
} | {
    policy: {"user": lambda n, draw: draw.integers(0, 4, 1).astype(float)}
    for policy in (
        "segment-lin-ts:segments=4,share=0.3,sigma=0.6", "segment-lin-ts:segments=4",
        "segment-lin-ts:segments=4,share=0", "segment-lin-ts:segments=4,share=1",
    )
}  # fmt: skip
TOPICS = {
    policy: {"x": topics(), "k": 4}
    for policy in (
        "cascade-lsb",
        "cascade-lsb:sigma=0.3,c=0.2",
        "cascade-hybrid",
        "cascade-hybrid:topics=2,c=0.5",
        "cascade-hybrid:topics=0",
    )
}  # fmt: skip
COUNTING = {
    policy: {"x": np.zeros((34, 0)), "k": 5} | options  # so many that bounds have shortcuts
    for policy, options in {
        "cascade-ts": {}, "cascade-ts:a=0.5,b=3": {}, "cascade-ucb1:start=first": {}, "cascade-ucb1": {},
        "cascade-ucb1:radius=0.4,start=pessimistic": {}, "cascade-kl-ucb:start=first": {},
        "cascade-kl-ucb:start=pessimistic": {}, "ts-cascade": {}, "cascade-ucb-v:start=first": {},
        "cascade-ucb-v:radius=0.1,start=first": {}, "dcm-kl-ucb": {}, "dcm-kl-ucb:stop=0.2/0.9/0.5": {},
        "cascade-ducb": {}, "cascade-ducb:discount=1": {},
        "cascade-ducb:discount=0.7": {}, "cascade-ducb:discount=0.99,radius=0.3": {},
        "cascade-swucb": {}, "cascade-swucb:window=40": {}, "cascade-swucb:window=400": {},
        "cascade-swucb:window=1,radius=2": {"steps": 50},
        "cascade-glr-ucb:delta=0.01,explore=0.3": {"steps": 400, "phase": 200},
        "cascade-glr-ucb:delta=0.01,explore=0.1,forget=item": {"steps": 300, "phase": 150},
    }.items()
}  # fmt: skip
NINE = {
    "attractions": [0.1, 0.7, 0.3, 0.62, 0.2, 0.35, 0.15, 0.5, 0.05], "chances": [0.41, 1.0, 0.73],
}  # fmt: skip
SIX = {"attractions": [0.1, 0.95, 0.2, 0.5, 0.15, 0.05], "steps": 300}
RISING = {"attractions": [0.1, 0.26, 0.42, 0.58, 0.74, 0.9], "steps": 600}
POSITIONS = {
    "pbm-ucb": SIX,
    "pbm-ucb:eps=0.3,examination=0.41/1.0/0.73": NINE | {"steps": 300},
    "pbm-pie:eps=0.3,examination=0.41/1.0/0.73": NINE | {"steps": 120},
    "top-rank:horizon=20": SIX,
    "top-rank:horizon=20,pairs=shown": SIX,
    "bubble-rank:horizon=3": RISING,
    "bubble-rank:horizon=3,turn=5": RISING,
    "bubble-rank:horizon=3,turn=1": {"attractions": [0.1, 0.5, 0.9], "steps": 600, "restrict": False},
    "batch-rank:horizon=8": {"attractions": [0.2, 0.9, 0.02, 0.6, 0.02, 0.4], "steps": 2500},
    "recur-rank:horizon=10": {"attractions": RECUR, "x": explained_features(), "steps": 1500},
}
MIXED = {
    "cascade-mixed": {"steps": 60, "phase": 30},
    "cascade-mixed:": {"x": np.zeros((19, 0)), "steps": 60, "phase": 30},
}
PLAYS = LINEAR | CONTEXTS | TOPICS | COUNTING | POSITIONS | MIXED


def play(
    policy, x=None, k=3, steps=150, phase=50, user=None, attractions=None, chances=BY_POSITION, restrict=True
):
    """Play a policy and its slow version, with filters, ties, several clicks and reported examinations.

    Users like a third of the items, another one in each phase; or these items at these positions."""
    by_position = attractions is not None
    if x is None:
        x = np.eye(len(attractions)) if by_position else linear_features()
    driver, draw, n_items = UsersDriver(policy, x, k=k), stream(2, "clicks"), len(x)
    slow, n_context = SLOW[driver.policy.name](x, k, **settings_of(policy)), driver.policy.n_context
    for number in range(steps):
        driver.user = None if user is None else user(n_context, draw)[:n_context]
        # Every other time the request brings features of its own, for some candidates.
        brings = number % 2 == 1 and driver.policy.takes_features and x.shape[1] > 0
        own = x[draw.permutation(n_items)] if brings else x
        few = brings or (number % 3 == 0 and not by_position)
        candidates = draw.permutation(n_items)[:6].tolist() if few else []
        hidden = []
        if restrict and number % 4 == 1:
            hidden = draw.choice(candidates or n_items, 2, replace=False).tolist()
        asked = request(candidates, hidden, n_items)
        if brings:
            asked = asked._replace(features=own[candidates])
        step = Step.of(driver, number, own if brings else None, () if user is None else driver.user)
        slate = driver.recommend(number, asked)
        allowed = [e for e in candidates or range(n_items) if e not in hidden]
        assert slate == slow.recommend(step, allowed, k), f"step {number}"
        likes = np.where(np.array(slate) % 3 == number // phase % 3, 0.9, 0.1)
        if by_position:
            likes = np.array(attractions)[slate] * chances[: len(slate)]
        clicks = (draw.random(len(slate)) < likes).astype(np.uint8)
        told = int(draw.integers(1, len(slate) + 1)) if number % 7 == 0 else None
        shown = asked._replace(features=own[slate]) if brings else asked
        driver.learn(slate, np.flatnonzero(clicks), told, shown)
        slow.learn(step, slate, clicks, driver.policy.click_model.examined(clicks, told))
    return driver, slow, step


@pytest.mark.parametrize("policy", policies(PLAYS))
def test_slates_and_state_equal_the_slow_version(policy):
    driver, slow, step = play(policy.rstrip(":"), **PLAYS[policy])
    unit = getattr(driver.state, "unit", 1.0)  # of counts that fade
    for name, array in slow.state().items():
        held = getattr(driver.state, name) / (unit if name in ("examined", "hits") else 1.0)
        scale = np.abs(array).max()
        np.testing.assert_allclose(held, array, rtol=1e-6, atol=1e-7 * scale, err_msg=name)
    if (estimates := slow.estimates(Step.of(driver, 0, None, step.context))) is not None:
        held = driver.estimate(range(len(driver.catalog.rows)))
        np.testing.assert_allclose(held, estimates, rtol=1e-6, atol=1e-7)
    if hasattr(slow, "check"):
        slow.check(driver.state)


def test_every_policy_has_a_slow_version_and_is_played():
    assert {*SLOW} == {*policy_classes()} == {policy.partition(":")[0] for policy in PLAYS}


NONE, LIN = np.zeros((34, 0)), linear_features(40)  # So many items that widths are kept.
# Policies with their extension switched off, as no slow version can be, and the policies that they are then.
PARENTS = [
    ("lin-ts-cascade:spread=1,sigma=0.5", "cascade-lin-ts:sigma=0.5", LIN, None),
    ("vac2-ucb:variance=1,c=1,sigma=0.5", "cascade-lin-ucb:sigma=0.5", LIN, None),
    ("cascade-glr-ucb:delta=0,explore=0", "cascade-kl-ucb:start=first", NONE, None),
    ("pbm-ucb:examination=1,eps=0", "cascade-ucb1:radius=0.5,start=first", NONE, 3),
]


@OTHERS
@pytest.mark.parametrize(("policy", "parent", "x", "told"), PARENTS)
def test_policy_without_its_extension_is_its_parent(policy, parent, x, told):
    driver, plain = Driver(policy, x, k=3), Driver(parent, x, k=3)
    draw = stream(3, "clicks")
    for step in range(100 if PLAIN else 400):  # past a refresh of the factor, where that is fast
        slate = driver.recommend(step)
        assert slate == plain.recommend(step), f"step {step}"
        click = draw.integers(0, 4)
        for one in (driver, plain):
            one.learn(slate, None if click == 3 else int(click), told)
    for name in {"moment", "factor"} if "precision" in driver.state._fields else ():
        assert np.array_equal(getattr(driver.state, name), getattr(plain.state, name)), name


@OTHERS
@settings(max_examples=12)
@given(
    seed=st.integers(0, 2**32), sigma=st.floats(0.05, 20), n_items=st.integers(3, 600), d=st.integers(1, 9)
)
def test_linear_policies_equal_their_slow_versions_at_all_sizes(seed, sigma, n_items, d):
    # Up to 600 items, so that scans run over several tiles and the last one is not full.
    x = stream(seed, "features").standard_normal((n_items, d)) * stream(seed, "scale").uniform(0, 3)
    rows = stream(seed, "rows").integers(0, n_items, 9)
    for policy in ("cascade-lin-ts:", "cascade-lin-ucb:c=1.5,", "ranked-lin-ts:"):
        driver = Driver(f"{policy}sigma={sigma!r}", x, k=3)
        slow = SLOW[driver.policy.name](x, 3, **settings_of(policy), sigma=sigma)
        for number, position in enumerate(stream(seed, "clicks").integers(0, 4, 12)):
            step = Step.of(driver, number)
            slate = driver.recommend(number)
            assert slate == slow.recommend(step, range(n_items), 3)
            clicks = np.arange(3) == position
            driver.learn(slate, np.flatnonzero(clicks))
            slow.learn(step, slate, clicks, min(position + 1, 3))
        estimates = np.array(slow.estimates(step))[:, rows]
        np.testing.assert_allclose(driver.estimate(rows), estimates, rtol=1e-6, atol=1e-7)
