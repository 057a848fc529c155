"""What a client says to the server, when it says it again, and what the answers mean: written once.

Each method of `Flow` is a generator. It yields a `Call`, to be sent, or a number of seconds to wait, and is
given the answer, or the error in place of one. How to send and wait is up to the client.
"""

import os
import secrets
import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, TypeVar
from urllib.parse import quote

import httpx
import msgspec
import numpy as np
from msgspec import UNSET
from numpy.typing import ArrayLike

from firstclick.catalog.ids import ItemId
from firstclick.catalog.item import Item
from firstclick.errors import InvalidInput
from firstclick.files.reading import as_path, reading
from firstclick.not_given import NOT_GIVEN, NotGiven
from firstclick.validation.float_array import float_array
from firstclick.validation.lists import as_list
from firstclick.validation.quoting import quoted
from firstclick.wire import errors
from firstclick.wire.errors import Refused, TryLater, Unavailable
from firstclick.wire.feedback import (
    ACCEPTED,
    CORRECTED,
    DUPLICATE,
    ClickReport,
    Entry,
    Receipt,
    ServedSlate,
    report_of,
)
from firstclick.wire.limits import MOST_ENTRIES
from firstclick.wire.schemas import Changed, Deleted, ModelList, Outcome, Outcomes, Recommended, WarmStarted

# What a proxy says for a server that it cannot reach is as good as not reaching it.
TRY_AGAIN = frozenset({429, 502, 503, 504})
KIND_OF = {
    kind.status: kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, Refused) and hasattr(kind, "status")
    if kind not in (errors.StoreBroken, errors.OtherHistory)  # to a client as unavailable as any other
}
LONGEST_QUOTE = 200
T = TypeVar("T")


class Unexpected(Refused):
    """An answer that is none of the service's: a proxy's, another program's, or a failure's."""

    status, code = "unexpected", 500


CREATE_TIMEOUT = 180.0  # seconds
# A log of millions of events is folded before the answer comes.
FILE_TIMEOUT = 3600.0


class Call(NamedTuple):
    """A request, and whether sending it twice does what sending it once does."""

    method: str
    path: str
    body: Any = None
    again: bool = True
    timeout: float | None = None  # seconds, if it may take longer than others
    upload: Path | None = None  # a file to send, in the place of a body
    download: Path | None = None  # where a good answer goes

    def content(self) -> dict[str, Any]:
        """The body and the time limit as httpx takes them."""
        told: dict[str, Any] = {} if self.timeout is None else {"timeout": self.timeout}
        if self.body is not None:
            told |= {"content": encoded(self.body), "headers": {"Content-Type": "application/json"}}
        if self.upload is not None:
            told["headers"] = {"Content-Type": "application/octet-stream"}
        return told


# After an error it is not known whether the request arrived.
Answer = httpx.Response | httpx.TransportError
Steps = Generator[Call | float, Answer | None, T]


@dataclass(frozen=True)
class Patience:
    """How long to try: so many attempts, within so many seconds, with pauses that grow and differ."""

    attempts: int = 8
    seconds: float = 30.0
    first_pause: float = 0.1
    longest_pause: float = 5.0
    clock: Callable[[], float] = time.monotonic
    chance: Callable[[], float] = lambda: secrets.randbelow(1 << 20) / (1 << 20)

    def __post_init__(self) -> None:
        if self.attempts < 1:
            raise InvalidInput(f"must be at least 1, got {self.attempts}", "attempts")
        if not self.seconds > 0:
            raise InvalidInput(f"must be above 0 seconds, got {self.seconds}", "patience")

    def pause(self, attempt: int, at_least: float) -> float:
        """Seconds to wait after this attempt, from 1: not before the server wants, and not all at once."""
        grown = min(self.longest_pause, self.first_pause * 2.0 ** (attempt - 1))
        return at_least + grown * (0.5 + 0.5 * self.chance())


class Flow:
    """What can be said to a server about one of its models. The methods of both clients are made of these."""

    def __init__(self, url: str, model: str | None, attempts: int, patience: float | Patience) -> None:
        self.url = url
        self.model = model
        self.patience = patience if isinstance(patience, Patience) else Patience(attempts, patience)

    def path(self, rest: str = "") -> str:
        """The path of the model, or of something of it."""
        if self.model is None:
            raise InvalidInput("is missing; create the client with Client(url, model='...')", "model")
        return f"/v1/models/{_in_path(self.model, 'model')}{rest}"

    def recommend(
        self,
        k: int | None = None,
        candidates: Iterable[ItemId] | str | None = None,
        exclude: Iterable[ItemId] | str = (),
        pinned: Mapping[int, ItemId] | None = None,
        request_id: str | None = None,
        *,
        context: ArrayLike | None = None,
        at_most: int | Mapping[str, int] | None = None,
        features: ArrayLike | None = None,
        unit: str | int | None = None,
        explain: bool = False,
    ) -> Steps[ServedSlate]:
        """Get a slate to show, and the token to send back with the click.

        Args:
            k: The length of this slate; the model's by default.
            candidates: Choose among these items only: ids, or the name of a list.
            exclude: Never show these items: ids, or the name of a list.
            pinned: Items with a fixed position, such as `{0: "tea"}`.
            request_id: Repeat a request with the same id within an hour and get the same slate. Feedback
                counts once per id.
            context: Numbers that describe the user, for policies that use them.
            at_most: How many items of a group the slate may have: one number for every group, or `{group:
                number}`.
            features: One row per candidate, in place of the catalog's features.
            unit: The id of the user or visit. It decides the arm of a trial and is not stored.
            explain: Also say of each item whether the policy would show it without exploring.

        Returns:
            The slate, best item first.
        """
        asked = {
            "request_id": request_id, "k": k, "context": context, "at_most": at_most, "features": features,
            "unit": unit, "explain": None if explain is False else explain,
            "candidates": _as_list(candidates, "candidates"),
            "exclude": None if (excluded := _as_list(exclude, "exclude")) == [] else excluded,
            "pinned": _as_dict(pinned),
        }  # fmt: skip
        asked = {name: value for name, value in asked.items() if value is not None}
        told = yield from self._read(Recommended, Call("POST", self.path("/recommend"), asked))
        # Neither is told to who asks with the key of a page.
        scores: list[float | None] = told.scores if told.scores is not UNSET else [None] * len(told.items)
        seq = told.seq if told.seq is not UNSET else 0
        return ServedSlate(
            told.items, scores, told.token, seq, told.skipped_pins, told.explored,
            told.not_evaluable, told.reasons, told.without_exploring,
        )  # fmt: skip

    def feedback(
        self,
        slate: str | ServedSlate,
        click: int | NotGiven | None = NOT_GIVEN,
        *,
        clicks: Sequence[int] | None = None,
        examined: int | None = None,
    ) -> Steps[Receipt]:
        """Report what was clicked. When this returns, the feedback is on disk and counted once.

        Give either `click` or `clicks`.

        Args:
            slate: A slate from `recommend`, or its token.
            click: The position that was clicked first, from 0; None if nothing was clicked.
            clicks: All positions that were clicked, in any order.
            examined: How many positions from the top the user looked at, if the page knows.

        Returns:
            A receipt. Its status is `duplicate` if the feedback was in the log already.

        Raises:
            Conflict: Other feedback was reported for this slate before; the first one stays.
            Expired: The slate is older than the server's `--token-days`.
        """
        body = _body(ClickReport(slate, click, clicks, examined))
        told = yield from self._read(Outcome, Call("POST", self.path("/feedback"), body))
        outcome = _outcome(told)
        if isinstance(outcome, Refused):
            raise outcome
        return outcome

    def feedback_batch(self, entries: Iterable[Entry]) -> Steps[list[Receipt | Refused]]:
        """Report feedback for many slates. Errors of single entries are returned, not raised.

        Entries that the server could not take at that moment are retried.

        Args:
            entries: Any number of `(slate, click)` pairs or `ClickReport`s.

        Returns:
            A receipt or an error for each entry, in order.
        """
        pairs = as_list("entries", entries, "pairs of slate and click, or of ClickReport")
        bodies = [_body(entry) for entry in pairs]
        outcomes: list[Receipt | Refused] = []
        for start in range(0, len(bodies), MOST_ENTRIES):
            part = bodies[start : start + MOST_ENTRIES]
            try:
                outcomes += yield from self._part_of_batch(part)
            except TryLater as refusal:
                # What the parts before this one came to is known, and must not be lost.
                return outcomes + [refusal] * (len(bodies) - start)
        return outcomes

    def _part_of_batch(self, entries: Sequence[dict[str, Any]]) -> Steps[list[Receipt | Refused]]:
        path = self.path("/feedback:batch")
        outcomes: dict[int, Receipt | Refused] = {}
        waiting = list(range(len(entries)))
        began = self.patience.clock()
        attempt = 0
        while True:
            attempt += 1
            call = Call("POST", path, {"feedback": [entries[i] for i in waiting]})
            answer = yield from self._ask(call, began)
            results = _decoded(answer, Outcomes).results
            if len(results) != len(waiting):
                raise Unexpected(_quoted(answer))
            outcomes |= zip(waiting, map(_outcome, results), strict=True)
            waiting = [i for i in waiting if isinstance(outcomes[i], TryLater)]
            pause = self._pause_if_any_left(attempt, began, 0.0)
            if not waiting or pause is None:
                return [outcomes[i] for i in range(len(entries))]
            yield pause

    def put_items(self, items: Iterable[Item]) -> Steps[int]:
        """Add or change items. Fields that are not given stay as they are.

        Args:
            items: The items.

        Returns:
            The number of the event in the model's log.
        """
        return self._change("/items:bulk", {"put": _bodies(items)})

    def withdraw_items(self, ids: Iterable[ItemId]) -> Steps[int]:
        """Take items out of the catalog. Feedback for slates that show them still counts.

        Args:
            ids: Ids of items in the catalog.

        Returns:
            The number of the event in the model's log.
        """
        return self._change("/items:bulk", {"withdraw": _as_list(ids, "withdraw")})

    def set_available(self, *, on: Iterable[ItemId] = (), off: Iterable[ItemId] = ()) -> Steps[int]:
        """Mark items as in stock or sold out, until it is set again.

        Args:
            on: Items that may be shown.
            off: Items that may not.

        Returns:
            The number of the event in the model's log.
        """
        return self._change("/items:availability", {"on": _as_list(on, "on"), "off": _as_list(off, "off")})

    def put_list(self, name: str, items: Iterable[ItemId]) -> Steps[int]:
        """Store a list of items that `recommend` takes by name, as `candidates` or `exclude`.

        Args:
            name: The name of the list. An older list of this name is replaced.
            items: Ids of items in the catalog.

        Returns:
            The number of the event in the model's log.
        """
        path = f"/lists/{_in_path(name, 'list_name')}"
        return self._change(path, {"items": _as_list(items, "items")}, "PUT")

    def remove_list(self, name: str) -> Steps[int]:
        """Remove a list. Its items stay in the catalog.

        Args:
            name: The name of the list.

        Returns:
            The number of the event in the model's log.
        """
        return self._change(f"/lists/{_in_path(name, 'list_name')}", None, "DELETE")

    def set_explore(self, share: float) -> Steps[int]:
        """Set the share of slates that are drawn uniformly.

        Args:
            share: From 0 to 1.

        Returns:
            The number of the event in the model's log.
        """
        return self._change("", {"explore": share}, "PATCH")

    def set_baseline(self, items: Iterable[ItemId], max_loss: float = 0.05) -> Steps[int]:
        """Set the list that is shown today. The policy starts beside it.

        Args:
            items: The list, best first.
            max_loss: The largest share of the list's clicks that may be lost.

        Returns:
            The number of the event in the model's log.
        """
        return self._change("/baseline", {"items": _as_list(items, "items"), "max_loss": max_loss}, "PUT")

    def remove_baseline(self) -> Steps[int]:
        """Remove the baseline: the policy decides every slate. Not retried.

        Returns:
            The number of the event in the model's log.
        """
        return self._change("/baseline", None, "DELETE", again=False)

    def baseline(self) -> Steps[dict[str, Any]]:
        """The baseline, how often it and the policy were shown and clicked, and its guarantee.

        Returns:
            The fields of `GET /v1/models/{model}/baseline`.
        """
        return self._read(dict[str, Any], Call("GET", self.path("/baseline")))

    def warm_start(
        self,
        slates: Iterable[Mapping[str, Any]] = (),
        *,
        counts: Mapping[ItemId, tuple[float, float]] | None = None,
        weight: float | None = None,
    ) -> Steps[int]:
        """Learn from slates that another system has shown, as a head start. Not retried.

        Args:
            slates: Dicts with `items`, and `click` or `clicks`; see `Ranker.warm_start`.
            counts: In place of slates: `{item: (looks, clicks)}`.
            weight: How much an observation counts, above 0 and at most 1; see `Ranker.warm_start`.

        Returns:
            How many slates were used, or how many items with `counts`.
        """
        body: dict[str, Any] = {"weight": weight}
        if counts is None:
            body["slates"] = [_as_dict(slate) for slate in as_list("slates", slates, "dicts")]
        else:
            body["counts"] = _counts(counts)
        call = Call("POST", self.path("/warm-start"), body, again=False, timeout=FILE_TIMEOUT)
        told = yield from self._read(WarmStarted, call)
        return told.slates if counts is None else told.items

    def set_no_click_after(self, seconds: float) -> Steps[int]:
        """Count a slate as not clicked if no feedback comes in time.

        Args:
            seconds: How long to wait. 0: slates without feedback teach nothing.

        Returns:
            The number of the event in the model's log.
        """
        return self._change("", {"no_click_after": seconds}, "PATCH")

    def start_trial(
        self,
        arms: Mapping[str, float] | None = None,
        *,
        learn_from: str = "own",
        stop_if_worse: bool = False,
        last_pages: int = 10_000,
    ) -> Steps[int]:
        """Start a trial: compare arms on live requests. Not retried.

        Args:
            arms: The share of each arm, such as `{"policy": 0.9, "baseline": 0.1}`, which is the default.
                `Service.start_trial` lists the kinds of arms.
            learn_from: `"own"`: an arm learns from its own slates and the baseline's. `"all"`: from all
                slates.
            stop_if_worse: Show the baseline as soon as the policy is worse.
            last_pages: How many pages the second figure of the report covers.

        Returns:
            The number of the event in the model's log.
        """
        body: dict[str, Any] = {
            "learn_from": learn_from, "stop_if_worse": stop_if_worse, "last_pages": last_pages,
        }  # fmt: skip
        body |= {} if arms is None else {"arms": _as_dict(arms)}
        # An arm of another policy is a fork, which takes its time.
        return self._change("/trial", body, again=False, timeout=FILE_TIMEOUT)

    def change_trial_shares(self, arms: Mapping[str, float]) -> Steps[int]:
        """Change the shares of all arms of the running trial.

        Args:
            arms: The share of each arm; together 1.

        Returns:
            The number of the event in the model's log.
        """
        return self._change("/trial", {"arms": _as_dict(arms)}, "PATCH")

    def stop_trial(self, *, show: str = "policy") -> Steps[int]:
        """End the trial. Not retried.

        Args:
            show: Who decides slates from now on: `"policy"` or `"baseline"`.

        Returns:
            The number of the event in the model's log.
        """
        return self._change("/trial/stop", {"show": show}, again=False)

    def trial_report(self) -> Steps[dict[str, Any]]:
        """What the trial shows so far.

        Returns:
            The fields of `GET /v1/models/{model}/trial`.
        """
        return self._read(dict[str, Any], Call("GET", self.path("/trial")))

    def _change(self, path: str, body: dict[str, Any] | None, method: str = "POST", **how: Any) -> Steps[int]:
        told = yield from self._read(Changed, Call(method, self.path(path), body, **how))
        return told.seq

    def models(self) -> Steps[list[dict[str, Any]]]:
        """All models of the server.

        Returns:
            One dict per model, as `describe` returns it.
        """
        told = yield from self._read(ModelList, Call("GET", "/v1/models"))
        return [msgspec.to_builtins(one) for one in told.models]

    def describe(self) -> Steps[dict[str, Any]]:
        """Describe the model: policy, k, items, slates, clicks, ...

        Returns:
            The fields of `GET /v1/models/{model}`.
        """
        return self._read(dict[str, Any], Call("GET", self.path()))

    def create(
        self, *, policy: str, k: int, items: Iterable[Item], seed: int | None = None
    ) -> Steps[dict[str, Any]]:
        """Create the model. Not retried.

        Args:
            policy: A description such as `"cascade-mixed"`.
            k: The length of a slate.
            items: The items of its catalog.
            seed: Decides what is explored; drawn at random by default.

        Returns:
            The new model, as `describe` returns it.

        Raises:
            Conflict: A model of this name exists.
        """
        self.path()  # there must be a name
        body = {"name": self.model, "policy": policy, "k": k, "items": _bodies(items)}
        body = body if seed is None else body | {"seed": seed}
        # A policy that is new to the server is compiled first.
        call = Call("POST", "/v1/models", body, again=False, timeout=CREATE_TIMEOUT)
        return self._read(dict[str, Any], call)

    def delete(self, name: str) -> Steps[int]:
        """Delete the model and its log for good. Not retried.

        Args:
            name: The model's name once more, as a safeguard.

        Returns:
            How many events it had.
        """
        told = yield from self._read(Deleted, Call("DELETE", self.path(), {"name": name}, again=False))
        return told.events

    def audit(self) -> Steps[dict[str, Any]]:
        """Replay the whole log on the server and compare the result with what is served.

        Returns:
            The fields of `GET /v1/models/{model}/audit`. `equal` is true if nothing differs.
        """
        return self._read(dict[str, Any], Call("GET", self.path("/audit")))

    def export(self) -> Steps[bytes]:
        """Download the model's whole log.

        Returns:
            The content of a file that `import_from` and `firstclick import` read.
        """
        answer = yield from self._ask(Call("GET", self.path("/export"), timeout=FILE_TIMEOUT))
        return answer.content

    def export_to(self, path: str | os.PathLike[str]) -> Steps[None]:
        """Download the model's whole log to a file, of any size. The file appears complete or not at all.

        Args:
            path: The file to write.
        """
        out = as_path(path)
        yield from self._ask(Call("GET", self.path("/export"), timeout=FILE_TIMEOUT, download=out))

    def import_from(self, path: str | os.PathLike[str]) -> Steps[dict[str, Any]]:
        """Create the model from an exported file. Not retried.

        Args:
            path: A file that `export_to` or `firstclick export` wrote.

        Returns:
            The new model, as `describe` returns it.

        Raises:
            Conflict: A model of this name exists.
        """
        file = as_path(path)
        with reading(file):
            file.open("rb").close()
        call = Call("POST", self.path("/import"), again=False, timeout=FILE_TIMEOUT, upload=file)
        return (yield from self._read(dict[str, Any], call))

    def fork(self, policy: str, name: str) -> Steps[dict[str, Any]]:
        """Create a new model from this one's log: the same items and slates, learned by another policy. Not
        retried.

        Args:
            policy: The new policy, such as `"cascade-lin-ucb"`.
            name: The name of the new model.

        Returns:
            The new model, as `describe` returns it.

        Raises:
            Conflict: A model of that name exists.
        """
        body = {"policy": policy, "name": name}
        call = Call("POST", self.path("/fork"), body, again=False, timeout=FILE_TIMEOUT)
        return self._read(dict[str, Any], call)

    def roll_back(self, seq: int) -> Steps[int]:
        """Roll the model back to an event. The log keeps everything that came since. Not retried.

        Args:
            seq: The number of the event.

        Returns:
            The number of the rollback's own event in the log.
        """
        call = Call("POST", self.path("/rollback"), {"seq": seq}, again=False)
        told = yield from self._read(Changed, call)
        return told.seq

    # When to send again

    def _read(self, kind: type[T], call: Call) -> Steps[T]:
        """What a good answer says; a Refused otherwise."""
        return _decoded((yield from self._ask(call)), kind)

    def _ask(self, call: Call, began: float | None = None) -> Steps[httpx.Response]:
        """The answer, if it is a good one; a Refused otherwise."""
        began = self.patience.clock() if began is None else began
        attempt = 0
        while True:
            attempt += 1
            answer = yield call
            assert answer is not None
            wanted = 0.0
            if isinstance(answer, httpx.TransportError):
                refusal: Refused = Unavailable(self._no_answer(answer, call, attempt))
            elif answer.status_code < 300:
                return answer
            else:
                refusal, wanted = _refusal(answer), _seconds(answer)
                if answer.status_code not in TRY_AGAIN or isinstance(refusal, errors.NotServed):
                    raise refusal
            pause = self._pause_if_any_left(attempt, began, wanted) if call.again else None
            if pause is None:
                raise refusal
            yield pause

    def _pause_if_any_left(self, attempt: int, began: float, at_least: float) -> float | None:
        """Seconds to wait before the next attempt; None if there is to be none."""
        pause = self.patience.pause(attempt, at_least)
        left = began + self.patience.seconds - self.patience.clock()
        return pause if attempt < self.patience.attempts and pause < left else None

    def _no_answer(self, error: httpx.TransportError, call: Call, attempt: int) -> str:
        kind = "timed out" if isinstance(error, httpx.TimeoutException) else "connection failed"
        reason = f"{kind}: {error}" if str(error) else kind
        tried = f"{attempt} attempt{'s' * (attempt > 1)}"
        if call.again:
            return f"no answer from {self.url} in {tried} ({reason}); the same can be sent again later"
        return (
            f"no answer from {self.url} ({reason}), and it is not known whether {call.method} {call.path} "
            "was done; look before you send it again"
        )


def encoded(body: Mapping[str, Any]) -> bytes:
    """Write the body as JSON. The server checks its values.

    Ids, clicks and contexts may be NumPy's own numbers and arrays.

    Raises:
        InvalidInput: A field cannot be written as JSON.
    """
    try:
        return msgspec.json.encode(body, enc_hook=_plain)
    except (TypeError, ValueError):
        for name, value in body.items():
            _check_can_be_sent(name, value)
        raise


def _check_can_be_sent(name: str, value: object) -> None:
    try:
        msgspec.json.encode(value, enc_hook=_plain)
    except InvalidInput as error:
        raise InvalidInput(error.problem, name) from None
    except TypeError as error:
        raise InvalidInput(f"cannot be sent as JSON: {error}", name) from None
    except ValueError:  # Python writes 4,300 digits at most.
        raise InvalidInput(
            "must have whole numbers of at most 2^53 in size, got one of thousands of digits; if it is an "
            "id, give a text",
            name,
        ) from None


def _as_list(items: Any, name: str) -> object:
    """Return an iterable as a list, for JSON. A text may be the name of a list: the server checks it."""
    if isinstance(items, str) or items is None:
        return items
    return as_list(name, items.keys() if isinstance(items, Mapping) else items, "ids")


def _as_dict(given: object) -> object:
    """Return a mapping as a dict, for JSON; the server refuses anything else."""
    return dict(given) if isinstance(given, Mapping) else given


def _counts(counts: object) -> list[dict[str, Any]]:
    """Return the examinations and clicks by item as a body holds them."""
    if not isinstance(counts, Mapping):
        raise InvalidInput(f"must be {{item: (looks, clicks)}}, got {quoted(counts)}", "counts")
    bodies = []
    for item, pair in counts.items():
        try:
            looks, clicks = pair
        except (TypeError, ValueError):
            raise InvalidInput(
                f"must have (looks, clicks), got {quoted(pair)} for {quoted(item)}", "counts"
            ) from None
        bodies.append({"item": item, "looks": looks, "clicks": clicks})
    return bodies


def _bodies(items: Iterable[Item]) -> list[dict[str, Any]]:
    """Return the items as a body holds them."""
    return [as_json(item) for item in as_list("items", items, "Item(...)")]


def _in_path(name: object, argument: str) -> str:
    """Return a name as part of an address; the server checks its characters."""
    if not isinstance(name, str) or not name or not name.isprintable():
        raise InvalidInput(f"must be a text of printable characters, got {quoted(name)}", argument)
    return quote(name, safe="")


def _plain(value: object) -> object:
    # Of dates NumPy would make numbers, and of masked values null.
    array = value if isinstance(value, np.generic | np.ndarray) and not np.ma.is_masked(value) else None
    if array is not None and array.dtype.kind not in "mM":
        return array.tolist()
    raise InvalidInput(f"must have numbers and texts, got {quoted(value)}, of type {type(value).__name__}")


def as_json(item: Item) -> dict[str, Any]:
    """The item as a body holds it: what was not given is not sent."""
    if not isinstance(item, Item):
        raise InvalidInput(f"must be Item(id, name, group, features, available), got {quoted(item)}", "items")
    told = {word: value for word, value in item._asdict().items() if value is not NOT_GIVEN}
    features = told.get("features")
    if isinstance(features, Mapping):
        told["features"] = dict(features)
    elif isinstance(features, list | tuple) and any(isinstance(one, str | list | None) for one in features):
        told["features"] = list(features)  # Values of columns, in their order.
    elif features is not None:
        told["features"] = float_array("features", features).tolist()
    return told


def _body(entry: Entry) -> dict[str, Any]:
    """The entry as a body holds it; the server says what is wrong with it."""
    said = report_of(entry)
    told: dict[str, Any] = {"token": said.token()}
    if said.click is not NOT_GIVEN:
        told["click"] = said.click
    if said.clicks is not None:
        told["clicks"] = as_list("clicks", said.clicks, "positions")
    return told if said.examined is None else told | {"examined": said.examined}


def _decoded(answer: httpx.Response, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(answer.content, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise Unexpected(_quoted(answer)) from None


def _outcome(answer: Outcome) -> Receipt | Refused:
    if answer.status in (ACCEPTED, DUPLICATE, CORRECTED) and answer.seq is not None:
        return Receipt(answer.status, answer.seq)
    kind = KIND_OF.get(answer.status, Unexpected)
    return _error_of(kind, answer.message or f"the server answered {answer.status!r}", answer.field)


def _refusal(answer: httpx.Response) -> Refused:
    """The server's own sentence as the error that it stands for."""
    try:
        told = msgspec.json.decode(answer.content)["error"]
        kind, message, field = KIND_OF[told["status"]], str(told["message"]), str(told.get("field", ""))
    except (msgspec.DecodeError, UnicodeDecodeError, LookupError, TypeError):
        proxy = answer.status_code in TRY_AGAIN
        return (Unavailable if proxy else Unexpected)(_quoted(answer))
    if issubclass(kind, TryLater):
        return kind(message, retry_after=_seconds(answer))
    return _error_of(kind, message, field)


def _error_of(kind: type[Refused], message: str, field: str) -> Refused:
    """The server's sentence as an error that names its argument."""
    error = kind(message)
    if field and message.startswith(f"{field} "):
        error = kind(message.removeprefix(f"{field} "), field)
    error.argument = field
    return error


def _quoted(answer: httpx.Response) -> str:
    text = answer.content[:LONGEST_QUOTE].decode("utf-8", "replace")
    return f"the server answered {answer.status_code}, which this client does not understand: {text!r}"


def _seconds(answer: httpx.Response) -> float:
    """Seconds of a Retry-After header; a date, which a proxy may send, is left to our own pauses."""
    retry_after = answer.headers.get("Retry-After", "")
    return float(retry_after) if retry_after.isdecimal() else 0.0
