"""A ranker of the default policy: counts are real numbers, and a refit may be under way at any time."""

import numpy as np
import pytest

from firstclick import Catalog, Ranker
from firstclick.errors import InvalidInput
from firstclick.kernels.mixed import BETAS, CLICKS, DONE, DRIFT2, LOGGED, LOOKS, STAGE
from firstclick.registry import DEFAULT_POLICY
from firstclick.streams import stream
from tests.online.test_ranker import ITEMS, mixed_steps, same_state

N_ITEMS, N_FEATURES, K = 11, 4, 3
# Far from norm 1, and in different units.
FEATURES = stream(8, "test features").random((N_ITEMS, N_FEATURES)) * [300.0, 1.0, 0.02, 5.0]

with_features_or_without = pytest.mark.parametrize("features", [FEATURES, None], ids=["features", "none"])


def new_ranker(features=FEATURES, *, seed=5, k=K):
    return Ranker(Catalog(ITEMS, features), k=k, seed=seed)


def taught(ranker, steps, seed=1):
    """Teach the ranker by users who click on every third row more often; the log of it."""
    draw, log = stream(seed, "users"), []
    for step in range(steps):
        slate = ranker.recommend()
        chances = [0.6 if ranker.catalog.rows([item])[0] % 3 == 0 else 0.1 for item in slate.items]
        clicks = np.flatnonzero(draw.random(len(chances)) < chances).tolist()
        told = (
            {"clicks": clicks, "examined": len(chances)}
            if step % 4 == 0
            else {"click": min(clicks, default=None)}
        )
        log.append({"items": list(slate.items), **told})
        ranker.learn(slate, **told)
    return log


def counts(ranker):
    state = ranker.state
    return state.examined.tolist(), state.hits.tolist(), state.totals.tolist()


def assert_close(first, second):
    """Counts are equal, and what follows from them is but for rounding."""
    assert counts(first) == counts(second)
    for name, array in first.state._asdict().items():
        other = getattr(second.state, name)
        np.testing.assert_allclose(
            array, other, rtol=1e-9, atol=1e-9 * np.abs(other).max(initial=1.0), err_msg=name
        )


def test_it_is_the_policy_of_who_names_none():
    for features in (FEATURES, None):
        ranker = new_ranker(features)
        assert (ranker.policy.name, ranker._engine.scale) == (DEFAULT_POLICY, None)


# In the middle of a refit


@with_features_or_without
def test_a_file_written_in_the_middle_of_a_refit_goes_on_bit_for_bit(features, tmp_path):
    whole, saved = new_ranker(features), new_ranker(features)
    steps = 0
    # A refit that was begun, and has most of its work before it.
    while not (steps >= 60 and 0 < saved.state.refit[STAGE] < BETAS):
        mixed_steps(saved, steps, steps + 1)
        steps += 1
    mixed_steps(whole, 0, steps)
    saved.save(tmp_path / "r.npz")
    loaded = Ranker.load(tmp_path / "r.npz")
    done = loaded.state.refit[DONE]
    later = [mixed_steps(one, steps, steps + 200) for one in (loaded, whole)]
    assert later[0] == later[1]
    assert same_state(loaded, whole)
    assert loaded.state.refit[DONE] >= done + 2


# Weighed logs, and merging


@with_features_or_without
def test_a_log_is_counted_beside_live_clicks_and_is_fitted_at_once(features):
    teacher, pupil = new_ranker(features), new_ranker(features, seed=2)
    log = taught(teacher, 60)
    assert pupil.warm_start(log, weight=0.3) == 60
    assert pupil.state.logged_examined.tolist() == (0.3 * teacher.state.examined).tolist()
    assert pupil.state.logged_hits.tolist() == (0.3 * teacher.state.hits).tolist()
    assert pupil.state.log[:DRIFT2].tolist() == (0.3 * teacher.state.totals).tolist()
    assert pupil.state.totals.tolist() == [0, 0]
    assert not pupil.state.live_examined.any()
    assert 0 < pupil.state.examined.sum() < pupil.state.logged_examined.sum(), "the log lends a part"
    assert pupil.state.time[0] == 18
    assert (pupil.state.refit[DONE], pupil.state.refit[STAGE]) == (1, 0)
    # Fitted, and not only counted.
    means, deviations = pupil.estimates(ITEMS)
    assert means.std() > 0.01
    assert (deviations > 0).all()
    for _ in range(3):
        pupil.warm_start(log[:1], weight=0.1)
    assert pupil.state.log[LOGGED] == pytest.approx(0.3 * (teacher.state.totals[LOOKS] + K))
    live = new_ranker(features, seed=3)
    for line in taught(pupil, 60):
        slate = live.recommend(pinned=dict(enumerate(line["items"])))
        live.learn(slate, **{word: told for word, told in line.items() if word != "items"})
    assert pupil.state.live_examined.tolist() == live.state.examined.tolist()
    assert pupil.state.totals.tolist() == live.state.totals.tolist()
    assert np.isfinite(pupil.estimates(ITEMS)).all()


def test_features_that_requests_brought_are_weighed_too():
    lines = [
        {"items": ITEMS[:2], "click": step % 2, "features": (FEATURES[:2] * (1 + step % 3)).tolist()}
        for step in range(30)
    ]
    whole, part = new_ranker(), new_ranker()
    whole.warm_start(lines)
    part.warm_start(lines, weight=0.3)
    assert not part.state.examined.any()
    assert part.state.log[:DRIFT2].tolist() == (0.3 * whole.state.log[:DRIFT2]).tolist()
    # V is that of the time, and the log was read by the same rules.
    np.testing.assert_allclose(part.state.given_precision, 0.3 * whole.state.given_precision, rtol=1e-13)
    np.testing.assert_allclose(part.state.given_moment, 0.3 * whole.state.given_moment, rtol=1e-13)


@with_features_or_without
def test_a_log_that_agrees_with_live_clicks_is_believed_and_one_that_does_not_is_not(features):
    """Both logs tell of four items; only one tells what users do now."""
    true, false = (
        [{"items": [ITEMS[row]], "click": 0 if number < (wins, 400 - wins)[wrong] else None}
         for row, wins in ((0, 320), (1, 40), (3, 280), (4, 80)) for number in range(400)]
        for wrong in (False, True)
    )  # fmt: skip
    believed, doubted = new_ranker(features), new_ranker(features)
    for ranker, log in ((believed, true), (doubted, false)):
        ranker.warm_start(log)
        best = ITEMS[np.argmax(ranker.estimates(ITEMS)[0])]
        assert best == ITEMS[0 if ranker is believed else 1]
        draw = stream(3, "users")
        for _ in range(150):
            slate = ranker.recommend()
            rates = [{ITEMS[0]: 0.8, ITEMS[3]: 0.7, ITEMS[4]: 0.2}.get(item, 0.1) for item in slate.items]
            clicks = np.flatnonzero(draw.random(K) < rates)
            ranker.learn(slate, click=int(clicks[0]) if len(clicks) else None)
        assert ITEMS[np.argmax(ranker.estimates(ITEMS)[0])] in (ITEMS[0], ITEMS[3])
    lent = [(ranker.state.examined - ranker.state.live_examined).sum() for ranker in (believed, doubted)]
    assert lent[0] > 20 * lent[1]


@with_features_or_without
def test_a_ranker_with_a_log_is_saved_grown_changed_and_merged(features, tmp_path):
    one, other = new_ranker(features), new_ranker(features, seed=6)
    log = taught(new_ranker(features, seed=7), 40)
    one.warm_start(log)
    other_log = taught(other, 50)
    merged = one.merge(other)
    both = new_ranker(features, seed=8)
    for line in other_log:
        slate = both.recommend(pinned=dict(enumerate(line["items"])))
        both.learn(slate, **{word: told for word, told in line.items() if word != "items"})
    both.warm_start(log)
    assert_close(merged, both)
    taught(merged, 30)
    merged.save(tmp_path / "r.npz")
    loaded = Ranker.load(tmp_path / "r.npz")
    assert same_state(loaded, merged)
    for ranker in (loaded, merged):
        ranker.add_items(["new"], None if features is None else features[:1])
        if features is not None:
            ranker.change_items(ITEMS[:2], features[2:4])
        taught(ranker, 60, seed=4)
    assert same_state(loaded, merged)
    assert len(loaded.state.live_examined) == N_ITEMS + 1


def test_a_late_click_corrects_a_slate_after_a_head_start():
    log = taught(new_ranker(seed=7), 40)
    corrected, right = new_ranker(), new_ranker()
    for ranker in (corrected, right):
        ranker.warm_start(log)
    rows = np.array([2, 5, 7])
    none, click = np.zeros(3, np.uint8), np.array([0, 1, 0], np.uint8)
    corrected._engine.learn_rows(rows, none)
    corrected._engine.unlearn_rows(rows)
    for ranker in (corrected, right):
        ranker._engine.learn_rows(rows, click)
        ranker._engine.refit()
    assert corrected.state.live_examined.tolist() == right.state.live_examined.tolist()
    assert_close(corrected, right)


@with_features_or_without
def test_two_halves_merged_are_one_log_after_a_refit(features):
    first, second, whole = (new_ranker(features, seed=seed) for seed in (1, 2, 3))
    for ranker in (first, second):
        for line in taught(ranker, 70, seed=ranker.seed):
            slate = whole.recommend(pinned=dict(enumerate(line["items"])))
            whole.learn(slate, **{word: told for word, told in line.items() if word != "items"})
    whole._engine.refit()
    assert first.state.refit[STAGE] > 0 or second.state.refit[STAGE] > 0, "nothing was under way"
    merged = first.merge(second)
    assert merged.state.refit[STAGE] == 0
    assert counts(merged) == counts(whole)
    assert_close(merged, whole)
    np.testing.assert_allclose(merged.estimates(ITEMS), whole.estimates(ITEMS), rtol=1e-9)
    # What was merged goes on, and refits again when its looks have come.
    done = merged.state.refit[DONE]
    taught(merged, 150)
    assert merged.state.refit[DONE] > done


def test_feedback_that_comes_late_and_in_another_order_counts_the_same():
    slates = [(ITEMS[step % 8 : step % 8 + K], (None, 0, 2)[step % 3]) for step in range(60)]
    rankers = [new_ranker(seed=seed) for seed in (1, 2)]
    for ranker, order in zip(rankers, (range(60), reversed(range(60))), strict=True):
        waiting = [ranker.recommend(candidates=items, pinned=dict(enumerate(items))) for items, _ in slates]
        for at in order:
            ranker.learn(waiting[at], click=slates[at][1])
    assert counts(rankers[0]) == counts(rankers[1])
    for ranker in rankers:
        ranker._engine.refit()
    assert_close(*rankers)


# What is counted


def test_what_was_examined_and_clicked_is_counted_and_nothing_else():
    ranker = new_ranker(None)
    top = {"candidates": ITEMS[:3], "pinned": dict(enumerate(ITEMS[:3]))}
    for told, looks, clicks in (
        ({"clicks": [0, 2], "examined": 3}, [1, 1, 1], [1, 0, 1]),
        ({"clicks": [2, 0]}, [1, 0, 0], [1, 0, 0]),  # A cascade ends with its first click.
        ({"click": 1}, [1, 1, 0], [0, 1, 0]),
        ({"click": None}, [1, 1, 1], [0, 0, 0]),
        ({"click": None, "examined": 1}, [1, 0, 0], [0, 0, 0]),
        ({"click": None, "examined": 0}, [0, 0, 0], [0, 0, 0]),
    ):
        before = ranker.state.examined[:3].copy(), ranker.state.hits[:3].copy(), ranker.state.totals.copy()
        ranker.learn(ranker.recommend(**top), **told)
        assert (ranker.state.examined[:3] - before[0]).tolist() == looks
        assert (ranker.state.hits[:3] - before[1]).tolist() == clicks
        assert (ranker.state.totals - before[2]).tolist() == [sum(looks), sum(clicks)]
    assert not ranker.state.examined[3:].any()
    assert ranker.state.time[0] == 6


def test_features_of_a_request_teach_theta_and_are_no_look_at_a_row():
    ranker = new_ranker()
    first = ranker.estimates(ITEMS)[0]
    for step in range(80):
        given = {
            "candidates": ITEMS[:5],
            "features": FEATURES[:5] * stream(step, "own").uniform(0.5, 2, (5, 1)),
        }
        ranker.learn(ranker.recommend(**given), click=step % 3)
    assert not ranker.state.examined.any()
    assert not ranker.state.hits.any()
    assert ranker.state.totals.tolist() == [sum(1 + step % 3 for step in range(80)), 80.0]
    assert ranker.state.refit[DONE] >= 4
    assert np.abs(ranker.estimates(ITEMS)[0] - first).min() > 0.01


def test_an_empty_slate_teaches_nothing_but_the_time():
    for features in (FEATURES, None):
        ranker = new_ranker(features)
        taught(ranker, 30)
        before = [array.copy() for array in ranker.state]
        empty = ranker.recommend(exclude=ITEMS)
        assert len(empty) == 0
        ranker.learn(empty, click=None)
        for name, old, new in zip(ranker.state._fields, before, ranker.state, strict=True):
            assert np.array_equal(old + (name == "time"), new), name


# Catalogs of odd size


@with_features_or_without
def test_all_items_in_every_slate(features):
    ranker = new_ranker(features, k=N_ITEMS)
    for step in range(60):
        slate = ranker.recommend()
        assert sorted(map(str, slate.items)) == sorted(map(str, ITEMS))
        ranker.learn(slate, click=step % N_ITEMS)
    assert ranker.state.refit[DONE] >= 5


@pytest.mark.parametrize("features", [[[7.0, 0.0]], None])
def test_one_item_alone(features):
    ranker = Ranker(Catalog(["only"], features), k=1, seed=1)
    for step in range(200):
        slate = ranker.recommend()
        assert slate.items == ("only",)
        ranker.learn(slate, click=0 if step % 4 == 0 else None)
    assert counts(ranker) == ([200.0], [50.0], [200.0, 50.0])
    ((mean,), (deviation,)) = ranker.estimates(["only"])
    assert mean == pytest.approx(0.25, abs=0.05)
    assert 0 < deviation < 0.1


def test_items_of_equal_features_are_told_apart_by_their_own_clicks():
    ranker = Ranker(Catalog(range(6), np.ones((6, 2))), k=2, seed=1)
    for _ in range(300):
        slate = ranker.recommend()
        ranker.learn(slate, click=slate.items.index(4) if 4 in slate.items else None)
    means, _ = ranker.estimates(range(6))
    assert means.argmax() == 4
    with pytest.raises(InvalidInput, match="twice"):
        Catalog([1, 2, 1])


def test_cold_items_are_shown_and_learned():
    ranker = new_ranker()
    taught(ranker, 40)
    ranker.add_items(["cold", "warm"], [None, FEATURES[0]])
    cold = len(ITEMS)
    np.testing.assert_allclose(ranker.catalog.features[cold], np.mean([*FEATURES, FEATURES[0]], axis=0))
    for _ in range(120):
        slate = ranker.recommend()
        ranker.learn(slate, click=slate.items.index("cold") if "cold" in slate.items else None)
    assert ranker.state.examined[cold] > 20
    assert ranker.state.totals[CLICKS] > ranker.state.hits[cold] > 20
    means, _ = ranker.estimates([*ITEMS, "cold", "warm"])
    assert means.argmax() == cold
