"""An error knows the argument that it is about, whose it is, and what is wrong with it."""

import pickle

import numpy as np
import pytest

import firstclick
from firstclick.errors import FirstclickError, InvalidInput, UnknownName, WorkFailed
from firstclick.validation.float_array import float_array
from firstclick.validation.ranges import BIT
from firstclick.validation.whole_number import seed_number, whole_number
from firstclick.wire.errors import Malformed, Overloaded
from firstclick.worlds import BernoulliWorld


@pytest.mark.parametrize("kind", [InvalidInput, UnknownName, WorkFailed, Malformed])
def test_an_error_is_a_sentence_and_its_parts(kind):
    error = kind("must be at least 1, got 0", "k", "films.toml")
    assert str(error) == "films.toml: k must be at least 1, got 0"
    assert (error.problem, error.argument, error.owner) == ("must be at least 1, got 0", "k", "films.toml")
    assert str(kind("must be at least 1, got 0", argument="k")) == "k must be at least 1, got 0"
    assert str(kind("no items given")) == "no items given"
    assert kind("no items given").argument == ""


def test_an_error_within_a_file_keeps_its_argument_and_its_kind():
    error = InvalidInput("must be above 0, got -1", "radius", "cascade-ucb1").within("films.toml")
    assert type(error) is InvalidInput
    assert str(error) == "films.toml: cascade-ucb1: radius must be above 0, got -1"
    assert (error.argument, error.owner) == ("radius", "films.toml: cascade-ucb1")
    waiting = Overloaded("too much is waiting", retry_after=3.0).within("shop")
    assert (str(waiting), waiting.retry_after) == ("shop: too much is waiting", 3.0)


@pytest.mark.parametrize(
    "error", [InvalidInput("must be 1", "k", "blb"), InvalidInput("must be 1", "k").within("a").within("b")]
)
def test_an_error_passes_from_process_to_process(error):
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again), vars(again)) == (type(error), str(error), vars(error))


@pytest.mark.parametrize(
    ("call", "argument", "owner"),
    [
        (lambda: whole_number("k", 0, at_least=1), "k", ""),
        (lambda: whole_number("k", "1", at_least=1), "k", ""),
        (lambda: seed_number(-1), "seed", ""),
        (lambda: float_array("theta", ["a"]), "theta", ""),
        (lambda: BIT.check("random", "shown", np.array([2])), "shown", "random"),
        (lambda: firstclick.make_policy("cascade-ucb1:radius=-1"), "radius", "cascade-ucb1"),
        (lambda: firstclick.Catalog(["a"], [[1.0], [2.0]]), "features", ""),
        (lambda: firstclick.simulate(["random"], BernoulliWorld([0.5]), k=2, steps=1), "k", ""),
        (lambda: BernoulliWorld([2.0]), "attractions", ""),
    ],
)
def test_whatever_checks_an_argument_names_it(call, argument, owner):
    with pytest.raises(FirstclickError) as refused:
        call()
    assert (refused.value.argument, refused.value.owner) == (argument, owner)
    assert refused.value.problem.startswith("must ")
