"""Two checks: they see what is wrong, and users that return do not make them alarm."""

import numpy as np

from firstclick.trials.checks import check_feedback, check_shares
from firstclick.trials.tally import Tally
from tests.support.made_trials import played

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
    assert check.fine is False
    assert "baseline has 54" in check.sentence
    assert "50.0%" in check.sentence
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
