"""A prior from history: what a log teaches, how much of it counts, and which logs are refused."""

import json

import numpy as np
import pytest

from firstclick import Catalog, Ranker, make_policy
from tests.online.rankers import refusal, state_of
from tests.support.policies import OTHERS

N_ITEMS, N_FEATURES, K = 9, 3, 3
ITEMS = [f"item {i}" for i in range(N_ITEMS)]
FEATURES = np.random.default_rng(5).random((N_ITEMS, N_FEATURES))


def new_ranker(policy="cascade-lin-ts", seed=1):
    return Ranker(Catalog(ITEMS, FEATURES), k=K, policy=policy, seed=seed)


def logged(ranker, steps=40):
    """Teach the ranker; the log of it."""
    draw, log = np.random.default_rng(ranker.seed), []
    for step in range(steps):
        slate = ranker.recommend()
        click = int(draw.integers(K)) if draw.random() < 0.6 else None
        log.append({"items": list(slate.items), "click": click})
        if step % 3 == 0 and click is not None:
            clicks = sorted({click, K - 1}, reverse=True)
            log[-1] = {"items": slate.items, "clicks": clicks, "examined": K, "user": "not looked at"}
            ranker.learn(slate, clicks=clicks, examined=K)
        else:
            ranker.learn(slate, click=click)
    return log


@pytest.mark.parametrize("policy", ["cascade-lin-ts", "cascade-ts"])
def test_a_log_teaches_what_the_clicks_taught_bit_for_bit(policy):
    teacher, pupil = new_ranker(policy), new_ranker(policy, seed=2)
    log = logged(teacher)
    waiting = pupil.recommend()
    assert pupil.warm_start(iter(log)) == 40
    assert state_of(pupil) == state_of(teacher)
    assert [len(pupil.recommend()) for _ in range(5)] == [K] * 5
    pupil.learn(waiting, click=0)
    assert pupil.state.time[0] == 41


def test_a_weight_scales_what_was_seen_and_leaves_the_prior():
    teacher = new_ranker()
    log, weight = logged(teacher), 0.3
    pupil = new_ranker(seed=2)
    pupil.warm_start(log, weight=weight)
    prior = np.eye(N_FEATURES + 1)
    precision = prior + weight * (teacher.state.precision - prior)
    np.testing.assert_allclose(pupil.state.precision, precision, rtol=1e-13)
    np.testing.assert_allclose(pupil.state.moment, weight * teacher.state.moment, rtol=1e-13)
    np.testing.assert_allclose(pupil.state.factor.T @ pupil.state.factor, precision, rtol=1e-12)
    assert not np.tril(pupil.state.factor, -1).any()
    assert [array.flags.c_contiguous for array in pupil.state] == [True] * 5
    assert pupil.state.time[0] == 12
    assert abs(pupil.state.observations[0] - weight * teacher.state.observations[0]) < 1
    # The same means as if each observation had been that much noisier: sigma / sqrt(weight).
    noisier = new_ranker(f"cascade-lin-ts:sigma={weight**-0.5!r}", seed=2)
    noisier.warm_start(log)
    np.testing.assert_allclose(pupil.estimates(ITEMS), noisier.estimates(ITEMS), rtol=1e-10)


@pytest.mark.parametrize("weight", [0.5, 0.1, 0.01])
def test_counts_that_weigh_less_stay_whole_and_are_right_on_average(weight):
    """Of many items with few clicks each: rounded one by one they gave 0 of 87 at weight 0.1."""
    policy = make_policy("cascade-ts")
    examined = np.random.default_rng(1).integers(0, 10, 1000)
    known = policy.initial_state(1000, 0, K)._replace(
        examined=examined, hits=np.random.default_rng(2).binomial(examined, 0.3), time=np.array([1700])
    )
    drawn = [policy.tempered(known, weight, np.random.default_rng([3, number])) for number in range(400)]
    for name in ("hits", "examined", "time"):
        counts, weighed = getattr(known, name), np.array([getattr(one, name) for one in drawn])
        assert weighed.dtype == np.int64
        assert (np.abs(weighed.sum(axis=1) - weight * counts.sum()) < 2).all(), "all items together"
        # Each by itself: the mean of 400 draws, whose deviation is at most 1, lies within 5 standard errors.
        # Of 2,001 numbers one gives a false alarm with a chance below 1 in 500.
        assert (np.abs(weighed.mean(axis=0) - weight * counts) <= 5 * 1.0 / np.sqrt(400)).all(), name
        assert (np.abs(weighed - weight * counts) < 2).all()
    assert all((one.hits <= one.examined).all() for one in drawn)


def test_many_short_logs_of_little_weight_count_as_one_long_one():
    """Each is rounded by another draw; by the same they would all come to nothing, or all to one."""
    slate, rankers = {"items": ITEMS[:1], "click": 0}, [new_ranker("cascade-ts") for _ in range(2)]
    for ranker in rankers:
        for _ in range(400):
            ranker.warm_start([slate], weight=0.3)
        # A binomial of 400 draws at 0.3: 120, with a deviation of 9.2; 5 of them either way.
        assert abs(ranker.state.hits[0] - 120) < 46
        assert abs(ranker.state.time[0] - 120) < 46
    assert state_of(rankers[0]) == state_of(rankers[1]), "the same seed draws the same"


def test_a_log_is_added_to_what_is_known_already():
    elder, teacher = new_ranker(seed=3), new_ranker(seed=1)
    logged(elder)
    log = logged(teacher)
    precision = elder.state.precision + 0.5 * (teacher.state.precision - np.eye(N_FEATURES + 1))
    elder.recommend()
    elder.warm_start(log, weight=0.5)
    np.testing.assert_allclose(elder.state.precision, precision, rtol=1e-12)
    assert elder.state.time[0] == 60
    assert len(elder.pending) == 1
    # So little that its slates are rounded to none is known nevertheless.
    cautious, bold = new_ranker(), new_ranker()
    for _ in range(2):
        cautious.warm_start(log[:3], weight=0.1)
    assert not cautious.state.time[0]
    bold.warm_start(log[:3], weight=0.2)
    np.testing.assert_allclose(cautious.state.precision, bold.state.precision, rtol=1e-13)


# What a line teaches


SLATE = [ITEMS[4], ITEMS[1], ITEMS[7]]
WITH_UNKNOWN = [ITEMS[4], ITEMS[1], "sold out", ITEMS[7]]


@OTHERS
@pytest.mark.parametrize(
    ("policy", "line", "examined", "clicked"),
    [
        ("cascade-ts", {"items": SLATE, "click": 1}, [4, 1], [1]),
        ("cascade-ts", {"items": SLATE, "clicks": [2, 1]}, [4, 1], [1]),
        ("cascade-ts", {"items": SLATE, "clicks": [2, 1], "click": 1, "examined": None}, [4, 1], [1]),
        # A dependent-click policy takes all up to the last click.
        ("dcm-kl-ucb", {"items": SLATE, "clicks": [1, 0]}, [4, 1], [4, 1]),
        # A slate ends before an unknown item.
        *(("cascade-ts", {"items": WITH_UNKNOWN, "click": click}, [4, 1], []) for click in (2, 3, None)),
        ("cascade-ts", {"items": WITH_UNKNOWN, "click": 1}, [4, 1], [1]),
        ("cascade-ts", {"items": ["sold out", ITEMS[0]], "click": 1}, [], []),
        ("cascade-ts", {"items": [], "click": None}, [], []),
        # Nor does it go beyond k: a policy may have a part of its state for each position.
        ("cascade-ts", {"items": ITEMS, "click": 5}, [0, 1, 2], []),
    ],
)
def test_a_line_teaches_what_was_examined_and_clicked(policy, line, examined, clicked):
    ranker = new_ranker(policy)
    assert ranker.warm_start([line]) == bool(examined)
    assert sorted(np.flatnonzero(ranker.state.examined)) == sorted(examined)
    assert sorted(np.flatnonzero(ranker.state.hits)) == sorted(clicked)
    assert ranker.state.examined.sum() == len(examined)


@OTHERS
def test_a_click_below_what_is_used_shows_that_all_above_was_seen():
    below, none = new_ranker("dcm-lin-ts:stop=0.9"), new_ranker("dcm-lin-ts:stop=0.9")
    below.warm_start([{"items": ITEMS[:5], "clicks": [0, 4]}])
    none.warm_start([{"items": ITEMS[:5], "clicks": [0]}])
    rows = below._engine.features[:K]
    seen = np.eye(N_FEATURES + 1) + rows.T @ rows
    np.testing.assert_allclose(below.state.precision, seen)
    assert np.trace(none.state.precision) < np.trace(seen) - 0.1
    one = new_ranker()  # A cascade ends with its first click, whatever comes below.
    one.warm_start([{"items": ITEMS[:5], "clicks": [0, 4]}])
    assert one.state.observations[0] == 1


def check_two_observations(ranker, x, y):
    """The ranker has learned a look at x without a click and a click on y, and nothing else."""
    assert ranker.state.moment.tolist() == y.tolist()
    np.testing.assert_allclose(ranker.state.precision, np.eye(4) + np.outer(x, x) + np.outer(y, y))


def test_withdrawn_items_count_and_changed_ones_by_their_features_of_now():
    ranker = new_ranker()
    ranker.withdraw_items([ITEMS[0], ITEMS[1]])
    ranker.add_items([ITEMS[1]], [[2.0, 0.0, 0.0]])
    assert ranker.warm_start([{"items": ITEMS[:2], "click": 1}]) == 1
    x, y = ranker._engine.features[[0, N_ITEMS]]
    assert y.tolist() == ranker._engine.scale.apply([[2, 0, 0]])[0].tolist()
    check_two_observations(ranker, x, y)


def test_features_of_a_request_are_used_as_far_as_the_slate_is():
    table = [[0, 1, 0], [2, 0, 0], [9, 9, 9]]
    line = {"items": [ITEMS[3], ITEMS[0], "sold out"], "click": 1, "features": table}
    ranker = new_ranker()
    assert ranker.warm_start([line]) == 1
    check_two_observations(ranker, *ranker._engine.scale.apply(table[:2]))
    before = state_of(ranker)
    for features in ([[1, 2, 3]], [[1, 2]] * 3):
        assert "features must have" in str(refusal(ranker.warm_start, [line | {"features": features}]))
    assert state_of(ranker) == before
    assert new_ranker("cascade-ts").warm_start([line]) == 1


@OTHERS
def test_contexts_of_a_log_are_used_by_policies_that_want_them():
    line = {"items": ITEMS[:2], "click": 1, "context": [1.0, 3.0]}
    ranker = new_ranker("context-lin-ts:context=2")
    assert ranker.warm_start([line]) == 1
    np.testing.assert_allclose(ranker.state.moment, np.kron([1.0, 3.0], ranker._engine.features[1]))
    assert new_ranker().warm_start([line]) == 1
    before = state_of(ranker)
    for context in ([1.0], [1, None]):
        assert "context" in str(refusal(ranker.warm_start, [line, line | {"context": context}]))
    assert "log line 1: " in str(refusal(ranker.warm_start, [{"items": ITEMS[:2], "click": 1}]))
    assert state_of(ranker) == before


# The log of a service


SERVED = [
    {"seq": 1, "kind": "created", "policy": "random", "items": [{"id": "item 0", "name": "", "group": ""}]},
    {"seq": 2, "kind": "feedback", "nonce": "ab", "click": None, "issued": 1.0, "items": ITEMS[:3]},
    {"seq": 3, "kind": "feedback", "nonce": "cd", "click": None, "issued": 1.0, "items": ITEMS[3:6]},
    {"seq": 4, "kind": "items-withdrawn", "ids": ["item 3"]},
    {"seq": 5, "kind": "correction", "corrects": 2, "items": ITEMS[:3], "click": 0},
    {"seq": 6, "kind": "correction", "corrects": 3, "items": ITEMS[3:6], "click": 1},
    {"seq": 7, "kind": "recommended", "process": "p", "since": 0.0, "slates": {"0": 2}},
    {"seq": 8, "kind": "feedback", "nonce": "ef", "click": None, "issued": 1.0, "items": ITEMS[6:]},
    {"seq": 9, "kind": "rolled-back", "to": 5},
]


def test_the_log_of_a_service_may_be_read_line_by_line(tmp_path):
    """Late clicks take the place of none, and what was rolled back is not learned."""
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in SERVED), encoding="utf-8")
    ranker = new_ranker("cascade-ts")
    with path.open(encoding="utf-8") as lines:
        assert ranker.warm_start(map(json.loads, lines)) == 2
    assert ranker.state.examined.tolist() == [1, 0, 0, 1, 1, 1, 0, 0, 0]
    assert ranker.state.hits.tolist() == [1, 0, 0, 0, 0, 0, 0, 0, 0]


def test_a_rollback_takes_back_what_its_own_log_has_after_that_event():
    def used(*log):
        return new_ranker("cascade-ts").warm_start(log)

    slate = {"items": ITEMS[:2], "click": 0}
    one, two, four = ({"seq": seq} | slate for seq in (1, 2, 4))
    back = {"kind": "rolled-back"}
    assert used(one, two, back | {"seq": 3, "to": 1}, four) == 2
    assert used(one, two, back | {"seq": 3, "to": 1}, back | {"seq": np.int64(4), "to": np.int64(2)}) == 2
    assert used(two, back | {"seq": 3, "to": 1}) == 0  # The log begins after what it goes back to.
    # Numbers that begin anew are those of another log, and slates without one are of none.
    assert used(one, two, four, one, back | {"seq": 3, "to": 2}) == 4
    assert used(slate, slate, back | {"seq": 3, "to": 1}) == 2
    assert used(slate | {"seq": "a"}, back | {"to": 1}, slate | {"seq": True}) == 2
    for wrong in ({}, {"to": 3}, {"to": "1"}, {"to": None}):
        error = refusal(used, one, two, back | {"seq": 3} | wrong, four)
        assert str(error).startswith("log line 3: a rollback must go to an event before its own, 3, got")
    # What is wrong with a line is said, though it was taken back later.
    assert "log line 2" in str(refusal(used, one, two | {"click": 9}, back | {"seq": 3, "to": 1}))


@OTHERS
def test_a_policy_that_cannot_merge_takes_only_a_whole_first_log():
    ranker, line = new_ranker("cascade-ducb"), {"items": ITEMS[:3], "click": 1}
    unread = iter([line])
    assert refusal(ranker.warm_start, unread, weight=0.5).argument == "weight"
    assert next(unread) == line
    assert ranker.warm_start([line, line]) == 2
    before = state_of(ranker)
    assert "cannot be merged" in str(refusal(ranker.warm_start, [line]))
    assert state_of(ranker) == before
    # A policy whose observations do not simply add up does not inherit how to weigh them.
    for policy in ("vac2-ucb", "discounted-lin-ts", "segment-lin-ts", "cascade-swucb"):
        made = make_policy(policy)
        state = made.initial_state(N_ITEMS, N_FEATURES, K)
        draw = np.random.default_rng(1)
        assert refusal(made.tempered, state, 0.5, draw).argument == "weight"
        assert made.tempered(state, 1.0, draw) is state
