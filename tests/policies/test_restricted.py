"""Which policies would learn wrongly from requests for some items only, and that they refuse them.

What is refused is let through here, to show what would be learned: a worse item is taken for the better one.
"""

import numpy as np
import pytest

from firstclick import Catalog, InvalidInput, Ranker
from firstclick.policies.base import RESTRICTIONS, Policy
from firstclick.registry import make_policy, policy_classes
from firstclick.streams import stream
from tests.support.policies import OTHERS

COMPARING = ("batch-rank", "bubble-rank", "recur-rank", "top-rank")


class Shop:
    """A ranker that refuses nothing, and users who click by position or down to the first click."""

    def __init__(self, policy, attractions, *, k=2, chances=None, groups=None):
        self.attractions = attractions
        items = list(attractions)
        features = np.eye(len(items)) if policy.startswith("recur-rank") else None
        self.ranker = Ranker(Catalog(items, features, groups=groups), k=k, policy=policy, seed=1)
        object.__setattr__(self.ranker.policy, "misreads", {})
        self.chances = chances
        self.draw = stream(1, "clicks")

    def play(self, steps, *requests):
        """So many slates, the requests in turn."""
        for step in range(steps):
            slate = self.ranker.recommend(**requests[step % len(requests)])
            attracted = self.draw.random(len(slate.items)) < [self.attractions[item] for item in slate.items]
            if self.chances is not None:
                attracted &= self.draw.random(len(slate.items)) < self.chances[: len(slate.items)]
            clicks = np.flatnonzero(attracted).tolist()
            self.ranker.learn(slate, clicks=clicks if self.chances is not None else clicks[:1])

    def wrong(self):
        """Pairs of items of which the second is better, and the policy is sure that the first is."""
        state, items = self.ranker.state, list(self.attractions)
        name = self.ranker.policy.name
        if name == "top-rank":
            above = state.beats == 1
        elif name == "bubble-rank":
            above = (state.wins > state.wins.T) & (state.place[:, None] < state.place[None, :])
        else:
            rank = state.batch if name == "batch-rank" else state.block
            above = rank[:, None] < rank[None, :]
        return {
            (items[i], items[j])
            for i, j in np.argwhere(above).tolist()
            if self.attractions[items[i]] < self.attractions[items[j]]
        }


# Items by position, where the second place is seldom looked at; or down to the first click.
POSITIONS = {"a": 0.6, "b": 0.4, "c": 0.2}, [1, 0.3]
CASCADE = {"a": 0.9, "b": 0.5, "c": 0.4, "d": 0.1}, None
# The first item has a block of its own after 200 slates.
BLOCKS = {"a": 0.97, "b": 0.4, "c": 0.3, "d": 0.01}, None
MANY = {"b": 0.5} | {f"d{number}": 0.3 for number in range(6)}, [1, 0.2]

LEFT_OUT = [{"exclude": ["b"]}, {"candidates": ["a", "c"]}, {"at_most": {"b": 0}}]
HALVES = [
    ({"exclude": ["c", "d"]}, {"exclude": ["a", "b"]}),
    ({"candidates": ["a", "b"]}, {"candidates": ["c", "d"]}),
    ({"at_most": {"c": 0, "d": 0}}, {"at_most": {"a": 0, "b": 0}}),
]
MISREAD = [
    # Who is left out, and would have been clicked, loses to whoever is clicked.
    *(
        (policy, POSITIONS, [only, only, {}], 1500, ("c", "b"))
        for policy in ("top-rank:horizon=2", "bubble-rank:horizon=2")
        for only in LEFT_OUT
    ),
    # c has only a weak rival above it, b a strong one.
    *(("batch-rank:horizon=3", CASCADE, two, 4000, ("c", "b")) for two in HALVES),
    *(
        ("recur-rank:horizon=2", BLOCKS, [{}] * 200 + [*two * 4, {}] * 700, 6500, ("c", "b"))
        for two in HALVES
    ),
    # The pinned item stands where more users look.
    *(
        (policy, POSITIONS, [{"pinned": {0: "c"}}], 3000, ("c", "b"))
        for policy in (
            "top-rank:horizon=2", "top-rank:horizon=2,pairs=shown", "bubble-rank:horizon=2",
            "batch-rank:horizon=3",
        )
    ),
    (
        "recur-rank:horizon=2", BLOCKS, [{}] * 200 + [{"pinned": {0: "d", 1: "c"}}, {}] * 1500, 3200,
        ("c", "b"),
    ),
    # Of the items of a large group one is shown, and it stands above the item of a small one.
    ("top-rank:horizon=2,pairs=shown", MANY, [{"at_most": {"d": 1}}], 2000, ("d0", "b")),
]  # fmt: skip


def shop_of(policy, world):
    attractions, chances = world
    return Shop(policy, attractions, chances=chances, groups=[item[0] for item in attractions])


# In plain Python thousands of slates take seconds: the first case of two policies only.
@pytest.mark.parametrize(
    ("policy", "world", "requests", "steps", "wrong"),
    [
        pytest.param(*case, marks=OTHERS if n in (0, 3) else pytest.mark.long)
        for n, case in enumerate(MISREAD)
    ],
)
def test_what_is_refused_would_be_misread(policy, world, requests, steps, wrong):
    """The policy becomes sure of the wrong order from these requests."""
    restricted = {name for request in requests for name in request}
    assert restricted <= set(make_policy(policy).misreads)
    shop = shop_of(policy, world)
    shop.play(steps, *requests)
    assert wrong in shop.wrong()


ALL_AND_ONE = [{"k": 1}, {}]  # A smaller k gives all items the same chances.


@pytest.mark.long
@pytest.mark.parametrize(
    ("policy", "world", "requests"),
    [
        ("top-rank:horizon=2", POSITIONS, [{}]), ("top-rank:horizon=2,pairs=shown", MANY, [{}]),
        ("bubble-rank:horizon=2", POSITIONS, [{}]), ("batch-rank:horizon=3", CASCADE, [{}]),
        ("batch-rank:horizon=3", POSITIONS, [{}]), ("recur-rank:horizon=2", BLOCKS, [{}]),
        ("top-rank:horizon=2", POSITIONS, ALL_AND_ONE), ("bubble-rank:horizon=2", POSITIONS, ALL_AND_ONE),
        ("batch-rank:horizon=3", POSITIONS, ALL_AND_ONE),
        *(("top-rank:horizon=2,pairs=shown", POSITIONS, [only, only, {}]) for only in LEFT_OUT[:2]),
    ],
)  # fmt: skip
def test_nothing_is_misread_from_requests_that_are_accepted(policy, world, requests):
    shop = shop_of(policy, world)
    shop.play(4000, *requests)
    assert not shop.wrong()
    if policy.endswith("pairs=shown"):
        assert shop.ranker.state.beats.any(), "it has learned something"


def test_every_refusal_was_seen_to_be_needed():
    seen = {
        (policy.split(":")[0], name) for policy, _, wanted, *_ in MISREAD for one in wanted for name in one
    }
    assert seen == {(name, field) for name in COMPARING for field in RESTRICTIONS}


def test_the_policies_that_refuse_are_those_that_compare():
    refusing = {name: set(kind.misreads) for name, kind in policy_classes().items() if kind.misreads}
    assert refusing == {name: set(RESTRICTIONS) for name in COMPARING}
    assert set(make_policy("top-rank:pairs=shown").misreads) == {"pinned", "at_most"}


@OTHERS
@pytest.mark.parametrize("policy", [*COMPARING, "top-rank:pairs=shown"])
def test_requests_that_would_be_misread_are_refused_with_a_way_out(policy):
    catalog = Catalog(["a", "b", "c"], np.eye(3), groups=["x", "x", "y"])
    ranker = Ranker(catalog, k=2, policy=policy)
    wanted = {"exclude": ["b"], "candidates": ["a", "b"], "pinned": {0: "a"}, "at_most": 1}
    for name, value in wanted.items():
        if name not in ranker.policy.misreads:
            assert len(ranker.recommend(**{name: value}).items) == 2
            continue
        way_out = "top-rank:pairs=shown" if name in ("exclude", "candidates") else "cascade-mixed"
        told = f"^{name} is not for {ranker.policy.label}, .* leave {name} out, or take .*{way_out}"
        before = ranker.requests
        with pytest.raises(InvalidInput, match=told) as refused:
            ranker.recommend(**{name: value})
        assert refused.value.argument == name
        assert ranker.requests == before
    # Nothing is left out by these.
    assert len(ranker.recommend(exclude=["never there"], pinned={}, k=1).items) == 1


def test_a_policy_cannot_declare_a_field_that_no_request_has():
    with pytest.raises(TypeError, match=r"Odd.misreads must be of candidates, exclude, .*, got excluded"):
        type("Odd", (Policy,), {"misreads": {"excluded": ""}})
