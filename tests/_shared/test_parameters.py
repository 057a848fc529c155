"""Parameters declared once: constructor, bounds, text from the command line, labels."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firstclick import make_policy, make_world, param, policy_classes, world_classes
from firstclick.errors import InvalidInput, UnknownName
from firstclick.parameters import Declared

UCB1, KLUCB, TS, LinTS, LinUCB = (
    policy_classes()[f"cascade-{name}"] for name in ("ucb1", "kl-ucb", "ts", "lin-ts", "lin-ucb")
)
Bernoulli = world_classes()["bernoulli"]


class Kettle(Declared):
    """Every kind of parameter once, in no world or registry."""

    name = "kettle"
    litres: float = param(1.5, "how much it holds", above=0, below=5)
    cups: int = param(4, "how many it fills", at_least=2, at_most=9)
    colour: str = param("red", "what it looks like", words=("red", "blue"))
    heat: float | str = param(90.0, "how hot", at_least=0, words=("boil",))
    minutes: int | None = param(None, "when to switch off", kind=int, at_least=1)
    marks: tuple[float, ...] = param((0.5, 1.0), "lines on the glass", at_least=0, at_most=1)
    drift: float = param(0.0, "any number at all")


def message(make, *args, **kwargs):
    with pytest.raises(InvalidInput) as caught:
        make(*args, **kwargs)
    return str(caught.value)


def test_message_names_the_policy_the_parameter_the_rule_and_the_value():
    assert message(LinTS, sigma=-1) == "cascade-lin-ts: sigma must be above 0, got -1"
    assert message(make_policy, "cascade-lin-ts:sigma=-1") == "cascade-lin-ts: sigma must be above 0, got -1"
    assert "sigma must lie between 1e-06 and 1e+06" in message(LinTS, sigma=1e-170)
    assert message(UCB1, start="last").endswith("start must be one of sample, first, pessimistic, got 'last'")
    assert message(LinUCB, c="theory", horizon=0).endswith("must be a whole number at least 1, got 0")
    assert message(Kettle, litres=5) == "kettle: litres must be above 0 and below 5, got 5"
    assert message(Kettle, marks=(0.2, 1.5)).endswith("at least 0 and at most 1, got (0.2, 1.5)")
    assert message(Kettle, heat="Boil") == "kettle: heat must be at least 0 or 'boil', got 'Boil'"


@pytest.mark.parametrize("number", [2**64, 10**400, 10**5000], ids=["2^64", "401 digits", "5,001 digits"])
def test_number_beyond_64_bits_is_refused_and_not_printed(number):
    refusal = message(Kettle, minutes=number)
    assert refusal.startswith("kettle: minutes must be a whole number at least 1, got ")
    assert refusal.endswith(", which is beyond 2^64 - 1")
    assert len(refusal) < 150
    assert Kettle(minutes=2**64 - 1).minutes == 2**64 - 1
    for name in ("cups", "litres", "colour", "marks"):
        assert len(message(Kettle, **{name: (number, number) if name == "marks" else number})) < 200
    assert message(Kettle, colour="x" * 10**6).endswith(f"red, blue, got '{79 * 'x'}...")


@pytest.mark.parametrize(
    ("limit", "inside", "outside"),
    [("litres", 5e-324, 0.0), ("litres", math.nextafter(5, 0), 5.0), ("cups", 2, 1), ("cups", 9, 10)],
)
def test_open_bounds_exclude_the_limit_and_closed_ones_include_it(limit, inside, outside):
    assert getattr(Kettle(**{limit: inside}), limit) == inside
    assert limit in message(Kettle, **{limit: outside})


NOT_FINITE = [math.nan, math.inf, -math.inf, 10**400]
NOT_NUMBERS = [True, False, np.True_, "1", "", b"1", None, [1.0], 1j, np.array([1.0])]


@pytest.mark.parametrize(
    ("name", "rule", "values"),
    [
        ("drift", "must be a number, got ", [*NOT_FINITE, *NOT_NUMBERS]),
        ("cups", "must be a whole number at least 2", [*NOT_FINITE, *NOT_NUMBERS, 4.5, np.float64(4.5)]),
        ("marks", "must be at least 0 and", ["0.5", 0.5, (0.5, "1"), (True,), (0.5, math.nan), None]),
    ],
)
def test_values_of_another_kind_are_refused(name, rule, values):
    for value in values:
        assert message(Kettle, **{name: value}).startswith(f"kettle: {name} {rule}")


def test_values_are_kept_in_one_normal_form():
    kettle = Kettle(
        litres=2, cups=np.int16(3), heat=np.float32(0.5), marks=[1, np.float64(0.25)], minutes=7.0
    )
    expected = Kettle(litres=2.0, cups=3, heat=0.5, marks=(1.0, 0.25), minutes=7)
    # With the types: 2 and 2.0 are equal.
    assert repr(kettle) == repr(expected)
    assert kettle == expected


def test_text_gives_counts_words_and_numbers():
    large = 2**60 + 1  # No float is equal to it.
    assert Kettle(minutes=large).minutes == large
    for text, horizon in ((str(large), large), ("1e5", 100_000)):
        assert LinUCB.from_text({"c": "theory", "horizon": text}) == LinUCB(c="theory", horizon=horizon)
    assert message(LinUCB.from_text, {"c": "theory", "horizon": "1.5"}).endswith("got 1.5")
    assert Kettle.from_text({"heat": "boil"}) == Kettle(heat="boil")
    assert Kettle.from_text({"heat": "75"}).heat == 75.0
    assert Kettle(minutes=None).minutes is None
    assert message(Kettle.from_text, {"minutes": "None"}).endswith("at least 1, got 'None'")


def test_declaration_takes_keywords_and_cannot_be_changed():
    with pytest.raises(TypeError, match="positional"):
        UCB1(1.5)
    with pytest.raises(TypeError, match="raduis"):
        UCB1(raduis=1.5)
    policy = LinTS(sigma=0.5)
    with pytest.raises(dataclasses.FrozenInstanceError):
        policy.sigma = -1.0
    assert policy.sigma == 0.5


def test_equal_parameters_make_equal_policies():
    assert UCB1(radius=2) == UCB1(radius=2.0)
    assert hash(UCB1(radius=2)) == hash(UCB1(radius=2.0))
    assert UCB1(radius=2) != UCB1(radius=2.5)
    assert KLUCB() != UCB1()


def test_unknown_and_contradicting_parameters_are_refused():
    with pytest.raises(UnknownName, match=r"'raduis'; did you mean 'radius'\? \(parameters: start, radius\)"):
        UCB1.from_text({"raduis": "2"})
    with pytest.raises(UnknownName, match=r"random has no parameter 'x' \(parameters: none\)"):
        make_policy("random:x=1")
    assert "horizon must be given with c=theory" in message(LinUCB, c="theory")
    assert message(LinUCB, c=0.5, horizon=10) == "cascade-lin-ucb: horizon needs c=theory, got c=0.5"
    refusal = message(make_world, "blb:n_items=3,k=4")
    assert refusal == "blb: k must be at most n_items, got k=4, n_items=3"


def test_label_has_only_what_differs_from_the_defaults():
    assert UCB1(radius=1.5, start="sample").label == UCB1().label == "cascade-ucb1"
    assert UCB1(radius=2, start="first").label == "cascade-ucb1:start=first,radius=2"
    assert LinUCB(c="theory", horizon=10**6).label == "cascade-lin-ucb:c=theory,horizon=1000000"
    assert Bernoulli(attractions=(0.25, 1, 1 / 3)).label == f"bernoulli:attractions=0.25/1/{1 / 3}"


POSITIVE = st.floats(min_value=0, exclude_min=True, allow_infinity=False)
DECLARED = st.one_of(
    st.builds(UCB1, radius=POSITIVE, start=st.sampled_from(["sample", "first", "pessimistic"])),
    st.builds(TS, a=POSITIVE, b=POSITIVE),
    st.builds(LinUCB, sigma=st.floats(1e-6, 1e6), c=POSITIVE),
    st.builds(LinUCB, sigma=st.floats(1e-6, 1e6), c=st.just("theory"), horizon=st.integers(1, 2**63)),
    st.builds(Bernoulli, attractions=st.lists(st.floats(0, 1), min_size=1, max_size=7)),
)


@given(DECLARED)
def test_label_gives_the_same_policy_or_world_again(declared):
    make = make_world if isinstance(declared, Bernoulli) else make_policy
    assert make(declared.label) == declared


def test_settings_and_defaults_name_every_parameter_in_order():
    assert Kettle().settings == Kettle.defaults()
    assert list(Kettle.rules()) == ["litres", "cups", "colour", "heat", "minutes", "marks", "drift"]
    assert LinUCB().settings == {"sigma": 1.0, "c": 1.0, "horizon": None, "theta_norm": 1.0}


def test_every_parameter_has_a_sentence_and_a_default_that_obeys_its_rule():
    for name, cls in policy_classes().items():
        for parameter, rule in cls.rules().items():
            default = cls.defaults()[parameter]
            assert rule.help, f"{name}: {parameter} has no help"
            assert rule.check(name, parameter, default) == default


def test_plain_attribute_is_refused_where_it_is_written():
    with pytest.raises(TypeError, match=r"Forgetful.rate must be declared with param\(...\), or as a Class"):

        class Forgetful(Declared):
            name = "forgetful"
            rate: float = 0.5
