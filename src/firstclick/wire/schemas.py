"""The bodies of requests and answers. What is not declared here is refused, and OpenAPI tells the same."""

from typing import Annotated, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from firstclick.wire import limits

Number = Annotated[int, Meta(ge=-limits.LARGEST_ID, le=limits.LARGEST_ID)]
Count = Annotated[int, Meta(ge=0, le=limits.LARGEST_ID)]
ItemId = Number | Annotated[str, Meta(max_length=limits.LONGEST_ID)]
Words = Annotated[str, Meta(max_length=limits.LONGEST_NAME)]
# What stands in a column of a table; an embedding is a list of numbers.
Cell = int | float | str | bool | list[float] | None
FeatureList = Annotated[list[Cell], Meta(max_length=limits.MOST_FEATURES)]
FeatureObject = Annotated[dict[str, Cell], Meta(description="values by column name")]
Features = FeatureList | FeatureObject
Role = Literal["page", "read", "write", "admin"]
KeyModel = Annotated[str, Meta(description="of a page's key: the only model it is good for; all if absent")]
Durability = Literal["full", "relaxed"]

Places = Annotated[
    int, Meta(ge=1, le=limits.MOST_ROWS, description="places to fill; all of the model's if absent")
]
Pinned = Annotated[
    dict[int, ItemId],
    Meta(
        description="items that have their place: position, from 0, to item; excluded or withdrawn ones are "
        "skipped",
        extra_json_schema={"propertyNames": {"pattern": "^(0|[1-9][0-9]{0,2})$"}},
    ),
]
RequestId = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=256,
        description="one id for each page view: asked again within an hour, the same slate and token; "
        "feedback is counted once for it",
    ),
]
Unit = (
    Number
    | Annotated[
        str,
        Meta(
            min_length=1,
            max_length=256,
            description="id of the user or visit: decides the arm of a trial, and is stored nowhere",
        ),
    ]
)
Context = Annotated[
    list[float], Meta(max_length=limits.MOST_CONTEXT, description="the user, if the policy asks for it")
]
OfEachGroup = Annotated[Count, Meta(description="items of each group")]
OfTheseGroups = Annotated[dict[str, Count], Meta(description="items of these groups: group to number")]
OwnFeatures = Annotated[list[Features], Meta(description="of the candidates, in place of those they have")]

ListName = Annotated[str, Meta(max_length=64, description="the name of a list of items")]
Share = Annotated[
    float, Meta(ge=0, le=1, description="share of slates drawn uniformly among all items, for evaluation")
]

Shares = Annotated[
    dict[
        Annotated[str, Meta(max_length=200)], Annotated[float, Meta(ge=0, le=1, description="share of units")]
    ],
    Meta(max_length=8),
]
MaxLoss = Annotated[
    float, Meta(ge=0, le=1, description="share of the baseline's clicks that may be lost; 1: no limit")
]
Wait = Annotated[
    float,
    Meta(ge=0, le=limits.LONGEST_WAIT, description="seconds after which an unreported slate had no click"),
]

Click = Annotated[Number, Meta(description="first position clicked, from 0")]
Clicks = Annotated[
    list[Number], Meta(max_length=limits.MOST_ROWS, description="all positions clicked, in any order")
]
Examined = Annotated[Count, Meta(description="how many from the top the user saw")]


class Body(Struct, forbid_unknown_fields=True):
    """The body of a request."""


class Nothing(Body):
    """An empty object."""


class Recommend(Body):
    """What to recommend; all of it may be left out."""

    k: Places | None = None
    candidates: Annotated[list[ItemId], Meta(description="choose among these only")] | ListName | None = None
    exclude: Annotated[list[ItemId], Meta(description="never these")] | ListName = []
    pinned: Pinned = {}
    request_id: RequestId | None = None
    context: Context | None = None
    at_most: OfEachGroup | OfTheseGroups | None = None
    features: OwnFeatures | None = None
    unit: Unit | None = None
    explain: bool = False


class Recommended(Struct, omit_defaults=True, kw_only=True):
    """A slate, best first. A page's key gets `items` and `token` alone."""

    items: list[ItemId]
    scores: (
        Annotated[list[float | None], Meta(description="attraction that is held for each item, or null")]
        | UnsetType
    ) = UNSET
    token: Annotated[str, Meta(description="send it back with the click")]
    seq: Annotated[int, Meta(description="event up to which was learned")] | UnsetType = UNSET
    skipped_pins: Annotated[
        tuple[ItemId, ...], Meta(description="pinned, but not shown, because excluded or withdrawn")
    ] = ()
    explored: Annotated[bool, Meta(description="drawn uniformly, not by the policy")] = False
    not_evaluable: Annotated[str, Meta(description="why the slate cannot be drawn again later")] = ""
    reasons: Annotated[
        tuple[str, ...],
        Meta(description="why each item is shown: policy, explored, pinned, floor, holdout or baseline"),
    ] = ()
    without_exploring: Annotated[
        tuple[bool, ...] | None,
        Meta(description="with `explain`: whether the policy would show each item if it did not explore"),
    ] = None


class Feedback(Body):
    """What was clicked: `click` or `clicks`, and how far the user looked if the page knows."""

    token: str
    click: Click | UnsetType | None = UNSET
    clicks: Clicks | UnsetType = UNSET
    examined: Examined | None = None


class FeedbackAnswer(Struct, omit_defaults=True):
    """Feedback that is in the log, as event `seq`; `relaxed` if a power cut may still take it."""

    status: Literal["accepted", "duplicate", "corrected"]
    seq: int
    durability: Durability = "full"


class FeedbackBatch(Body):
    """Many pieces of feedback, each with its own outcome."""

    feedback: Annotated[list[Feedback], Meta(extra_json_schema={"maxItems": limits.MOST_ENTRIES})]


class Outcome(Struct, omit_defaults=True):
    """What became of one entry: in the log as event `seq`, or refused for the reason in `message`."""

    status: str
    seq: int | None = None
    message: str | None = None
    durability: Durability = "full"


class Outcomes(Struct):
    """In the order of the entries."""

    results: list[Outcome]


class ItemFacts(Body):
    """An item whose id is in the path. What is left out stays as it is; null clears."""

    name: Words | UnsetType | None = UNSET
    group: Words | UnsetType | None = UNSET
    features: Features | UnsetType | None = UNSET
    available: Annotated[bool, Meta(description="whether it may be shown")] | UnsetType = UNSET


class NewItem(ItemFacts, kw_only=True):
    """An item."""

    id: ItemId


class ItemAvailability(Body):
    """Items that may be shown from now on, and items that may not."""

    on: list[ItemId] = []
    off: list[ItemId] = []


class ItemChanges(Body):
    """Items to put, and items to withdraw."""

    put: list[NewItem] = []
    withdraw: list[ItemId] = []


class Changed(Struct):
    """The change is in the log, as event `seq`."""

    seq: int


class NewList(Body):
    """The items of a list."""

    items: list[ItemId]


class ItemLists(Struct):
    """All lists: how many items each has."""

    lists: dict[str, int]


class ModelSettings(Body):
    """What can be changed while a model runs: what is given."""

    explore: Share | None = None
    no_click_after: Wait | None = None


class NewBaseline(Body):
    """The list that is shown today, best first, and the share of its clicks that may be lost."""

    items: list[ItemId]
    max_loss: MaxLoss = 0.05


class LoggedSlate(Body, kw_only=True):
    """A slate that somebody else has shown, and what was clicked: `click` or `clicks`."""

    items: Annotated[list[ItemId], Meta(max_length=10_000)]
    click: Click | UnsetType | None = UNSET
    clicks: Annotated[list[Number], Meta(max_length=10_000)] | UnsetType = UNSET
    examined: Examined | None = None
    context: Context | None = None
    features: OwnFeatures | None = None


class CountedItem(Body):
    """How often an item was looked at, which may be estimated, and clicked."""

    item: ItemId
    looks: Annotated[float, Meta(ge=0)]
    clicks: Annotated[float, Meta(ge=0)]


class NewWarmStart(Body):
    """Slates that somebody else has shown, or in their place looks and clicks by item. `weight` is the most
    that an observation counts; the default policy finds out itself how much that is."""

    slates: list[LoggedSlate] = []
    weight: Annotated[float, Meta(gt=0, le=1)] | None = None
    counts: list[CountedItem] | None = None


class WarmStarted(Struct):
    """The slates, or the counts of items, are in the log as event `seq`, and learned; so many were of use."""

    seq: int
    slates: int
    items: int = 0


class BaselineFacts(Struct):
    """The list, how often it and the policy were shown and clicked, and what is promised."""

    items: list[ItemId]
    shown: Annotated[int, Meta(description="items of the list that can be shown now")]
    since: Annotated[int, Meta(description="the event that the list came with")]
    max_loss: float
    confidence: float
    pages: Annotated[int, Meta(description="slates reported since then")]
    policy_pages: int
    policy_clicks: Annotated[int, Meta(description="slates of the policy with a click")]
    baseline_pages: int
    baseline_clicks: int
    baseline_rate_low: Annotated[float, Meta(description="the click rate of the list is at least this")]
    baseline_rate_high: float
    at_least: Annotated[float, Meta(description="expected clicks so far over those of the list, at least")]
    room: Annotated[float, Meta(description="pages without a click that the policy may still show")]
    share: Annotated[float, Meta(description="probability that the policy decides the next slate")]
    assumed: str


class NewTrial(Body):
    """Arms and their shares, which add up to 1: `policy` and `baseline` of this model, `model:NAME`, another
    model with the same items, `policy:SPEC`, another policy, for which a fork of this model is made."""

    arms: Shares | None = None  # 90 % policy, 10 % baseline
    learn_from: Annotated[
        Literal["own", "all"], Meta(description="own: from its own slates and the baseline's; all: from all")
    ] = "own"
    stop_if_worse: Annotated[bool, Meta(description="show the baseline once the policy is worse")] = False
    last_pages: Annotated[
        int, Meta(ge=100, le=1_000_000_000, description="pages that the second figure of the report covers")
    ] = 10_000


class TrialChange(Body):
    """The share of each arm from now on; 0 for one that is to end."""

    arms: Shares


class TrialEnd(Body):
    """Who decides the slates after the trial."""

    show: Literal["policy", "baseline"] = "policy"


class ListedItem(Struct):
    """An item of the catalog, with its features as they were sent."""

    id: ItemId
    name: str
    group: str
    features: list[float] | dict[str, Cell] | None
    available: bool


class ListedItems(Struct):
    """Some of the items; `next` is what to give as `after` for more, or null."""

    items: list[ListedItem]
    next: int | None


class NewModel(Body):
    """A model to create."""

    name: str
    policy: Annotated[str, Meta(description="policy, NAME[:param=value,...]")]
    k: Annotated[int, Meta(ge=1, le=limits.MOST_ROWS)]
    items: list[NewItem]
    seed: Count | None = None
    explore: Share = 0.0
    baseline: Annotated[list[ItemId], Meta(description="the list shown today, best first")] = []
    max_loss: MaxLoss = 0.05
    no_click_after: Wait = 0.0


class ForkModel(Body):
    """A model to make from the log of another."""

    policy: Annotated[str, Meta(description="policy, NAME[:param=value,...]")]
    name: Annotated[str, Meta(description="of the new model")]


class DeleteModel(Body):
    """The name of the model once more."""

    name: str


class Deleted(Struct):
    """The model is gone, with so many events."""

    name: str
    events: int


class ModelFacts(Struct):
    """A model in words and numbers."""

    name: str
    policy: str
    k: int
    seed: int
    explore: float
    no_click_after: Annotated[float, Meta(description="seconds; 0: slates that nobody reports teach nothing")]
    n_features: int
    items: Annotated[int, Meta(description="items that can be shown")]
    withdrawn: int
    unavailable: int
    seq: int
    slates: Annotated[int, Meta(description="slates whose outcome is known")]
    clicks: int
    recommended: Annotated[int, Meta(description="slates recommended, by all processes, up to a minute ago")]
    unreported: Annotated[
        float | None, Meta(description="share of slates of the last day without an outcome, if it is known")
    ]
    timed_out: Annotated[int, Meta(description="slates that nobody reported within no_click_after")]
    notes: Annotated[list[str], Meta(description="what its owner should know")]


class ModelList(Struct):
    """All models."""

    models: list[ModelFacts]


class Rollback(Body):
    """The event to roll back to."""

    seq: Count


class AuditAnswer(Struct):
    """Whether what is served equals, bit for bit, what the log comes to when it is folded again."""

    name: str
    seq: int
    digest: Annotated[str, Meta(description="SHA-256 of all that the log comes to")]
    equal: bool
    differing: Annotated[list[str], Meta(description="a sentence for what was not equal")]
    seconds: float
    start: Annotated[
        int, Meta(description="the event that the fold began with: not 1 if those before are archived")
    ] = 1


class NewKey(Body):
    """An API key to make."""

    name: Annotated[str, Meta(min_length=1, max_length=100)]
    role: Role
    model: KeyModel | None = None


class KeyFacts(Struct, omit_defaults=True):
    """An API key; the key itself is not kept."""

    id: int
    name: str
    role: Annotated[str, Meta(description="one that this version does not know may do nothing")]
    created: float
    model: KeyModel | None = None


class MadeKey(KeyFacts, kw_only=True):
    """A new API key, told this once."""

    key: str


class Keys(Struct):
    """All API keys that are good."""

    keys: list[KeyFacts]


class Live(Struct):
    """The process is alive."""

    status: Literal["live"]


class Ready(Struct, omit_defaults=True):
    """Requests can be sent here; not for models of another version, if there are any.

    `set_back` says of each model whose log has lost events since this server started how many are gone.
    """

    status: Literal["ready"]
    durability: Durability
    not_served: list[str] = []
    set_back: list[str] = []


class ReadyFor(Struct, omit_defaults=True):
    """Requests of one kind can be sent here."""

    status: Literal["ready"]
    age: Annotated[float, Meta(description="seconds for which the store has not answered, if over 1, or 0")]
    not_served: list[str] = []
