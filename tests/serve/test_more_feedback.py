"""Several clicks, how far was examined, contexts, caps, features of a request: from the page to the log."""

import json
import struct

import httpx
import numpy as np
import polars as pl
import pytest

import firstclick
from firstclick.catalog.item import Item
from firstclick.cli.stores import _write_parquet
from firstclick.client.client import Client
from firstclick.kernels.source_files import with_imports
from firstclick.policies.cascade_ts import CascadeTS
from firstclick.policies.context_lin_ts import ContextLinTS
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
from firstclick.serve.model.model import Model
from firstclick.serve.model.replay import recover
from firstclick.serve.service import open_service
from firstclick.wire.errors import Malformed
from firstclick.wire.feedback import ClickReport
from tests.support import seam
from tests.support.made_log import K, made_items
from tests.support.policies import OTHERS
from tests.support.serving import ITEMS, a_site

# Its models are of policies that nothing else compiles.
pytestmark = OTHERS

ISSUED = 1_763_251_200_000


def rows_of(*rows):
    return np.array(rows, "<u4").tobytes()


def floats(*numbers):
    return np.array(numbers, "<f8").tobytes()


def made_model(policy, **settings):
    body = FirstItems.of(made_items())
    return Model(1, "made", Created(policy, settings, K, 5, body.n_features, body, 5, 1))


@pytest.mark.parametrize(
    ("policy", "settings"),
    [
        pytest.param("dcm-lin-ts", {}, marks=pytest.mark.long),
        ("context-lin-ts", {"context": 2}),
    ],
)
def test_the_compiled_fold_is_the_policy_learning_one_slate_at_a_time(policy, settings):
    many, one = (made_model(policy, **settings).engine for _ in range(2))
    draw = np.random.default_rng(3)
    n_context, width = many.policy.n_context, many.catalog.arrays.features.shape[1]
    payloads = []
    for step in range(60):
        n = int(draw.integers(0, K + 1))
        told = None if step % 3 else int(draw.integers(0, n + 1))
        clicks = np.flatnonzero(draw.random(n if told is None else told) < 0.6).tolist()
        context = draw.normal(size=n_context)
        features = draw.normal(size=(n if step % 4 == 0 else 0, width))
        rows = rows_of(*draw.permutation(13)[:n].tolist())
        payloads.append(
            full_payload(
                clicks, ISSUED, rows, examined=told, context=context.tobytes(), features=features.tobytes()
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


def test_feedback_that_cannot_be_is_passed_over(monkeypatch):
    live = made_model("context-lin-ts", context=2).engine
    rows, context, features = rows_of(0, 1, 2), floats(1, 2), floats(*range(12))
    good = full_payload([0, 2], 0, rows, examined=3, context=context, features=features)
    head, more = struct.Struct("<hq"), struct.Struct("<HhHH")

    def changed(*, n=3, told=3, n_context=2, columns=4, marks=5):
        numbers = more.pack(n, told, n_context, columns)
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
        "examined beyond the slate": changed(told=4),
        "examined below nothing": changed(told=-2),
        "clicked beyond examined": changed(told=2),
        "clicked beyond the slate": changed(marks=5 | 8),
        "fewer rows than there are": changed(n=2),
        "rows without end": changed(n=65_535),
        "a context without end of numbers": changed(n_context=65_535),
        "columns without end": changed(columns=65_535),
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
            raise firstclick.InvalidInput("seven")

    # A policy may know of contexts that mean nothing to its kernels, such as the number of no segment.
    monkeypatch.setattr(ContextLinTS, "check_context", refuses_seven)
    seven = full_payload([0], 0, rows, context=floats(7, 2))
    assert fold(live, [seven, good[:-1], good]).tolist() == [SKIPPED, SKIPPED, 0]
    for mine, its in zip(live.state, wanted.state, strict=True):
        np.testing.assert_array_equal(mine, its)
    # Whatever is in a log can be printed.
    for payload in hostile.values():
        as_json(Event(2, Kind.FEEDBACK, bytes(16), payload, 0.0), Words(["a", "b", "c"]))


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The model 'shop' of a cascade, 'page' that takes several clicks, and 'users' with contexts."""
    with a_site(tmp_path_factory.mktemp("site")) as site:
        items = [{"id": item.id, "group": item.group, "features": item.features.tolist()} for item in ITEMS]
        for name, policy in (("page", "dcm-lin-ts"), ("users", "context-lin-ts:context=2")):
            body = {"name": name, "policy": policy, "k": 3, "items": items, "seed": 1}
            assert site.ask("POST", "/v1/models", body).status_code == 201
        yield site


def recommend(site, model, **asked):
    answer = site.ask("POST", f"/v1/models/{model}/recommend", asked)
    assert answer.status_code == 200, answer.text
    return dict(answer.json())


def feedback(site, model, **said):
    answer = site.ask("POST", f"/v1/models/{model}/feedback", said)
    told = answer.json()
    return answer.status_code, told.get("status") or told["error"]["message"]


def test_clicks_and_contexts_are_learned_once_and_come_back_after_a_restart(site, tmp_path):
    token = recommend(site, "page")["token"]
    before = site.service.model("page").engine.state.observations[0]
    assert feedback(site, "page", token=token, clicks=[2, 0], examined=3) == (201, "accepted")
    assert site.service.model("page").engine.state.observations[0] == before + 3
    assert feedback(site, "page", token=token, clicks=[0, 2], examined=3) == (200, "duplicate")
    for other in ({"clicks": [0, 2]}, {"clicks": [0, 1], "examined": 3}, {"click": 0}, {"click": None}):
        assert feedback(site, "page", token=token, **other)[0] == 409
    token = recommend(site, "page")["token"]
    assert feedback(site, "page", token=token, clicks=[1]) == (201, "accepted")
    assert feedback(site, "page", token=token, click=1) == (200, "duplicate")
    token = recommend(site, "page")["token"]
    assert feedback(site, "page", token=token, click=None, examined=1) == (201, "accepted")
    assert site.service.model("page").engine.state.observations[0] == before + 3 + 2 + 1

    asked = {"context": [1, -0.5], "request_id": "visit"}
    slates = [recommend(site, "users", **asked) for _ in range(2)]
    assert slates[0]["items"] == slates[1]["items"]
    assert feedback(site, "users", token=slates[0]["token"], clicks=[0, 1]) == (201, "accepted")
    assert feedback(site, "users", token=slates[1]["token"], clicks=[1, 0]) == (200, "duplicate")
    another = recommend(site, "users", context=[1, 2])["token"]
    batch = [
        {"token": recommend(site, "users", context=[0, 1])["token"], "click": 1, "examined": 2},
        {"token": recommend(site, "users", context=[0, 3])["token"], "clicks": [], "examined": 0},
        {"token": another},
    ]
    answer = site.ask("POST", "/v1/models/users/feedback:batch", {"feedback": batch}).json()
    assert [one["status"] for one in answer["results"]] == ["accepted", "accepted", "malformed"]

    # What is known of the page is what was said, and what is said of the model.
    service = site.service
    events = [event for part in service.store.events(service.model("users").id, 1) for event in part]
    words = [as_json(event, Words(service.model("users").catalog.items)) for event in events]
    assert [one["click"] for one in words] == [0, 1, None]
    assert [one.get("clicks") for one in words] == [[0, 1], None, None]
    assert [one.get("examined") for one in words] == [None, 2, 0]
    assert [one["context"] for one in words] == [[1, -0.5], [0, 1], [0, 3]]
    _write_parquet(iter(words), tmp_path / "log.parquet")
    table = pl.read_parquet(tmp_path / "log.parquet").to_dicts()
    for column in ("click", "clicks", "examined", "context"):
        assert [row[column] for row in table] == [one.get(column) for one in words]
    view = site.ask("GET", "/v1/models/users/view").json()
    assert [(one["click"], one["clicks"]) for one in view["recent"]] == [(None, []), (1, [1]), (0, [0, 1])]
    assert view["totals"] == {"slates": 3, "clicks": 2}
    for name in ("page", "users"):
        assert site.ask("GET", f"/v1/models/{name}/audit").json()["equal"]
        _same_after_recovery(service, name, tmp_path)


def _same_after_recovery(service, name, folder):
    wanted = seam.model(service, name).digest()
    stored = next(stored for stored in service.store.models() if stored.name == name)
    seam.model(service, name).snapshot()
    for use_snapshots in (False, True):
        model = recover(service.store, stored, use_snapshots=use_snapshots)
        assert (model.digest(), model.restored_from) == (wanted, stored.head if use_snapshots else 0)
    with open_service(str(folder / "other.db")) as other:
        assert other.import_model(name, b"".join(service.export(name))).digest() == wanted


def test_a_token_that_would_be_too_long_is_refused(site):
    items = [Item(f"i{n}", features=np.full(90, n / 20)) for n in range(20)]
    site.service.create("wide", policy="cascade-lin-ts", k=20, items=items)
    asked = {"candidates": [item.id for item in items], "features": [[0.5] * 90] * 20}
    with pytest.raises(firstclick.FirstclickError, match="and 12288 is the most; ask for fewer items by k"):
        site.service.recommend("wide", **asked)
    token = site.service.recommend("wide", k=10, **asked).token
    assert site.service.feedback("wide", token, clicks=[3, 9]).status == "accepted"
    with pytest.raises(firstclick.FirstclickError, match="at most 256 numbers, got 257"):
        site.service.create("wider", policy="context-lin-ts:context=257", k=2, items=ITEMS)


def test_an_item_that_a_policy_has_no_room_for_does_not_reach_the_log(site, monkeypatch):
    model = site.service.model("shop")
    assert hasattr(model.engine.state, "precision")
    seq, whole = model.seq, type(model.engine.policy).initial_state
    # As a plug-in does whose state has a place for each item, and no grow().
    monkeypatch.setattr(
        type(model.engine.policy),
        "initial_state",
        lambda self, n, d, k: whole(self, n, d, k)._replace(time=np.zeros(n, np.int64)),
    )
    with pytest.raises(Malformed, match=r"its state has no room for \d+ items; write grow\(\) for it"):
        site.service.put_items("shop", [Item("brand new", features=np.ones(model.n_given_features or 0))])
    assert model.seq == seq


def test_clients_send_what_they_are_given():
    sent = []

    def answer(request):
        sent.append(json.loads(request.content))
        if "feedback:batch" in request.url.path:
            return httpx.Response(200, json={"results": [{"status": "accepted", "seq": 2}] * 3})
        told = {"items": ["a"], "scores": [None], "token": "t", "seq": 1, "status": "accepted"}
        return httpx.Response(200, json=told)

    with Client("http://127.0.0.1", "shop", transport=httpx.MockTransport(answer)) as client:
        slate = client.recommend(
            candidates=["a"], context=np.array([1, 0.5]), at_most={"tea": np.int64(2)}, features=np.eye(1, 2)
        )
        client.feedback(slate, clicks=np.array([2, 0]), examined=3)
        client.feedback("t", click=None, examined=np.int64(1))
        client.feedback_batch([(slate, 1), ClickReport(slate, clicks=[]), ClickReport("u", 0, examined=2)])
    assert sent == [
        {"candidates": ["a"], "context": [1, 0.5], "at_most": {"tea": 2}, "features": [[1, 0]]},
        {"token": "t", "clicks": [2, 0], "examined": 3},
        {"token": "t", "click": None, "examined": 1},
        {"feedback": [
            {"token": "t", "click": 1},
            {"token": "t", "clicks": []},
            {"token": "u", "click": 0, "examined": 2},
        ]},
    ]  # fmt: skip


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
