"""Features on their way to the policy and back, and what a ranker learns from the log of a service."""

import json
from itertools import chain

import numpy as np
import polars as pl
import pytest

import firstclick
from firstclick import Catalog, Ranker
from firstclick.catalog.feature_scale import FeatureScale
from firstclick.catalog.item import Item
from firstclick.cli.stores import _write_parquet
from firstclick.serve.log.events import (
    Event,
    Kind,
    Words,
    as_json,
    full_payload,
)
from firstclick.serve.model.new_events import first_event
from firstclick.serve.service import open_service
from tests.support.policies import OTHERS

FEATURES = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5], [0.2, 0.8]])


def items_of(features):
    return [Item(number, features=row) for number, row in enumerate(np.array(features, float))]


def log_of(service, name):
    """What `firstclick log` prints."""
    model = service.model(name)
    scale = model.created.feature_scale
    undone = FeatureScale.from_json(scale) if scale else None
    events = chain.from_iterable(service.store.events(model.id, 0, model.seq))
    told = [as_json(event, Words(model.catalog.items, scale=undone)) for event in events]
    return [json.loads(json.dumps(line)) for line in told]


def scores_of(chooser, context):
    """What is held for items 0 and 1 and this user."""
    if isinstance(chooser, Ranker):
        means, _ = chooser.estimates([0, 1], context=context)
        return list(means)
    slate = chooser.recommend("m", candidates=[0, 1], k=2, context=context)
    return [slate.scores[slate.items.index(item)] for item in (0, 1)]


@OTHERS
@pytest.mark.parametrize(
    ("policy", "users"),
    [
        ("context-lin-ts:context=1,rank=1", ([1.0], [-1.0])),
        ("context-lin-ts:context=2,combine=product", ([1.0, 0.2], [0.2, 1.0])),
    ],
)
def test_users_who_differ_are_told_apart_as_by_a_ranker(tmp_path, policy, users):
    """The first user likes item 0, the second item 1."""
    with open_service(str(tmp_path / "shop.db")) as service:
        service.create("m", policy=policy, k=2, items=items_of(FEATURES), seed=1)
        for part in range(6):
            said = []
            for step in range(20):
                liked = step % 2
                slate = service.recommend("m", context=users[liked], request_id=f"{part} {step}")
                said.append((slate, slate.items.index(liked) if liked in slate.items else None))
            service.feedback_batch("m", said)
        pupil = Ranker(Catalog([0, 1, 2, 3], FEATURES), k=2, policy=policy)
        assert pupil.warm_start(log_of(service, "m")) == 120
        for chooser in (service, pupil):
            for liked, user in enumerate(users):
                scores = scores_of(chooser, user)
                assert scores[liked] > scores[1 - liked] + 0.2
        for mine, its in zip(service.model("m").engine.state, pupil.state, strict=True):
            np.testing.assert_array_equal(mine, its)


@pytest.mark.parametrize(
    ("policy", "part"),
    [
        ("context-lin-ts:context=3,combine=product", "as there are features, 2, got 3"),
        ("context-lin-ts:context=2,rank=3", "rank must be at most the number of features, 2"),
    ],
)
def test_sizes_are_compared_with_the_features_that_were_given(policy, part):
    with pytest.raises(firstclick.FirstclickError, match=part):
        first_event(
            "m",
            policy=policy,
            k=2,
            items=items_of(FEATURES),
            seed=1,
            feature_names=(),
            scale=True,
            encoder=None,
        )


@pytest.mark.parametrize("raw", [FEATURES * 7, [[10, 1.0, 2], [10, 5, 3], [10, 9, 1], [10, 2, 8]]])
@pytest.mark.parametrize("scale", [True, False])
def test_a_log_says_what_was_sent_and_a_ranker_learns_the_same_from_it(tmp_path, raw, scale):
    given = np.array(raw, float)
    own = given[::-1] / 3
    with open_service(str(tmp_path / "shop.db")) as service:
        service.create("m", policy="cascade-lin-ts", k=2, items=items_of(given), seed=1, scale=scale)
        slate = service.recommend("m", candidates=[0, 1, 2, 3], features=own)
        service.feedback("m", slate, click=1)
        service.put_items("m", [Item("late", features=given[2] + 1)])
        created, feedback, put = log_of(service, "m")
    assert created["n_features"] == given.shape[1]
    np.testing.assert_allclose([item["features"] for item in created["items"]], given, rtol=1e-14)
    np.testing.assert_allclose(put["items"][0]["features"], given[2] + 1, rtol=1e-14)
    np.testing.assert_allclose(feedback["features"], own[slate.items], rtol=1e-14)
    told, pupil = (Ranker(Catalog([0, 1, 2, 3], given), k=2, policy="cascade-lin-ts") for _ in range(2))
    told.warm_start([{"items": slate.items, "click": 1, "features": own[slate.items].tolist()}])
    assert pupil.warm_start([created, feedback, put]) == 1
    for mine, its in zip(pupil.state, told.state, strict=True):
        np.testing.assert_allclose(mine, its, rtol=1e-12)


def test_features_that_nobody_sent_can_be_printed_too():
    scale = FeatureScale(("a", "b"), 1.0, 1e200)
    for table in ([[1e200]], [[1.0, np.nan, 1.0, 1e300]]):
        payload = full_payload([], 0, bytes(4), features=np.array(table, "<f8").tobytes())
        as_json(Event(2, Kind.FEEDBACK, bytes(16), payload, 0.0), Words(["a"], scale=scale))


def test_what_was_rolled_back_is_learned_by_the_ranker_as_little_as_by_the_service(tmp_path):
    with open_service(str(tmp_path / "shop.db")) as service:
        model = service.create("m", policy="cascade-lin-ts", k=2, items=items_of(FEATURES), seed=1)
        # Each round is three slates and a rollback, of which some go to what others have taken back.
        for to, counted in ((3, 2), (1, 0), (4, 3), (8, 5), (12, 3), (18, 6)):
            for click in (0, None, 1):
                service.feedback("m", service.recommend("m"), click)
            service.roll_back("m", to)
            log = log_of(service, "m")
            pupil = Ranker(Catalog([0, 1, 2, 3], FEATURES), k=2, policy="cascade-lin-ts")
            assert pupil.warm_start(log) == counted, to
            for mine, its in zip(pupil.state, model.engine.state, strict=True):
                np.testing.assert_array_equal(mine, its)
        _write_parquet(iter(log), tmp_path / "log.parquet")
    pupil = Ranker(Catalog(["0", "1", "2", "3"], FEATURES), k=2, policy="cascade-lin-ts")
    assert pupil.warm_start(pl.read_parquet(tmp_path / "log.parquet").to_dicts()) == counted


def test_one_click_is_told_as_all_where_a_policy_wants_all_and_was_told_all():
    def clicks(wants_all, **said):
        event = Event(2, Kind.FEEDBACK, bytes(16), full_payload([1], 0, bytes(12), **said), 0.0)
        return as_json(event, Words(["a"], wants_all=wants_all)).get("clicks")

    assert (clicks(True), clicks(True, examined=2), clicks(False)) == ([1], None, None)
