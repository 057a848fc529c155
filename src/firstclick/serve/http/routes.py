"""The table of routes. Matching, access, bodies, OpenAPI and the tests of all four are made from it."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

import msgspec

from firstclick.serve.dashboard.data import View
from firstclick.serve.http import handlers
from firstclick.serve.http.auth import ADMINS, OPEN, PAGES, READERS, WRITERS, Roles
from firstclick.serve.http.errors import WrongMethod
from firstclick.serve.http.static import static_files
from firstclick.serve.model.trial_events import TrialReport
from firstclick.wire import limits, schemas
from firstclick.wire.errors import Malformed, Unknown

PLACE = None  # the key under which a tree of paths holds whatever stands for a parameter


@dataclass(frozen=True, kw_only=True)
class Query:
    """A parameter behind the question mark: a whole number."""

    summary: str
    at_least: int
    at_most: int
    default: int

    def read(self, name: str, text: str) -> int:
        """The number that was sent, or Malformed."""
        digits = text.removeprefix("-")
        value = int(text) if digits.isascii() and digits.isdigit() and len(digits) < 18 else None
        if value is None or not self.at_least <= value <= self.at_most:
            raise Malformed(
                f"{name} must be a whole number from {self.at_least} to {self.at_most}, got {text[:60]!r}"
            )
        return value


@dataclass(eq=False)
class Route:
    """What can be asked, by whom, in which form, and what can come of it."""

    method: str
    path: str
    roles: Roles
    handler: Callable[..., Any]
    summary: str
    answer: Any = None  # a Struct; None for what is not JSON
    answer_media: str = "application/json"
    codes: tuple[int, ...] = (200,)  # when it is done
    refused: tuple[int, ...] = ()  # when it is not, beside what any route may answer
    body: Any = None  # a Struct, or bytes for a file, which is taken piece by piece
    example: Any = None
    query: dict[str, Query] = field(default_factory=dict)
    bulk: bool = False  # takes large bodies
    largest_body: int | None = None  # bytes, if less than others take
    locks: bool = False  # quick, but locks its model: not on the event loop while others have it
    in_pool: bool = False  # slow, or waits for the store: not on the event loop
    long: bool = False  # may read a whole log: few of these at a time, so that others find a free thread
    always: bool = False  # answered however much is going on
    counts: bool = False  # feedback, every outcome of which is counted for its model
    timed: bool = False
    in_document: bool = True

    def __post_init__(self) -> None:
        if not isinstance(self.roles, frozenset):
            raise TypeError(f"{self.method} {self.path}: say which roles may do this, got {self.roles!r}")
        self.awaited = asyncio.iscoroutinefunction(self.handler)
        self.decoder: msgspec.json.Decoder[Any] | None = None
        if self.body not in (None, bytes):
            self.decoder = msgspec.json.Decoder(self.body)

    @property
    def parameters(self) -> list[str]:
        """The names in braces."""
        return [part[1:-1] for part in self.path.split("/") if part.startswith("{")]


TOKEN = "AQEAAAABAAAAo2X2yZoBAAABmsn2ZaMVJ1qOqk0dWnqxBgAAAAADAAAA"
ITEM = {"id": "espresso", "name": "Espresso", "group": "coffee", "features": [0.5, 0.1]}
MODEL = "/v1/models/{model}"

ROUTES: list[Route] = [
    Route(
        "POST", f"{MODEL}/recommend", PAGES, handlers.recommend,
        "A slate of items, best first, and the token to send back with the click. Writes nothing. `context` "
        "is what is known of the user, `at_most` limits groups, `features` stand in for the candidates' own. "
        "A key with the role 'page' may send `k` and `unit` only, and gets `items` and `token`.",
        body=schemas.Recommend, answer=schemas.Recommended, refused=(404, 503), timed=True, locks=True,
        example={"k": 3, "exclude": ["espresso"], "request_id": "view-4711"},
    ),
    Route(
        "POST", f"{MODEL}/feedback", PAGES, handlers.feedback,
        "Which position was clicked first, or null; or `clicks`, all of them, and `examined`, how many "
        "positions from the top the user saw, if the page knows. In the log and learned from, once, when "
        "this answers: 201 accepted now, or corrected, if the slate counted as no click because nobody had "
        "reported it in time; 200 a duplicate of what was there; 409 in conflict with it, or too late to "
        "correct it.",
        body=schemas.Feedback, answer=schemas.FeedbackAnswer, codes=(201, 200), refused=(404, 409, 410, 503),
        timed=True, counts=True, example={"token": TOKEN, "click": 1},
    ),
    Route(
        "POST", f"{MODEL}/feedback:batch", WRITERS, handlers.feedback_batch,
        f"Up to {limits.MOST_ENTRIES} pieces of feedback, each with its own outcome.",
        body=schemas.FeedbackBatch, answer=schemas.Outcomes, refused=(404, 503), bulk=True,
        largest_body=limits.LARGEST_BATCH, counts=True,
        example={"feedback": [{"token": TOKEN, "click": None}]},
    ),
    *(
        Route(
            method, f"{MODEL}/items/{{id}}", WRITERS, handler, summary,
            body=schemas.ItemFacts, answer=schemas.Changed, refused=(404, 503), in_pool=True,
            example={"name": "Espresso", "group": "coffee", "features": [0.5, 0.1]},
        )
        for method, handler, summary in (
            (
                "PUT", handlers.put_item,
                "Add an item, change it, or put it back into the catalog. What is left out stays as it is, "
                "null clears. An item keeps what was learned of it.",
            ),
            ("PATCH", handlers.patch_item, "The same as PUT."),
        )
    ),
    Route(
        "DELETE", f"{MODEL}/items/{{id}}", WRITERS, handlers.withdraw_item,
        "Take an item out of the catalog. Feedback for slates that had it still counts.",
        answer=schemas.Changed, refused=(404, 503), in_pool=True,
    ),
    Route(
        "POST", f"{MODEL}/items:availability", WRITERS, handlers.set_available,
        "Which items may be shown (`on`) and which may not (`off`), until this is said again. A put without "
        "`available`, DELETE and PUT, and a rollback leave it as it is.",
        body=schemas.ItemAvailability, answer=schemas.Changed, refused=(404, 503), bulk=True, in_pool=True,
        example={"on": ["espresso"], "off": ["tea"]},
    ),
    Route(
        "POST", f"{MODEL}/items:bulk", WRITERS, handlers.change_items,
        "Put and withdraw many items.",
        body=schemas.ItemChanges, answer=schemas.Changed, refused=(404, 503), bulk=True, in_pool=True,
        example={"put": [ITEM], "withdraw": ["tea"]},
    ),
    Route(
        "PUT", f"{MODEL}/lists/{{list}}", WRITERS, handlers.put_list,
        "A list of items that requests can name as `candidates` or `exclude`. Their events name it too, and "
        "stay short however long it is.",
        body=schemas.NewList, answer=schemas.Changed, refused=(404, 503), bulk=True, in_pool=True,
        example={"items": ["espresso", "tea"]},
    ),
    Route(
        "DELETE", f"{MODEL}/lists/{{list}}", WRITERS, handlers.remove_list, "Remove a list; its items stay.",
        answer=schemas.Changed, refused=(404, 503), in_pool=True,
    ),
    Route(
        "GET", f"{MODEL}/lists", READERS, handlers.show_lists, "The lists, and how many items each has.",
        answer=schemas.ItemLists, refused=(404, 503),
    ),
    Route(
        "PUT", f"{MODEL}/baseline", ADMINS, handlers.set_baseline,
        "The list that is shown today. The policy starts beside it, and the expected clicks of all slates "
        "stay at least 1 - `max_loss` of what the list would have got. Another list starts this anew.",
        body=schemas.NewBaseline, answer=schemas.Changed, refused=(404, 409, 503), bulk=True, in_pool=True,
        example={"items": ["espresso", "tea"], "max_loss": 0.05},
    ),
    Route(
        "DELETE", f"{MODEL}/baseline", ADMINS, handlers.remove_baseline,
        "Remove the baseline: the policy decides every slate.",
        answer=schemas.Changed, refused=(404, 503), in_pool=True,
    ),
    Route(
        "GET", f"{MODEL}/baseline", READERS, handlers.show_baseline,
        "The baseline, how often it and the policy were shown and clicked, and what is promised.",
        answer=schemas.BaselineFacts, refused=(404, 503), in_pool=True,
    ),
    Route(
        "POST", f"{MODEL}/warm-start", ADMINS, handlers.warm_start,
        "Learn from slates that somebody else has shown, as a head start: all of them, or none if one is "
        "wrong. Send a long log in several requests.",
        body=schemas.NewWarmStart, answer=schemas.WarmStarted, refused=(404, 503), bulk=True, in_pool=True,
        long=True, example={"slates": [{"items": ["tea", "espresso"], "click": 1}]},
    ),
    Route(
        "POST", f"{MODEL}/trial", ADMINS, handlers.start_trial,
        "Start a trial: a share of users sees each arm, and GET compares their clicks. With `{}` 90 % see "
        "the policy and 10 % the baseline.",
        body=schemas.NewTrial, answer=schemas.Changed, refused=(404, 409, 503), in_pool=True, long=True,
        example={"arms": {"policy": 0.9, "baseline": 0.1}, "stop_if_worse": True},
    ),
    Route(
        "PATCH", f"{MODEL}/trial", ADMINS, handlers.change_trial,
        "Other shares for the arms of the running trial. A new period starts; as few users as possible "
        "change their arm.",
        body=schemas.TrialChange, answer=schemas.Changed, refused=(404, 503), in_pool=True,
        example={"arms": {"policy": 0.5, "baseline": 0.5}},
    ),
    Route(
        "POST", f"{MODEL}/trial/stop", ADMINS, handlers.stop_trial,
        "End the trial. From now on the policy decides every slate, or with `show` the baseline does.",
        body=schemas.TrialEnd, answer=schemas.Changed, refused=(404, 503), in_pool=True,
        example={"show": "policy"},
    ),
    Route(
        "GET", f"{MODEL}/trial", READERS, handlers.report_trial,
        "What the trial says so far, with intervals that hold whenever you look.",
        answer=TrialReport, refused=(404, 503), in_pool=True,
    ),
    Route(
        "GET", f"{MODEL}/items", READERS, handlers.list_items,
        "The items of the catalog, some at a time.",
        answer=schemas.ListedItems, refused=(404, 503), in_pool=True,
        query={
            "after": Query(summary="`next` of the answer before", at_least=-1, at_most=2**53, default=-1),
            "limit": Query(summary="at most", at_least=1, at_most=limits.MOST_ITEMS_LISTED, default=100),
        },
    ),
    Route("GET", "/v1/models", READERS, handlers.list_models, "All models.", answer=schemas.ModelList,
          in_pool=True),
    Route(
        "POST", "/v1/models", ADMINS, handlers.create_model,
        "A new model.",
        body=schemas.NewModel, answer=schemas.ModelFacts, codes=(201,), refused=(409, 503),
        bulk=True, in_pool=True, long=True,
        example={"name": "shop", "policy": "cascade-lin-ts", "k": 1, "items": [ITEM]},
    ),
    Route(
        "GET", MODEL, READERS, handlers.describe_model, "A model in words and numbers.",
        answer=schemas.ModelFacts, refused=(404, 503), in_pool=True,
    ),
    Route(
        "PATCH", MODEL, ADMINS, handlers.change_settings,
        "Change settings. `explore`: this share of slates is drawn uniformly among all items that may be "
        "shown, so that the log can be evaluated for any other policy. `no_click_after`: a slate that nobody "
        "reported after so many seconds had no click; 0: it teaches nothing.",
        body=schemas.ModelSettings, answer=schemas.Changed, refused=(404, 503), in_pool=True,
        example={"explore": 0.05},
    ),
    Route(
        "DELETE", MODEL, ADMINS, handlers.delete_model,
        "Delete a model, its log and all that it has learned, for good. The body repeats its name. Other "
        "processes stop serving it within a poll.",
        body=schemas.DeleteModel, answer=schemas.Deleted, refused=(404, 503), in_pool=True,
        example={"name": "shop"},
    ),
    Route(
        "GET", f"{MODEL}/view", READERS, handlers.view_model, "What the dashboard shows of a model.",
        answer=View, refused=(404, 503), in_pool=True,
    ),
    Route(
        "GET", f"{MODEL}/audit", ADMINS, handlers.audit_model,
        "Fold the log again from its first event, and compare with what is served.",
        answer=schemas.AuditAnswer, refused=(404, 503), in_pool=True, long=True,
    ),
    Route(
        "GET", f"{MODEL}/export", ADMINS, handlers.export, "The whole log of a model as a file.",
        answer_media="application/octet-stream", refused=(404, 409, 503), in_pool=True, long=True,
    ),
    Route(
        "POST", f"{MODEL}/import", ADMINS, handlers.import_,
        "A new model of this name from an exported file.",
        body=bytes, answer=schemas.ModelFacts, codes=(201,), refused=(409, 503), in_pool=True, long=True,
    ),
    Route(
        "POST", f"{MODEL}/fork", ADMINS, handlers.fork,
        "A new model with the items and slates of this one, learned by another policy. Tokens that are out "
        "stay with this one.",
        body=schemas.ForkModel, answer=schemas.ModelFacts, codes=(201,), refused=(404, 409, 503),
        in_pool=True, long=True, example={"policy": "cascade-lin-ucb", "name": "shop2"},
    ),
    Route(
        "POST", f"{MODEL}/rollback", ADMINS, handlers.roll_back,
        "Roll the model back to event `seq`. The log keeps all that came since.",
        body=schemas.Rollback, answer=schemas.Changed, refused=(404, 503), in_pool=True, long=True,
        example={"seq": 1},
    ),
    Route("GET", "/v1/keys", ADMINS, handlers.list_keys, "The API keys.", answer=schemas.Keys, in_pool=True,
          refused=(503,)),
    Route(
        "POST", "/v1/keys", ADMINS, handlers.make_key, "A new API key, which is told this once.",
        body=schemas.NewKey, answer=schemas.MadeKey, codes=(201,), refused=(503,), in_pool=True,
        example={"name": "web shop", "role": "admin"},
    ),
    Route(
        "DELETE", "/v1/keys/{key}", ADMINS, handlers.revoke_key,
        "Revoke a key, by its id; the keys that are left. Other processes hear of it within a second or two.",
        answer=schemas.Keys, refused=(404, 409, 503), in_pool=True,
    ),
    Route(
        "POST", "/v1/empty", WRITERS, handlers.empty,
        "Answers nothing, for measuring: what a request costs before anything is done.",
        body=schemas.Nothing, answer=schemas.Nothing, example={},
    ),
    Route("GET", "/health/live", OPEN, handlers.live, "Liveness probe.", answer=schemas.Live, always=True),
    Route(
        "GET", "/health/ready", OPEN, handlers.ready, "Readiness probe: requests can be sent here.",
        answer=schemas.Ready, refused=(503,), always=True,
    ),
    Route(
        "GET", "/health/ready/recommend", OPEN, handlers.ready_recommend,
        "Readiness probe for slates alone: 200 while the database is away, as what was learned is served.",
        answer=schemas.ReadyFor, refused=(503,), always=True,
    ),
    Route(
        "GET", "/health/ready/feedback", OPEN, handlers.ready_feedback,
        "Readiness probe for feedback: whether the last write to the store succeeded. Where nothing was "
        "written for 5 s, one is tried. `reason` of a refusal is a word for programs.",
        answer=schemas.ReadyFor, refused=(503,), always=True,
    ),
    Route(
        "GET", "/metrics", READERS, handlers.metrics, "Numbers for Prometheus.",
        answer_media="text/plain", in_pool=True,
    ),
    Route("GET", "/openapi.json", READERS, handlers.openapi, "This document.", answer=dict[str, Any]),
    *(
        Route(
            "GET", path, OPEN, lambda asked, answer=answer: answer, f"The dashboard: {path}",
            in_document=False,
        )
        for path, answer in static_files().items()
    ),
]  # fmt: skip


class Matcher:
    """From method and path to a route: a dictionary for each segment, no pattern."""

    def __init__(self, routes: list[Route]) -> None:
        self._tree: dict[Any, Any] = {}
        for route in routes:
            node = self._tree
            for segment in _segments(route.path):
                node = node.setdefault(PLACE if segment.startswith("{") else segment, {})
            methods = node.setdefault(Route, {})
            assert route.method not in methods, route
            methods[route.method] = route
            if route.method == "GET":
                methods.setdefault("HEAD", route)

    def methods(self, path: str) -> tuple[dict[str, Route], tuple[str, ...]]:
        """What there is at a path as it was sent, by method, and the parameters in it; or Unknown."""
        node = self._tree
        parameters = []
        escaped = "%" in path
        for segment in _segments(path):
            # After the path is split: an item's id may hold a slash, if it is escaped.
            if escaped:
                segment = _unescaped(segment)
            below = node.get(segment)
            if below is None:
                below = node.get(PLACE)
                if below is None or not segment:
                    raise _no_such(path)
                parameters.append(segment)
            node = below
        if Route not in node:
            raise _no_such(path)
        return node[Route], tuple(parameters)

    def match(self, method: str, path: str) -> tuple[Route, tuple[str, ...]]:
        """The route and its parameters; Unknown or WrongMethod."""
        methods, parameters = self.methods(path)
        route = methods.get(method)
        if route is None:
            allowed = ", ".join(sorted(methods))
            raise WrongMethod(f"{path[:100]} takes {allowed}, got {method[:20]}", allowed)
        return route, parameters


def _segments(path: str) -> list[str]:
    return path.split("/")[1:]


def _unescaped(segment: str) -> str:
    try:
        return unquote(segment, errors="strict")
    except UnicodeDecodeError:
        raise Unknown(f"the path holds {segment[:60]!r}, which is not UTF-8 when unescaped") from None


def _no_such(path: str) -> Unknown:
    return Unknown(
        f"nothing is at {path[:100]!r}; there are /v1/models, /v1/keys, /health/live, /health/ready, "
        "/metrics, /openapi.json, which lists all, and the dashboard at /"
    )
