"""Theorem 1 of Zong et al. 2016: the width c and the bound, against the formula spelled another way."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firstclick import Catalog, confidence_width, regret_bound
from firstclick.errors import InvalidInput
from firstclick.online.engine import PolicyEngine
from tests.support.awkward import short_id

SETTING = {"n_features": 7, "k": 3, "steps": 1234, "sigma": 0.6, "theta_norm": 1.7}
formulas = pytest.mark.parametrize("formula", [confidence_width, regret_bound])


def width_of_the_paper(n_features, k, steps, sigma, theta_norm, delta=None):
    """sigma^-1 sqrt(log((1 + nK / (d sigma^2))^d) + log((nK)^2)) + |theta|, with logs taken apart."""
    d, nk = n_features, steps * k
    per_feature = math.log(d * sigma * sigma + nk) - math.log(d) - 2 * math.log(sigma)
    chance = 1 / nk if delta is None else delta
    return ((d * per_feature - math.log(chance**2)) / sigma**2) ** 0.5 + theta_norm


def bound_of_the_paper(c, n_features, k, steps, sigma, **_):
    d, n = n_features, steps
    numerator = d * n * (math.log(d * sigma**2 + n * k) - math.log(d * sigma**2))
    denominator = math.log(sigma**2 + 1) - math.log(sigma**2)
    return 1 + k * 2 * c * math.sqrt(numerator) / math.sqrt(denominator)


def test_width_and_bound_follow_the_paper():
    assert round(confidence_width(n_features=20, k=4, steps=100_000), 2) == 15.96
    c = confidence_width(**SETTING)
    assert c == pytest.approx(width_of_the_paper(**SETTING), rel=1e-12)
    # By bc: 7 log(1 + 3702 / 2.52) = 51.051350512, 2 log 3702 = 16.433256986.
    assert c == pytest.approx(math.sqrt(51.051350512 + 16.433256986) / 0.6 + 1.7, rel=1e-9)
    assert regret_bound(**SETTING) == pytest.approx(bound_of_the_paper(c, **SETTING), rel=1e-12)


@given(
    n_features=st.integers(1, 200),
    k=st.integers(1, 50),
    steps=st.integers(1, 10**9),
    sigma=st.floats(0.01, 100),
    theta_norm=st.floats(0, 10),
    delta=st.one_of(st.none(), st.floats(1e-100, 0.999)),
)
def test_width_follows_the_paper_for_any_values(**values):
    assert confidence_width(**values) == pytest.approx(width_of_the_paper(**values), rel=1e-9)


def test_delta_replaces_one_over_nk():
    delta = 1 / (SETTING["steps"] * SETTING["k"])
    assert confidence_width(**SETTING, delta=delta) == pytest.approx(confidence_width(**SETTING))
    widths = [confidence_width(**SETTING, delta=delta) for delta in (0.5, 0.05, 1e-9, 5e-324)]
    assert widths == sorted(set(widths))
    assert math.isfinite(widths[-1])


WHOLE, FINITE = "must be a whole number of at least 1", "must be a finite number"
SIGMAS = "must be between 1e-100 and 1e+100"
REFUSED = [
    ("n_features", [0, 2.5, -(10**5000)], WHOLE),
    ("k", [-1], WHOLE),
    ("steps", [100000.5], WHOLE),
    ("k", [True], FINITE),
    ("steps", [math.inf, "100", None], FINITE),
    ("sigma", [math.nan], FINITE),
    ("theta_norm", [[10**5000]], FINITE),
    ("k", [1e301], "must be at most 1e+300"),
    ("steps", [10**5000], "must be at most 1e+300, got a whole number of about 5,001 digits"),
    ("theta_norm", [10**5000], "must be at most 1e+300"),
    ("sigma", [0, -0.5], "must be above 0"),
    ("sigma", [1e300, 1e-300, 10**400, Fraction(1, 10**400)], SIGMAS),
    ("theta_norm", [-1e-9], "must be at least 0"),
]


@formulas
@pytest.mark.parametrize(("name", "values", "problem"), REFUSED, ids=short_id)
def test_bad_value_is_refused_with_its_name(formula, name, values, problem):
    for value in values:
        with pytest.raises(InvalidInput) as caught:
            formula(**{**SETTING, name: value})
        assert str(caught.value).startswith(f"{name} {problem}")
        assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    "delta", [0, 1, -0.1, 1.5, 10**400, Fraction(10**400), 1e301, Fraction(1, 10**400)], ids=short_id
)
def test_delta_lies_strictly_between_0_and_1(delta):
    with pytest.raises(InvalidInput, match=r"^delta must be between 0 and 1, got "):
        confidence_width(**SETTING, delta=delta)


def test_bound_that_exceeds_every_float_is_refused():
    for formula, sizes in (
        (confidence_width, {"steps": 10**300, "sigma": 1e-100}),
        (regret_bound, {"steps": 10**300, "n_features": 10**300}),
    ):
        with pytest.raises(InvalidInput, match="the bound exceeds every number a computer knows"):
            formula(**SETTING | sizes)


# At 1e9, 1 + 1e-18 is 1 in floats: its logarithm must not be taken.
@pytest.mark.parametrize("sigma", [1e-100, 1e9, 1e100])
def test_bound_holds_to_the_ends_of_what_sigma_may_be(sigma):
    c = confidence_width(**SETTING | {"sigma": sigma})
    assert c == pytest.approx(width_of_the_paper(**SETTING | {"sigma": sigma}), rel=1e-12)
    assert math.isfinite(regret_bound(**SETTING | {"sigma": sigma}))


def test_small_integers_of_numpy_do_not_overflow():
    sizes = {"n_features": np.int8(20), "k": np.int8(100), "steps": np.int32(10**9)}
    assert confidence_width(**sizes) == confidence_width(n_features=20, k=100, steps=10**9)


def test_c_below_the_least_is_refused_and_the_bound_is_proportional_to_c():
    least = confidence_width(**SETTING)
    with pytest.raises(InvalidInput, match=r"c must be at least .* for Theorem 1 to hold, got 13") as caught:
        regret_bound(**SETTING, c=13)
    named = float(str(caught.value).split()[5])
    bound = regret_bound(**SETTING)
    assert regret_bound(**SETTING, c=named) == bound == regret_bound(**SETTING, c=least)
    assert regret_bound(**SETTING, c=3 * least) - 1 == pytest.approx(3 * (bound - 1))
    with pytest.raises(InvalidInput, match="c must be at least"):
        regret_bound(**SETTING, c=math.nextafter(least, 0))
    for c in (math.nan, math.inf, -1.0, "theory", 10**400, Fraction(10**400), 1e301):
        with pytest.raises(InvalidInput, match=r"^c must be (a finite number|above 0|at most 1e\+300), got"):
            regret_bound(**SETTING, c=c)


def test_policy_with_c_theory_uses_this_width_and_scales_features_to_norm_1():
    features = np.array([[3.0, 4.0], [0.1, 0.2], [1.0, 0.0]])
    policy = "cascade-lin-ucb:c=theory,horizon=500,sigma=0.5,theta_norm=2"
    numbers = PolicyEngine(policy, Catalog(["a", "b", "z"], features), k=1).numbers
    assert numbers.c == confidence_width(n_features=2, k=1, steps=500, sigma=0.5, theta_norm=2)
    assert numbers.scale == 1 / 5
    short = PolicyEngine(policy, Catalog(["a", "b", "z"], features / 10), k=1).numbers
    assert short.scale == 1.0
