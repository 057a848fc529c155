"""What a trial counts: running sums equal those from scratch, and its arrays are all of it."""

import json

import numpy as np
import pytest

from firstclick import InvalidInput
from firstclick.trials.tally import PAGES, Tally, sums_of
from tests.support.made_trials import full, played
from tests.support.refusals import check_refused


def test_running_sums_equal_those_from_scratch():
    tally = full()
    for period in tally.periods:
        assert period.sums == sums_of(period.owner, period.pages, period.clicks, 3)
    assert sum(tally.pages) == 1_200
    stretch = tally.units
    assert stretch.sums == sums_of(tally.owner, stretch.pages, stretch.clicks, 3)


def test_a_snapshot_is_the_same_tally_bit_for_bit_and_goes_on_alike():
    tally = full()
    restored = Tally.restored(
        {name: np.array(json.loads(json.dumps(one.tolist()))) for name, one in tally.arrays().items()}
    )
    for one in (tally, restored):
        played(one, np.random.default_rng(2), 300)
    here, there = tally.arrays(), restored.arrays()
    assert here.keys() == there.keys()
    for name in here:
        assert here[name].dtype == there[name].dtype
        assert here[name].tobytes() == there[name].tobytes(), name
    assert [one.sums for one in tally.periods] == [one.sums for one in restored.periods]


def test_order_of_pages_within_a_period_does_not_matter():
    pages = [(0, 5, True), (1, 9_999, False), (0, 5, False), (1, None, True), (0, 17, True)]
    one, other = Tally([0.9, 0.1]), Tally([0.9, 0.1])
    for page, last in zip(pages, reversed(pages), strict=True):
        one.add(*page)
        other.add(*last)
    assert all((one.arrays()[name] == other.arrays()[name]).all() for name in one.arrays())


def test_a_late_page_counts_in_the_period_it_was_shown_in():
    tally = Tally([0.9, 0.1], stretch=5)
    tally.change_shares([0.1, 0.9])
    assert (tally.periods[0].owner[3_000], tally.owner[3_000]) == (0, 1)
    tally.add(0, 3_000, True, period=0)
    tally.add(1, 3_000, True)
    assert [sum(one.sums[PAGES]) for one in tally.periods] == [1, 1]
    assert (tally.pages, tally.clicks) == ([1, 1], [1, 1])
    # Only the page of the present shares is one of the last pages.
    assert sum(tally.units.sums[PAGES]) == 1


def test_stretches_follow_one_another_and_start_anew_with_new_shares():
    tally = Tally([0.5, 0.5], stretch=10)
    for page in range(25):
        tally.add(page % 2, 5_000 * (page % 2), clicked=page >= 10)
    assert (tally.units.done, tally.units.last[0], tally.units.last[1]) == (2, [5, 5], [5, 5])
    assert tally.units.sums[PAGES] == [3, 2]
    tally.change_shares([0.6, 0.4])
    assert (tally.units.done, tally.units.sums[PAGES]) == (2, [0, 0])


def test_a_correction_changes_no_rate():
    tally = Tally([0.5, 0.5])
    tally.add(1, None, False)
    before = tally.clicks, tally.periods[0].single
    tally.correct(1)
    assert (tally.clicks, tally.periods[0].single) == before
    assert tally.corrected == [0, 1]


def test_impossible_pages_are_refused_and_not_counted():
    tally = Tally([0.9, 0.1])
    for page, argument in (
        ((1, 5, True), "arm"),
        ((0, 10_000, True), "bucket"),
        ((0, -1, True), "bucket"),
        ((2, None, True), "arm"),
        ((0, 5, True, 1), "period"),
    ):
        check_refused(lambda page=page: tally.add(*page), argument)
    assert sum(tally.pages) == 0


def test_shares_change_at_most_99_times_and_equal_shares_start_no_period():
    tally = Tally([0.9, 0.1])
    tally.change_shares([0.90000000001, 0.09999999999])
    assert tally.period == 0
    for change in range(99):
        tally.change_shares([0.5, 0.5] if change % 2 == 0 else [0.9, 0.1])
    with pytest.raises(InvalidInput, match="at most 99 times"):
        tally.change_shares([0.9, 0.1])
