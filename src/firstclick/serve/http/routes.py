"""The table of routes. Matching, access, bodies, OpenAPI and the tests of all four are made from it."""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from urllib.parse import unquote

import msgspec

from firstclick.serve.dashboard.data import View
from firstclick.serve.http import handlers
from firstclick.serve.http.auth import ADMINS, OPEN, PAGES, READERS, WRITERS, Roles
from firstclick.serve.http.errors import WrongMethod
from firstclick.serve.http.static import send_file, static_files
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
                f"must be a whole number from {self.at_least} to {self.at_most}, got {text[:60]!r}", name
            )
        return value


@dataclass(eq=False)
class Route:
    """What can be asked, by whom, in which form, and what can come of it."""

    method: str
    path: str
    roles: Roles
    handler: Callable[..., Any]
    section: str  # one of SECTIONS
    title: str  # a heading to look for: the summary of OpenAPI
    description: str
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
        self.awaited = inspect.iscoroutinefunction(self.handler)
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

# The tags of OpenAPI: headings of the HTTP reference and of /ui/api.
LEARN, ITEMS, LISTS = "Recommend and feedback", "Items", "Lists of items"
LAUNCH, MODELS, KEYS = "Baseline, warm start and trials", "Models", "API keys"
HEALTH = "Health and metrics"
SECTIONS = (LEARN, ITEMS, LISTS, LAUNCH, MODELS, KEYS, HEALTH)

ROUTES: list[Route] = [
    Route(
        "POST", f"{MODEL}/recommend", PAGES, handlers.recommend, LEARN, "Recommend",
        "Get a slate of items, best first, and the token to send back with the click. Nothing is written. A "
        "key with the role `page` may send only `k` and `unit`, and gets only `items` and `token`.",
        body=schemas.Recommend, answer=schemas.Recommended, refused=(404, 503), timed=True, locks=True,
        example={"k": 3, "exclude": ["espresso"], "request_id": "view-4711"},
    ),
    Route(
        "POST", f"{MODEL}/feedback", PAGES, handlers.feedback, LEARN, "Send feedback",
        "Report what was clicked: `click`, the first position, or null for no click; or `clicks`, all "
        "positions. The answer comes when the feedback is in the log and learned. It counts once, however "
        'often it is sent. 201: accepted now, or a late click that corrected a "no click". 200: a duplicate. '
        "409: it contradicts earlier feedback, or is too late to correct it.",
        body=schemas.Feedback, answer=schemas.FeedbackAnswer, codes=(201, 200), refused=(404, 409, 410, 503),
        timed=True, counts=True, example={"token": TOKEN, "click": 1},
    ),
    Route(
        "POST", f"{MODEL}/feedback:batch", WRITERS, handlers.feedback_batch, LEARN,
        "Send a batch of feedback",
        f"Report feedback for up to {limits.MOST_ENTRIES} slates. Each entry has its own outcome.",
        body=schemas.FeedbackBatch, answer=schemas.Outcomes, refused=(404, 503), bulk=True,
        largest_body=limits.LARGEST_BATCH, counts=True,
        example={"feedback": [{"token": TOKEN, "click": None}]},
    ),
    *(
        Route(
            method, f"{MODEL}/items/{{id}}", WRITERS, handler, ITEMS, title, description,
            body=schemas.ItemFacts, answer=schemas.Changed, refused=(404, 503), in_pool=True,
            example={"name": "Espresso", "group": "coffee", "features": [0.5, 0.1]},
        )
        for method, handler, title, description in (
            (
                "PUT", handlers.put_item, "Put an item",
                "Add an item, change it, or put it back into the catalog. Fields that are left out stay as "
                "they are; null clears a field. What was learned about the item stays.",
            ),
            ("PATCH", handlers.patch_item, "Change an item", "The same as PUT."),
        )
    ),
    Route(
        "DELETE", f"{MODEL}/items/{{id}}", WRITERS, handlers.withdraw_item, ITEMS, "Withdraw an item",
        "Take an item out of the catalog. Feedback for slates that show it still counts.",
        answer=schemas.Changed, refused=(404, 503), in_pool=True,
    ),
    Route(
        "POST", f"{MODEL}/items:availability", WRITERS, handlers.set_available, ITEMS, "Set availability",
        "Mark items as in stock (`on`) or sold out (`off`), until it is set again. Withdrawing an item and "
        "putting it back, putting it without `available`, and a rollback do not change the mark.",
        body=schemas.ItemAvailability, answer=schemas.Changed, refused=(404, 503), bulk=True, in_pool=True,
        example={"on": ["espresso"], "off": ["tea"]},
    ),
    Route(
        "POST", f"{MODEL}/items:bulk", WRITERS, handlers.change_items, ITEMS, "Put and withdraw many items",
        "Put and withdraw items in one request: all of them, or none if one is wrong.",
        body=schemas.ItemChanges, answer=schemas.Changed, refused=(404, 503), bulk=True, in_pool=True,
        example={"put": [ITEM], "withdraw": ["tea"]},
    ),
    Route(
        "PUT", f"{MODEL}/lists/{{list}}", WRITERS, handlers.put_list, LISTS, "Put a list",
        "Store a list of items that requests can name as `candidates` or `exclude`. It keeps requests, and "
        "their events in the log, short.",
        body=schemas.NewList, answer=schemas.Changed, refused=(404, 503), bulk=True, in_pool=True,
        example={"items": ["espresso", "tea"]},
    ),
    Route(
        "DELETE", f"{MODEL}/lists/{{list}}", WRITERS, handlers.remove_list, LISTS, "Remove a list",
        "Remove a list. Its items stay in the catalog.",
        answer=schemas.Changed, refused=(404, 422, 503), in_pool=True,
    ),
    Route(
        "GET", f"{MODEL}/lists", READERS, handlers.show_lists, LISTS, "Show all lists",
        "All lists, and how many items each has.",
        answer=schemas.ItemLists, refused=(404, 503),
    ),
    Route(
        "PUT", f"{MODEL}/baseline", ADMINS, handlers.set_baseline, LAUNCH, "Set the baseline",
        "Set the list that is shown today. The policy starts beside it: with 95 % confidence, at all times, "
        "the expected clicks of all slates so far are at least 1 - `max_loss` of what the list would have "
        "got. A new list starts this over.",
        body=schemas.NewBaseline, answer=schemas.Changed, refused=(404, 409, 503), bulk=True, in_pool=True,
        example={"items": ["espresso", "tea"], "max_loss": 0.05},
    ),
    Route(
        "DELETE", f"{MODEL}/baseline", ADMINS, handlers.remove_baseline, LAUNCH, "Remove the baseline",
        "Remove the baseline. The policy decides every slate.",
        answer=schemas.Changed, refused=(404, 503), in_pool=True,
    ),
    Route(
        "GET", f"{MODEL}/baseline", READERS, handlers.show_baseline, LAUNCH, "Show the baseline",
        "The baseline, how often it and the policy were shown and clicked, and its guarantee.",
        answer=schemas.BaselineFacts, refused=(404, 503), in_pool=True,
    ),
    Route(
        "POST", f"{MODEL}/warm-start", ADMINS, handlers.warm_start, LAUNCH, "Warm start",
        "Learn from slates that another system has shown, as a head start: from all of them, or from none if "
        "one is wrong. Send a long log in several requests.",
        body=schemas.NewWarmStart, answer=schemas.WarmStarted, refused=(404, 503), bulk=True, in_pool=True,
        long=True, example={"slates": [{"items": ["tea", "espresso"], "click": 1}]},
    ),
    Route(
        "POST", f"{MODEL}/trial", ADMINS, handlers.start_trial, LAUNCH, "Start a trial",
        "Show each arm to a share of users and compare their clicks. With an empty body 90 % see the policy "
        "and 10 % the baseline.",
        body=schemas.NewTrial, answer=schemas.Changed, refused=(404, 409, 503), in_pool=True, long=True,
        example={"arms": {"policy": 0.9, "baseline": 0.1}, "stop_if_worse": True},
    ),
    Route(
        "PATCH", f"{MODEL}/trial", ADMINS, handlers.change_trial, LAUNCH, "Change the shares of a trial",
        "Change the shares of the arms. A new period of the trial starts. As few users as possible change "
        "their arm.",
        body=schemas.TrialChange, answer=schemas.Changed, refused=(404, 503), in_pool=True,
        example={"arms": {"policy": 0.5, "baseline": 0.5}},
    ),
    Route(
        "POST", f"{MODEL}/trial/stop", ADMINS, handlers.stop_trial, LAUNCH, "Stop a trial",
        "End the trial. From now on the policy decides every slate, or the baseline if `show` says so.",
        body=schemas.TrialEnd, answer=schemas.Changed, refused=(404, 503), in_pool=True,
        example={"show": "policy"},
    ),
    Route(
        "GET", f"{MODEL}/trial", READERS, handlers.report_trial, LAUNCH, "Get the trial report",
        "What the trial shows so far. The intervals hold however often you look.",
        answer=TrialReport, refused=(404, 503), in_pool=True,
    ),
    Route(
        "GET", f"{MODEL}/items", READERS, handlers.list_items, ITEMS, "List items",
        "The items of the catalog, one page at a time.",
        answer=schemas.ListedItems, refused=(404, 503), in_pool=True,
        query={
            "after": Query(
                summary="`next` of the page before; -1 for the first page", at_least=-1, at_most=2**53,
                default=-1,
            ),
            "limit": Query(
                summary="largest number of items", at_least=1, at_most=limits.MOST_ITEMS_LISTED, default=100
            ),
        },
    ),
    Route(
        "GET", "/v1/models", READERS, handlers.list_models, MODELS, "List models",
        "All models, with their settings and counts.",
        answer=schemas.ModelList, in_pool=True,
    ),
    Route(
        "POST", "/v1/models", ADMINS, handlers.create_model, MODELS, "Create a model",
        "Create a model with these items.",
        body=schemas.NewModel, answer=schemas.ModelFacts, codes=(201,), refused=(409, 503),
        bulk=True, in_pool=True, long=True,
        example={"name": "shop", "policy": "cascade-lin-ts", "k": 1, "items": [ITEM]},
    ),
    Route(
        "GET", MODEL, READERS, handlers.describe_model, MODELS, "Show a model",
        "A model's settings and counts.",
        answer=schemas.ModelFacts, refused=(404, 503), in_pool=True,
    ),
    Route(
        "PATCH", MODEL, ADMINS, handlers.change_settings, MODELS, "Change settings",
        "Change the settings of a model. With `explore`, a share of slates is drawn uniformly among all "
        "items that may be shown, so that the log can be used to evaluate any other policy. With "
        "`no_click_after`, a slate without feedback counts as not clicked after this many seconds; with 0 it "
        "teaches nothing.",
        body=schemas.ModelSettings, answer=schemas.Changed, refused=(404, 503), in_pool=True,
        example={"explore": 0.05},
    ),
    Route(
        "DELETE", MODEL, ADMINS, handlers.delete_model, MODELS, "Delete a model",
        "Delete a model, its log and everything it has learned, for good. The body repeats its name. Other "
        "processes stop serving it within `--poll-seconds`.",
        body=schemas.DeleteModel, answer=schemas.Deleted, refused=(404, 503), in_pool=True,
        example={"name": "shop"},
    ),
    Route(
        "GET", f"{MODEL}/view", READERS, handlers.view_model, MODELS, "Get the dashboard's data",
        "The data that the dashboard shows for a model.",
        answer=View, refused=(404, 503), in_pool=True,
    ),
    Route(
        "GET", f"{MODEL}/audit", ADMINS, handlers.audit_model, MODELS, "Audit a model",
        "Replay the log from its first event and compare the result with what is served.",
        answer=schemas.AuditAnswer, refused=(404, 503), in_pool=True, long=True,
    ),
    Route(
        "GET", f"{MODEL}/export", ADMINS, handlers.export, MODELS, "Export a model",
        "Download the whole log of a model as a file.",
        answer_media="application/octet-stream", refused=(404, 409, 503), in_pool=True, long=True,
    ),
    Route(
        "POST", f"{MODEL}/import", ADMINS, handlers.import_, MODELS, "Import a model",
        "Create a model of this name from an exported file.",
        body=bytes, answer=schemas.ModelFacts, codes=(201,), refused=(409, 503), in_pool=True, long=True,
    ),
    Route(
        "POST", f"{MODEL}/fork", ADMINS, handlers.fork, MODELS, "Fork a model",
        "Create a new model with the items and slates of this one, learned by another policy. Feedback for "
        "slates that were shown before still goes to this model.",
        body=schemas.ForkModel, answer=schemas.ModelFacts, codes=(201,), refused=(404, 409, 503),
        in_pool=True, long=True, example={"policy": "cascade-lin-ucb", "name": "shop2"},
    ),
    Route(
        "POST", f"{MODEL}/rollback", ADMINS, handlers.roll_back, MODELS, "Roll back a model",
        "Roll the model back to event `seq`. The log keeps everything that came since.",
        body=schemas.Rollback, answer=schemas.Changed, refused=(404, 503), in_pool=True, long=True,
        example={"seq": 1},
    ),
    Route(
        "GET", "/v1/keys", ADMINS, handlers.list_keys, KEYS, "List API keys",
        "All valid API keys, without the keys themselves.",
        answer=schemas.Keys, in_pool=True, refused=(503,),
    ),
    Route(
        "POST", "/v1/keys", ADMINS, handlers.make_key, KEYS, "Create an API key",
        "Create an API key. The answer is the only place where it is shown.",
        body=schemas.NewKey, answer=schemas.MadeKey, codes=(201,), refused=(503,), in_pool=True,
        example={"name": "web shop", "role": "admin"},
    ),
    Route(
        "DELETE", "/v1/keys/{key}", ADMINS, handlers.revoke_key, KEYS, "Revoke an API key",
        "Revoke a key by its id. The answer lists the keys that are left. Other processes follow within two "
        "seconds.",
        answer=schemas.Keys, refused=(404, 409, 503), in_pool=True,
    ),
    Route(
        "GET", "/health/live", OPEN, handlers.live, HEALTH, "Liveness", "Liveness probe.",
        answer=schemas.Live, always=True,
    ),
    Route(
        "GET", "/health/ready", OPEN, handlers.ready, HEALTH, "Readiness",
        "Readiness probe: 200 if requests can be sent here.",
        answer=schemas.Ready, refused=(503,), always=True,
    ),
    Route(
        "GET", "/health/ready/recommend", OPEN, handlers.ready_recommend, HEALTH, "Readiness to recommend",
        "Readiness probe for recommendations only. It stays 200 while the database is down: models are "
        "served from memory.",
        answer=schemas.ReadyFor, refused=(503,), always=True,
    ),
    Route(
        "GET", "/health/ready/feedback", OPEN, handlers.ready_feedback, HEALTH, "Readiness for feedback",
        "Readiness probe for feedback: 200 if the last write to the store succeeded. After 5 s without a "
        "write, it tries one. `reason` in a refusal is a word for programs.",
        answer=schemas.ReadyFor, refused=(503,), always=True,
    ),
    Route(
        "GET", "/metrics", READERS, handlers.metrics, HEALTH, "Metrics", "Metrics for Prometheus.",
        answer_media="text/plain", in_pool=True,
    ),
    Route(
        "GET", "/openapi.json", READERS, handlers.openapi, HEALTH, "OpenAPI document",
        "The OpenAPI document of this server.", answer=dict[str, Any],
    ),
    Route(
        "POST", "/v1/empty", WRITERS, handlers.empty, HEALTH, "Do nothing",
        "Returns an empty object. It measures the cost of a request that does nothing.",
        body=schemas.Nothing, answer=schemas.Nothing, example={},
    ),
    *(
        Route(
            "GET", path, OPEN, partial(send_file, file), HEALTH, "Dashboard", f"The dashboard: {path}",
            in_document=False,
        )
        for path, file in static_files().items()
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
