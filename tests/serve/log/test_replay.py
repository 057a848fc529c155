"""A model is the replay of its log: however it is replayed or stopped, it comes to the same, bit for bit."""

import struct

import numpy as np
import polars as pl
import pytest

from firstclick import FirstclickError, InvalidInput, WorkFailed, policy_classes
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
from firstclick.serve.model.catalog_state import CatalogState
from firstclick.serve.model.model import Model
from tests.support.clock import Clock
from tests.support.made_log import OTHER_BUILD, K, Log, made_items
from tests.support.policies import OTHERS, policies
from tests.support.shop import IDS, items, new_items

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


IMPOSSIBLE = [
    feedback_payload(None, 0, rows_of(0, 13)),  # no such row
    feedback_payload(None, 0, rows_of(2**32 - 1)),
    feedback_payload(2, 0, rows_of(0, 1)),  # no such position
    feedback_payload(-2, 0, rows_of(0, 1)),
    feedback_payload(None, 0, rows_of(0, 1, 2, 3)),  # more than k
    feedback_payload(None, 0, rows_of(0, 1))[:-1],
    b"\x00",
]


def test_feedback_that_cannot_be_is_passed_over_and_later_events_count():
    log, plain = Log(), Log()
    for payload in IMPOSSIBLE:
        for each in (feedback_payload(0, 0, rows_of(0, 1)), payload):
            log._apply(log._add(Kind.FEEDBACK, each))
        plain.feedback([0, 1], 0)
    for mine, its in zip(log.model.engine.state, plain.model.engine.state, strict=True):
        np.testing.assert_array_equal(mine, its)
    assert (log.model.click_stats.slates, log.model.click_stats.skipped) == (7, 7)
    assert log.model_at(len(log.events)).digest() == log.model.digest()
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
    digest = shop.digest()
    shop.restart()
    assert shop.digest() == digest


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


OURS = {name: cls for name, cls in policy_classes().items() if cls.__module__.startswith("firstclick.")}


@pytest.mark.parametrize("name", policies(sorted(OURS)))
def test_log_of_every_policy_replays_to_one_state(name):
    policy = OURS[name]

    def some_items(*arguments, **more):
        made = made_items(*arguments, **more)
        shares = [item._replace(features=abs(item.features) / 3) for item in made]
        return shares if policy.unit_features else made

    log = Log(name, some_items())
    log.play(12)
    if policy.growable:
        log.put(some_items(2, first=50))
    log.withdraw("i2")
    log.play(8, seed=1)
    log.roll_back(9)
    log.play(5, seed=2)
    log.model.warm_up()
    if policy.growable:
        log.put([*some_items(seed=5)[4:7], *some_items(1, first=60)])
        log.set_available(off=("i3",))
        log.play(6, seed=3)
        assert "i3" not in log.model.recommend(0).items
    assert log.model_at(len(log.events)).digest() == log.model.digest()
    model = restored(log, log.model_at(17).snapshot()[1])
    model.apply(log.events[17:], log.known_at)
    assert model.digest() == log.model.digest()


# Stopped and started again at any time, a service goes on as if nothing had been

STEPS = 120


def play_step(shop, step, *, features=True):
    """Do what this step's number alone decides; return the slate that was shown."""
    slate = shop.recommend(request_id=f"step {step}")
    click = (step * 7) % (K + 2)
    shop.feedback(slate, click if click < len(slate.items) else None)
    if step % 11 == 5:
        shop.put_items(new_items(1, first=100 + step, features=features))
    elif step % 11 == 8:
        (other,) = new_items(1, first=step, features=features)
        shop.put_items([items(features)[step % len(IDS)]._replace(features=other.features)])
    elif step % 17 == 3:
        shop.withdraw_items([IDS[step % len(IDS)]])
    elif step % 53 == 50:
        shop.roll_back(step // 2)
    return slate.items


@pytest.mark.parametrize(
    ("policy", "features"),
    [
        ("cascade-mixed", True), ("cascade-mixed", False), ("cascade-lin-ts", True), ("cascade-ts", False),
        pytest.param("ranked-lin-ts", True, marks=OTHERS),
    ],
)  # fmt: skip
def test_resumed_is_uninterrupted(open_shop, policy, features, tmp_path):
    stops = set(np.random.default_rng(len(policy)).choice(STEPS, 6, replace=False).tolist())
    clocks = Clock(), Clock()
    whole, stopped = (
        open_shop(tmp_path / f"{n}.db", policy=policy, features=features, clock=clock)
        for n, clock in enumerate(clocks)
    )
    for step in range(STEPS):
        slates = [play_step(shop, step, features=features) for shop in (whole, stopped)]
        assert slates[0] == slates[1], step
        for clock in clocks:
            clock.move(1)
        if step in stops:
            if step % 2:
                stopped.snapshot()
            stopped.restart()
    assert stopped.digest() == whole.digest()


def test_rollbacks_of_rollbacks_are_replayed_once(open_shop, monkeypatch):
    """Were the log replayed for each of a dozen, its events would be replayed thousands of times."""
    shop = open_shop(policy="cascade-lin-ts")
    for step in range(12):
        play_step(shop, 2 * step)
        shop.roll_back(shop.seq - step % 2)
    shop.snapshot()
    digest, changes = shop.digest(), []
    for kind, change in ((Model, Model._change), (CatalogState, CatalogState.apply)):

        def counted(self, event, *more, change=change):
            changes.append(event.seq)
            change(self, event, *more)

        monkeypatch.setattr(kind, change.__name__, counted)
    assert shop.audit().equal
    assert shop.service.import_model("again", b"".join(shop.export())).seq == shop.seq
    shop.restart()
    assert shop.digest() == digest
    assert 2 * shop.seq < len(changes) < 20 * shop.seq
