"""The Python clients: what they send, what they send again, and what comes of it; both by the same rules.

That calls do what they do at every other door is checked in `tests/doors`.
"""

import asyncio
import json

import httpx
import numpy as np
import pytest

from firstclick import FirstclickError, InvalidInput
from firstclick.client import AsyncClient, Client
from firstclick.client.flow import Patience
from firstclick.serve import Item, Receipt, ServedSlate
from tests.support.serving import ITEMS, a_server

URL = "http://127.0.0.1:8000"
# Entries that a client sends at once.
MOST = 1000
ACCEPTED = httpx.Response(201, json={"status": "accepted", "seq": 9})


class Waits:
    """A clock that only moves by waiting."""

    def __init__(self):
        self.now = 1000.0
        self.pauses = []

    def sleep(self, seconds):
        self.now += seconds
        self.pauses.append(seconds)

    async def async_sleep(self, seconds):
        self.sleep(seconds)


class Awaited:
    """An AsyncClient whose methods are awaited for us, so that one test can ask both kinds."""

    def __init__(self, *args, **kwargs):
        self._runner = asyncio.Runner()
        self._client = AsyncClient(*args, **kwargs)

    def __getattr__(self, name):
        return lambda *args, **kwargs: self._runner.run(getattr(self._client, name)(*args, **kwargs))

    def __enter__(self):
        self._runner.run(self._client.__aenter__())
        return self

    def __exit__(self, *exception):
        self._runner.run(self._client.__aexit__(None, None, None))
        self._runner.close()


@pytest.fixture(params=[Client, AsyncClient])
def kind(request):
    return request.param


def connected(kind, address, model="shop", *, waits=None, **how):
    """A client of either kind."""
    if waits is not None:
        how["sleep"] = waits.sleep if kind is Client else waits.async_sleep
    return (Client if kind is Client else Awaited)(address, model=model, **how)


class Script:
    """Answers in their order, the last one for ever; an exception is raised instead of answering."""

    def __init__(self, *answers, seconds_each=0.0):
        self.answers = list(answers)
        self.requests = []
        self.waits = Waits()
        self._seconds_each = seconds_each

    def __call__(self, request):
        self.requests.append(request)
        self.waits.now += self._seconds_each
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return httpx.Response(answer.status_code, headers=answer.headers, content=answer.content)

    @property
    def bodies(self):
        return [json.loads(request.content) for request in self.requests]

    def client(self, kind, *, chance=1.0, attempts=8, seconds=30.0):
        waits = self.waits
        patience = Patience(
            attempts=attempts, seconds=seconds, clock=lambda: waits.now, chance=lambda: chance
        )
        transport = httpx.MockTransport(self)
        return connected(kind, URL, key="fc_secret", patience=patience, transport=transport, waits=waits)


def refused(code, status, **headers):
    body = {"error": {"status": status, "message": f"the sentence of {status}"}}
    return httpx.Response(code, json=body, headers=headers)


def error_of(call, *args):
    """The error that a call raises."""
    with pytest.raises(FirstclickError) as caught:
        call(*args)
    return caught.value


def test_models_are_created_forked_moved_to_files_and_rolled_back(kind, tmp_path):
    with a_server(tmp_path) as server, connected(kind, server.address) as shop:
        assert shop.feedback(shop.recommend(), click=1) == Receipt("accepted", 2)
        assert shop.put_items([Item("mate", "Mate", "leaves", np.array([0.5, 0.5]))]) == 3
        assert shop.withdraw_items(["tea"]) == 4
        description = shop.describe()
        assert [description[fact] for fact in ("name", "seq", "slates", "items")] == ["shop", 4, 1, 4]
        assert shop.models() == [description]
        forked = shop.fork("cascade-lin-ts:sigma=2", "shop2")
        assert (forked["name"], forked["seq"], forked["slates"]) == ("shop2", 4, 1)
        file = tmp_path / "shop.model"
        shop.export_to(file)
        assert file.read_bytes() == shop.export()
        assert error_of(shop.import_from, file).status == "conflict"
        with connected(kind, server.address, model="copy") as copy:
            assert copy.import_from(file)["seq"] == 4
            assert copy.audit()["digest"] == shop.audit()["digest"]
            assert copy.audit()["equal"] is True
            file.write_bytes(file.read_bytes()[:-1])
        with connected(kind, server.address, model="none") as none:
            assert "cut off" in str(error_of(none.import_from, file))
            assert error_of(none.export_to, tmp_path / "none.model").status == "unknown"
            assert not (tmp_path / "none.model").exists()
        assert shop.roll_back(1) == 5
        assert "tea" in shop.recommend(candidates=["tea"]).items
        with connected(kind, server.address, model="bar") as bar:
            assert bar.create(policy="random", k=1, items=[Item(1), Item("two")], seed=3)["seed"] == 3
            assert [model["name"] for model in bar.models()] == ["bar", "copy", "shop", "shop2"]


def test_a_list_and_a_trial(kind, tmp_path):
    with a_server(tmp_path) as server, connected(kind, server.address) as shop:
        assert error_of(shop.baseline).status == "unknown"
        assert shop.set_baseline(["tea", 7, "cake"], 0.2) == 2
        assert shop.start_trial({"policy": 0.5, "baseline": 0.5}, stop_if_worse=True, last_pages=500) == 3
        for number in range(8):
            slate = shop.recommend(unit=f"user {number}" if number % 2 else number, explain=number > 4)
            assert (slate.without_exploring is not None) == (number > 4)
            shop.feedback(slate, click=0)
        assert shop.baseline()["pages"] == 8
        assert shop.change_trial_shares({"policy": 0.9, "baseline": 0.1}) == 12
        report = shop.trial_report()
        assert (report["running"], sum(arm["pages"] for arm in report["answer"]["arms"])) == (True, 8)
        assert shop.stop_trial(show="baseline") == 13
        assert shop.recommend(unit=1).reasons == ("baseline",) * 3
        assert shop.remove_baseline() == 14


def test_one_connection_serves_many_calls(kind, tmp_path):
    with a_server(tmp_path) as server, connected(kind, server.address) as shop:
        connections = []
        for _ in range(4):
            shop.feedback(shop.recommend(), click=None)
            connections.append({*server._uvicorn.server_state.connections})
        assert len(connections[0]) == 1
        assert connections == connections[:1] * 4


def test_a_token_is_sent_again_after_any_failure_that_leaves_it_open(kind):
    script = Script(
        httpx.ConnectError("refused"),
        httpx.ReadTimeout("slow"),
        httpx.RemoteProtocolError("cut"),
        refused(503, "unavailable"),
        httpx.Response(502, text="<h1>Bad Gateway</h1>"),
        refused(429, "overloaded"),
        ACCEPTED,
    )
    with script.client(kind) as shop:
        assert shop.feedback("token", click=2) == Receipt("accepted", 9)
    assert script.bodies == [{"token": "token", "click": 2}] * 7
    assert {str(request.url) for request in script.requests} == {f"{URL}/v1/models/shop/feedback"}
    assert {request.headers["authorization"] for request in script.requests} == {"Bearer fc_secret"}


def test_pauses_grow_up_to_a_limit_and_are_not_all_the_same(kind):
    for chance, factor in ((1.0, 1.0), (0.0, 0.5)):
        script = Script(*[refused(503, "unavailable")] * 8, ACCEPTED)
        with script.client(kind, chance=chance, attempts=9) as shop:
            shop.feedback("token", None)
        pauses = [factor * pause for pause in (0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0)]
        assert script.waits.pauses == pytest.approx(pauses)


def test_the_seconds_of_retry_after_are_added_to_the_pause_up_to_the_patience(kind):
    for retry_after, pause in (("7", 7.1), ("Wed, 21 Oct 2026 07:28:00 GMT", 0.1)):
        script = Script(refused(503, "unavailable", **{"Retry-After": retry_after}), ACCEPTED)
        with script.client(kind) as shop:
            shop.feedback("token", None)
        assert script.waits.pauses == [pytest.approx(pause)]
    script = Script(refused(429, "overloaded", **{"Retry-After": "31"}), ACCEPTED)
    with script.client(kind) as shop:
        error = error_of(shop.feedback, "token", None)
    assert (error.status, error.retry_after) == ("overloaded", 31)
    assert script.waits.pauses == []


def test_a_call_ends_when_its_time_or_its_attempts_are_over(kind):
    script = Script(httpx.ReadTimeout("slow"), seconds_each=4.0)
    with script.client(kind, attempts=100, seconds=30.0) as shop:
        began = script.waits.now
        error = error_of(shop.feedback, "token", None)
    assert error.status == "unavailable"
    assert f"{URL} in 6 attempts (timed out" in str(error)
    assert len(script.requests) == 6
    assert script.waits.now - began <= 30.0 + 4.0
    script = Script(refused(503, "unavailable"))
    with script.client(kind, attempts=3) as shop:
        assert "the sentence of unavailable" in str(error_of(shop.feedback, "token", None))
    assert (len(script.requests), len(script.waits.pauses)) == (3, 2)


@pytest.mark.parametrize(
    ("code", "status"),
    [(401, "unauthorised"), (403, "forbidden"), (404, "unknown"), (409, "conflict"), (410, "expired"),
     (413, "too-large"), (422, "malformed"), (422, "late"), (503, "not-served"), (500, "failed")],
)  # fmt: skip
def test_a_refusal_is_raised_as_its_class_and_not_sent_again(kind, code, status):
    script = Script(refused(code, status))
    with script.client(kind) as shop:
        error = error_of(shop.feedback, "token", None)
    assert error.status == (status if code != 500 else "unexpected")
    assert type(error).__name__.lower() == error.status.replace("-", "")
    assert f"the sentence of {status}" in str(error)
    assert "fc_secret" not in str(error)
    assert len(script.requests) == 1


def test_calls_that_are_safe_to_repeat_are_sent_again_and_others_are_not(kind):
    again = [
        lambda shop: shop.recommend(),
        lambda shop: shop.put_items(ITEMS),
        lambda shop: shop.withdraw_items(["tea"]),
        lambda shop: shop.describe(),
        lambda shop: shop.models(),
        lambda shop: shop.audit(),
        lambda shop: shop.export(),
        lambda shop: shop.set_baseline(["tea"]),
        lambda shop: shop.change_trial_shares({"policy": 1.0}),
    ]
    once = [
        lambda shop: shop.start_trial(),
        lambda shop: shop.stop_trial(),
        lambda shop: shop.remove_baseline(),
        lambda shop: shop.roll_back(2),
        lambda shop: shop.create(policy="random", k=1, items=ITEMS),
    ]
    answer = {"items": [], "scores": [], "token": "t", "seq": 1, "models": []}
    for call in again + once:
        script = Script(httpx.ReadError("cut"), httpx.Response(200, json=answer))
        with script.client(kind) as shop:
            if call in once:
                assert "not known whether" in str(error_of(call, shop))
            else:
                call(shop)
        assert len(script.requests) == (1 if call in once else 2)
        assert len({request.content for request in script.requests}) == 1


def test_a_request_has_an_id_only_if_it_was_given_one(kind):
    slate = httpx.Response(200, json={"items": ["a"], "scores": [None], "token": "t", "seq": 1})
    script = Script(httpx.ReadError("cut"), slate)
    with script.client(kind) as shop:
        assert shop.recommend() == ServedSlate(["a"], [None], "t", 1)
        shop.recommend(request_id="mine")
    assert [body.get("request_id") for body in script.bodies] == [None, None, "mine"]


def test_of_a_batch_only_the_entries_that_the_server_could_not_take_are_sent_again(kind):
    def results(*outcomes):
        return httpx.Response(200, json={"results": list(outcomes)})

    busy = {"status": "overloaded", "message": "too much waits"}
    script = Script(
        results({"status": "accepted", "seq": 1}, busy, {"status": "expired", "message": "old"}, busy),
        httpx.ReadError("cut"),
        results({"status": "duplicate", "seq": 2}, busy),
        results({"status": "accepted", "seq": 3}),
    )
    with script.client(kind) as shop:
        first, second, third, fourth = shop.feedback_batch([(token, None) for token in "abcd"])
    assert (first, fourth) == (Receipt("accepted", 1), Receipt("accepted", 3))
    assert (second, third.status) == (Receipt("duplicate", 2), "expired")
    sent = ["".join(entry["token"] for entry in body["feedback"]) for body in script.bodies]
    assert sent == ["abcd", "bd", "bd", "d"]


def test_a_long_batch_goes_in_parts_and_keeps_what_is_known_when_the_server_goes(kind):
    whole = {"results": [{"status": "accepted", "seq": 1}] * MOST}
    script = Script(httpx.Response(200, json=whole), httpx.ConnectError("refused"))
    with script.client(kind, attempts=2) as shop:
        outcomes = shop.feedback_batch([("t", None)] * (2 * MOST + 5))
    assert outcomes[:MOST] == [Receipt("accepted", 1)] * MOST
    assert [outcome.status for outcome in outcomes[MOST:]] == ["unavailable"] * (MOST + 5)
    assert [len(body["feedback"]) for body in script.bodies] == [MOST] * 3
    with Script(httpx.Response(200, json={"results": []})).client(kind) as shop:
        assert error_of(shop.feedback_batch, [("t", None)]).status == "unexpected"
        assert shop.feedback_batch([]) == []


@pytest.mark.parametrize(
    "content", [b"<html>", b"[]", b'{"status": "accepted"', b"\xff", b'{"seq": 1}', b'{"status": "lost"}']
)
def test_an_answer_of_another_program_is_not_a_receipt(kind, content):
    script = Script(httpx.Response(200, content=content))
    with script.client(kind) as shop:
        assert error_of(shop.feedback, "token", None).status == "unexpected"
    assert len(script.requests) == 1


def test_a_model_name_and_a_path_before_ours_are_kept(kind):
    script = Script(httpx.Response(200, json={}))
    transport = httpx.MockTransport(script)
    with connected(kind, "http://host/shops/", model="a b/c", transport=transport) as shop:
        shop.describe()
    assert script.requests[0].url.raw_path == b"/shops/v1/models/a%20b%2Fc"


@pytest.mark.parametrize(
    ("argument", "value"),
    [("url", "127.0.0.1:8000"), ("url", "http://[::1"), ("timeout", 0), ("attempts", 0), ("patience", 0.0),
     ("key", "fc_\nx")],
)  # fmt: skip
def test_wrong_settings_are_refused_at_once(kind, argument, value):
    with pytest.raises(InvalidInput) as caught:
        kind(**{"url": URL, argument: value})
    assert caught.value.argument == argument
    assert "fc_\nx" not in str(caught.value)


def test_calls_that_cannot_be_sent_are_refused_with_their_argument(kind):
    """Of numbers that JSON would bend; `tests/doors` has more values that JSON lacks."""
    script = Script(ACCEPTED)
    dates = np.array(["2026-11-16", "2026-11-17"], "datetime64[ns]")
    with script.client(kind) as shop:
        assert error_of(shop.feedback, "token", object()).argument == "click"
        assert error_of(shop.put_items, [Item(10**5000)]).argument == "put"
        for features in ([1, 10**400], dates, np.ma.array([1.0], mask=[1])):
            assert error_of(shop.put_items, [Item("a", features=features)]).argument == "features"
    nameless = connected(kind, URL, model=None, transport=httpx.MockTransport(script))
    with nameless:
        assert error_of(nameless.recommend).argument == "model"
    assert script.requests == []
