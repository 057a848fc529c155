"""Clients of a server that dies and comes back, who remember all that they sent and were told.

Half of them never send anything twice: whoever sends again heals what was lost, and hides it.
"""

import json
import random
import threading
import time
from http.client import HTTPConnection, HTTPException
from typing import Any, NamedTuple

import numpy as np

from tests.faults.oracle import Change, put, rolled_back, shares, withdrawn
from tests.support.made_log import N_FEATURES

# Answers to requests that may be late, late and different, or of an item that is gone.
CODES = {200, 201, 404, 409, 422}
# And of a server that has too much to do, or no store.
REFUSALS = CODES | {429, 503}
# How often each is asked for. The last one is of the default policy.
MODELS = {"shop": 6, "bar": 1, "cafe": 3}
GIVE_UP_AFTER = 30.0
# Of all kinds: what was asked is in the log, and every slate can be drawn again.
REQUESTS = [
    {}, {}, {}, {"k": 2}, {"exclude": ["i3", "i8"]}, {"candidates": ["i1", "i9", "i4", "i12", "i2"]},
    {"pinned": {"1": "i5"}, "at_most": 1},
]  # fmt: skip


class Reply(NamedTuple):
    """An answer: code, body and headers."""

    code: int
    body: Any
    headers: dict[str, str]


class Caller:
    """One connection. A call that got no answer is None: nobody knows what became of it."""

    def __init__(self, port, *, timeout=30.0):
        self._connection = HTTPConnection("127.0.0.1", port, timeout=timeout)

    def ask(self, method, path, body=None):
        headers = {} if body is None else {"content-type": "application/json"}
        try:
            content = None if body is None else json.dumps(body).encode()
            self._connection.request(method, path, content, headers)
            answer = self._connection.getresponse()
            return Reply(
                answer.status,
                json.loads(answer.read() or b"null"),
                {name.lower(): value for name, value in answer.getheaders()},
            )
        except (OSError, HTTPException):
            self._connection.close()
            return None

    def post(self, path, body):
        return self.ask("POST", path, body)

    def close(self):
        self._connection.close()


class LoadClients:
    """Clients, each in a thread: even ones never send again, odd ones send until they are answered."""

    def __init__(
        self,
        ports,
        history,
        *,
        clients=8,
        twice=True,  # those who send again also repeat and contradict themselves
        changes=True,
        rollbacks=0.1,  # share of the changes
        late=0.0,  # seconds that some take to report a slate, if they ever do
        launched=False,  # whether there are trials: most requests have a unit
        seed=0,
    ):
        self._ports = ports
        self._history = history
        self._twice, self._rollbacks, self._late = twice, rollbacks, late
        self._launched = launched
        self._seed = seed
        self._stop = threading.Event()
        self.codes = set()
        self._threads = [threading.Thread(target=self._client, args=(n,)) for n in range(clients)]
        if changes:
            self._threads.append(threading.Thread(target=self._changer, args=(clients,)))

    def __enter__(self):
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *exception):
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _caller(self, number):
        return Caller(self._ports[number % len(self._ports)], timeout=15.0)

    def _client(self, number):
        draw, caller = random.Random(f"{self._seed} {number}"), self._caller(number)
        again = bool(number % 2)
        pocket = []
        drawer = []
        while not self._stop.is_set():
            while drawer and drawer[0][0] < time.monotonic():
                pocket.append(drawer.pop(0)[1])
            (model,) = draw.choices([*MODELS], [2, 6, 2] if self._launched else [*MODELS.values()])
            asked, unit = draw.choice(REQUESTS), f"unit-{draw.randrange(40)}"
            if self._launched and draw.random() < 0.8:
                asked = asked | {"unit": unit}
            reply = caller.post(f"/v1/models/{model}/recommend", asked)
            if reply is None or reply.code != 200:
                self._note(reply)
                continue
            n = len(reply.body["items"])
            click = draw.randrange(n + 1)
            pocket.append((model, reply.body["token"], click if click < n else None))
            self._history.record_slate(model, reply.body["token"], asked.get("unit"))
            if self._late and draw.random() < 0.4:
                drawer.append((time.monotonic() + self._late, pocket.pop()))
                if draw.random() < 0.5:
                    drawer.pop()
                continue
            if len(pocket) > 1 and draw.random() < 0.2:
                pocket.reverse()  # Late, and out of order.
            if len(pocket) < 3 and draw.random() < 0.3:
                continue
            while pocket:
                told = self._feedback(caller, draw, pocket, again)
                if told is not None and again and self._twice and draw.random() < 0.15:
                    model, token, click = told
                    other = click if draw.random() < 0.6 else (None if click == 0 else 0)
                    self._feedback(caller, draw, [(model, token, other)], again)
        caller.close()

    def _note(self, reply):
        if reply is not None:
            self.codes.add(reply.code)
            if reply.code >= 400:
                time.sleep(0.01)

    def _feedback(self, caller, draw, pocket, again):
        """Send one, or all of one model in a batch; what was answered last."""
        model, token, click = pocket.pop()
        sent = [(token, click)]
        if draw.random() < 0.3:
            sent += [(other, click) for of, other, click in pocket if of == model]
            pocket[:] = [held for held in pocket if held[0] != model]
        for token, click in sent:
            self._history.record_sent(model, token, click)
        alone = len(sent) == 1
        body = {"token": token, "click": click}
        batch = {"feedback": [{"token": token, "click": click} for token, click in sent]}
        until = time.monotonic() + GIVE_UP_AFTER
        while True:
            path = f"/v1/models/{model}/feedback" + ("" if alone else ":batch")
            reply = caller.post(path, body if alone else batch)
            self._note(reply)
            if reply is not None:
                told = [reply.body] if alone else reply.body.get("results", [])
                for (token, click), answer in zip(sent, told, strict=False):
                    answer = answer.get("error", answer)
                    self._history.record_answer(token, click, answer["status"], answer.get("seq"))
                if not any(answer.get("error", answer)["status"] == "unavailable" for answer in told):
                    return model, token, click
            if not again or time.monotonic() > until or (reply is not None and self._stop.is_set()):
                return None

    def _changer(self, number):
        draw, caller = random.Random(f"{self._seed} changes"), self._caller(number)
        seq = 1
        while not self._stop.wait(0.02):
            model = draw.choice([*MODELS])
            path = f"/v1/models/{model}"
            if draw.random() < self._rollbacks:
                to = draw.randint(1, seq)
                changes = [Change(model, rolled_back(to))]
                path, body = path + "/rollback", {"seq": to}
            elif self._launched and model == "bar" and draw.random() < 0.1:
                policy = draw.randint(20, 50) / 100
                arms = {"policy": policy, "model:rival": 0.4, "baseline": round(0.6 - policy, 2)}
                changes = [Change(model, shares(arms.values()))]
                path, body = path + "/trial", {"arms": arms}
            else:
                changes, body = self._items(model, draw)
                path += "/items:bulk"
            self._history.record_changes_sent(changes)
            reply = caller.ask("PATCH" if path.endswith("/trial") else "POST", path, body)
            self._note(reply)
            if reply is not None and reply.code == 200:
                seq = reply.body["seq"]
                self._history.record_changes_done(changes, seq)
        caller.close()

    def _items(self, model, draw):
        """Items to put, to withdraw, or both."""
        ids = draw.sample([f"e{n}" for n in range(8)], 3)
        changes = []
        body = {}
        if draw.random() < 0.6:
            few = [round(draw.uniform(-0.5, 0.5), 1) for _ in range(N_FEATURES)]
            features = None if model == "bar" else few
            items = [(id, f"name {draw.random()}", draw.choice([None, None, True, False])) for id in ids[:2]]
            ids_put, names, available = zip(*items, strict=True)
            as_bytes = b"" if features is None else np.array([features, features], "<f8").tobytes()
            changes.append(Change(model, put(ids_put, names, available, as_bytes)))
            body["put"] = [
                {"id": id, "name": name, "features": features}
                | ({} if there is None else {"available": there})
                for id, name, there in items
            ]
        if not changes or draw.random() < 0.3:
            changes.append(Change(model, withdrawn(ids[2:])))
            body["withdraw"] = ids[2:]
        return changes, body
