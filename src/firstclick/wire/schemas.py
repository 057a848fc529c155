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
FeatureObject = Annotated[
    dict[str, Cell], Meta(description="a list in the order of columns, or an object by name")
]
Features = FeatureList | FeatureObject
Role = Literal["page", "read", "write", "admin"]
KeyModel = Annotated[str, Meta(description="of a page key: the only model it works for; all if absent")]
Durability = Annotated[
    Literal["full", "relaxed"],
    Meta(description="relaxed: a power cut may still lose clicks of the last moments"),
]
Seq = Annotated[int, Meta(description="number of the event in the model's log")]
Token = Annotated[str, Meta(description="the token that came with the slate")]
ModelName = Annotated[str, Meta(description="name of the model")]
PolicySpec = Annotated[str, Meta(description="policy: NAME or NAME:param=value,...")]

Places = Annotated[
    int, Meta(ge=1, le=limits.MOST_ROWS, description="length of the slate; the model's by default")
]
Pinned = Annotated[
    dict[int, ItemId],
    Meta(
        description='items with a fixed position, from 0, such as {"0": "tea"}; excluded or withdrawn items '
        "are skipped",
        extra_json_schema={"propertyNames": {"pattern": "^(0|[1-9][0-9]{0,2})$"}},
    ),
]
RequestId = Annotated[
    str,
    Meta(
        min_length=1,
        max_length=256,
        description="one id for each page view; repeated within an hour, it gets the same slate and token, "
        "and feedback counts once",
    ),
]
Unit = (
    Number
    | Annotated[
        str,
        Meta(
            min_length=1,
            max_length=256,
            description="id of the user or visit; decides the arm of a trial and is not stored",
        ),
    ]
)
Context = Annotated[
    list[float],
    Meta(
        max_length=limits.MOST_CONTEXT,
        description="numbers that describe the user, for policies that use them",
    ),
]
OfEachGroup = Annotated[Count, Meta(description="largest number of items of each group")]
OfTheseGroups = Annotated[dict[str, Count], Meta(description="or of the groups named")]
OwnFeatures = Annotated[
    list[Features], Meta(description="one row per candidate, in place of the catalog's features")
]

ListName = Annotated[str, Meta(max_length=64, description="or the name of a list")]
Share = Annotated[float, Meta(ge=0, le=1, description="share of slates drawn uniformly among all items")]

Shares = Annotated[
    dict[
        Annotated[str, Meta(max_length=200)], Annotated[float, Meta(ge=0, le=1, description="share of units")]
    ],
    Meta(max_length=8),
]
MaxLoss = Annotated[
    float,
    Meta(ge=0, le=1, description="largest share of the baseline's clicks that may be lost; 1: no limit"),
]
Wait = Annotated[
    float,
    Meta(
        ge=0,
        le=limits.LONGEST_WAIT,
        description="seconds after which a slate without feedback counts as not clicked; 0: never",
    ),
]

Click = Annotated[Number, Meta(description="position clicked first, from 0; null: no click")]
Clicks = Annotated[
    list[Number],
    Meta(max_length=limits.MOST_ROWS, description="all positions clicked, in any order; in place of click"),
]
Examined = Annotated[
    Count, Meta(description="how many positions from the top the user looked at, if the page knows")
]


class Body(Struct, forbid_unknown_fields=True):
    """The body of a request."""


class Nothing(Body):
    """An empty object."""


class Recommend(Body):
    """What to recommend. Every field may be left out."""

    k: Places | None = None
    candidates: (
        Annotated[list[ItemId], Meta(description="choose among these items only")] | ListName | None
    ) = None
    exclude: Annotated[list[ItemId], Meta(description="never show these items")] | ListName = []
    pinned: Pinned = {}
    request_id: RequestId | None = None
    context: Context | None = None
    at_most: OfEachGroup | OfTheseGroups | None = None
    features: OwnFeatures | None = None
    unit: Unit | None = None
    explain: Annotated[
        bool, Meta(description="also say of each item whether the policy would show it without exploring")
    ] = False


class Recommended(Struct, omit_defaults=True, kw_only=True):
    """A slate, best first. A page's key gets `items` and `token` alone."""

    items: Annotated[list[ItemId], Meta(description="items to show, best first")]
    scores: (
        Annotated[
            list[float | None],
            Meta(description="estimate for each item, null if the policy has none; not for page keys"),
        ]
        | UnsetType
    ) = UNSET
    token: Annotated[str, Meta(description="send it back with the feedback")]
    seq: (
        Annotated[int, Meta(description="last event that the slate is based on; not for page keys")]
        | UnsetType
    ) = UNSET
    skipped_pins: Annotated[
        tuple[ItemId, ...],
        Meta(description="pinned items that are not shown because they are excluded or hidden"),
    ] = ()
    explored: Annotated[bool, Meta(description="the slate was drawn uniformly, not by the policy")] = False
    not_evaluable: Annotated[str, Meta(description="why the slate cannot be used for evaluation later")] = ""
    reasons: Annotated[
        tuple[str, ...],
        Meta(description="why each item is shown: policy, explored, pinned, floor, holdout or baseline"),
    ] = ()
    without_exploring: Annotated[
        tuple[bool, ...] | None,
        Meta(description="with `explain`: whether the policy would show each item without exploring"),
    ] = None


class Feedback(Body):
    """What was clicked: `click` or `clicks`, and how far the user looked, if the page knows."""

    token: Token
    click: Click | UnsetType | None = UNSET
    clicks: Clicks | UnsetType = UNSET
    examined: Examined | None = None


class FeedbackAnswer(Struct, omit_defaults=True):
    """The feedback is in the log."""

    status: Annotated[
        Literal["accepted", "duplicate", "corrected"],
        Meta(description='corrected: a late click replaced a "no click"'),
    ]
    seq: Seq
    durability: Durability = "full"


class FeedbackBatch(Body):
    """Feedback for many slates."""

    feedback: Annotated[
        list[Feedback],
        Meta(description="one entry per slate", extra_json_schema={"maxItems": limits.MOST_ENTRIES}),
    ]


class Outcome(Struct, omit_defaults=True):
    """The outcome of one entry: in the log, or refused."""

    status: Annotated[str, Meta(description="accepted, duplicate, corrected, or the status of an error")]
    seq: Seq | None = None
    message: Annotated[str, Meta(description="why it was refused")] | None = None
    field: Annotated[str, Meta(description="the field that was refused")] = ""
    durability: Durability = "full"


class Outcomes(Struct):
    """The outcome of each entry."""

    results: Annotated[list[Outcome], Meta(description="in the order of the entries")]


class ItemFacts(Body):
    """An item whose id is in the path. Fields that are left out stay as they are; null clears a field."""

    name: Annotated[Words, Meta(description="what people call it")] | UnsetType | None = UNSET
    group: Annotated[Words, Meta(description="its group; `at_most` limits groups")] | UnsetType | None = UNSET
    features: Features | UnsetType | None = UNSET
    available: Annotated[bool, Meta(description="in stock, or sold out")] | UnsetType = UNSET


class NewItem(ItemFacts, kw_only=True):
    """An item."""

    id: ItemId


class ItemAvailability(Body):
    """Items that are in stock, and items that are sold out."""

    on: Annotated[list[ItemId], Meta(description="items that may be shown")] = []
    off: Annotated[list[ItemId], Meta(description="items that may not")] = []


class ItemChanges(Body):
    """Items to put, and items to withdraw."""

    put: Annotated[list[NewItem], Meta(description="items to add or change")] = []
    withdraw: Annotated[list[ItemId], Meta(description="items to take out of the catalog")] = []


class Changed(Struct):
    """The change is in the log."""

    seq: Seq


class NewList(Body):
    """The items of a list."""

    items: Annotated[list[ItemId], Meta(description="the items of the list")]


class ItemLists(Struct):
    """All lists."""

    lists: Annotated[dict[str, int], Meta(description="the number of items of each list, by name")]


class ModelSettings(Body):
    """Settings to change. Those that are left out stay as they are."""

    explore: Share | None = None
    no_click_after: Wait | None = None


class NewBaseline(Body):
    """The list that is shown today, and the share of its clicks that may be lost."""

    items: Annotated[list[ItemId], Meta(description="the list, best first")]
    max_loss: MaxLoss = 0.05


class LoggedSlate(Body, kw_only=True):
    """A slate that another system has shown, and what was clicked: `click` or `clicks`."""

    items: Annotated[list[ItemId], Meta(max_length=10_000, description="the items shown, from the top")]
    click: Click | UnsetType | None = UNSET
    clicks: (
        Annotated[
            list[Number],
            Meta(max_length=10_000, description="all positions clicked, in any order; in place of click"),
        ]
        | UnsetType
    ) = UNSET
    examined: Examined | None = None
    context: Context | None = None
    features: OwnFeatures | None = None


class CountedItem(Body):
    """How often an item was looked at and clicked."""

    item: ItemId
    looks: Annotated[float, Meta(ge=0, description="times it was looked at; an estimate will do")]
    clicks: Annotated[float, Meta(ge=0, description="times it was clicked")]


class NewWarmStart(Body):
    """Slates that another system has shown, or looks and clicks by item."""

    slates: Annotated[list[LoggedSlate], Meta(description="slates of the log")] = []
    weight: (
        Annotated[
            float,
            Meta(
                gt=0,
                le=1,
                description="how much an observation counts, 1 if absent; leave it out for the "
                "default policy, which finds it out",
            ),
        ]
        | None
    ) = None
    counts: Annotated[list[CountedItem], Meta(description="in place of slates")] | None = None


class WarmStarted(Struct):
    """The slates, or counts, are in the log and learned."""

    seq: Seq
    slates: Annotated[int, Meta(description="slates that were used")]
    items: Annotated[int, Meta(description="items that were used, with `counts`")] = 0


class BaselineFacts(Struct):
    """The list, how often it and the policy were shown and clicked, and its guarantee."""

    items: Annotated[list[ItemId], Meta(description="the list, best first")]
    shown: Annotated[int, Meta(description="items of the list that can be shown now")]
    since: Annotated[int, Meta(description="the event that set the list")]
    max_loss: Annotated[float, Meta(description="largest share of the list's clicks that may be lost")]
    confidence: Annotated[float, Meta(description="confidence of the guarantee")]
    pages: Annotated[int, Meta(description="slates with feedback since then")]
    policy_pages: Annotated[int, Meta(description="of these, slates of the policy")]
    policy_clicks: Annotated[int, Meta(description="slates of the policy with a click")]
    baseline_pages: Annotated[int, Meta(description="slates of the list")]
    baseline_clicks: Annotated[int, Meta(description="slates of the list with a click")]
    baseline_rate_low: Annotated[float, Meta(description="lower bound of the list's click rate")]
    baseline_rate_high: Annotated[float, Meta(description="upper bound of the list's click rate")]
    at_least: Annotated[
        float, Meta(description="lower bound of expected clicks so far, as a multiple of the list's")
    ]
    room: Annotated[float, Meta(description="pages without a click that the policy may still show")]
    share: Annotated[float, Meta(description="probability that the policy decides the next slate")]
    assumed: Annotated[str, Meta(description="what the guarantee assumes, in sentences")]


class NewTrial(Body):
    """A trial to start."""

    arms: (
        Annotated[
            Shares,
            Meta(
                description="share of each arm, 1 in sum: `policy` or `baseline` of this model, `model:NAME` "
                "(another model with the same items), or `policy:SPEC` (another policy, on a fork of this "
                "model); 90 % policy and 10 % baseline by default"
            ),
        ]
        | None
    ) = None
    learn_from: Annotated[
        Literal["own", "all"],
        Meta(description="own: an arm learns from its own slates and the baseline's; all: from all"),
    ] = "own"
    stop_if_worse: Annotated[bool, Meta(description="show the baseline as soon as the policy is worse")] = (
        False
    )
    last_pages: Annotated[
        int, Meta(ge=100, le=1_000_000_000, description="pages that the second figure of the report covers")
    ] = 10_000


class TrialChange(Body):
    """The share of each arm from now on."""

    arms: Annotated[Shares, Meta(description="share of each arm, 1 in sum; 0 ends an arm")]


class TrialEnd(Body):
    """Who decides the slates after the trial."""

    show: Annotated[Literal["policy", "baseline"], Meta(description="who decides the slates from now on")] = (
        "policy"
    )


class ListedItem(Struct):
    """An item of the catalog."""

    id: ItemId
    name: str
    group: str
    features: Annotated[list[float] | dict[str, Cell] | None, Meta(description="as they were sent")]
    available: Annotated[bool, Meta(description="in stock, or sold out")]


class ListedItems(Struct):
    """A page of items."""

    items: Annotated[list[ListedItem], Meta(description="the items of this page")]
    next: Annotated[int | None, Meta(description="send it as `after` for the next page; null at the end")]


class NewModel(Body):
    """A model to create."""

    name: ModelName
    policy: PolicySpec
    k: Annotated[int, Meta(ge=1, le=limits.MOST_ROWS, description="length of a slate")]
    items: Annotated[list[NewItem], Meta(description="the items of its catalog")]
    seed: Annotated[Count, Meta(description="decides what is explored; random if absent")] | None = None
    explore: Share = 0.0
    baseline: Annotated[list[ItemId], Meta(description="the list that is shown today, best first")] = []
    max_loss: MaxLoss = 0.05
    no_click_after: Wait = 0.0


class ForkModel(Body):
    """A model to make from the log of another."""

    policy: PolicySpec
    name: Annotated[str, Meta(description="name of the new model")]


class DeleteModel(Body):
    """The name of the model once more."""

    name: Annotated[str, Meta(description="the name in the path once more, as a safeguard")]


class Deleted(Struct):
    """The model is deleted."""

    name: ModelName
    events: Annotated[int, Meta(description="how many events it had")]


class ModelFacts(Struct):
    """A model's settings and counts."""

    name: ModelName
    policy: PolicySpec
    k: Annotated[int, Meta(description="length of a slate")]
    seed: Annotated[int, Meta(description="decides what is explored")]
    explore: Annotated[float, Meta(description="share of slates drawn uniformly")]
    no_click_after: Annotated[
        float,
        Meta(description="seconds after which a slate without feedback counts as not clicked; 0: never"),
    ]
    n_features: Annotated[int, Meta(description="number of features")]
    items: Annotated[int, Meta(description="items that can be shown")]
    withdrawn: Annotated[int, Meta(description="items that were withdrawn")]
    unavailable: Annotated[int, Meta(description="items that are sold out")]
    seq: Annotated[int, Meta(description="last event of the log")]
    slates: Annotated[int, Meta(description="slates with feedback")]
    clicks: Annotated[int, Meta(description="slates with a click")]
    recommended: Annotated[int, Meta(description="slates recommended, by all processes, up to a minute ago")]
    unreported: Annotated[
        float | None, Meta(description="share of the last day's slates without feedback; null if unknown")
    ]
    timed_out: Annotated[int, Meta(description="slates without feedback within `no_click_after`")]
    notes: Annotated[list[str], Meta(description="sentences for the model's owner")]


class ModelList(Struct):
    """All models."""

    models: Annotated[list[ModelFacts], Meta(description="all models")]


class Rollback(Body):
    """The event to roll back to."""

    seq: Annotated[Count, Meta(description="number of the event to roll back to")]


class AuditAnswer(Struct):
    """Whether a replay of the log gives, bit for bit, what is served."""

    name: ModelName
    seq: Annotated[int, Meta(description="last event that was replayed")]
    digest: Annotated[str, Meta(description="SHA-256 of the result of the replay")]
    equal: Annotated[bool, Meta(description="nothing differs")]
    differing: Annotated[list[str], Meta(description="a sentence for each difference")]
    seconds: Annotated[float, Meta(description="time it took")]
    start: Annotated[
        int, Meta(description="first event that was replayed; not 1 if earlier events are archived")
    ] = 1


class NewKey(Body):
    """An API key to create."""

    name: Annotated[str, Meta(min_length=1, max_length=100, description="who or what will use it")]
    role: Annotated[Role, Meta(description="what it may do")]
    model: KeyModel | None = None


class KeyFacts(Struct, omit_defaults=True):
    """An API key. The key itself is not stored."""

    id: Annotated[int, Meta(description="number, for revoking it")]
    name: Annotated[str, Meta(description="who or what uses it")]
    role: Annotated[str, Meta(description="what it may do; an unknown role may do nothing")]
    created: Annotated[float, Meta(description="seconds since 1970")]
    model: KeyModel | None = None


class MadeKey(KeyFacts, kw_only=True):
    """A new API key, shown this once."""

    key: Annotated[str, Meta(description="the key")]


class Keys(Struct):
    """All valid API keys."""

    keys: Annotated[list[KeyFacts], Meta(description="all valid keys")]


class Live(Struct):
    """The process is alive."""

    status: Literal["live"]


class Ready(Struct, omit_defaults=True):
    """Requests can be sent here."""

    status: Literal["ready"]
    durability: Durability
    not_served: Annotated[
        list[str], Meta(description="models that another version has learned, which are not served")
    ] = []
    set_back: Annotated[
        list[str], Meta(description="models whose log lost events since this server started, and how many")
    ] = []


class ReadyFor(Struct, omit_defaults=True):
    """Requests of one kind can be sent here."""

    status: Literal["ready"]
    age: Annotated[
        float, Meta(description="seconds since the store last answered; 0 if less than a second ago")
    ]
    not_served: Annotated[
        list[str], Meta(description="models that another version has learned, which are not served")
    ] = []
