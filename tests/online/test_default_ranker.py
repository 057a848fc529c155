"""A ranker of the default policy: counts are real numbers, and a refit may be under way at any time."""

import numpy as np
import pytest

from firstclick import Catalog, Ranker
from firstclick.kernels.mixed import BETAS, CLICKS, COST, DONE, DRIFT2, LOGGED, LOOKS, STAGE
from tests.online.rankers import ITEMS, N_FEATURES, N_ITEMS, K, mixed_steps, state_of

# Far from norm 1, and in different units.
FEATURES = np.random.default_rng(8).random((N_ITEMS, N_FEATURES)) * [300.0, 1.0, 0.02, 5.0]

with_features_or_without = pytest.mark.parametrize("features", [FEATURES, None], ids=["features", "none"])


def new_ranker(features=FEATURES, *, seed=5, k=K):
    return Ranker(Catalog(ITEMS, features), k=k, seed=seed)


def taught(ranker, steps, seed=1):
    """Teach the ranker by users who click on every third row more often; the log of it."""
    draw, log = np.random.default_rng(seed), []
    for step in range(steps):
        slate = ranker.recommend()
        chances = [0.6 if ranker.catalog.row_of(item) % 3 == 0 else 0.1 for item in slate.items]
        clicks = np.flatnonzero(draw.random(len(chances)) < chances).tolist()
        report = {"click": min(clicks, default=None)}
        if step % 4 == 0:
            report = {"clicks": clicks, "examined": len(chances)}
        log.append({"items": list(slate.items), **report})
        ranker.learn(slate, **report)
    return log


def learn(ranker, log):
    """Let the ranker show and learn these slates live."""
    for line in log:
        slate = ranker.recommend(pinned=dict(enumerate(line["items"])))
        ranker.learn(slate, **{name: value for name, value in line.items() if name != "items"})


def counts(ranker):
    state = ranker.state
    return state.examined.tolist(), state.hits.tolist(), state.totals.tolist()


def assert_close(first, second):
    """Counts are equal, and what follows from them is but for rounding."""
    assert counts(first) == counts(second)
    for name, array in first.state._asdict().items():
        other = getattr(second.state, name)
        if name == "refit":  # What a refit will cost is estimated when it begins.
            array, other = np.delete(array, COST), np.delete(other, COST)
        np.testing.assert_allclose(
            array, other, rtol=1e-9, atol=1e-9 * np.abs(other).max(initial=1.0), err_msg=name
        )


@with_features_or_without
def test_a_file_written_during_a_refit_goes_on_bit_for_bit(features, tmp_path):
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
    assert state_of(loaded) == state_of(whole)
    assert loaded.state.refit[DONE] >= done + 2


# Weighed logs, and merging


@with_features_or_without
def test_a_log_is_counted_beside_live_clicks_and_fitted_at_once(features):
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
    learn(live, taught(pupil, 60))
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
def test_a_log_is_believed_as_far_as_live_clicks_agree_with_it(features):
    """Both logs are about four items; only one is what users do now."""
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
        draw = np.random.default_rng(3)
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
    learn(both, other_log)
    both.warm_start(log)
    assert_close(merged, both)
    taught(merged, 30)
    merged.save(tmp_path / "r.npz")
    loaded = Ranker.load(tmp_path / "r.npz")
    assert state_of(loaded) == state_of(merged)
    for ranker in (loaded, merged):
        ranker.add_items(["new"], None if features is None else features[:1])
        if features is not None:
            ranker.change_items(ITEMS[:2], features[2:4])
        taught(ranker, 60, seed=4)
    assert state_of(loaded) == state_of(merged)
    assert len(loaded.state.live_examined) == N_ITEMS + 1


def test_a_late_click_corrects_a_slate_after_a_warm_start():
    log = taught(new_ranker(seed=7), 40)
    corrected, right = new_ranker(), new_ranker()
    for ranker in (corrected, right):
        ranker.warm_start(log)
    slates = [
        ranker.recommend(pinned={0: ITEMS[2], 1: ITEMS[5], 2: ITEMS[7]}) for ranker in (corrected, right)
    ]
    assert corrected.expire(older_than=0) == 1
    for ranker, slate in zip((corrected, right), slates, strict=True):
        ranker.learn(slate, click=1)
        ranker._engine.refit()
    assert corrected.state.live_examined.tolist() == right.state.live_examined.tolist()
    assert_close(corrected, right)


@with_features_or_without
def test_two_halves_merged_are_one_log_after_a_refit(features):
    first, second, whole = (new_ranker(features, seed=seed) for seed in (1, 2, 3))
    for ranker in (first, second):
        learn(whole, taught(ranker, 70, seed=ranker.seed))
    whole._engine.refit()
    assert first.state.refit[STAGE] > 0 or second.state.refit[STAGE] > 0, "nothing was under way"
    merged = first.merge(second)
    assert merged.state.refit[STAGE] == 0
    assert_close(merged, whole)
    np.testing.assert_allclose(merged.estimates(ITEMS), whole.estimates(ITEMS), rtol=1e-9)
    # What was merged goes on, and refits again when its looks have come.
    done = merged.state.refit[DONE]
    taught(merged, 150)
    assert merged.state.refit[DONE] > done


def test_feedback_counts_the_same_in_any_order():
    slates = [(ITEMS[step % 8 : step % 8 + K], (None, 0, 2)[step % 3]) for step in range(60)]
    rankers = [new_ranker(seed=seed) for seed in (1, 2)]
    for ranker, order in zip(rankers, (range(60), reversed(range(60))), strict=True):
        waiting = [ranker.recommend(candidates=items, pinned=dict(enumerate(items))) for items, _ in slates]
        for at in order:
            ranker.learn(waiting[at], click=slates[at][1])
    for ranker in rankers:
        ranker._engine.refit()
    assert_close(*rankers)


# What is counted


def test_features_of_a_request_teach_theta_and_count_for_no_row():
    ranker = new_ranker()
    first = ranker.estimates(ITEMS)[0]
    for step in range(80):
        own = FEATURES[:5] * np.random.default_rng(step).uniform(0.5, 2, (5, 1))
        ranker.learn(ranker.recommend(candidates=ITEMS[:5], features=own), click=step % 3)
    assert not ranker.state.examined.any()
    assert not ranker.state.hits.any()
    assert ranker.state.totals.tolist() == [sum(1 + step % 3 for step in range(80)), 80.0]
    assert ranker.state.refit[DONE] >= 4
    assert np.abs(ranker.estimates(ITEMS)[0] - first).min() > 0.01


@with_features_or_without
def test_an_empty_slate_teaches_nothing_but_the_time(features):
    ranker = new_ranker(features)
    taught(ranker, 30)
    before = [array.copy() for array in ranker.state]
    ranker.learn(ranker.recommend(exclude=ITEMS), click=None)
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
def test_a_single_item(features):
    ranker = Ranker(Catalog(["only"], features), k=1, seed=1)
    for step in range(200):
        slate = ranker.recommend()
        assert slate.items == ("only",)
        ranker.learn(slate, click=0 if step % 4 == 0 else None)
    assert counts(ranker) == ([200.0], [50.0], [200.0, 50.0])
    ((mean,), (deviation,)) = ranker.estimates(["only"])
    assert mean == pytest.approx(0.25, abs=0.05)
    assert 0 < deviation < 0.1


def clicked_item_wins(ranker, clicked, steps):
    """Users click on one item only, and its estimate is the highest."""
    for _ in range(steps):
        slate = ranker.recommend()
        ranker.learn(slate, click=slate.items.index(clicked) if clicked in slate.items else None)
    items = list(ranker.catalog.items)
    return items[ranker.estimates(items)[0].argmax()] == clicked


def test_items_of_equal_features_differ_by_their_own_clicks():
    assert clicked_item_wins(Ranker(Catalog(range(6), np.ones((6, 2))), k=2, seed=1), 4, 300)


def test_items_without_features_are_shown_and_learned():
    ranker = new_ranker()
    taught(ranker, 40)
    ranker.add_items(["cold", "warm"], [None, FEATURES[0]])
    cold = len(ITEMS)
    np.testing.assert_allclose(ranker.catalog.features[cold], np.mean([*FEATURES, FEATURES[0]], axis=0))
    assert clicked_item_wins(ranker, "cold", 120)
    assert ranker.state.examined[cold] > 20
    assert ranker.state.totals[CLICKS] > ranker.state.hits[cold] > 20
