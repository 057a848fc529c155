"""The stock worlds are what they say, and policies are told what their papers assume known."""

import numpy as np
import pytest

from firstclick import make_policy, policy_classes
from firstclick.errors import InvalidInput, UnknownName
from firstclick.policies.cascade_ts import CascadeTS
from firstclick.studies.guide.conduct import policies_named
from firstclick.studies.guide.families import family_of, in_order
from firstclick.studies.guide.fitting import contenders
from firstclick.studies.guide.stock import STOCK, stock_worlds

OURS = {name: cls for name, cls in policy_classes().items() if cls.__module__.startswith("firstclick.")}


def fitted(name, *specs, steps=500):
    (world,) = stock_worlds([name])
    return {one.asked: one for one in contenders([make_policy(spec) for spec in specs], world, steps, 1)}


@pytest.mark.parametrize("world", STOCK, ids=lambda world: world.name)
def test_a_stock_world_can_be_built_and_is_another_one_for_another_seed_and_run(world):
    first = world.stage(1, 1)
    assert first.world.n_items >= world.k
    assert first.world.n_context in (0, world.segments) or not world.segments
    if first.features is not None:
        for seed, run in ((1, 0), (2, 1), (2, 0), (0, 2)):
            assert not np.array_equal(first.features, world.stage(seed, run).features), (seed, run)
        assert world.topics <= first.features.shape[1]
    in_order = first.world.optimal_slate(world.k).tolist() == list(range(world.k))
    assert in_order == world.best_first
    assert world.why.endswith(".")


def test_every_policy_has_a_family_and_a_world_that_is_made_for_it():
    assert [name for name, cls in OURS.items() if not cls.family] == ["random"]
    # RankedLinTS is what the paper compares itself with, and random order what all are.
    assert [name for name, cls in OURS.items() if not cls.made_for] == ["random", "ranked-lin-ts"]
    known = {world.name for world in STOCK}
    assert {name: cls.made_for for name, cls in OURS.items() if not known.issuperset(cls.made_for)} == {}
    # A parent's world is not always its child's.
    assert OURS["vac2-ucb"].made_for == ("rare-clicks",)
    assert OURS["dcm-lin-ucb"].made_for == OURS["dcm-lin-ts"].made_for == ("dependent-clicks",)
    assert OURS["discounted-lin-ts"].family == "changes"


def test_policies_are_ordered_by_family_with_random_order_last():
    ordered = [
        "cascade-ts", "cascade-ucb1", "cascade-ucb-v", "bubble-rank", "top-rank", "somebody-elses", "random"
    ]  # fmt: skip
    assert sorted(sorted(ordered), key=in_order) == ordered
    assert family_of("somebody-elses") == "Others"


def test_worlds_and_policies_are_found_by_name():
    assert [policy.label for policy in policies_named(["cascade-ts:a=2"])] == ["cascade-ts:a=2", "random"]
    assert set(OURS) <= {policy.name for policy in policies_named()}
    assert stock_worlds() == STOCK
    assert [world.name for world in stock_worlds(["topics", "linear"])] == ["linear", "topics"]
    with pytest.raises(UnknownName, match="did you mean 'linear'"):
        stock_worlds(["linaer"])
    for find, name in ((policies_named, "random"), (stock_worlds, "linear")):
        with pytest.raises(InvalidInput, match=f"'{name}' is given twice"):
            find([name, name])


def test_policies_get_what_their_papers_assume_known_and_nothing_else():
    found = fitted("by-position", *OURS)
    changed = {name: one.policy.label for name, one in found.items() if one.policy.label != one.asked}
    assert changed == {
        **{name: f"{name}:horizon=500" for name in
           ("batch-rank", "bubble-rank", "cascade-ducb", "cascade-swucb", "recur-rank", "top-rank")},
        "cascade-glr-ucb": "cascade-glr-ucb:delta=0.002",
        "cascade-hybrid": "cascade-hybrid:topics=0",
    }  # fmt: skip
    assert found["pbm-ucb"].policy.examination == found["pbm-pie"].policy.examination == (
        1.0, 0.7, 0.5, 0.4, 0.3, 0.25, 0.2
    )  # fmt: skip
    assert not any(one.reason for one in found.values())
    assert fitted("scroll", "pbm-pie")["pbm-pie"].policy.examination == (1.0,)
    assert fitted("topics", "cascade-hybrid")["cascade-hybrid"].policy.topics == 8
    # What was given is not changed.
    given = fitted("topics", "top-rank:horizon=70", "cascade-hybrid:topics=3", "pbm-ucb:examination=0.5")
    assert all(one.policy.label == spec for spec, one in given.items())
    # Segments are told by their number.
    one = fitted("types", "segment-lin-ts", "context-lin-ts")
    assert one["segment-lin-ts"].policy.segments == 4
    assert one["segment-lin-ts"].spec == one["context-lin-ts"].spec + ",told=number"
    assert fitted("linear", "segment-lin-ts")["segment-lin-ts"].policy.segments is None

    class Unnamed(CascadeTS):
        """A policy that is not in the registry."""

    (alone,) = contenders([Unnamed(a=3.0)], stock_worlds(["few-items"])[0], 500, 1)
    assert (alone.policy, alone.reason) == (Unnamed(a=3.0), "")


@pytest.mark.parametrize(
    ("world", "policy", "reason"),
    [
        ("few-items", "cascade-lin-ts", "needs features"),
        ("few-items", "bubble-rank", "order of the catalog"),
        ("long-tail", "top-rank", "3,000"),
        ("logistic", "cascade-lsb", "topics"),
        ("types", "context-lin-ts:context=2", "context"),
        ("topics", "cascade-hybrid:topics=30", "topics"),
    ],
)
def test_policy_that_cannot_play_has_a_reason(world, policy, reason):
    assert reason in fitted(world, policy)[policy].reason


def test_research_policies_play_in_large_worlds_only_if_named():
    (shop,) = stock_worlds(["shop"])
    policies = [make_policy("cascade-ts"), make_policy("cascade-ucb-v")]
    for named, refused in ((False, [False, True]), (True, [False, False])):
        assert [bool(one.reason) for one in contenders(policies, shop, 10, 1, named=named)] == refused
