"""A model is the replay of its log: however it is replayed, it comes to the same, bit for bit."""

import struct

import numpy as np
import polars as pl
import pytest

from firstclick import FirstclickError, InvalidInput, WorkFailed
from firstclick.cli.stores import _write_parquet
from firstclick.kernels.source_files import with_imports
from firstclick.policies.cascade_ts import CascadeTS
from firstclick.policies.context_lin_ts import ContextLinTS
from firstclick.serve import Item
from firstclick.serve.log.codec import SKIPPED, fold
from firstclick.serve.log.events import (
    Created,
    Event,
    FirstItems,
    Kind,
    Words,
    as_json,
    feedback_payload,
    full_payload,
    read_feedback,
)
from firstclick.serve.log.snapshot import BadSnapshot
from firstclick.serve.model.model import Model
from tests.support.made_log import OTHER_BUILD, K, Log, made_items
from tests.support.policies import OTHERS, policies
from tests.support.shop import shop_at

# The others are in test_every_policy.
POLICIES = policies(["cascade-lin-ts", "ranked-lin-ts", "cascade-ts", "random"])


def restored(log, content):
    return Model.restored(1, "made", content, log.created)


@pytest.mark.parametrize("policy", POLICIES)
def test_a_snapshot_at_any_event_goes_on_as_if_nothing_had_been(policy):
    log = Log(policy).eventful()
    assert log.model_at(len(log.events)).digest() == log.model.digest()
    for seq in (1, 2, 42, 75, 176, 178, 200, len(log.events)):
        at, content = log.model_at(seq).snapshot()
        assert at == seq
        model = restored(log, content)
        assert model.digest() == log.model_at(seq).digest()
        model.apply(log.events[seq:], log.known_at)
        assert model.digest() == log.model.digest()


def rows_of(*rows):
    return np.array(rows, "<u4").tobytes()


@pytest.mark.parametrize(
    "payload",
    [
        feedback_payload(None, 0, rows_of(0, 13)),  # no such row
        feedback_payload(None, 0, rows_of(2**32 - 1)),
        feedback_payload(2, 0, rows_of(0, 1)),  # no such position
        feedback_payload(-2, 0, rows_of(0, 1)),
        feedback_payload(None, 0, rows_of(0, 1, 2, 3)),  # more than k
        feedback_payload(None, 0, rows_of(0, 1))[:-1],
        b"\x00",
    ],
)
def test_feedback_that_cannot_be_is_passed_over_and_later_events_count(payload):
    log, plain = Log(), Log()
    good = feedback_payload(0, 0, rows_of(0, 1))
    assert fold(log.model.engine, [good, payload, good]).tolist() == [0, SKIPPED, 0]
    assert fold(plain.model.engine, [good, good]).tolist() == [0, 0]
    for mine, its in zip(log.model.engine.state, plain.model.engine.state, strict=True):
        np.testing.assert_array_equal(mine, its)


def test_a_log_with_feedback_that_cannot_be_replays_to_one_state():
    log = Log()
    log.feedback([0, 1, 2], 1)
    log.feedback([0, 99], 1)
    log.feedback([2, 1, 0], None)
    assert (log.model.seq, log.model.click_stats.slates, log.model.click_stats.skipped) == (4, 2, 1)
    assert log.model_at(4).digest() == log.model.digest()
    assert restored(log, log.model.snapshot()[1]).digest() == log.model.digest()


def test_slates_made_ahead_equal_those_of_their_numbers_until_an_event():
    log = Log().eventful()
    model = log.model
    seen = set()
    for event in range(6):
        for _ in range(40):
            number, ranked = model.next_slate()
            assert number not in seen
            seen.add(number)
            again = model.recommend(number)
            assert (ranked.items, ranked.scores, ranked.seq) == (again.items, again.scores, model.seq)
            assert ranked.rows.tolist() == again.rows.tolist()
        assert model._at_once > 1  # so some were really made ahead
        if event % 2:
            log.withdraw(ranked.items[0])
            assert all(ranked.items[0] not in model.next_slate()[1].items for _ in range(30))
        else:
            log.feedback(ranked.rows.tolist(), 0)


def test_few_slates_are_made_ahead_where_feedback_follows_every_slate():
    log = Log()
    for _ in range(30):
        log.feedback(log.model.next_slate()[1].rows.tolist(), None)
    assert log.model._at_once == 1


def test_scores_are_estimates_or_nothing():
    model = Log().eventful().model
    slate = model.recommend(0)
    means, _ = model.engine.estimates(slate.rows)
    assert slate.scores == means.tolist()
    assert Log("random").model.recommend(0).scores == [None] * K
    best = model.best_rows(K)
    shown = np.flatnonzero(model.catalog.hidden == 0)
    assert sorted(best, key=lambda row: -model.engine.estimates(np.array([row]))[0][0]) == best.tolist()
    assert model.engine.estimates(best)[0].min() >= np.sort(model.engine.estimates(shown)[0])[-K]


def test_any_damage_to_a_snapshot_is_noticed():
    log = Log().eventful()
    _, content = log.model.snapshot()
    assert restored(log, content).digest() == log.model.digest()
    draw = np.random.default_rng(3)
    for _ in range(200):
        broken = bytearray(content)
        broken[draw.integers(len(content))] ^= 1 << int(draw.integers(8))
        with pytest.raises(BadSnapshot):
            restored(log, bytes(broken))
    for cut in (0, 5, 11, 40, len(content) - 1):
        with pytest.raises(BadSnapshot):
            restored(log, content[:cut])


def test_events_come_in_order_or_not_at_all():
    log = Log().eventful()
    model = log.model_at(10)
    before = model.digest()
    with pytest.raises(WorkFailed, match="event 11 comes next in the log, got 12"):
        model.apply(log.events[11:], log.known_at)
    model.apply(log.events[5:10], log.known_at)  # folded already
    assert model.digest() == before
    model.apply(log.events[7:], log.known_at)
    assert model.digest() == log.model.digest()


# Several clicks, how far was examined, contexts and features of a request

ISSUED = 1_763_251_200_000


def floats(*numbers):
    return np.array(numbers, "<f8").tobytes()


def made_model(policy, **settings):
    body = FirstItems.of(made_items())
    return Model(1, "made", Created(policy, settings, K, 5, body.n_features, body, 5, 1, OTHER_BUILD))


@pytest.mark.parametrize(
    ("policy", "settings"),
    [
        ("cascade-lin-ts", {}),
        pytest.param("dcm-lin-ts", {}, marks=OTHERS),
        pytest.param("context-lin-ts", {"context": 2}, marks=OTHERS),
    ],
)
def test_the_compiled_replay_is_the_policy_learning_one_slate_at_a_time(policy, settings):
    many, one = (made_model(policy, **settings).engine for _ in range(2))
    draw = np.random.default_rng(3)
    n_context, width = many.policy.n_context, many.catalog.arrays.features.shape[1]
    payloads = []
    for step in range(60):
        n = int(draw.integers(0, K + 1))
        seen = None if step % 3 else int(draw.integers(0, n + 1))
        clicks = np.flatnonzero(draw.random(n if seen is None else seen) < 0.6).tolist()
        context = draw.normal(size=n_context)
        features = draw.normal(size=(n if step % 4 == 0 else 0, width))
        rows = rows_of(*draw.permutation(13)[:n].tolist())
        payloads.append(
            full_payload(
                clicks, ISSUED, rows, examined=seen, context=context.tobytes(), features=features.tobytes()
            )
        )
    assert {len(read_feedback(payload).clicks) for payload in payloads} == {0, 1, 2, 3}
    first = fold(many, payloads)
    for payload, click in zip(payloads, first.tolist(), strict=True):
        said = read_feedback(payload)
        assert click == (said.clicks[0] if said.clicks else -1)
        bits = np.zeros(len(said.rows), np.uint8)
        bits[list(said.clicks)] = 1
        one.learn_rows(
            np.array(said.rows, np.int64),
            bits,
            said.examined,
            context=np.array(said.context),
            features=np.array(said.features).reshape(len(said.features), width),
        )
    for mine, its in zip(many.state, one.state, strict=True):
        np.testing.assert_array_equal(mine, its)


@OTHERS
def test_feedback_with_more_that_cannot_be_is_passed_over(monkeypatch):
    live = made_model("context-lin-ts", context=2).engine
    rows, context, features = rows_of(0, 1, 2), floats(1, 2), floats(*range(12))
    good = full_payload([0, 2], 0, rows, examined=3, context=context, features=features)
    head, more = struct.Struct("<hq"), struct.Struct("<HhHH")

    def changed(*, n=3, seen=3, n_context=2, columns=4, marks=5):
        numbers = more.pack(n, seen, n_context, columns)
        return head.pack(-3, 0) + numbers + bytes([marks]) + rows + context + features

    assert changed() == good
    hostile = {
        "no context": full_payload([0, 2], 0, rows),
        "plain": feedback_payload(0, 0, rows),
        "a context too long": full_payload([0], 0, rows, context=floats(1, 2, 3)),
        "a context of nothing": full_payload([0], 0, rows, context=floats(1, np.nan)),
        "a context without end": full_payload([0], 0, rows, context=floats(1, -np.inf)),
        "a huge context": full_payload([0], 0, rows, context=floats(1, 1e101)),
        "features of nothing": full_payload([0], 0, rows, context=context, features=floats(*[np.nan] * 12)),
        "features too few": full_payload([0], 0, rows, context=context, features=floats(*range(9))),
        "no such row": full_payload([0], 0, rows_of(0, 13, 1), context=context),
        "more than k": full_payload([0], 0, rows_of(0, 1, 2, 3), context=context),
        "examined beyond the slate": changed(seen=4),
        "examined below nothing": changed(seen=-2),
        "clicked beyond examined": changed(seen=2),
        "clicked beyond the slate": changed(marks=5 | 8),
        "fewer rows than there are": changed(n=2),
        "endless rows": changed(n=65_535),
        "an endless context": changed(n_context=65_535),
        "endless columns": changed(columns=65_535),
        "cut off": good[:-1],
        "longer": good + b"\0",
        "cut off in the head": good[:17],
    }
    wanted = made_model("context-lin-ts", context=2).engine
    assert fold(wanted, [good, good]).tolist() == [0, 0]
    # What is cut off comes last: there is nothing behind it to read.
    clicks = dict(zip(["good", *hostile], fold(live, [good, *hostile.values()]), strict=True))
    assert clicks == {"good": 0} | dict.fromkeys(hostile, SKIPPED)

    def refuses_seven(self, context):
        if context[0] == 7:
            raise InvalidInput("seven")

    # A policy may know of contexts that mean nothing to its kernels, such as the number of no segment.
    monkeypatch.setattr(ContextLinTS, "check_context", refuses_seven)
    seven = full_payload([0], 0, rows, context=floats(7, 2))
    assert fold(live, [seven, good[:-1], good]).tolist() == [SKIPPED, SKIPPED, 0]
    for mine, its in zip(live.state, wanted.state, strict=True):
        np.testing.assert_array_equal(mine, its)
    # Whatever is in a log can be printed.
    for payload in hostile.values():
        as_json(Event(2, Kind.FEEDBACK, bytes(16), payload, 0.0), Words(["a", "b", "c"]))


@OTHERS
def test_clicks_examined_and_contexts_are_in_the_log_and_outlive_restarts(open_shop, tmp_path):
    shop = open_shop(policy="context-lin-ts:context=2")
    for context, report in (
        ([1, -0.5], {"clicks": [0, 1]}),
        ([0, 1], {"click": 1, "examined": 2}),
        ([0, 3], {"clicks": [], "examined": 0}),
    ):
        shop.feedback(shop.recommend(context=context), **report)
    events, columns = shop.events(after=1), ("click", "clicks", "examined", "context")
    assert [[event.get(name) for name in columns] for event in events] == [
        [0, [0, 1], None, [1, -0.5]],
        [1, None, 2, [0, 1]],
        [None, None, 0, [0, 3]],
    ]
    _write_parquet(iter(events), tmp_path / "log.parquet")
    for row, event in zip(pl.read_parquet(tmp_path / "log.parquet").to_dicts(), events, strict=True):
        assert [row[name] for name in columns] == [event.get(name) for name in columns]
    digest, content = shop.digest(), b"".join(shop.export())
    for restored_from in (0, 4):
        if restored_from:
            shop.snapshot()
        shop.restart()
        assert (shop.digest(), shop.describe()["restored_from"]) == (digest, restored_from)
    with shop_at(tmp_path / "other.db", policy="random") as other:
        assert other.service.import_model("copy", content).digest() == digest


def test_a_slate_whose_token_would_be_too_long_is_refused(open_shop):
    items = [Item(f"i{n}", features=np.full(90, n / 20)) for n in range(20)]
    shop = open_shop(policy="cascade-lin-ts", k=20, items=items)
    with pytest.raises(FirstclickError, match="at most 256 numbers"):
        shop.service.create("wide", policy="context-lin-ts:context=257", k=2, items=items)
    request = {"candidates": [item.id for item in items], "features": [[0.5] * 90] * 20}
    with pytest.raises(FirstclickError, match="ask for fewer items by k"):
        shop.recommend(**request)
    assert shop.feedback(shop.recommend(k=10, **request), clicks=[3, 9]).status == "accepted"


def test_all_that_decides_what_a_log_comes_to_is_hashed_with_it():
    hashed = {module.name for module in with_imports({"firstclick.serve.model.model", CascadeTS.__module__})}
    wanted = {
        "serve.log.events", "serve.log.codec", "serve.model.click_stats", "serve.model.catalog_state",
        "online.engine", "policies.base", "streams", "catalog.search_tree",
        "click_models", "catalog.catalog", "kernels.calls", "kernels.clicks", "kernels.hashing",
        "policies.cascade_ts", "policies._counts",
    }  # fmt: skip
    assert {f"firstclick.{name}" for name in wanted} <= hashed
    assert "firstclick.policies.vac2_ucb" not in hashed, "another policy decides nothing"
