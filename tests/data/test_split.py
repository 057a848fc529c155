import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from firstclick.data import split
from firstclick.errors import InvalidInput
from firstclick.streams import stream


def distinct_rows(n_users):
    """Row u is u + 1 in binary, so that every row tells which user it was."""
    bits = np.arange(n_users.bit_length() + 1)
    return (np.arange(1, n_users + 1)[:, None] >> bits) & 1


def users_of(half):
    return (half.toarray().astype(int) @ (1 << np.arange(half.shape[1])) - 1).tolist()


@given(st.integers(2, 60), st.integers(0, 2**40), st.integers(0, 9))
def test_each_user_is_in_exactly_one_half_and_the_test_half_has_the_odd_one(n_users, seed, run):
    train, test = split(distinct_rows(n_users), seed, run=run)
    assert sorted(users_of(train) + users_of(test)) == list(range(n_users))
    assert (train.shape[0], test.shape[0]) == (n_users // 2, (n_users + 1) // 2)
    assert train.dtype == test.dtype == np.uint8
    assert train.has_sorted_indices
    assert test.has_sorted_indices


def test_the_halves_come_from_the_stream_of_seed_and_run():
    train, test = split(distinct_rows(31), 5, run=3)
    order = stream(5, "run", 3, "split").permutation(31)
    assert users_of(train) == sorted(order[:15].tolist())
    assert users_of(test) == sorted(order[15:].tolist())


def test_seed_and_run_both_change_the_halves_and_repeat_them():
    drawn = {
        (seed, run): tuple(users_of(split(distinct_rows(40), seed, run=run)[0]))
        for seed in range(3)
        for run in range(3)
    }
    assert len(set(drawn.values())) == 9
    assert drawn[2, 0] == tuple(users_of(split(distinct_rows(40), 2)[0]))


def test_every_user_is_in_the_training_half_about_half_of_the_time():
    hits = np.zeros(21)
    for seed in range(2000):
        hits[users_of(split(distinct_rows(21), seed)[0])] += 1
    # Chance 10/21 each: 5 standard deviations are 56 hits; false alarm below 1e-5. The seeds are fixed.
    assert np.abs(hits - 2000 * 10 / 21).max() < 5 * np.sqrt(2000 * 10 * 11) / 21


@pytest.mark.parametrize(
    ("n_users", "run", "message"),
    [
        (1, 0, "a split needs at least 2 users, got 1"),
        (4, -1, "run must be at least 0, got -1"),
        (4, 0.5, "run must be a whole number, got 0.5"),
    ],
)
def test_a_split_that_makes_no_sense_is_refused(n_users, run, message):
    with pytest.raises(InvalidInput) as caught:
        split(distinct_rows(n_users), 0, run=run)
    assert str(caught.value) == message


def test_with_replacement_some_users_teach_twice_and_those_never_drawn_answer():
    n_users = 301
    train, test = split(distinct_rows(n_users), 5, with_replacement=True)
    taught, answering = users_of(train), users_of(test)
    assert len(taught) == n_users // 2
    assert len(set(taught)) < len(taught)
    assert set(taught).isdisjoint(answering)
    assert sorted({*taught, *answering}) == list(range(n_users))
    # A user is never drawn with probability (1 - 1/n)^(n/2), near exp(-1/2) = 0.607; deviation 0.02.
    assert abs(len(answering) / n_users - 0.607) < 0.08
