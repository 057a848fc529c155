"""Five ways to one model: what is true of a model is true at every door."""

import asyncio
import hashlib
from contextlib import contextmanager
from functools import partial
from itertools import count
from typing import Any, NamedTuple

import httpx

from firstclick import Catalog, DuplicateFeedback, Ranker
from firstclick.client import AsyncClient, Client
from firstclick.client.flow import KIND_OF, encoded
from firstclick.kernels.mixed import BETAS, STAGE
from firstclick.not_given import NOT_GIVEN
from firstclick.serve import ClickReport, open_service
from firstclick.serve.config import Settings
from firstclick.serve.http.app import App
from firstclick.serve.http.server import Server
from firstclick.serve.log.token import nonce_of_request, number_in
from firstclick.wire.errors import Refused
from tests.support.shop import GROUPS, IDS, K, items, table_of

FACTS = ("items", "withdrawn", "unavailable", "seq", "slates", "clicks", "explore", "no_click_after")
numbers = count(1)


class Slate(NamedTuple):
    items: list[Any]
    handle: Any
    skipped_pins: tuple[Any, ...] = ()
    explored: bool = False
    reasons: tuple[str, ...] = ()
    scores: tuple[Any, ...] = ()


def slate_of(slate, handle):
    return Slate(
        list(slate.items), handle, tuple(slate.skipped_pins), bool(slate.explored), tuple(slate.reasons)
    )


def status_of(error):
    """The word for the kind of an error, as HTTP answers it; the library's own errors are `malformed`."""
    return error.status if isinstance(error, Refused) else "malformed"


class RankerDoor:
    """A ranker, in a program."""

    name = "ranker"

    def __init__(self, site, *, policy="cascade-lin-ts", features=True, k=K, seed=5, **created):
        catalog = Catalog(IDS, table_of(features), groups=GROUPS)
        self.model = "shop"
        self.ranker = Ranker(catalog, k=k, policy=policy, seed=seed, **created)

    def close(self):
        pass

    def recommend(self, *, draw=None, **request):
        """The slate of this request; `draw` decides what is explored, for a door to the same model too."""
        if draw is not None:
            self.ranker.requests = number_in(nonce_of_request(f"draw {draw}"))
        slate = self.ranker.recommend(**request)
        return slate_of(slate, slate)._replace(explored=slate.explored is not None and slate.explored.drawn)

    def feedback(self, slate, **report):
        try:
            self.ranker.learn(slate, **report)
        except DuplicateFeedback:
            return "duplicate"
        return "accepted"

    def scores(self, ids, **request):
        """Return the policy's estimates for these items."""
        means, _ = self.ranker.estimates(ids, **request)
        return dict(zip(ids, map(float, means), strict=True))

    def put(self, put):
        known = [item for item in put if self.ranker.catalog.row_of(item.id) is not None]
        new = [item for item in put if item not in known]
        for change, some in ((self.ranker.change_items, known), (self.ranker.add_items, new)):
            if some:
                facts = values_of(some, "groups", "group")
                if self.ranker.catalog.n_features is not None:
                    facts |= values_of(some, "features")
                change([item.id for item in some], **facts)

    def withdraw(self, ids):
        self.ranker.withdraw_items(ids)

    def set_available(self, *, on=(), off=()):
        for ids, available in ((on, True), (off, False)):
            self.ranker.set_available(ids, available)

    def set_baseline(self, items, max_loss=0.05):
        self.ranker.set_baseline(items, max_loss)

    def warm_start(self, log, weight=None):
        return self.ranker.warm_start(log, weight=weight)

    def draw_as(self, other):
        """Draw from now on what the model behind the other door draws for the same requests."""
        ranker, key = self.ranker, other.service.model(other.model)._key
        ranker._records = {int(key): ranker._records[int(ranker._key)]}
        ranker._key, ranker._origins = key, frozenset({int(key)})

    def state(self):
        """All arrays that the policy has learned."""
        return {name: array.copy() for name, array in self.ranker.state._asdict().items()}

    def facts(self):
        """Return everything that a refused call must leave as it is."""
        catalog = self.ranker.catalog
        return {
            "items": len(catalog),
            "withdrawn": int(catalog.withdrawn.sum()),
            "unavailable": len(catalog.unavailable),
            "baseline": self.ranker.baseline,
            "digest": digest([*self.ranker.state, catalog.hidden, catalog.features]),
            "requests": self.ranker.requests,
        }


class ServiceDoor:
    """The service, in a program. What is not defined here is its method of the same name."""

    name = "service"

    def __init__(self, site, *, policy="cascade-lin-ts", features=True, k=K, seed=5, items=items, **created):
        self.site, self.service, self.k = site, site.service, k
        self.model = f"shop-{next(numbers)}"
        put = items(features) if callable(items) else items
        self.service.create(self.model, policy=policy, k=k, items=put, seed=seed, **created)

    def close(self):
        if self.model in self.service.names():
            self.service.delete(self.model)

    def call(self, method, *args, **kwargs):
        return getattr(self.service, method)(self.model, *args, **kwargs)

    def __getattr__(self, method):
        return partial(self.call, method)

    @staticmethod
    def handle_of(slate):
        return slate.token

    def recommend(self, **request):
        slate = self.call("recommend", **with_request_id(request))
        return slate_of(slate, self.handle_of(slate))._replace(scores=slate.scores)

    def feedback(self, slate, **report):
        return self.call("feedback", slate, **report).status

    def feedback_batch(self, entries):
        """The outcome of each entry of (handle, report): a status, or an error."""
        outcomes = self.call("feedback_batch", [ClickReport(slate, **report) for slate, report in entries])
        return [outcome if isinstance(outcome, Refused) else outcome.status for outcome in outcomes]

    def scores(self, ids, **request):
        """Return the scores, which come with slates of k items at most."""
        scores = {}
        for start in range(0, len(ids), self.k):
            part = ids[start : start + self.k]
            slate = self.recommend(candidates=part, k=len(part), **request)
            scores |= zip(slate.items, slate.scores, strict=True)
        return scores

    def put(self, put):
        self.call("put_items", put)

    def withdraw(self, ids):
        self.call("withdraw_items", ids)

    def change(self, put, withdraw):
        """Put and withdraw at once."""
        self.call("change_items", put=put, withdraw=withdraw)

    def warm_start(self, log, weight=None):
        return self.call("warm_start", log, weight=weight)[1]

    def warm_start_counts(self, counts, weight=None):
        return self.call("warm_start", counts=counts, weight=weight)[1]

    def create(self, name, **created):
        self.service.create(name, **created)

    def state(self):
        return {
            name: array.copy()
            for name, array in self.service.model(self.model).engine.state._asdict().items()
        }

    def describe(self):
        return self.service.model(self.model).describe()

    def facts(self):
        described = self.describe()
        return {name: described[name] for name in FACTS} | {"digest": self.service.model(self.model).digest()}


class HttpDoor(ServiceDoor):
    """The application, in process."""

    name = "http"

    def send(self, method, path, body=None, content=None):
        """The answer in JSON, or the error that it stands for."""
        answer = self.site.send(method, path, content if body is None else encoded(body))
        if answer.status_code >= 400:
            refusal = self.error_of(answer.json()["error"])
            assert answer.status_code == refusal.code
            raise refusal
        return answer.json()

    def ask(self, method, path, body=None):
        return self.send(method, f"/v1/models/{self.model}{path}", body or {})

    def recommend(self, **request):
        answer = self.ask("POST", "/recommend", plain(with_request_id(request)))
        return Slate(
            answer["items"], answer["token"], tuple(answer.get("skipped_pins", ())),
            answer.get("explored", False), tuple(answer.get("reasons", ())), answer.get("scores", ()),
        )  # fmt: skip

    def feedback(self, slate, **report):
        return self.ask("POST", "/feedback", {"token": slate, **report})["status"]

    def feedback_batch(self, entries):
        body = {"feedback": [{"token": token, **report} for token, report in entries]}
        return [
            outcome["status"] if "seq" in outcome else self.error_of(outcome)
            for outcome in self.ask("POST", "/feedback:batch", body)["results"]
        ]

    @staticmethod
    def error_of(outcome):
        error = KIND_OF[outcome["status"]](outcome["message"])
        error.argument = outcome.get("field", "")
        return error

    def put(self, put):
        self.ask("POST", "/items:bulk", {"put": [facts_of(item) for item in put]})

    def withdraw(self, ids):
        self.ask("POST", "/items:bulk", {"withdraw": ids})

    def change(self, put, withdraw):
        self.ask("POST", "/items:bulk", {"put": [facts_of(item) for item in put], "withdraw": withdraw})

    def set_available(self, **which):
        self.ask("POST", "/items:availability", which)

    def put_list(self, name, ids):
        self.ask("PUT", f"/lists/{name}", {"items": ids})

    def remove_list(self, name):
        self.ask("DELETE", f"/lists/{name}")

    def set_baseline(self, items, max_loss=0.05):
        self.ask("PUT", "/baseline", {"items": items, "max_loss": max_loss})

    def remove_baseline(self):
        self.ask("DELETE", "/baseline")

    def change_settings(self, **settings):
        self.ask("PATCH", "", settings)

    def warm_start(self, log, weight=None):
        return self.ask("POST", "/warm-start", {"slates": log, "weight": weight})["slates"]

    def warm_start_counts(self, counts, weight=None):
        names = ("item", "looks", "clicks")
        bodies = [dict(zip(names, (item, *pair), strict=True)) for item, pair in counts.items()]
        return self.ask("POST", "/warm-start", {"counts": bodies, "weight": weight})["items"]

    def start_trial(self, arms=None, **how):
        self.ask("POST", "/trial", how if arms is None else {"arms": arms, **how})

    def change_trial_shares(self, arms):
        self.ask("PATCH", "/trial", {"arms": arms})

    def stop_trial(self, **how):
        self.ask("POST", "/trial/stop", how)

    def create(self, name, *, items, **created):
        self.send(
            "POST", "/v1/models", {"name": name, "items": [facts_of(item) for item in items], **created}
        )

    def fork(self, policy, name):
        self.ask("POST", "/fork", {"policy": policy, "name": name})

    def roll_back(self, seq):
        self.ask("POST", "/rollback", {"seq": seq})

    def describe(self):
        return self.send("GET", f"/v1/models/{self.model}")


class ClientDoor(ServiceDoor):
    """The Python client, before a server on a port."""

    name = "client"
    change = None  # the client puts or withdraws

    def __init__(self, site, **created):
        super().__init__(site, **created)
        self.open(site.address)

    def open(self, address):
        self.client = Client(address, self.model)

    def call(self, method, *args, **kwargs):
        return getattr(self.client, method)(*args, **kwargs)

    def close(self):
        self.client.close()
        super().close()

    @staticmethod
    def handle_of(slate):
        return slate

    def change_settings(self, **settings):
        for name, value in settings.items():
            self.call(f"set_{name}", value)

    def warm_start(self, log, weight=None):
        return self.call("warm_start", log, weight=weight)

    def warm_start_counts(self, counts, weight=None):
        return self.call("warm_start", counts=counts, weight=weight)

    def create(self, name, **created):
        with Client(self.site.address, name) as client:
            client.create(**created)

    def describe(self):
        return self.call("describe")


class AsyncDoor(ClientDoor):
    """The Python client for asyncio."""

    name = "async"

    def open(self, address):
        self.runner = asyncio.Runner()
        self.client = AsyncClient(address, self.model)

    def call(self, method, *args, **kwargs):
        return self.runner.run(getattr(self.client, method)(*args, **kwargs))

    def close(self):
        self.runner.run(self.client.close())
        self.runner.close()
        ServiceDoor.close(self)


DOORS = {door.name: door for door in (RankerDoor, ServiceDoor, HttpDoor, ClientDoor, AsyncDoor)}
# The doors of a service; the two clients say the same, so that tables are run at one of them.
SERVED = ["service", "http", "client"]


class Site:
    """One service for all tests of a session, the application on it, and a server on a port."""

    def __init__(self, service, server):
        self.service, self.address = service, server.address
        self.app, self.runner = App(service, Settings()), asyncio.Runner()

    def send(self, method, path, content=None):
        async def once():
            transport = httpx.ASGITransport(self.app)
            async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
                headers = {} if content is None else {"content-type": "application/json"}
                return await client.request(method, path, content=content, headers=headers)

        return self.runner.run(once())

    def close(self):
        self.app.close()
        self.runner.close()


@contextmanager
def open_site(store):
    """A service on this store, the application and a server."""
    with open_service(str(store)) as service, Server(service, Settings(port=0)) as server:
        site = Site(service, server)
        yield site
        site.close()


def refit_has_begun(door):
    """Whether the default is in the middle of a refit, which has most of its work before it."""
    return 0 < door.state()["refit"][STAGE] < BETAS


def with_request_id(request):
    """Return the request with an id instead of `draw`."""
    draw = request.pop("draw", None)
    return request if draw is None else request | {"request_id": f"draw {draw}"}


def values_of(items, argument, field=None):
    values = [getattr(item, field or argument) for item in items]
    return {} if all(value is NOT_GIVEN for value in values) else {argument: values}


def facts_of(item):
    facts = {name: value for name, value in item._asdict().items() if value is not NOT_GIVEN}
    return plain(facts)


def plain(fields):
    """Arrays as lists, for JSON."""
    return {name: value.tolist() if hasattr(value, "tolist") else value for name, value in fields.items()}


def digest(arrays):
    hashed = hashlib.sha256()
    for array in arrays:
        hashed.update(b"" if array is None else array.tobytes())
    return hashed.hexdigest()
