"""The Python clients: what they send, what they send again, and what comes of it; both by the same rules."""

import asyncio
import json
import socket
import threading
from contextlib import contextmanager

import httpx
import numpy as np
import pytest

from firstclick.catalog.item import Item
from firstclick.client.client import AsyncClient, Client
from firstclick.client.flow import KIND_OF, Patience, Unexpected
from firstclick.errors import InvalidInput
from firstclick.serve.service import ServedSlate
from firstclick.wire import errors
from firstclick.wire.errors import Conflict, Overloaded, Refused, Unavailable
from firstclick.wire.feedback import Receipt
from firstclick.wire.limits import MOST_ENTRIES
from tests.support.serving import ITEMS, a_server

URL = "http://127.0.0.1:8000"
DATES = np.array(["2026-11-16", "2026-11-17"], "datetime64[ns]")
MASKED = np.ma.array([1.0, 2.0], mask=[0, 1])
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


@pytest.fixture(params=["Client", "AsyncClient"])
def kind(request):
    return str(request.param)


def connected(kind, address, model="shop", **how):
    """A client of either kind."""
    return (Client if kind == "Client" else Awaited)(address, model=model, **how)


class Script:
    """Answers in their order, the last one for ever; an exception is raised instead of answering."""

    def __init__(self, *answers, seconds_each=0.0):
        self.answers = list(answers)
        self.asked = []
        self.waits = Waits()
        self._seconds_each = seconds_each

    def __call__(self, request):
        self.asked.append(request)
        self.waits.now += self._seconds_each
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return httpx.Response(answer.status_code, headers=answer.headers, content=answer.content)

    @property
    def bodies(self):
        return [json.loads(request.content) for request in self.asked]

    def client(self, kind, *, chance=1.0, attempts=8, seconds=30.0):
        waits = self.waits
        patience = Patience(
            attempts=attempts, seconds=seconds, clock=lambda: waits.now, chance=lambda: chance
        )
        return connected(
            kind,
            URL,
            key="fc_secret",
            patience=patience,
            transport=httpx.MockTransport(self),
            sleep=waits.sleep if kind == "Client" else waits.async_sleep,
        )


def refused(code, status, **headers):
    body = {"error": {"status": status, "message": f"the sentence of {status}"}}
    return httpx.Response(code, json=body, headers=headers)


# With a real server


def test_everything_that_a_client_can_do(kind, tmp_path):
    with a_server(tmp_path) as server, connected(kind, server.address) as shop:
        shown = shop.recommend(k=2, candidates=["tea", 7, "cake"], exclude=["cake"], pinned={1: "espresso"})
        assert isinstance(shown, ServedSlate)
        assert shown.items[1] == "espresso"
        assert shown.items[0] in ("tea", 7)
        assert len(shown.scores) == 2
        assert shown.skipped_pins == ()
        assert shop.recommend(pinned={0: "tea"}, exclude=["tea"]).skipped_pins == ("tea",)
        assert shop.feedback(shown, click=1) == Receipt("accepted", 2)
        assert shop.feedback(shown.token, np.int64(1)) == Receipt("duplicate", 2)
        with pytest.raises(Conflict, match="token has other feedback already, as event 2"):
            shop.feedback(shown, click=None)
        first, second, third = shop.feedback_batch([(shop.recommend(), None), (shown, 0), ("forged", 0)])
        assert first == Receipt("accepted", 3)
        assert isinstance(second, Conflict)
        assert isinstance(third, errors.Unknown)
        assert "send back the token that recommend gave" in str(third)
        assert shop.put_items([Item("mate", "Mate", "leaves", np.array([0.5, 0.5]))]) == 4
        assert shop.withdraw_items(["tea"]) == 5
        assert set(shop.recommend(k=3).items) <= {"espresso", 7, "cake", "mate"}
        told = shop.describe()
        assert (told["name"], told["seq"], told["slates"], told["items"]) == ("shop", 5, 2, 4)
        assert shop.models() == [told]
        assert shop.audit()["equal"] is True
        assert len(shop.export()) > 500
        forked = shop.fork("cascade-lin-ts:sigma=2", "shop2")
        assert (forked["name"], forked["seq"], forked["slates"]) == ("shop2", 5, 2)
        assert [one["name"] for one in shop.models()] == ["shop", "shop2"]
        shop.export_to(tmp_path / "shop.model")
        assert (tmp_path / "shop.model").read_bytes() == shop.export()
        with pytest.raises(Conflict, match="name 'shop' is taken by another model"):
            shop.import_from(tmp_path / "shop.model")
        with connected(kind, server.address, model="copy") as copy:
            assert copy.import_from(tmp_path / "shop.model")["seq"] == 5
            assert copy.audit()["digest"] == shop.audit()["digest"]
            (tmp_path / "cut.model").write_bytes((tmp_path / "shop.model").read_bytes()[:-1])
            with (
                connected(kind, server.address, model="cut") as cut,
                pytest.raises(errors.Malformed, match="the file was cut off: its end is missing"),
            ):
                cut.import_from(tmp_path / "cut.model")
            with pytest.raises(errors.Unknown), connected(kind, server.address, model="none") as none:
                none.export_to(tmp_path / "none.model")
            assert not (tmp_path / "none.model").exists()
        assert shop.roll_back(1) == 6
        assert "tea" in shop.recommend(candidates=["tea"]).items
        with pytest.raises(Conflict, match="shop"):
            shop.create(policy="cascade-lin-ts", k=1, items=ITEMS)


def test_a_list_and_a_trial(kind, tmp_path):
    with a_server(tmp_path) as server, connected(kind, server.address) as shop:
        with pytest.raises(errors.Malformed, match="arms have 'baseline', and model 'shop' has none"):
            shop.start_trial()
        with pytest.raises(errors.Unknown, match="baseline is missing: model 'shop' has none; PUT one"):
            shop.baseline()
        assert shop.set_baseline(["tea", 7, "cake"], 0.2) == 2
        with pytest.raises(errors.Malformed, match="must name items of the catalog, got 'x'"):
            shop.set_baseline(["tea", 7, "x"])
        assert shop.start_trial({"policy": 0.5, "baseline": 0.5}, stop_if_worse=True, last_pages=500) == 3
        for number in range(8):
            shown = shop.recommend(unit=f"user {number}" if number % 2 else number, explain=number > 4)
            assert set(shown.reasons) in ({"floor"}, {"policy"}, {"holdout"})
            assert (shown.without_exploring is not None) == (number > 4)
            shop.feedback(shown, click=0)
        for unit in ("", "x" * 257, True, 2.5):
            with pytest.raises((errors.Malformed, InvalidInput), match="unit"):
                shop.recommend(unit=unit)
        assert shop.baseline()["pages"] == 8
        assert shop.change_trial_shares({"policy": 0.9, "baseline": 0.1}) == 12
        told = shop.trial_report()
        assert (told["running"], sum(arm["pages"] for arm in told["answer"]["arms"])) == (True, 8)
        with pytest.raises(Conflict, match="has a running trial"):
            shop.start_trial()
        with pytest.raises(Conflict, match="compares with it; stop the trial first"):
            shop.remove_baseline()
        assert shop.stop_trial(show="baseline") == 13
        assert shop.recommend(unit=1).reasons == ("baseline",) * 3
        assert shop.remove_baseline() == 14


def test_a_model_is_created_and_listed(kind, tmp_path):
    with a_server(tmp_path) as server, connected(kind, server.address, model="bar") as bar:
        assert bar.create(policy="random", k=1, items=[Item(1), Item("two")], seed=3)["seed"] == 3
        assert [one["name"] for one in bar.models()] == ["bar", "shop"]
        assert set(bar.recommend().items) <= {1, "two"}


class CuttingProxy:
    """Hands requests on to a server, and cuts the connection in place of the first `n` answers."""

    def __init__(self, server, n):
        self._server = httpx.URL(server)
        self._to_cut = n
        self.n_connections = 0
        self.n_requests = 0
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def _accept(self):
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self.n_connections += 1
            self._threads.append(threading.Thread(target=self._relay, args=(client,)))
            self._threads[-1].start()

    def _relay(self, client):
        with client, socket.create_connection((self._server.host, self._server.port or 80)) as server:
            while request := _whole(client):
                self.n_requests += 1
                server.sendall(request)
                answer = _whole(server)
                if self._to_cut:
                    self._to_cut -= 1
                    return
                client.sendall(answer)

    def close(self):
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join()


def _whole(source):
    """A request or an answer with its body; nothing when the other side has closed."""
    heard = b""
    while True:
        head, end, body = heard.partition(b"\r\n\r\n")
        lengths = [line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")]
        if end and len(body) >= (int(lengths[0].split(b":")[1]) if lengths else 0):
            return heard
        more = source.recv(1 << 16)
        if not more:
            return b""
        heard += more


@contextmanager
def cut(folder, n):
    with a_server(folder) as server:
        proxy = CuttingProxy(server.address, n)
        try:
            yield proxy
        finally:
            proxy.close()


def test_feedback_whose_answer_was_lost_is_sent_again_and_counted_once(kind, tmp_path):
    with cut(tmp_path, 0) as proxy, connected(kind, proxy.address, sleep=_no_sleep(kind)) as shop:
        shown = shop.recommend()
        proxy._to_cut = 2
        # The first two were taken, and nobody heard of it.
        assert shop.feedback(shown, click=0) == Receipt("duplicate", 2)
        assert proxy.n_requests == 4
        told = shop.describe()
        assert (told["slates"], told["clicks"], told["seq"]) == (1, 1, 2)


def test_one_connection_serves_many_calls(kind, tmp_path):
    with cut(tmp_path, 0) as proxy, connected(kind, proxy.address) as shop:
        for _ in range(5):
            shop.feedback(shop.recommend(), click=None)
        assert (proxy.n_connections, proxy.n_requests) == (1, 10)


def _no_sleep(kind):
    waits = Waits()
    return waits.sleep if kind == "Client" else waits.async_sleep


# The rules


def test_the_same_token_is_sent_again_after_whatever_leaves_it_open(kind):
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
    assert {str(request.url) for request in script.asked} == {f"{URL}/v1/models/shop/feedback"}
    assert {request.headers["authorization"] for request in script.asked} == {"Bearer fc_secret"}


def test_pauses_grow_up_to_a_limit_and_are_not_all_the_same(kind):
    longest, shortest = [
        Script(*[refused(503, "unavailable")] * 8, ACCEPTED) for _ in range(2)
    ]  # fmt: skip
    for script, chance in ((longest, 1.0), (shortest, 0.0)):
        with script.client(kind, chance=chance, attempts=9) as shop:
            shop.feedback("token", None)
    assert longest.waits.pauses == pytest.approx([0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0])
    assert shortest.waits.pauses == pytest.approx([pause / 2 for pause in longest.waits.pauses])


@pytest.mark.parametrize("code", [429, 503])
def test_retry_after_is_waited_for(kind, code):
    status = "overloaded" if code == 429 else "unavailable"
    script = Script(refused(code, status, **{"Retry-After": "7"}), ACCEPTED)
    with script.client(kind) as shop:
        shop.feedback("token", None)
    (pause,) = script.waits.pauses
    assert 7 < pause < 7.2


def test_a_time_to_wait_beyond_patience_is_not_waited_for(kind):
    script = Script(refused(429, "overloaded", **{"Retry-After": "31"}), ACCEPTED)
    with script.client(kind) as shop, pytest.raises(Overloaded, match="the sentence of overloaded") as found:
        shop.feedback("token", None)
    assert found.value.retry_after == 31
    assert script.waits.pauses == []


def test_a_date_in_retry_after_is_left_to_our_own_pauses(kind):
    script = Script(httpx.Response(503, headers={"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"}), ACCEPTED)
    with script.client(kind) as shop:
        assert shop.feedback("token", None).status == "accepted"
    assert script.waits.pauses == [pytest.approx(0.1)]


def test_it_gives_up_when_the_time_is_over(kind):
    script = Script(httpx.ReadTimeout("slow"), seconds_each=4.0)
    with script.client(kind, attempts=100, seconds=30.0) as shop:
        began = script.waits.now
        with pytest.raises(Unavailable, match=r"no answer from .*127\.0\.0\.1.* in 6 attempts \(timed out"):
            shop.feedback("token", None)
    assert len(script.asked) == 6
    assert script.waits.now - began <= 30.0 + 4.0


def test_it_gives_up_after_so_many_attempts(kind):
    script = Script(refused(503, "unavailable"))
    with script.client(kind, attempts=3) as shop, pytest.raises(Unavailable, match="the sentence of"):
        shop.feedback("token", None)
    assert len(script.asked) == 3
    assert len(script.waits.pauses) == 2


@pytest.mark.parametrize(
    ("code", "status"),
    [(401, "unauthorised"), (403, "forbidden"), (404, "unknown"), (409, "conflict"), (410, "expired"),
     (413, "too-large"), (422, "malformed"), (415, "unsupported-media"), (421, "misdirected"),
     (500, "failed"), (503, "not-served")],
)  # fmt: skip
def test_what_the_server_refuses_is_raised_and_not_sent_again(kind, code, status):
    script = Script(refused(code, status))
    with script.client(kind) as shop, pytest.raises(Refused, match=f"the sentence of {status}") as found:
        shop.feedback("token", None)
    assert type(found.value) is KIND_OF.get(status, Unexpected)
    if status in KIND_OF:
        assert found.value.code == code
    assert len(script.asked) == 1
    assert "fc_secret" not in str(found.value)


def test_a_refusal_knows_the_field_that_it_is_about(kind):
    error = {"status": "malformed", "message": "k must be at least 1, got 0", "field": "k"}
    script = Script(httpx.Response(422, json={"error": error}))
    with (
        script.client(kind) as shop,
        pytest.raises(errors.Malformed, match=r"^k must be at least 1, got 0$") as found,
    ):
        shop.recommend(k=0)
    assert found.value.argument == "k"


def test_every_kind_of_error_has_its_class():
    expected = [
        Conflict, errors.Unknown, errors.Expired, errors.Malformed, errors.TooLarge, Overloaded, Unavailable,
        errors.Forbidden, errors.NotServed, errors.Unauthorised, errors.Late,
    ]  # fmt: skip
    assert {kind.status: kind for kind in expected} == KIND_OF


def test_reading_and_changing_items_are_sent_again_creating_and_rolling_back_are_not(kind):
    calls = [
        (lambda shop: shop.recommend(), {"items": [], "scores": [], "token": "t", "seq": 1}, True),
        (lambda shop: shop.put_items(ITEMS), {"seq": 3}, True),
        (lambda shop: shop.withdraw_items(["tea"]), {"seq": 3}, True),
        (lambda shop: shop.describe(), {}, True),
        (lambda shop: shop.models(), {"models": []}, True),
        (lambda shop: shop.audit(), {}, True),
        (lambda shop: shop.export(), {}, True),
        (lambda shop: shop.set_baseline(["tea"]), {"seq": 3}, True),
        (lambda shop: shop.change_trial_shares({"policy": 1.0}), {"seq": 3}, True),
        (lambda shop: shop.start_trial(), {"seq": 3}, False),
        (lambda shop: shop.stop_trial(), {"seq": 3}, False),
        (lambda shop: shop.remove_baseline(), {"seq": 3}, False),
        (lambda shop: shop.roll_back(2), {"seq": 3}, False),
        (lambda shop: shop.create(policy="random", k=1, items=ITEMS), {}, False),
    ]
    for call, answer, again in calls:
        script = Script(httpx.ReadError("cut"), httpx.Response(200, json=answer))
        with script.client(kind) as shop:
            if again:
                call(shop)
            else:
                with pytest.raises(Unavailable, match=r"not known whether \w+ /v1/models.* was done"):
                    call(shop)
        assert len(script.asked) == 1 + again
        assert len({request.content for request in script.asked}) == 1


def test_a_recommendation_is_asked_again_and_has_a_request_id_only_if_it_was_given_one(kind):
    slate = httpx.Response(200, json={"items": ["a"], "scores": [None], "token": "t", "seq": 1})
    script = Script(httpx.ReadError("cut"), slate)
    with script.client(kind) as shop:
        assert shop.recommend() == ServedSlate(["a"], [None], "t", 1)
        shop.recommend()
        shop.recommend(request_id="mine")
    assert [body.get("request_id") for body in script.bodies] == [None, None, None, "mine"]


def test_of_a_batch_only_what_the_server_could_not_take_is_sent_again(kind):
    def results(*told):
        return httpx.Response(200, json={"results": list(told)})

    busy = {"status": "overloaded", "message": "too much waits"}
    script = Script(
        results({"status": "accepted", "seq": 1}, busy, {"status": "expired", "message": "old"}, busy),
        httpx.ReadError("cut"),
        results({"status": "duplicate", "seq": 2}, busy),
        results({"status": "accepted", "seq": 3}),
    )
    with script.client(kind) as shop:
        first, second, third, fourth = shop.feedback_batch([(token, None) for token in "abcd"])
    assert (first, second, fourth) == (
        Receipt("accepted", 1),
        Receipt("duplicate", 2),
        Receipt("accepted", 3),
    )
    assert type(third) is errors.Expired
    sent = ["".join(entry["token"] for entry in body["feedback"]) for body in script.bodies]
    assert sent == ["abcd", "bd", "bd", "d"]


def test_a_long_batch_goes_in_parts_and_keeps_what_is_known_when_the_server_goes(kind):
    whole = {"results": [{"status": "accepted", "seq": 1}] * MOST_ENTRIES}
    script = Script(httpx.Response(200, json=whole), httpx.ConnectError("refused"))
    with script.client(kind, attempts=2) as shop:
        outcomes = shop.feedback_batch([("t", None)] * (2 * MOST_ENTRIES + 5))
    assert outcomes[:MOST_ENTRIES] == [Receipt("accepted", 1)] * MOST_ENTRIES
    assert {type(outcome) for outcome in outcomes[MOST_ENTRIES:]} == {Unavailable}
    assert len(outcomes) == 2 * MOST_ENTRIES + 5
    assert [len(body["feedback"]) for body in script.bodies] == [MOST_ENTRIES] * 3
    with Script(httpx.Response(200, json={"results": []})).client(kind) as shop:
        with pytest.raises(Unexpected):
            shop.feedback_batch([("t", None)])
        assert shop.feedback_batch([]) == []


@pytest.mark.parametrize(
    "content", [b"<html>", b"[]", b'{"status": "accepted"', b"\xff", b'{"seq": 1}', b'{"status": "lost"}']
)
def test_an_answer_of_something_else_is_not_taken_for_a_receipt(kind, content):
    script = Script(httpx.Response(200, content=content))
    with script.client(kind) as shop, pytest.raises(Unexpected, match="answered"):
        shop.feedback("token", None)
    assert len(script.asked) == 1


def test_a_model_name_and_a_path_before_ours_are_kept(kind):
    script = Script(httpx.Response(200, json={}))
    transport = httpx.MockTransport(script)
    with connected(kind, "http://host/shops/", model="a b/c", transport=transport) as shop:
        shop.describe()
    assert script.asked[0].url.raw_path == b"/shops/v1/models/a%20b%2Fc"


@pytest.mark.parametrize(
    ("how", "sentence"),
    [({"url": "127.0.0.1:8000"}, "url must be the address of a server"),
     ({"url": "http://[::1"}, "url must be the address"),
     ({"timeout": 0}, "timeout must be above 0"),
     ({"attempts": 0}, "attempts must be at least 1"),
     ({"patience": 0.0}, "patience must be above 0"),
     ({"key": "fc_\nx"}, "key must be an API key")],
)  # fmt: skip
def test_what_cannot_be_is_refused_at_once(kind, how, sentence):
    with pytest.raises(InvalidInput, match=sentence) as found:
        (Client if kind == "Client" else AsyncClient)(**{"url": URL} | how)
    assert "fc_" not in str(found.value) or "fc_..." in str(found.value)


def test_calls_that_cannot_be_made_say_why(kind):
    script = Script(ACCEPTED)
    nameless = connected(kind, URL, model=None, transport=httpx.MockTransport(script))
    with nameless, pytest.raises(InvalidInput, match="model is missing"):
        nameless.recommend()
    with script.client(kind) as shop, pytest.raises(InvalidInput, match="click must have numbers and texts"):
        shop.feedback("token", object())
    assert script.asked == []


@pytest.mark.parametrize(
    ("argument", "call"),
    [
        ("put", lambda shop: shop.put_items([Item(10**5000)])),
        ("candidates", lambda shop: shop.recommend(candidates=[10**5000])),
        ("features", lambda shop: shop.put_items([Item("a", features=[1, 10**400])])),
        ("features", lambda shop: shop.put_items([Item("a", features=DATES)])),
        ("features", lambda shop: shop.put_items([Item("a", features=MASKED)])),
        ("context", lambda shop: shop.recommend(context=DATES)),
        ("context", lambda shop: shop.recommend(context=DATES[0])),
        ("context", lambda shop: shop.recommend(context=MASKED)),
        ("features", lambda shop: shop.recommend(features=[DATES])),
    ],
)
def test_values_that_json_would_bend_are_not_sent(kind, argument, call):
    script = Script(ACCEPTED)
    with script.client(kind) as shop, pytest.raises(InvalidInput) as caught:
        call(shop)
    assert caught.value.argument == argument
    assert script.asked == []
