"""A prior from history: what a log teaches, how much of it counts, and which logs are refused."""

import json

import numpy as np
import pytest

from firstclick import Catalog, Ranker, make_policy
from firstclick.errors import InvalidInput
from firstclick.kernels.bounds import CountState
from firstclick.online.engine import PolicyEngine
from firstclick.streams import stream
from tests.support.policies import OTHERS, policies

N_ITEMS, N_FEATURES, K = 9, 3, 3
ITEMS = [f"item {i}" for i in range(N_ITEMS)]
FEATURES = stream(5, "test features").random((N_ITEMS, N_FEATURES))


def new_ranker(policy="cascade-lin-ts", seed=1):
    return Ranker(Catalog(ITEMS, FEATURES), k=K, policy=policy, seed=seed)


def logged(ranker, steps=40):
    """Teach the ranker; the log of it."""
    draw, log = stream(ranker.seed, "clicks"), []
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


def state_of(ranker):
    return [array.tobytes() for array in ranker.state]


def refusal(call, *args, **kwargs):
    with pytest.raises(InvalidInput) as caught:
        call(*args, **kwargs)
    return str(caught.value)


@pytest.mark.parametrize("policy", ["cascade-lin-ts", "cascade-ts"])
def test_a_new_ranker_knows_what_the_one_knows_whose_log_it_read_bit_for_bit(policy):
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
    seen = int(teacher.state.observations[0])
    assert (pupil.state.time[0], pupil.state.observations[0]) == (12, round(weight * seen))
    # The same means as if each observation had been that much noisier: sigma / sqrt(weight).
    noisier = new_ranker(f"cascade-lin-ts:sigma={weight**-0.5!r}", seed=2)
    noisier.warm_start(log)
    np.testing.assert_allclose(pupil.estimates(ITEMS), noisier.estimates(ITEMS), rtol=1e-10)


@pytest.mark.parametrize("weight", [0.5, 0.1, 0.01])
def test_counts_that_weigh_less_stay_whole_and_are_right_on_the_average(weight):
    """Of many items with few clicks each, as 1,553 of 4,945: each rounded by itself they gave 459 of 2,450 at
    weight 0.5, and 0 of 87 at 0.1."""
    policy = make_policy("cascade-ts")
    examined = stream(1, "examined").integers(0, 10, 1000)
    known = CountState(examined, stream(1, "hits").binomial(examined, 0.3), np.array([1700]))
    drawn = [policy.tempered(known, weight, stream(2, "draw", number)) for number in range(400)]
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
    slate, ranker = {"items": ITEMS[:1], "click": 0}, new_ranker("cascade-ts")
    for _ in range(400):
        ranker.warm_start([slate], weight=0.3)
    # A binomial of 400 draws at 0.3: 120, with a deviation of 9.2; 5 of them either way.
    assert abs(ranker.state.hits[0] - 120) < 46
    assert abs(ranker.state.time[0] - 120) < 46


def test_a_ranker_of_the_same_seed_weighs_a_log_alike():
    teacher = new_ranker("cascade-ts")
    log = logged(teacher)
    pupils = [new_ranker("cascade-ts", seed=seed) for seed in (2, 2, 3)]
    for pupil in pupils:
        pupil.warm_start(log, weight=0.25)
        assert abs(pupil.state.examined.sum() - 0.25 * teacher.state.examined.sum()) < 2
    assert state_of(pupils[0]) == state_of(pupils[1])


PRICES = np.rint(np.linspace(100.0, 90_000.0, 24))
# A constant, cents, and the same with a tax.
NEARLY_SINGULAR = np.stack([np.ones(24), PRICES, 1.19 * PRICES], axis=1)


@pytest.mark.parametrize(
    "policy", policies(["cascade-lin-ts:sigma=0.1", "ranked-lin-ts:sigma=0.1", "segment-lin-ts:sigma=0.1"])
)
def test_features_that_nearly_repeat_each_other_are_merged_and_weighed(policy):
    """Cholesky's factor of M failed there with an error of NumPy's own."""
    draw = stream(1, "log")
    slates = [draw.permutation(24)[:3].tolist() for _ in range(9000)]
    log = [{"items": items, "click": (None, 0, 1, 2)[step % 4]} for step, items in enumerate(slates)]
    rankers = [
        Ranker(Catalog(range(24), NEARLY_SINGULAR), k=3, policy=policy, seed=seed) for seed in (1, 2, 3)
    ]
    for ranker in rankers:  # As of a file from before features were scaled.
        ranker._engine = PolicyEngine(policy, ranker.catalog, k=3)
    for ranker in rankers[:2]:
        ranker.warm_start(log)
    merged = rankers[0].merge(rankers[1])
    states = [merged.state]
    if "segment" not in policy:
        rankers[2].warm_start(log, weight=0.3)
        states.append(rankers[2].state)
    for state in states:
        assert all(np.isfinite(array).all() for array in state)
        assert (np.diagonal(state.factor, axis1=-2, axis2=-1) > 0).all()
        if "segment" not in policy:
            again = state.factor.swapaxes(-1, -2) @ state.factor
            np.testing.assert_allclose(again, state.precision, rtol=1e-9)
    assert len(merged.recommend()) == 3


def test_a_merged_factor_equals_one_from_exact_sums():
    """Whole numbers, so that sums are exact: R of the stacked observations, by QR, is the reference."""
    policy, draw = make_policy("cascade-lin-ts"), stream(5, "whole")
    first, second = (draw.integers(-5, 6, (40, 3)) @ np.diag([1, 1000, 100_000]) for _ in range(2))
    states = []
    for rows in (first, second):
        whole = np.concatenate([np.eye(3), rows])
        states.append(policy.initial_state(1, 3, 1)._replace(precision=whole.T @ whole, factor=upper(whole)))
    both = np.concatenate([np.eye(3), first, second])
    np.testing.assert_allclose(policy.merge(*states).factor, upper(both), rtol=1e-12, atol=1e-9)
    tempered = policy.tempered(states[0], 0.25, stream(1, "draw"))
    np.testing.assert_allclose(tempered.factor, upper(np.concatenate([np.eye(3), first / 2])), rtol=1e-9)


def upper(rows):
    triangle = np.linalg.qr(rows, mode="r")
    return triangle * np.sign(np.diag(triangle))[:, None]


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


def examined_and_hits(policy, *log):
    ranker = new_ranker(policy)
    used = ranker.warm_start(log)
    return used, ranker.state.examined.tolist(), ranker.state.hits.tolist()


@OTHERS
def test_only_what_was_examined_is_learned_and_a_slate_ends_before_an_unknown_item():
    slate = {"items": [ITEMS[4], ITEMS[1], ITEMS[7]]}
    first = (1, [0, 1, 0, 0, 1, 0, 0, 0, 0], [0, 1, 0, 0, 0, 0, 0, 0, 0])
    assert examined_and_hits("cascade-ts", slate | {"click": 1}) == first
    assert examined_and_hits("cascade-ts", slate | {"clicks": [2, 1]}) == first
    assert examined_and_hits("cascade-ts", slate | {"clicks": [2, 1], "click": 1, "examined": None}) == first
    # A dependent-click policy takes all up to the last click.
    assert examined_and_hits("dcm-kl-ucb", slate | {"clicks": [1, 0]}) == (
        1, [0, 1, 0, 0, 1, 0, 0, 0, 0], [0, 1, 0, 0, 1, 0, 0, 0, 0],
    )  # fmt: skip
    unknown = {"items": [ITEMS[4], ITEMS[1], "sold out", ITEMS[7]]}
    for click in (2, 3, None):
        assert examined_and_hits("cascade-ts", unknown | {"click": click}) == (
            1, [0, 1, 0, 0, 1, 0, 0, 0, 0], [0] * 9,
        )  # fmt: skip
    assert examined_and_hits("cascade-ts", unknown | {"click": 1}) == first
    nothing = {"items": ["sold out", ITEMS[0]], "click": 1}, {"items": [], "click": None}
    assert examined_and_hits("cascade-ts", *nothing) == (0, [0] * 9, [0] * 9)
    # Nor does it go beyond k: a policy may have a part of its state for each position.
    assert examined_and_hits("cascade-ts", {"items": ITEMS, "click": 5}) == (1, [1, 1, 1] + [0] * 6, [0] * 9)


@OTHERS
def test_a_click_below_what_is_used_tells_that_all_above_was_seen():
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


def test_a_withdrawn_item_counts_and_one_that_changed_counts_with_its_features_of_now():
    ranker = new_ranker()
    ranker.withdraw_items([ITEMS[0], ITEMS[1]])
    ranker.add_items([ITEMS[1]], [[2.0, 0.0, 0.0]])
    assert ranker.warm_start([{"items": ITEMS[:2], "click": 1}]) == 1
    x, y = ranker._engine.features[[0, N_ITEMS]]
    assert ranker.state.moment.tolist() == y.tolist() == ranker._engine.scale.apply([[2, 0, 0]])[0].tolist()
    np.testing.assert_allclose(ranker.state.precision, np.eye(4) + np.outer(x, x) + np.outer(y, y))


@OTHERS
def test_contexts_of_a_log_are_used_by_those_who_want_them_and_passed_over_by_others():
    line = {"items": ITEMS[:2], "click": 1, "context": [1.0, 3.0]}
    ranker = new_ranker("context-lin-ts:context=2")
    assert ranker.warm_start([line]) == 1
    np.testing.assert_allclose(ranker.state.moment, np.kron([1.0, 3.0], ranker._engine.features[1]))
    assert new_ranker().warm_start([line]) == 1
    before = state_of(ranker)
    for context, part in (([1.0], "context must be 2 numbers for"), ([1, None], "finite")):
        assert part in refusal(ranker.warm_start, [line, line | {"context": context}])
    assert "log line 1: " in refusal(ranker.warm_start, [{"items": ITEMS[:2], "click": 1}])
    assert state_of(ranker) == before


def test_features_that_a_request_brought_are_used_as_far_as_the_slate_is():
    line = {
        "items": [ITEMS[3], ITEMS[0], "sold out"],
        "click": 1,
        "features": [[0, 1, 0], [2, 0, 0], [9, 9, 9]],
    }
    ranker = new_ranker()
    assert ranker.warm_start([line]) == 1
    x, y = ranker._engine.scale.apply(line["features"][:2])
    assert ranker.state.moment.tolist() == y.tolist()
    np.testing.assert_allclose(ranker.state.precision, np.eye(4) + np.outer(x, x) + np.outer(y, y))
    before = state_of(ranker)
    for features, part in (
        ([[1, 2, 3]], "one row for each of the 3 items"),
        ([[1, 2]] * 3, "features must have 3 columns"),
    ):
        assert part in refusal(ranker.warm_start, [line | {"features": features}])
    assert state_of(ranker) == before
    assert new_ranker("cascade-ts").warm_start([line]) == 1


SERVED = [
    {"seq": 1, "kind": "created", "policy": "random", "items": [{"id": "item 0", "name": "", "group": ""}]},
    {"seq": 2, "kind": "feedback", "nonce": "ab", "click": 0, "issued": 1.0, "items": ITEMS[:2]},
    {"seq": 3, "kind": "items-withdrawn", "ids": ["item 3"]},
    {"seq": 4, "kind": "feedback", "nonce": "cd", "click": None, "issued": 1.0, "items": ITEMS[2:4]},
    {"seq": 5, "kind": "rolled-back", "to": 3},
]


def test_the_log_of_a_service_may_be_read_line_by_line(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in SERVED), encoding="utf-8")
    ranker = new_ranker("cascade-ts")
    with path.open(encoding="utf-8") as lines:
        assert ranker.warm_start(map(json.loads, lines)) == 1
    assert ranker.state.examined.tolist() == [1, 0, 0, 0, 0, 0, 0, 0, 0]
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
        assert refusal(used, one, two, back | {"seq": 3} | wrong, four) == (
            "log line 3: a rollback must go to an event before its own, 3, got "
            f"to={wrong.get('to')!r}; write the log again with `firstclick log`"
        )
    # What is wrong with a line is said, though it was taken back later.
    assert refusal(used, one, two | {"click": 9}, back | {"seq": 3, "to": 1}).startswith("log line 2")


@pytest.mark.parametrize("policy", ["top-rank", "bubble-rank", "batch-rank", "recur-rank"])
def test_a_policy_that_shuffles_its_slates_takes_no_log_of_others(policy):
    assert refusal(new_ranker(policy).warm_start, [{"items": ITEMS[:2], "click": 0}]) == (
        f"log cannot be learned by {policy}, which learns only from slates that it has shuffled itself; use "
        "another policy, or start without a log"
    )


GOOD = {"items": ITEMS[:3], "click": 1}


@OTHERS
def test_a_policy_that_cannot_merge_takes_a_log_while_it_knows_nothing_and_only_whole():
    ranker = new_ranker("cascade-ducb")
    sentence = "weight must be 1, because cascade-ducb cannot weigh what it knows, got 0.5"
    unread = iter([GOOD])
    assert refusal(ranker.warm_start, unread, weight=0.5) == sentence
    assert next(unread) == GOOD
    assert ranker.warm_start([GOOD, GOOD]) == 2
    before = state_of(ranker)
    assert refusal(ranker.warm_start, [GOOD]) == (
        "log cannot be merged with what cascade-ducb has learned; warm_start a new ranker"
    )
    assert state_of(ranker) == before
    # A policy whose observations do not simply add up does not inherit how to weigh them.
    for policy in ("vac2-ucb", "discounted-lin-ts", "segment-lin-ts", "cascade-swucb"):
        made = make_policy(policy)
        state = made.initial_state(N_ITEMS, N_FEATURES, K)
        draw = stream(1, "draw")
        assert "cannot weigh what it knows" in refusal(made.tempered, state, 0.5, draw)
        assert made.tempered(state, 1.0, draw) is state
