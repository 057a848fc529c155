"""Every wrong argument at every door: refused, named, in one sentence, and nothing changes.

The tables have the argument and the call; `messages/` has the words.
"""

import json
from datetime import date
from itertools import starmap

import numpy as np
import pytest

from firstclick import Catalog, Ranker
from firstclick.serve import Item
from tests.support.doors import DOORS, SERVED
from tests.support.policies import OTHERS
from tests.support.shop import IDS, LIST, K, new_item

HUGE = 10**5000
NAN, INFINITY = float("nan"), float("inf")
ANY_DOOR = ["ranker", *SERVED]


def each(argument, *values, **others):
    """A call for each wrong value of this argument."""
    return [(argument, {argument: value, **others}) for value in values]


def calls_of(method, table):
    return [(argument, lambda given=given: method(**given)) for argument, given in table]


def try_all(messages, table, calls, door=None):
    """Refuse each of the calls, with nothing changed by it; compare the words with those of the file."""
    for argument, call, *status in calls:
        before = None if door is None else door.facts()
        messages.expect(call, argument, *status, model="" if door is None else door.model)
        if door is not None and door.facts() != before:
            messages.problems.append(f"{argument}: something changed")
    messages.check(table)


# Requests


REQUESTS = [
    *each("k", 0, -1, K + 1, 2.5, "2", True, [2], 10**30, HUGE),
    *each("candidates", ["nothing"], ["7"], [8], [1.5], [True], [None], ["i1", ["i2"]], 7, "i1"),
    *each("candidates", [10**30], [HUGE]), *each("pinned", [], 0, ""),
    *each("exclude", ["7"], [1.5], [True], 7, "i1", [HUGE]),
    *each("pinned", {9: "i1"}, {-1: "i1"}, {"a": "i1"}, {0: "nothing"}, {0: None}, {0: 1.5}, ["i1"]),
    *each("pinned", {0: "i1", 1: "i1"}), *each("pinned", {1: "i1"}, k=1),
    *each("at_most", -1, 1.5, True, [1], 10**30, {"nope": 1}, {"od": 1}, {"odd": -1}, {"odd": "1"}),
    *each("context", [1.0], "ab", [1e60]), *each("features", [[1.0] * 4]),
    *each("features", [[1.0] * 3], [[1e300] * 4], [], [["a"] * 4], 4, candidates=["i1"]),
    *each("features", [[NAN, 1, 1, 1]], [[1] * 4] * 2, candidates=["i1"]),
    *each("features", [[1.0] * 4, [1.0]], candidates=["i1", "i2"]),
    *each("candidates", ["i1", "i1"], features=[[1.0] * 4] * 2),
]  # fmt: skip
SENT_REQUESTS = [
    *each("request_id", "", "x" * 300, 7), *each("unit", "", "x" * 300, True, 1.5),
    *each("explain", "yes", 1),
    *each("user", [1]),
]  # fmt: skip


@pytest.mark.parametrize("name", DOORS)
def test_wrong_requests(open_at, messages, name):
    door = open_at(name)
    table = REQUESTS + (SENT_REQUESTS if name == "http" else [])
    try_all(messages, f"requests-{name}", calls_of(door.recommend, table), door)
    assert len(door.recommend().items) == K


def test_wrong_request_ids_and_units(open_at, messages):
    door = open_at("service")
    table = [
        *each("request_id", 7), *each("unit", "", "x" * 300, True, 1.5, "\ud800", HUGE),
        *each("explain", "yes", None, np.array([])),
    ]  # fmt: skip
    calls = calls_of(door.recommend, table)
    door.recommend(request_id="one")
    calls.append(("request_id", lambda: door.recommend(request_id="one", k=2), "conflict"))
    try_all(messages, "request-ids", calls, door)


NOT_IN_JSON = [
    *each("candidates", b"i1", {"i1": 1}.items(), [b"i1"], np.array(3)),
    *each("exclude", np.array([1.5]), 1.5),
    *each("pinned", {0: date(2026, 1, 1)}, {(0, 1): "i1"}, np.array([])),
    *each("context", np.array(["2026-01-01"], "M8[D]"), [1 + 2j], np.ma.masked_array([1.0], [True])),
    *each("features", [[date(2026, 1, 1)] * 4], [[np.datetime64("2026-01-01")] * 4], candidates=["i1"]),
    *each("features", np.ma.masked_array([[1.0] * 4], [[0, 0, 1, 0]]), candidates=["i1"]),
]  # fmt: skip


@pytest.mark.parametrize("name", ["ranker", "service", "client", "async"])
def test_values_that_json_lacks(open_at, messages, name):
    door = open_at(name)
    try_all(messages, f"python-values-{name}", calls_of(door.recommend, NOT_IN_JSON), door)


CONTEXTS = [
    ("context", {}),
    *each("context", [1.0], [1.0, 2.0, 3.0], [1e60, 1.0], "ab", [[1.0, 2.0]], [INFINITY, 1.0]),
    *each("context", [None, 1.0], [], [["a"], 1.0]),
]  # fmt: skip


@OTHERS
@pytest.mark.parametrize("name", ANY_DOOR)
def test_wrong_contexts(open_at, messages, name):
    door = open_at(name, policy="context-lin-ts:context=2")
    try_all(messages, f"contexts-{name}", calls_of(door.recommend, CONTEXTS), door)


@OTHERS
@pytest.mark.parametrize("name", ANY_DOOR)
def test_what_top_rank_cannot_take(open_at, messages, name):
    """It compares items that had the same chances, and learns only from slates that it has arranged."""
    door = open_at(name, policy="top-rank", features=False)
    table = [
        *each("candidates", ["i1", "i2"]), *each("exclude", ["i1"]), *each("pinned", {0: "i1"}),
        *each("at_most", 1),
        *each("features", [[1.0]], candidates=["i1"]),
    ]  # fmt: skip
    new = Item("new") if name == "ranker" else Item("new", features=None)
    calls = [
        *calls_of(door.recommend, table), ("items", lambda: door.put([new])),
        ("baseline", lambda: door.set_baseline(IDS)),
    ]  # fmt: skip
    if name != "ranker":
        calls.append(("explore", lambda: door.change_settings(explore=0.1)))
    try_all(messages, f"top-rank-{name}", calls, door)
    assert len(door.recommend(k=2).items) == 2


# Feedback


FEEDBACK = [
    ("click", {}), *each("click", 3, -1, True, 1.5, "1", [1], 10**30, HUGE), *each("click", 0, clicks=[0]),
    *each("clicks", {0: 1}, {}),
    *each("clicks", [0, 0], [0, 9], [-1], [1.5], [None], [True], 7, "01"), *each("examined", 1, click=1),
    *each("examined", -1, 4, 1.5, True, click=None), *each("examined", 2, clicks=[2]),
]  # fmt: skip


@pytest.mark.parametrize("name", DOORS)
def test_wrong_feedback(open_at, messages, name):
    """The slate still waits for its feedback."""
    door = open_at(name, policy="cascade-ts", features=False)
    slate, empty = door.recommend(), door.recommend(candidates=[])
    calls = calls_of(lambda **report: door.feedback(slate.handle, **report), FEEDBACK)
    calls.append(("click", lambda: door.feedback(empty.handle, click=0)))
    calls.append(("clicks", lambda: door.feedback(empty.handle, clicks=[0])))
    try_all(messages, f"feedback-{name}", calls, door)
    assert door.feedback(slate.handle, click=0) == "accepted"


SLATES = [
    (7, "malformed"),
    (None, "malformed"),
    ("", "unknown"),
    ("nonsense", "unknown"),
    ("A" * 50_000, "unknown"),
]


@pytest.mark.parametrize("name", ANY_DOOR)
def test_wrong_slates(open_at, messages, name):
    door, other = open_at(name), open_at(name)
    argument = "slate" if name == "ranker" else "token"
    slates = [*SLATES, (other.recommend().handle, "unknown")]
    calls = [
        (
            argument,
            lambda slate=slate: door.feedback(slate, click=0),
            "malformed" if name == "ranker" else status,
        )
        for slate, status in (SLATES if name == "ranker" else slates)
    ]
    try_all(messages, f"slates-{name}", calls, door)


@pytest.mark.parametrize("name", SERVED)
def test_other_feedback_for_a_slate(open_at, messages, name):
    door = open_at(name, policy="cascade-ts", features=False)
    slate = door.recommend().handle
    door.feedback(slate, click=1)
    reports = [{"click": None}, {"click": 2}, {"clicks": [1, 2]}, {"click": 1, "examined": 3}]
    calls = [
        ("token", lambda report=report: door.feedback(slate, **report), "conflict") for report in reports
    ]
    try_all(messages, f"conflicts-{name}", calls, door)


# Items


ITEMS = [
    ("put", []), ("items", [new_item("new"), new_item("new")]),
    ("features", [new_item(features=[1.0] * 3)]), ("features", [new_item(features=[1e300] * 4)]),
    ("features", [new_item(features="abcd")]), ("features", [new_item(features=[[1.0] * 4])]),
    ("features", [new_item(features={"price": 1.0})]), ("features", [new_item(features=["a", 1, 1, 1])]),
    ("features", [new_item("i1", features=[1.0])]), ("features", [new_item(features=[0.0] * 2000)]),
    *[("id", [new_item(id)]) for id in ("", "x" * 501, 2**53 + 1, 1.5, True, None)],
    ("name", [new_item(name=7)]), ("name", [new_item(name="x" * 1001)]), ("group", [new_item(group=7)]),
    ("available", [new_item(available="no")]), ("available", [new_item(available=1)]),
]  # fmt: skip


@pytest.mark.parametrize("name", SERVED)
def test_wrong_items(open_at, messages, name):
    door = open_at(name)
    calls = [(argument, lambda given=given: door.put(given)) for argument, given in ITEMS]
    calls.append(("withdraw", lambda: door.withdraw(["nothing"]), "unknown"))
    calls += [("withdraw", lambda ids=ids: door.withdraw(ids)) for ids in ("i1", [1.5], 7)]
    if name != "client":
        calls.append(("withdraw", lambda: door.change([new_item("i1")], ["i1"])))
    if name != "http":
        calls += [
            ("put" if name == "service" else "items", lambda put=put: door.put(put)) for put in (7, None)
        ]
        wrong = (["new"], [{"id": "new"}], [None])
        calls += [("items", lambda put=put: door.put(put)) for put in wrong]
    try_all(messages, f"items-{name}", calls, door)


def test_wrong_items_of_a_ranker(open_at, messages):
    door = open_at("ranker")
    ranker, row = door.ranker, [1.0] * 4
    add = [
        ("items", (["i1"], [row])), ("items", ("new", [row])), ("items", (7, [row])),
        ("items", (["a", "a"], [row, row])),
        ("items", ([1.5], [row])), ("features", (["new"],)), ("features", (["new"], [row] * 2)),
        ("features", (["new"], [[1.0] * 3])), ("features", (["new"], [[1e300] * 4])),
        ("features", (["new"], "abcd")),
        ("groups", (["new"], [row], ["a", "b"])), ("groups", (["new"], [row], "a")),
        ("groups", (["new"], [row], [1.5])), ("groups", (["new"], [row], 7)),
    ]  # fmt: skip

    def add_items(items, features=None, groups=None):
        ranker.add_items(items, features, groups=groups)

    calls = [(argument, lambda given=given: add_items(*given)) for argument, given in add]
    calls += [
        ("items", lambda: ranker.change_items(["nothing"], [row])),
        ("features", lambda: ranker.change_items(["i1"], [[1.0]])),
        ("groups", lambda: ranker.change_items(["i1"], groups=["a", "b"])),
        ("available", lambda: ranker.set_available(["i1"], 1)), ("item", lambda: ranker.catalog.row_of(1.5)),
    ]  # fmt: skip
    lists = [ranker.withdraw_items, ranker.estimates, ranker.catalog.subset, ranker.catalog.show_again]
    for method in (*lists, lambda items: ranker.set_available(items, False)):
        calls += [
            ("items", lambda ids=ids, m=method: m(ids)) for ids in (["nothing"], ["7"], ["i1", 1.5], "i1", 7)
        ]
    try_all(messages, "items-ranker", calls, door)


@pytest.mark.parametrize("name", SERVED)
def test_wrong_availability_lists_and_settings(open_at, messages, name):
    door = open_at(name)
    calls = [
        ("on", lambda: door.set_available(on=["nothing"]), "unknown"),
        ("off", lambda: door.set_available(off=["i1", "nothing"]), "unknown"),
        *calls_of(door.set_available, each("on", ["i1"], off=["i1"])),
        *calls_of(door.set_available, [*each("on", []), *each("off", [1.5], "i1", 7)]),
        ("items", lambda: door.put_list("hits", ["nothing"]), "unknown"),
        *[("items", lambda ids=ids: door.put_list("hits", ids)) for ids in ("i1", [True], 7)],
        ("list_name", lambda: door.put_list("-hits", ["i1"])),
        ("list_name", lambda: door.remove_list("hits"), "unknown"),
        *calls_of(door.change_settings, each("explore", 1.5, -0.1, "much", True, NAN)),
        *calls_of(door.change_settings, each("no_click_after", 0.5, -1, 31 * 86_400, "soon")),
        *[("seq", lambda seq=seq: door.roll_back(seq)) for seq in (0, 99, "1", True)],
    ]  # fmt: skip
    if name != "client":
        calls.append(("explore", door.change_settings))
    if name != "http":
        names = ("", 7, None, [], b"hits")
        calls += [("list_name", lambda wrong=wrong: door.put_list(wrong, ["i1"])) for wrong in names]
        calls += [("list_name", lambda wrong=wrong: door.remove_list(wrong)) for wrong in names]
    try_all(messages, f"settings-{name}", calls, door)


BASELINES = [[], ["i1", "i2"], ["i1", "i2", "nothing"], ["i1", "i2", "i2"], ["i1", "i2", "gone"]]
NOT_LISTS = ["i1i2", [1.5, "i1", "i2"], 7]


@pytest.mark.parametrize("name", ANY_DOOR)
def test_wrong_baselines(open_at, messages, name):
    door = open_at(name)
    door.put([new_item("gone")])
    door.withdraw(["gone"])
    in_body = "items" if name in ("http", "client") else "baseline"
    calls = [("baseline", lambda ids=ids: door.set_baseline(ids)) for ids in BASELINES]
    calls += [(in_body, lambda ids=ids: door.set_baseline(ids)) for ids in NOT_LISTS]
    calls += [
        ("max_loss", lambda loss=loss: door.set_baseline(LIST, loss)) for loss in (0, -1, 1.5, "a", True, NAN)
    ]
    if name != "ranker":
        calls.append(("baseline", door.remove_baseline, "unknown"))
    try_all(messages, f"baselines-{name}", calls, door)


LOGS = [
    [{"items": ["i1"], "click": 1}], [{"items": ["i1", "i1"], "click": 0}], [{"items": ["i1"]}],
    [{"items": ["i1", "i2"], "click": 0, "clicks": [1]}], [{"items": ["i1"], "click": 0, "examined": 9}],
    [{"items": ["i1"], "click": 0}, {"items": ["7"], "click": 0}],
    [{"items": ["i1", "i2"], "clicks": [0, 0]}], [{"items": ["i1", "i2"], "click": 1, "examined": 1}],
    [{"items": ["i1", "i2"], "click": 1, "clicks": []}],
]  # fmt: skip
# HTTP refuses these by the form of the body.
NOT_LOGS = [
    [{"items": "i1", "click": 0}], [{"items": [1.5], "click": 0}], [{"items": ["i1"], "click": "0"}], [7],
    [None],
    [{"items": ["i1"]}.items()], [{"items": [{"id": "i1"}], "click": None}], [{"items": 7, "click": None}],
    [{"click": 1}], [{}],
]  # fmt: skip
NOT_COUNTS = [7, [("i1", (2, 1))], {"i1": 2}, {"i1": (2, 1, 0)}, {"i1": ("2", "1")}, {1.5: (2, 1)}]
NOT_ITERABLE = ["i1", 7, {"items": ["i1"]}]


@pytest.mark.parametrize("name", ["ranker", "service", "http"])
def test_wrong_warm_starts(open_at, messages, name):
    door = open_at(name, policy="cascade-ts", features=False)
    good = [{"items": ["i1", "i2"], "click": 0}]
    calls = [("log", lambda log=log: door.warm_start(log)) for log in LOGS]
    other = NOT_LOGS if name == "http" else NOT_LOGS + NOT_ITERABLE
    calls += [("slates" if name == "http" else "log", lambda log=log: door.warm_start(log)) for log in other]
    if name != "http":
        lines = map(json.loads, ['{"items": ["i1"], "click": 0}', '{"items": '])
        back = {"kind": "rolled-back", "seq": HUGE, "to": HUGE}
        wrong = [lines, [{HUGE: 1}], [good[0] | {"click": HUGE}], [good[0] | {"items": [HUGE]}], [back], None]
        calls += [("log", lambda log=log: door.warm_start(log)) for log in wrong]
    weights = (0, -1, 1.5, "a", True)
    calls += [("weight", lambda weight=weight: door.warm_start(good, weight)) for weight in weights]
    if name != "ranker":
        counts = [{"nothing": (2, 1)}, {"i1": (1, 2)}, {"i1": (0, 0)}]
        calls += [("counts", lambda counts=pair: door.warm_start_counts(counts)) for pair in counts]
        calls.append(("log", lambda: door.warm_start([{"items": ["nothing"], "click": 0}])))
    if name == "service":
        calls += [("counts", lambda counts=counts: door.warm_start_counts(counts)) for counts in NOT_COUNTS]
    try_all(messages, f"warm-starts-{name}", calls, door)


@pytest.mark.parametrize("name", ["client", "async"])
def test_wrong_warm_starts_of_clients(open_at, messages, name):
    door = open_at(name, policy="cascade-ts", features=False)
    calls = [("slates", lambda log=log: door.warm_start(log)) for log in ("i1", 7, None, [7], [None])]
    calls += [("counts", lambda counts=counts: door.warm_start_counts(counts)) for counts in NOT_COUNTS]
    calls += [("arms", lambda arms=arms: door.change_trial_shares(arms)) for arms in (7, "policy", [0.5])]
    try_all(messages, f"warm-starts-{name}", calls, door)


# Models


TWO = [Item("a"), Item("b")]
MODELS = [
    *each("policy", "x" * 3000, {"name": "random"},
        "nope", "cascade-lints", "cascade-ts:x=1", "cascade-lin-ts:sigma=-1", 7),
    *each("policy", "cascade-ts:start"),
    *each("policy", "cascade-lin-ts"), *each("k", 0, 256, "3", 1.5), *each("seed", -1, 1.5, "a", 2**64),
    *each("items", [], [Item("a"), Item("a")]), *each("explore", 2, "a", -1),
    *each("no_click_after", -1, 0.5, "soon"),
    *each("baseline", ["a"], ["a", "b", "nothing"]), *each("max_loss", 0, 2, baseline=["a", "b"]),
    ("features", {"items": [Item("a", features=[1.0]), Item("b", features=[1.0, 2.0])]}),
    ("features", {"items": [Item("a", features={"price": 1}), Item("b", features=[1.0])]}),
    ("features", {"items": [Item("a", features=[1.0] * 1025)]}),
]  # fmt: skip
NAMES = ["", "-shop", "a b", "x" * 65, "shop/two"]


@pytest.mark.parametrize("name", ["service", "http"])
def test_wrong_models(open_at, messages, name):
    door = open_at(name)

    def create(name="other", **given):
        door.create(name, **{"policy": "cascade-ts", "k": 2, "items": TWO, **given})

    calls = calls_of(create, [*MODELS, *each("name", *NAMES)])
    calls += [
        ("name", lambda: create(door.model), "conflict"), ("name", lambda: door.fork("cascade-ts", "-")),
        ("name", lambda: door.fork("cascade-ts", door.model), "conflict"),
        ("policy", lambda: door.fork("nope", "other")),
        ("policy", lambda: door.fork("top-rank", "other")),
    ]  # fmt: skip
    try_all(messages, f"models-{name}", calls, door)
    assert "other" not in door.service.names()


RANKERS = [
    *each("policy", HUGE, [HUGE]),
    *each("k", 0, 14, 1.5, "3"), *each("seed", -1, 1.5, 2**256, True), *each("policy", "nope", 7, Ranker),
    *each("policy", "cascade-lin-ts", features=False), *each("max_pending", 0, 1.5),
    *each("explore", 1.5, True, -1, "a"),
    *each("baseline", ["i1"], "i1", 7), *each("max_loss", 0.1), *each("max_loss", 0, 2, baseline=LIST),
    *each("explore", 0.1, policy="top-rank"), *each("explore", 0.1, policy="bubble-rank"),
    *each("baseline", LIST, policy="top-rank"), *each("baseline", LIST, policy="bubble-rank"),
    ("sigma", {"policy": "cascade-lin-ts:sigma=-1"}),
]  # fmt: skip
SETTINGS = [
    ("discount", "cascade-ducb:horizon=100,discount=0.9"), ("window", "cascade-swucb:horizon=100,window=9"),
    ("stop", "dcm-kl-ucb:stop=" + "/".join(["0.5"] * 17)), ("stop", "dcm-kl-ucb:stop=0.5/1.5"),
    ("stop", "dcm-lin-ts:stop=0"), ("delta", "cascade-glr-ucb:delta=1"),
    ("examination", "pbm-ucb:examination=0/0"),
    # These do not fit the features of the shop.
    ("context", "context-lin-ts:context=3,combine=product"), ("rank", "c3-ucb:context=1,rank=5"),
    ("rank", "c3-ucb:context=1,rank=1,combine=product"), ("topics", "cascade-hybrid:topics=5"),
    ("features", "cascade-lsb"),
]  # fmt: skip


def test_wrong_rankers(open_at, messages):
    table = RANKERS + [(argument, {"policy": policy}) for argument, policy in SETTINGS]
    calls = calls_of(lambda **given: open_at("ranker", **given), table)
    try_all(messages, "rankers", [*calls, ("catalog", lambda: Ranker(["a"], k=1))])


CATALOGS = [
    *each("items", [], ["a", "a"], "ab", 7, b"ab", [1.5], [True], [None], [b"a"], [2**128]),
    *each("items", [["a"]], [date(2026, 1, 1)]),
    *each("items", [np.datetime64("2026-01-01")], [HUGE], [np.timedelta64(1)]),
    *each("features", [[1.0], [2.0]], [1.0], [[]], [[INFINITY]], [[1e200]], items=["a"]),
    *each("features", [["x"]], [[10**400]], "x", [[1j]], items=["a"]),
    *each("features", [None, None], [[1.0], [1.0, 2.0]], [[1.0], [True, "a"]], items=["a", "b"]),
    *each("groups", ["x"], "xy", b"xy", 7, [1.5, "x"], [["x"], "y"], {"a": "x", "b": "y"}, items=["a", "b"]),
]  # fmt: skip


MASKED = [np.ma.array([[1.0, 2.0], [3.0, 4.0]], mask=[[0, 0], [0, 1]]), ([1.0, 2.0], [3.0, np.ma.masked])]
MASKED += [[[1.0, 2.0], np.ma.array([3.0, 4.0], mask=[0, 1])], [[1.0, 2.0], np.ma.masked_all(2)]]
DAY = np.datetime64("2026-11-17", "ns")
TIMES = [
    np.array([[DAY] * 2] * 2),
    [np.array([DAY, DAY]), [1.0, 2.0]],
    [[1.0, np.timedelta64(3, "h")], [1.0, 2.0]],
]
TIMES += [np.array([[DAY - DAY] * 2] * 2), [[date(2026, 11, 17)], [date(2026, 11, 18)]]]
COLD = [
    [None, [1, NAN]],
    [None, [1, 1j]],
    [None, 1],
    [[NAN, NAN], [NAN, NAN]],
    [None, [1, 2], [1, 2]],
    [None, [1], [1, 2]],
]


@pytest.mark.filterwarnings("ignore:Warning. converting a masked element to nan")
def test_wrong_catalogs(messages):
    calls = calls_of(Catalog, [*CATALOGS, *each("features", *MASKED, *TIMES, *COLD, items=["a", "b"])])
    plain, row = Catalog(["a", 7]), [[1.0]]
    wrong = [[10**5000], [2**128], ["b", 10**30 * 10**30], "b12", 12, [1.5]]
    for method in (plain.add, plain.rows, plain.withdraw, plain.show_again, plain.known_rows):
        calls += [("items", lambda ids=ids, method=method: method(ids)) for ids in wrong]
    calls += [("features", lambda: plain.add(["b"], row)), ("item", lambda: plain.row_of(2**128))]
    try_all(messages, "catalogs", calls)
    assert plain.items == ["a", 7]
    assert len(plain) == 2


def shares(**arms):
    return {"arms": {name.replace("_", ":"): share for name, share in arms.items()}}


TRIALS = [
    ("arms", shares(policy=1.0)), ("shares", shares(policy=0.5, baseline=0.1)),
    ("arms", shares(baseline=0.5, model_nope=0.5)), ("arms", shares(policy=0.5, other=0.5)),
    ("arms", shares(policy=0.5, policy_=0.5)), ("policy", shares(policy=0.5, policy_nope=0.5)),
    ("stop_if_worse", {"stop_if_worse": True, "arms": {"policy": 0.5, "policy:cascade-ucb1": 0.5}}),
    *each("learn_from", "both", None, ["own"]), *each("last_pages", 5),
    *each("stop_if_worse", None, "yes", 1),
    *each("arms", [["policy", 0.5], ["baseline", 0.5]], 7),
]  # fmt: skip


@pytest.mark.parametrize("name", ["service", "http"])
def test_wrong_trials(open_at, messages, name):
    door = open_at(name, policy="cascade-ts", features=False)
    table = [
        ("model", door.stop_trial, "unknown"), ("arms", door.start_trial),
        ("model", lambda: door.change_trial_shares({"policy": 1}), "unknown"),
    ]  # fmt: skip
    for call in table:
        note(messages, door, *call)
    door.set_baseline(LIST)
    for call in calls_of(door.start_trial, TRIALS):
        note(messages, door, *call)
    door.start_trial()
    calls = [
        ("model", door.start_trial, "conflict"), ("baseline", door.remove_baseline, "conflict"),
        ("baseline", lambda: door.set_baseline(["i0", *LIST]), "conflict"),
        ("arms", lambda: door.change_trial_shares({"policy": 1.0})),
        ("shares", lambda: door.change_trial_shares({"policy": 0.5, "baseline": 0.6})),
        ("arms", lambda: door.change_trial_shares([0.5, 0.5])),
        *[("show", lambda show=show: door.stop_trial(show=show)) for show in ("nothing", None, ["policy"])],
    ]  # fmt: skip
    try_all(messages, f"trials-{name}", calls, door)
    door.stop_trial()


def note(messages, door, argument, call, *status):
    messages.expect(call, argument, *status, model=door.model)


@pytest.mark.parametrize("name", SERVED)
def test_missing_models(open_at, messages, name):
    door = open_at(name)
    slate = door.recommend().handle
    door.service.delete(door.model)
    calls = [
        door.recommend,
        door.describe,
        lambda: door.put([new_item()]),
        lambda: door.feedback(slate, click=0),
    ]
    for call in calls:
        note(messages, door, "model", call, "unknown")
    messages.check(f"missing-models-{name}")


# What only HTTP has


def test_wrong_bodies(open_at, messages):
    """A body that cannot be read as a whole has no argument."""
    door = open_at("http")
    feedback = [
        b"", b" \n", b"[]", b"null", b'{"token": "a', b"click=1", b'{"token": "a", "click": 1} {}',
        b'{"token": "a", "click": NaN}', b'{"token": "a", "click": -Infinity}',
        b'{"token": "a", "click": ' + b"[" * 100_000,
        b'{"a":' * 100_000, b'{"token": "\xff\xfe", "click": 1}', b'{"token": "\\ud800", "click": 1}',
        b'{"token": "\x00", "click": 1}', b'{"token": "a\\u0000", "click": 1}',
        '{"token": "a", "click": 1}'.encode("utf-16"), b'{"token": "a", "click": 1, "click": 2}',
        b'{"token": "a", "click": 1, "cl\\u0069ck": 2}',
    ]  # fmt: skip
    fields = [
        ("klick", "/feedback", b'{"token": "a", "klick": 2}'),
        ("token", "/feedback", b'{"token": 5, "click": 1}'),
        ("token", "/feedback", b'{"click": 1}'), ("click", "/feedback", b'{"token": "a", "click": 1e999}'),
        ("click", "/feedback", b'{"token": "a", "click": ' + b"9" * 5000 + b"}"),
        ("token", "/feedback:batch", b'{"feedback": [{"token": "a"}, {"token": 5}]}'),
        ("feedback", "/feedback:batch", b'{"feedback": [{"token": "a", "b c": 1}]}'),
        ("features", "/recommend", b'{"features": [[1], [1, 1e999]]}'),
        ("features", "/items:bulk", b'{"put": [{"id": "new", "features": [1, 1e999]}]}'),
        ("id", "/items:bulk", b'{"put": [{"id": ' + b"9" * 400 + b"}]}"),
        ("seq", "/rollback", b'{"seq": ' + b"9" * 400 + b"}"),
        ("pinned", "/recommend", b'{"pinned": {"9999999": "i1"}}'),
    ]  # fmt: skip
    path = f"/v1/models/{door.model}"
    calls = [("", lambda body=body: door.send("POST", f"{path}/feedback", content=body)) for body in feedback]
    calls += starmap(
        lambda argument, rest, body: (argument, lambda: door.send("POST", path + rest, content=body)), fields
    )
    try_all(messages, "bodies", calls, door)


def test_wrong_keys_and_parameters(open_at, messages):
    door = open_at("http")
    keys = [
        ("role", {"name": "one", "role": "page"}), ("role", {"name": "one", "role": "king"}),
        ("role", {"name": "one"}),
        ("name", {"name": "", "role": "admin"}), ("name", {"name": "x" * 101, "role": "admin"}),
        ("model", {"name": "one", "role": "admin", "model": "shop"}),
    ]  # fmt: skip
    calls = [(argument, lambda body=body: door.send("POST", "/v1/keys", body)) for argument, body in keys]
    path = f"/v1/models/{door.model}"
    calls += [
        ("key", lambda: door.send("DELETE", "/v1/keys/7"), "unknown"),
        ("name", lambda: door.ask("DELETE", "", {"name": "a"})),
        ("limit", lambda: door.send("GET", f"{path}/items?limit=0")),
        ("after", lambda: door.send("GET", f"{path}/items?after=a")),
        ("limit", lambda: door.send("GET", f"{path}/items?limit=1&limit=2")),
        ("page", lambda: door.send("GET", f"{path}/items?page=1")),
    ]  # fmt: skip
    try_all(messages, "keys", calls, door)
    assert door.service.store.api_keys() == []
