"""The stock worlds are what they say, and policies are told what their papers assume known."""

import numpy as np
import pytest

from firstclick import policy_classes
from firstclick.errors import InvalidInput, UnknownName
from firstclick.policies.cascade_ts import CascadeTS
from firstclick.registry import make_policy
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


def test_policies_come_family_by_family_core_before_research_and_random_order_last():
    names = [
        "random", "somebody-elses", "top-rank", "cascade-ucb-v", "cascade-ucb1", "cascade-ts", "bubble-rank"
    ]  # fmt: skip
    assert sorted(names, key=in_order) == [
        "cascade-ts",
        "cascade-ucb1",
        "cascade-ucb-v",
        "bubble-rank",
        "top-rank",
        "somebody-elses",
        "random",
    ]
    assert family_of("somebody-elses") == "Others"


def test_random_order_is_always_there_and_nobody_twice():
    assert [policy.label for policy in policies_named(["cascade-ts:a=2"])] == ["cascade-ts:a=2", "random"]
    assert set(OURS) <= {policy.name for policy in policies_named()}
    with pytest.raises(InvalidInput, match="policy 'random' is given twice"):
        policies_named(["random", "random"])


def test_worlds_are_found_by_name():
    assert stock_worlds() == STOCK
    assert [world.name for world in stock_worlds(["topics", "linear"])] == ["linear", "topics"]
    with pytest.raises(UnknownName, match="stock world 'linaer' is unknown; did you mean 'linear'"):
        stock_worlds(["linaer"])
    with pytest.raises(InvalidInput, match="stock world 'linear' is given twice"):
        stock_worlds(["linear", "linear"])


def test_policies_are_told_what_their_papers_assume_known_and_nothing_else():
    told = fitted("by-position", *OURS)
    changed = {name: one.policy.label for name, one in told.items() if one.policy.label != one.asked}
    assert changed == {
        **{name: f"{name}:horizon=500" for name in
           ("batch-rank", "bubble-rank", "cascade-ducb", "cascade-swucb", "recur-rank", "top-rank")},
        "cascade-glr-ucb": "cascade-glr-ucb:delta=0.002",
        "cascade-hybrid": "cascade-hybrid:topics=0",
    }  # fmt: skip
    assert told["pbm-ucb"].policy.examination == told["pbm-pie"].policy.examination == (
        1.0, 0.7, 0.5, 0.4, 0.3, 0.25, 0.2
    )  # fmt: skip
    assert fitted("scroll", "pbm-pie")["pbm-pie"].policy.examination == (1.0,)
    assert fitted("topics", "cascade-hybrid")["cascade-hybrid"].policy.topics == 8
    assert not any(one.reason for one in told.values())


def test_what_was_given_is_left_alone():
    for spec in ("top-rank:horizon=70", "cascade-hybrid:topics=3", "pbm-ucb:examination=0.5"):
        assert fitted("topics", spec)[spec].policy.label == spec


def test_segments_are_told_by_their_number():
    one = fitted("types", "segment-lin-ts", "context-lin-ts")
    assert one["segment-lin-ts"].policy.segments == 4
    assert one["segment-lin-ts"].spec == one["context-lin-ts"].spec + ",told=number"
    assert fitted("linear", "segment-lin-ts")["segment-lin-ts"].policy.segments is None


@pytest.mark.parametrize(
    ("world", "policy", "reason"),
    [
        ("few-items", "cascade-lin-ts", "cascade-lin-ts needs features, and this world has none"),
        (
            "few-items",
            "bubble-rank",
            "the order of the catalog, which here has the best items first",
        ),
        ("long-tail", "top-rank", "takes at most 2,000 items, got 3,000"),
        ("logistic", "cascade-lsb", "features must be topics, shares from 0 to 1"),
        ("types", "context-lin-ts:context=2", "wants 2 numbers of context, and this world gives 4"),
        ("topics", "cascade-hybrid:topics=30", "topics must be at most the number of features, 8"),
    ],
)
def test_who_cannot_play_says_why(world, policy, reason):
    assert reason in fitted(world, policy)[policy].reason


def test_a_policy_of_somebody_else_plays_as_it_is():
    class Unnamed(CascadeTS):
        pass

    (world,) = stock_worlds(["few-items"])
    (one,) = contenders([Unnamed(a=3.0)], world, 500, 1)
    assert one.policy == Unnamed(a=3.0)
    assert not one.reason


def test_research_policies_play_in_large_worlds_only_if_they_are_named():
    (shop,) = stock_worlds(["shop"])
    policies = [make_policy("cascade-ts"), make_policy("cascade-ucb-v")]
    reasons = [one.reason for one in contenders(policies, shop, 10, 1, named=False)]
    assert reasons == ["", "cascade-ucb-v is a research policy, and plays here only if --policy names it"]
    assert [one.reason for one in contenders(policies, shop, 10, 1)] == ["", ""]
