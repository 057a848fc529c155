"""A fitted click model as a head start: the looks and clicks that it stands for, corrected for position."""

import numpy as np
import pytest

from firstclick import Catalog, Ranker
from firstclick.click_models import Sessions, fit_sessions
from firstclick.click_models.click_fit import ClickFit
from tests.online.rankers import refusal

ITEMS = ("tea", "cocoa", "milk", "juice", "water")


def made_fit(looks, attraction, **others):
    looks, attraction = np.atleast_2d(looks).astype(float), np.atleast_2d(attraction).astype(float)
    segments = ("",) if len(looks) == 1 else tuple(f"s{place}" for place in range(len(looks)))
    given = {
        "model": "cm", "items": ITEMS, "segments": segments, "shares": np.full(len(looks), 1 / len(looks)),
        "attraction": attraction, "satisfaction": np.empty((0, 0)), "chances": np.empty(0), "looks": looks,
        "k": 2, "slates": 100.0,
    }  # fmt: skip
    return ClickFit(**given | others)


FIT = made_fit([[40.4, 10.6, 0.0, 5.5, 3.2]], [[0.5, 0.25, 0.3, 0.1, 0.0]])


def new_ranker(policy, items=("water", "tea", "lemonade", "juice", "cocoa"), features=None):
    return Ranker(Catalog(items, features), k=2, policy=policy, seed=3)


def test_a_policy_that_counts_gets_whole_numbers_by_one_rule():
    ranker = new_ranker("cascade-ts")
    for times in (1, 2):
        assert ranker.warm_start(FIT) == 4  # The catalog has no milk, and the fit no lemonade.
        # tea: 40.4 looks, 20.2 clicks: 20 clicks, and 20.2 looks without one, 20; juice: 5.5 looks, 0.55
        # clicks.
        assert ranker.state.examined.tolist() == [3 * times, 40 * times, 0, 6 * times, 11 * times]
        assert ranker.state.hits.tolist() == [0, 20 * times, 0, 1 * times, 3 * times]
        # As many slates of two as 59.7 looks at items of the catalog fill.
        assert ranker.state.time.tolist() == [30 * times]


def test_the_default_policy_keeps_them_beside_live_clicks_as_they_are():
    ranker = new_ranker("cascade-mixed")
    assert ranker.warm_start(FIT, weight=0.5) == 4
    np.testing.assert_allclose(ranker.state.logged_examined, [1.6, 20.2, 0, 2.75, 5.3])
    np.testing.assert_allclose(ranker.state.logged_hits, [0, 10.1, 0, 0.275, 1.325])
    assert not ranker.state.live_examined.any()
    assert ranker.estimates(["tea"])[0][0] > 0.2
    ranker.learn(ranker.recommend(), click=0)
    assert ranker.state.live_examined.sum() == 1
    of_segments = new_ranker("cascade-mixed", ITEMS)
    of_segments.warm_start(
        made_fit(
            [[40, 10, 0, 0, 0], [20, 0, 5, 0, 0]], [[0.5, 0.1, 0.9, 0.9, 0.9], [0.2, 0.9, 0.4, 0.9, 0.9]]
        )
    )
    np.testing.assert_allclose(of_segments.state.logged_examined, [60, 10, 5, 0, 0])
    np.testing.assert_allclose(of_segments.state.logged_hits, [24, 1, 2, 0, 0])


@pytest.mark.parametrize("policy", ["cascade-lin-ts", "cascade-ducb"])
def test_a_policy_that_wants_more_than_counts_takes_none(policy):
    ranker = new_ranker(policy, features=np.eye(5)[:, :3] if "lin" in policy else None)
    assert "counts are not enough" in str(refusal(ranker.warm_start, FIT))
    assert int(ranker.state.time[0]) == 0


def test_an_item_that_stood_low_is_not_punished_for_it():
    """Two items attract equally; one was always shown below the other, where half of the users look."""
    draw, n = np.random.default_rng(1), 6000
    slates = np.tile([0, 1], (n, 1))
    slates[: n // 10] = [1, 0]  # Some pages the other way round tell positions and items apart.
    slates[n // 10 : n // 5] = [2, 3]
    attraction, examined = np.array([0.3, 0.3, 0.1, 0.2]), np.array([1.0, 0.5])
    clicks = draw.random((n, 2)) < attraction[slates] * examined
    raw, fitted = new_ranker("cascade-ts", ITEMS[:4]), new_ranker("cascade-ts", ITEMS[:4])
    raw.warm_start(
        {"items": [ITEMS[item] for item in slate], "clicks": np.flatnonzero(clicked).tolist()}
        for slate, clicked in zip(slates.tolist(), clicks, strict=True)
    )
    sessions = Sessions(
        name="log", items=ITEMS[:4], segments=("",), k=2, cells=slates.astype(np.int32),
        clicks=clicks.astype(np.uint8), examined=np.full(n, -1, np.int32),
        slate_segments=np.zeros(n, np.int32), numbers=np.arange(n), places=np.arange(4), unreported=0,
    )  # fmt: skip
    fitted.warm_start(fit_sessions(sessions, "pbm"))
    rates = {name: one.estimates(ITEMS[:2])[0] for name, one in (("raw", raw), ("fitted", fitted))}
    assert rates["raw"][1] < 0.75 * rates["raw"][0]
    assert rates["fitted"][1] == pytest.approx(rates["fitted"][0], rel=0.15)
