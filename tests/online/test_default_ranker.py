"""A ranker of the default policy: counts are real numbers, and a refit may be under way at any time."""

import numpy as np
import pytest

from firstclick import Catalog, Ranker
from firstclick.kernels.mixed import COST, DONE, DRIFT2, LOGGED, LOOKS, STAGE
from tests.online.rankers import ITEMS, N_FEATURES, N_ITEMS, K, state_of

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
def test_a_ranker_with_a_log_is_saved_grown_changed_and_merged(features, tmp_path):
    one, other = new_ranker(features), new_ranker(features, seed=6)
    log = taught(new_ranker(features, seed=7), 40)
    one.warm_start(log)
    other_log = taught(other, 70)
    assert other.state.refit[STAGE] > 0, "nothing was under way"
    merged = one.merge(other)
    both = new_ranker(features, seed=8)
    learn(both, other_log)
    both.warm_start(log)
    assert_close(merged, both)
    assert merged.state.refit[STAGE] == 0
    done = merged.state.refit[DONE]
    taught(merged, 150)
    assert merged.state.refit[DONE] > done, "it refits again when its looks have come"
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


@with_features_or_without
def test_an_empty_slate_teaches_nothing_but_the_time(features):
    ranker = new_ranker(features)
    taught(ranker, 30)
    before = [array.copy() for array in ranker.state]
    ranker.learn(ranker.recommend(exclude=ITEMS), click=None)
    for name, old, new in zip(ranker.state._fields, before, ranker.state, strict=True):
        assert np.array_equal(old + (name == "time"), new), name


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
