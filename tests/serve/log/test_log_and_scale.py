"""Features on their way to the policy and back, and what a ranker learns from the log of a service."""

import sys

import numpy as np
import polars as pl
import pytest

from firstclick import Catalog, Ranker
from firstclick.catalog.feature_scale import FeatureScale
from firstclick.cli import main
from firstclick.serve import Item
from firstclick.serve.log.events import Event, Kind, Words, as_json, full_payload
from tests.support.policies import OTHERS

FEATURES = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5], [0.2, 0.8]])


def items_of(features):
    return [Item(number, features=row) for number, row in enumerate(np.array(features, float))]


def ranker_of(policy, features=FEATURES, ids=(0, 1, 2, 3)):
    return Ranker(Catalog(ids, features), k=2, policy=policy)


def check_same_state(shop, ranker):
    learned = ranker.state._asdict()
    for name, array in shop.state().items():
        np.testing.assert_array_equal(array, learned[name])


@OTHERS
@pytest.mark.parametrize(
    ("policy", "users"),
    [
        ("context-lin-ts:context=1,rank=1", ([1.0], [-1.0])),
        ("context-lin-ts:context=2,combine=product", ([1.0, 0.2], [0.2, 1.0])),
    ],
)
def test_contexts_in_a_log_teach_a_ranker_the_same_as_the_service(open_shop, policy, users):
    """The first user likes item 0, the second item 1."""
    shop = open_shop(policy=policy, k=2, items=items_of(FEATURES), seed=1)
    for part in range(6):
        batch = []
        for step in range(20):
            liked = step % 2
            slate = shop.recommend(context=users[liked], request_id=f"{part} {step}")
            batch.append((slate, slate.items.index(liked) if liked in slate.items else None))
        shop.feedback_batch(batch)
    ranker = ranker_of(policy)
    assert ranker.warm_start(shop.events()) == 120
    for liked, user in enumerate(users):
        slate = shop.recommend(candidates=[0, 1], k=2, context=user)
        means, _ = ranker.estimates([0, 1], context=user)
        for scores in (dict(zip(slate.items, slate.scores, strict=True)), means):
            assert scores[liked] > scores[1 - liked] + 0.2
    check_same_state(shop, ranker)


@pytest.mark.parametrize("raw", [FEATURES * 7, [[10, 1.0, 2], [10, 5, 3], [10, 9, 1], [10, 2, 8]]])
@pytest.mark.parametrize("scale", [True, False])
def test_log_has_features_as_sent_and_teaches_a_ranker_the_same(open_shop, raw, scale):
    given = np.array(raw, float)
    own = given[::-1] / 3
    shop = open_shop(policy="cascade-lin-ts", k=2, items=items_of(given), seed=1, scale=scale)
    slate = shop.recommend(candidates=[0, 1, 2, 3], features=own)
    shop.feedback(slate, click=1)
    shop.put_items([Item("late", features=given[2] + 1)])
    created, feedback, put = shop.events()
    assert created["n_features"] == given.shape[1]
    np.testing.assert_allclose([item["features"] for item in created["items"]], given, rtol=1e-14)
    np.testing.assert_allclose(put["items"][0]["features"], given[2] + 1, rtol=1e-14)
    np.testing.assert_allclose(feedback["features"], own[slate.items], rtol=1e-14)
    by_hand, from_log = (ranker_of("cascade-lin-ts", given) for _ in range(2))
    by_hand.warm_start([{"items": slate.items, "click": 1, "features": own[slate.items].tolist()}])
    assert from_log.warm_start([created, feedback, put]) == 1
    for one, other in zip(from_log.state, by_hand.state, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12)


def test_what_was_rolled_back_is_learned_by_neither(open_shop, tmp_path, monkeypatch):
    shop = open_shop(policy="cascade-lin-ts", k=2, items=items_of(FEATURES), seed=1)
    # Each round is three slates and a rollback, of which some go to what others have taken back.
    for to, counted in ((3, 2), (1, 0), (4, 3), (8, 5), (12, 3), (18, 6)):
        for click in (0, None, 1):
            shop.feedback(shop.recommend(), click)
        shop.roll_back(to)
        ranker = ranker_of("cascade-lin-ts")
        assert ranker.warm_start(shop.events()) == counted, to
        check_same_state(shop, ranker)
    out = str(tmp_path / "log.parquet")
    command = ["firstclick", "log", "shop", "--store", str(tmp_path / "shop.db"), "--out", out]
    monkeypatch.setattr(sys, "argv", command)
    with pytest.raises(SystemExit):
        main()
    ranker = ranker_of("cascade-lin-ts", ids=["0", "1", "2", "3"])
    assert ranker.warm_start(pl.read_parquet(out).to_dicts()) == counted


def feedback_as_json(rows, words, **more):
    payload = full_payload([0], 0, bytes(4 * rows), **more)
    return as_json(Event(2, Kind.FEEDBACK, bytes(16), payload, 0.0), words)


def test_features_that_overflow_can_be_printed_too():
    for table in ([[1e200]], [[1.0, np.nan, 1.0, 1e300]]):
        features = np.array(table, "<f8").tobytes()
        words = Words(["a"], scale=FeatureScale(("a", "b"), 1.0, 1e200))
        assert len(feedback_as_json(1, words, features=features)["features"]) == 1


def test_one_click_is_all_clicks_for_a_policy_that_wants_all():
    all_clicks, one_click = (Words(["a"], wants_all=wants_all) for wants_all in (True, False))
    assert feedback_as_json(3, all_clicks)["clicks"] == [0]
    assert "clicks" not in feedback_as_json(3, all_clicks, examined=2)
    assert "clicks" not in feedback_as_json(3, one_click)
