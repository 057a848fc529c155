"""Parameters declared once: constructor, bounds, text from the command line, labels."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firstclick import make_policy, make_world, param, policy_classes
from firstclick.errors import InvalidInput, UnknownName
from firstclick.parameters import Declared
from firstclick.policies.cascade_kl_ucb import CascadeKLUCB
from firstclick.policies.cascade_lin_ts import CascadeLinTS
from firstclick.policies.cascade_lin_ucb import CascadeLinUCB
from firstclick.policies.cascade_ts import CascadeTS
from firstclick.policies.cascade_ucb1 import CascadeUCB1
from firstclick.worlds.bernoulli import BLB, Bernoulli


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


def test_a_message_names_the_policy_the_parameter_the_rule_and_the_value():
    assert message(CascadeLinTS, sigma=-1) == "cascade-lin-ts: sigma must be above 0, got -1"
    assert "sigma must lie between 1e-06 and 1e+06" in message(CascadeLinTS, sigma=1e-170)
    assert message(make_policy, "cascade-lin-ts:sigma=-1") == "cascade-lin-ts: sigma must be above 0, got -1"
    assert message(CascadeLinUCB, c="x") == "cascade-lin-ucb: c must be above 0 or 'theory', got 'x'"
    assert message(CascadeUCB1, start="last") == (
        "cascade-ucb1: start must be one of sample, first, pessimistic, got 'last'"
    )
    assert message(CascadeLinUCB, c="theory", horizon=0) == (
        "cascade-lin-ucb: horizon must be a whole number at least 1, got 0"
    )
    assert message(Kettle, litres=5) == "kettle: litres must be above 0 and below 5, got 5"
    assert message(Kettle, marks=(0.2, 1.5)) == (
        "kettle: marks must be at least 0 and at most 1, got (0.2, 1.5)"
    )
    assert message(Kettle, drift="much") == "kettle: drift must be a number, got 'much'"


@pytest.mark.parametrize("number", [2**64, 10**400, 10**5000], ids=["2^64", "401 digits", "5,001 digits"])
def test_a_number_that_kernels_have_no_room_for_is_refused_and_not_printed(number):
    told = message(Kettle, minutes=number)
    assert told.startswith("kettle: minutes must be a whole number at least 1, got ")
    assert told.endswith(", which is beyond 2^64 - 1")
    assert len(told) < 150
    assert Kettle(minutes=2**64 - 1).minutes == 2**64 - 1
    for name in ("cups", "litres", "colour", "marks"):
        assert len(message(Kettle, **{name: (number, number) if name == "marks" else number})) < 200


def test_a_long_text_is_cut():
    assert (
        message(Kettle, colour="x" * 10**6) == f"kettle: colour must be one of red, blue, got '{79 * 'x'}..."
    )


@pytest.mark.parametrize(
    ("limit", "inside", "outside"),
    [("litres", 5e-324, 0.0), ("litres", math.nextafter(5, 0), 5.0), ("cups", 2, 1), ("cups", 9, 10)],
)
def test_open_bounds_leave_the_limit_out_and_closed_ones_take_it_in(limit, inside, outside):
    assert getattr(Kettle(**{limit: inside}), limit) == inside
    assert limit in message(Kettle, **{limit: outside})


@pytest.mark.parametrize(
    "value",
    [
        math.nan,
        math.inf,
        -math.inf,
        True,
        False,
        np.True_,
        "1",
        "",
        b"1",
        None,
        [1.0],
        1j,
        np.array([1.0]),
        10**400,
    ],
)
def test_a_float_is_a_finite_number_and_nothing_else(value):
    assert message(Kettle, drift=value).startswith("kettle: drift must be a number, got ")


@pytest.mark.parametrize("value", [math.nan, math.inf, True, np.True_, "4", 4.5, None, np.float64(4.5)])
def test_a_count_is_a_whole_number_and_nothing_else(value):
    assert message(Kettle, cups=value).startswith(
        "kettle: cups must be a whole number at least 2 and at most 9"
    )


@pytest.mark.parametrize("value", ["0.5", 0.5, (0.5, "1"), (True,), (0.5, math.nan), None])
def test_a_tuple_holds_finite_numbers_and_nothing_else(value):
    assert message(Kettle, marks=value).startswith("kettle: marks must be at least 0 and at most 1, got ")


def test_values_are_kept_in_one_normal_form():
    kettle = Kettle(
        litres=2, cups=np.int16(3), heat=np.float32(0.5), marks=[1, np.float64(0.25)], minutes=7.0
    )
    assert kettle == Kettle(litres=2.0, cups=3, heat=0.5, marks=(1.0, 0.25), minutes=7)
    kinds = {name: type(value) for name, value in kettle.settings.items()}
    assert kinds == {
        "litres": float, "cups": int, "colour": str, "heat": float,
        "minutes": int, "marks": tuple, "drift": float,
    }  # fmt: skip
    assert [type(mark) for mark in kettle.marks] == [float, float]


def test_a_whole_number_keeps_all_its_digits():
    large = 2**60 + 1  # No float is equal to it.
    assert Kettle(minutes=large).minutes == large
    assert CascadeLinUCB.from_text({"c": "theory", "horizon": str(large)}).horizon == large


def test_the_command_line_may_write_a_count_as_1e5():
    assert CascadeLinUCB.from_text({"c": "theory", "horizon": "1e5"}) == CascadeLinUCB(
        c="theory", horizon=100_000
    )
    assert message(CascadeLinUCB.from_text, {"c": "theory", "horizon": "1.5"}).endswith("got 1.5")


def test_a_word_or_a_number_may_be_either():
    assert Kettle(heat="boil").heat == "boil"
    assert Kettle.from_text({"heat": "boil"}).heat == "boil"
    assert Kettle.from_text({"heat": "75"}).heat == 75.0
    assert message(Kettle, heat="Boil") == "kettle: heat must be at least 0 or 'boil', got 'Boil'"


def test_an_optional_parameter_may_be_left_out_and_others_may_not_be_none():
    assert Kettle(minutes=None).minutes is None
    assert message(Kettle, cups=None).endswith("got None")
    assert message(Kettle.from_text, {"minutes": "None"}).endswith("at least 1, got 'None'")


def test_parameters_are_given_by_keyword_only():
    with pytest.raises(TypeError, match="positional"):
        CascadeUCB1(1.5)
    with pytest.raises(TypeError, match="raduis"):
        CascadeUCB1(raduis=1.5)


def test_a_declaration_cannot_be_changed():
    policy = CascadeLinTS(sigma=0.5)
    with pytest.raises(dataclasses.FrozenInstanceError):
        policy.sigma = -1.0
    assert policy.sigma == 0.5


def test_equal_parameters_make_equal_policies_and_another_policy_is_never_equal():
    assert CascadeUCB1(radius=2) == CascadeUCB1(radius=2.0)
    assert hash(CascadeUCB1(radius=2)) == hash(CascadeUCB1(radius=2.0))
    assert CascadeUCB1(radius=2) != CascadeUCB1(radius=2.5)
    assert CascadeKLUCB() != CascadeUCB1()


def test_an_unknown_parameter_is_refused_with_the_nearest_one():
    with pytest.raises(UnknownName) as caught:
        CascadeUCB1.from_text({"raduis": "2"})
    assert str(caught.value) == (
        "cascade-ucb1 has no parameter 'raduis'; did you mean 'radius'? (parameters: start, radius)"
    )
    with pytest.raises(UnknownName, match=r"random has no parameter 'x' \(parameters: none\)"):
        make_policy("random:x=1")


def test_parameters_that_contradict_each_other_are_refused():
    assert "horizon must be given with c=theory" in message(CascadeLinUCB, c="theory")
    assert message(CascadeLinUCB, c=0.5, horizon=10) == ("cascade-lin-ucb: horizon needs c=theory, got c=0.5")
    assert message(BLB, n_items=3, k=4) == "blb: k must be at most n_items, got k=4, n_items=3"


def test_the_label_shows_only_what_differs_from_the_defaults():
    assert CascadeUCB1().label == "cascade-ucb1"
    assert CascadeUCB1(radius=1.5, start="sample").label == "cascade-ucb1"
    assert CascadeUCB1(radius=0.5).label == "cascade-ucb1:radius=0.5"
    assert CascadeUCB1(radius=2, start="first").label == "cascade-ucb1:start=first,radius=2"
    assert CascadeLinUCB(c="theory", horizon=10**6).label == "cascade-lin-ucb:c=theory,horizon=1000000"
    assert Bernoulli(attractions=(0.25, 1, 1 / 3)).label == f"bernoulli:attractions=0.25/1/{1 / 3}"


POSITIVE = st.floats(min_value=0, exclude_min=True, allow_infinity=False)


@given(radius=POSITIVE, start=st.sampled_from(["sample", "first", "pessimistic"]))
def test_a_label_with_a_word_and_a_float_says_everything(radius, start):
    policy = CascadeUCB1(radius=radius, start=start)
    assert make_policy(policy.label) == policy


@given(a=POSITIVE, b=POSITIVE)
def test_a_label_with_two_floats_says_everything(a, b):
    assert make_policy(CascadeTS(a=a, b=b).label) == CascadeTS(a=a, b=b)


@given(sigma=st.floats(1e-6, 1e6), c=st.one_of(POSITIVE, st.just("theory")), horizon=st.integers(1, 2**63))
def test_a_label_with_a_word_for_a_number_says_everything(sigma, c, horizon):
    policy = CascadeLinUCB(sigma=sigma, c=c, horizon=horizon if c == "theory" else None)
    assert make_policy(policy.label) == policy


@given(st.lists(st.floats(0, 1), min_size=1, max_size=7))
def test_a_label_of_a_world_with_several_numbers_says_everything(attractions):
    world = Bernoulli(attractions=attractions)
    assert make_world(world.label) == world


def test_settings_and_defaults_name_every_parameter_in_order():
    assert Kettle().settings == Kettle.defaults()
    assert list(Kettle.rules()) == ["litres", "cups", "colour", "heat", "minutes", "marks", "drift"]
    assert CascadeLinUCB().settings == {"sigma": 1.0, "c": 1.0, "horizon": None, "theta_norm": 1.0}


def every_rule():
    for name, cls in policy_classes().items():
        for parameter, rule in cls.rules().items():
            yield name, parameter, rule


def test_every_parameter_of_every_policy_has_a_sentence_and_a_default_that_obeys_its_rule():
    for name, parameter, rule in every_rule():
        default = policy_classes()[name].defaults()[parameter]
        assert rule.help, f"{name}: {parameter} has no help"
        assert rule.check(name, parameter, default) == default


def test_a_plain_attribute_in_place_of_a_parameter_is_refused_where_it_is_written():
    with pytest.raises(
        TypeError, match=r"Forgetful.rate must be declared with param\(...\), or as a ClassVar"
    ):

        class Forgetful(Declared):
            name = "forgetful"
            rate: float = 0.5
