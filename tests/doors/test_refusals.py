"""Every wrong argument at every door: refused, named, in one sentence, and nothing changes.

The tables have the argument and the call; `messages/` has the words.
"""

from datetime import date

import numpy as np
import pytest

from firstclick.serve import Item
from tests.support.doors import DOORS, SERVED
from tests.support.shop import FEATURES, IDS, LIST, K, items, new_item

HUGE = 10**5000
ANY_DOOR = ["ranker", *SERVED]
# Half a character, which no file can hold.
HALF = "\ud800"

REQUESTS = [
    ("k", {"k": 0}), ("k", {"k": -1}), ("k", {"k": K + 1}), ("k", {"k": 2.5}), ("k", {"k": "2"}), ("k", {"k": True}),
    ("k", {"k": 10**30}), ("k", {"k": HUGE}), ("k", {"k": [2]}),
    ("candidates", {"candidates": ["nothing"]}), ("candidates", {"candidates": [1.5]}),
    ("candidates", {"candidates": ["7"]}), ("candidates", {"candidates": [True]}), ("candidates", {"candidates": 7}),
    ("candidates", {"candidates": "i1"}), ("candidates", {"candidates": [None]}), ("candidates", {"candidates": [8]}),
    ("candidates", {"candidates": [10**30]}), ("candidates", {"candidates": [HUGE]}),
    ("candidates", {"candidates": ["i1", ["i2"]]}),
    ("exclude", {"exclude": [True]}), ("exclude", {"exclude": "i1"}), ("exclude", {"exclude": 7}),
    ("exclude", {"exclude": ["7"]}), ("exclude", {"exclude": [1.5]}), ("exclude", {"exclude": [HUGE]}),
    ("pinned", {"pinned": {9: "i1"}}), ("pinned", {"pinned": {-1: "i1"}}), ("pinned", {"pinned": {"a": "i1"}}),
    ("pinned", {"pinned": {0: "nothing"}}), ("pinned", {"pinned": {0: "i1", 1: "i1"}}), ("pinned", {"pinned": ["i1"]}),
    ("pinned", {"pinned": {0: None}}), ("pinned", {"pinned": {0: 1.5}}), ("pinned", {"pinned": {1: "i1"}, "k": 1}),
    ("at_most", {"at_most": -1}), ("at_most", {"at_most": 1.5}), ("at_most", {"at_most": {"nope": 1}}),
    ("at_most", {"at_most": {"od": 1}}), ("at_most", {"at_most": {"odd": -1}}), ("at_most", {"at_most": {"odd": "1"}}),
    ("at_most", {"at_most": [1]}), ("at_most", {"at_most": True}),
    ("context", {"context": [1.0]}), ("context", {"context": "ab"}), ("context", {"context": [1e60]}),
    ("features", {"features": [[1.0] * 4]}), ("features", {"candidates": ["i1"], "features": [[1.0] * 3]}),
    ("features", {"candidates": ["i1"], "features": [[1e300] * 4]}), ("features", {"candidates": ["i1"], "features": []}),
    ("features", {"candidates": ["i1"], "features": [["a"] * 4]}), ("features", {"candidates": ["i1"], "features": 4}),
    ("features", {"candidates": ["i1", "i2"], "features": [[1.0] * 4, [1.0]]}),
    ("features", {"candidates": ["i1"], "features": [[float("nan"), 1.0, 1.0, 1.0]]}),
    ("candidates", {"candidates": ["i1", "i1"], "features": [[1.0] * 4] * 2}),
]  # fmt: skip


def try_all(messages, table, calls, door=None):
    """Refuse each of the calls, with nothing changed by it; compare the words with those of the file."""
    for argument, call, *status in calls:
        before = None if door is None else door.facts()
        messages.refused(call, argument, *status, model="" if door is None else door.model)
        if door is not None and door.facts() != before:
            messages.problems.append(f"{argument}: something changed")
    messages.check(table)


def calls_of(method, table):
    return [(argument, lambda given=given: method(**given)) for argument, given in table]


@pytest.mark.parametrize("name", DOORS)
def test_wrong_requests(open_at, messages, name):
    door = open_at(name)
    try_all(messages, f"requests-{name}", calls_of(door.recommend, REQUESTS), door)
    assert len(door.recommend().items) == K


NOT_IN_JSON = [
    ("candidates", {"candidates": {"i1": 1}.items()}), ("candidates", {"candidates": b"i1"}),
    ("exclude", {"exclude": np.array([1.5])}), ("pinned", {"pinned": {0: date(2026, 1, 1)}}),
    ("context", {"context": np.array(["2026-01-01"], "M8[D]")}), ("context", {"context": [1 + 2j]}),
    ("features", {"candidates": ["i1"], "features": [[date(2026, 1, 1)] * 4]}),
    ("features", {"candidates": ["i1"], "features": np.ma.masked_array([[1.0] * 4], [[0, 0, 1, 0]])}),
]  # fmt: skip


@pytest.mark.parametrize("name", ["ranker", "service", "client", "async"])
def test_values_that_json_lacks(open_at, messages, name):
    door = open_at(name)
    try_all(messages, f"python-values-{name}", calls_of(door.recommend, NOT_IN_JSON), door)


CONTEXTS = [
    ("context", {}), ("context", {"context": [1.0]}), ("context", {"context": [1.0, 2.0, 3.0]}),
    ("context", {"context": [1e60, 1.0]}), ("context", {"context": "ab"}), ("context", {"context": [[1.0, 2.0]]}),
    ("context", {"context": [float("inf"), 1.0]}), ("context", {"context": [None, 1.0]}),
]  # fmt: skip


@pytest.mark.plain
@pytest.mark.parametrize("name", ANY_DOOR)
def test_wrong_contexts(open_at, messages, name):
    door = open_at(name, policy="context-lin-ts:context=2")
    try_all(messages, f"contexts-{name}", calls_of(door.recommend, CONTEXTS), door)


@pytest.mark.plain
@pytest.mark.parametrize("name", ANY_DOOR)
def test_requests_that_a_policy_misreads(open_at, messages, name):
    """top-rank compares items that had the same chances."""
    door = open_at(name, policy="top-rank", features=False)
    table = [
        ("candidates", {"candidates": ["i1", "i2"]}), ("exclude", {"exclude": ["i1"]}), ("pinned", {"pinned": {0: "i1"}}),
        ("at_most", {"at_most": 1}), ("features", {"candidates": ["i1"], "features": [[1.0]]}),
    ]  # fmt: skip
    try_all(messages, f"misread-{name}", calls_of(door.recommend, table), door)
    assert len(door.recommend(k=2).items) == 2


FEEDBACK = [
    ("click", {}), ("click", {"click": 3}), ("click", {"click": -1}), ("click", {"click": True}),
    ("click", {"click": 1.5}), ("click", {"click": "1"}), ("click", {"click": 0, "clicks": [0]}),
    ("click", {"click": 10**30}), ("click", {"click": HUGE}),
    ("clicks", {"clicks": [0, 0]}), ("clicks", {"clicks": [0, 9]}), ("clicks", {"clicks": [-1]}), ("clicks", {"clicks": 7}),
    ("clicks", {"clicks": "01"}), ("clicks", {"clicks": [1.5]}), ("clicks", {"clicks": [None]}),
    ("clicks", {"clicks": [True]}),
    ("examined", {"click": 1, "examined": 1}), ("examined", {"click": 0, "examined": 4}),
    ("examined", {"click": None, "examined": -1}), ("examined", {"click": None, "examined": 1.5}),
    ("examined", {"clicks": [2], "examined": 2}),
]  # fmt: skip


@pytest.mark.parametrize("name", DOORS)
def test_wrong_feedback(open_at, messages, name):
    """The slate still waits for its feedback."""
    door = open_at(name, policy="cascade-ts", features=False)
    slate = door.recommend()
    calls = [
        (argument, lambda report=report: door.feedback(slate.handle, **report))
        for argument, report in FEEDBACK
    ]
    empty = door.recommend(candidates=[])
    calls.append(("click", lambda: door.feedback(empty.handle, click=0)))
    try_all(messages, f"feedback-{name}", calls, door)
    assert door.feedback(slate.handle, click=0) == "accepted"


@pytest.mark.parametrize("name", ANY_DOOR)
def test_slates_of_nothing(open_at, messages, name):
    door, other = open_at(name), open_at(name)
    token = other.recommend().handle
    argument = "slate" if name == "ranker" else "token"
    wrong = [
        (7, "malformed"),
        (None, "malformed"),
        ("", "unknown"),
        ("nonsense", "unknown"),
        (token, "unknown"),
    ]
    calls = [
        (
            argument,
            lambda slate=slate: door.feedback(slate, click=0),
            "malformed" if name == "ranker" else status,
        )
        for slate, status in wrong
        if name != "ranker" or isinstance(slate, int | None)
    ]
    try_all(messages, f"slates-{name}", calls, door)


ITEMS = [
    ("items", []), ("items", [new_item("new"), new_item("new")]),
    ("features", [new_item(features=[1.0] * 3)]), ("features", [new_item(features=[1e300] * 4)]),
    ("features", [new_item(features="abcd")]), ("features", [new_item(features=[[1.0] * 4])]),
    ("features", [new_item(features={"price": 1.0})]), ("features", [new_item(features=["a", 1, 1, 1])]),
    ("features", [new_item("i1", features=[1.0])]),
]  # fmt: skip
SENT_ITEMS = [
    ("id", [new_item("")]), ("id", [new_item("x" * 501)]), ("id", [new_item(2**53 + 1)]), ("id", [new_item(1.5)]),
    ("id", [new_item(True)]), ("id", [new_item(None)]), ("name", [new_item(name=7)]),
    ("name", [new_item(name="x" * 1001)]), ("group", [new_item(group=7)]), ("available", [new_item(available="no")]),
    ("available", [new_item(available=1)]),
]  # fmt: skip


@pytest.mark.parametrize("name", SERVED)
def test_wrong_items(open_at, messages, name):
    door = open_at(name)
    calls = [
        ("put" if name in ("http", "client") and given else argument, lambda given=given: door.put(given))
        for argument, given in SENT_ITEMS
    ]
    calls += [(argument, lambda given=given: door.put(given)) for argument, given in ITEMS]
    calls += [("withdraw", lambda: door.withdraw(["nothing"]), "unknown")]
    try_all(messages, f"items-{name}", calls, door)
