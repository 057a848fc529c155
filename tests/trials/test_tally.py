"""What a trial counts: running sums equal those from scratch, and its arrays are all of it."""

import json

import numpy as np
import pytest

from firstclick import InvalidInput
from firstclick.trials.checks import check_feedback, check_shares
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
    # A correction changes no rate.
    before = tally.pages, tally.clicks
    tally.correct(1)
    assert ((tally.pages, tally.clicks), tally.corrected) == (before, [0, 1, 1])


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
    for _ in range(12):
        tally.add(1, None, clicked=True)
    assert (tally.singles.done, tally.singles.sums[PAGES]) == (1, [0, 2])
    tally.change_shares([0.6, 0.4])
    assert (tally.units.done, tally.units.sums[PAGES]) == (2, [0, 0])


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


NAMES = ["baseline", "policy"]


def test_users_that_return_do_not_make_the_shares_look_wrong():
    """530 and 470 users of 20 pages each are likely; 10,600 and 9,400 single pages would not be."""
    returning, single = Tally([0.5, 0.5]), Tally([0.5, 0.5])
    for bucket in (*range(530), *range(9_530, 10_000)):
        for _ in range(20):
            returning.add(int(returning.owner[bucket]), bucket, clicked=False)
            single.add(int(returning.owner[bucket]), None, clicked=False)
    assert check_shares(returning, NAMES).fine is True
    assert check_shares(single, NAMES).fine is False


def test_lost_pages_of_an_arm_are_seen():
    generator = np.random.default_rng(2)
    tally, without_unit = Tally([0.5, 0.5]), Tally([0.5, 0.5])
    for bucket in generator.integers(0, 10_000, 20_000).tolist():
        arm = int(tally.owner[bucket])
        if arm == 0 or generator.random() < 0.85:
            tally.add(arm, bucket, clicked=False)
    check = check_shares(tally, NAMES)
    assert (check.fine, "baseline has 54" in check.sentence) == (False, True)
    for page in range(4_000):
        without_unit.add(int(page % 5 < 3), None, clicked=False)
    assert check_shares(without_unit, NAMES).fine is False


def test_shares_of_several_periods_are_checked_against_each_plan():
    generator = np.random.default_rng(3)
    tally = played(Tally([0.9, 0.1]), generator, 6_000)
    tally.change_shares([0.5, 0.5])
    played(tally, generator, 2_000)
    check = check_shares(tally, NAMES)
    assert check.fine
    assert "planned are 80.0%" in check.sentence


def test_few_pages_tell_nothing_of_shares_and_feedback():
    tally = Tally([0.9, 0.1])
    assert check_shares(tally, NAMES).fine is None
    assert check_feedback(tally, NAMES, [0, 0]).fine is None
    tally.add(0, 1, clicked=True)
    assert check_shares(tally, NAMES).fine is None


def test_feedback_that_is_reported_less_often_in_an_arm_is_seen():
    tally = played(Tally([0.5, 0.5]), np.random.default_rng(4), 4_000, unit_share=0)
    pages = tally.pages
    same = check_feedback(tally, NAMES, [round(n / 0.8) for n in pages])
    other = check_feedback(tally, NAMES, [round(pages[0] / 0.8), round(pages[1] / 0.7)])
    assert (same.fine, other.fine) == (True, False)
    assert "baseline 80.0%, policy 70.0%" in other.sentence


def test_users_who_never_report_do_not_make_feedback_look_unequal():
    """Of 500 users with 40 pages each, 100 never report, and in the other arm 125: likely for users, and
    unlikely for pages."""
    returning, single = Tally([0.5, 0.5]), Tally([0.5, 0.5])
    for bucket in (*range(400), *range(9_625, 10_000)):
        for _ in range(40):
            returning.add(int(returning.owner[bucket]), bucket, clicked=False)
            single.add(int(returning.owner[bucket]), None, clicked=False)
    assert check_feedback(returning, NAMES, [20_000, 20_000]).fine is True
    assert check_feedback(single, NAMES, [20_000, 20_000]).fine is False


def test_three_arms_are_checked_each():
    tally = Tally([0.4, 0.3, 0.3])
    for bucket in range(10_000):
        if tally.owner[bucket] != 2 or bucket % 5:
            tally.add(int(tally.owner[bucket]), bucket, clicked=False)
    check = check_shares(tally, ["a", "b", "c"])
    assert (check.fine, "c has 25.5%" in check.sentence) == (False, True)
