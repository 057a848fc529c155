"""Each learner wins where its paper says it should, in the stock worlds; or it is known not to.

A claim is decided by Wilcoxon's signed-rank test on a dozen runs or two, each in another world of its kind,
with the same users for both learners. It passes only if luck gives as much to one of two equals in less than
one case of a thousand: if all pairs below were equals, any would pass with a chance of less than 3 %. How
many runs a claim needs was learned from other seeds. Seeds are fixed: nothing here fails by chance.
"""

from functools import cache

import numpy as np
import pytest
from scipy.stats import wilcoxon

from firstclick.compare.conduct import compare, policies_named
from firstclick.compare.stock import stock_worlds
from firstclick.simulate.engine import play_here

SEED, LUCK = 12, 0.001

# Steps and runs, and who loses less than whom.
CLAIMS = {
    "few-items": (2000, 12, [("cascade-kl-ucb", "cascade-ucb1"), ("ts-cascade", "cascade-ucb1")]),
    "rare-clicks": (
        12_000, 20,
        [("cascade-ucb-v", "cascade-ucb1"), ("cascade-kl-ucb", "cascade-ucb1"),
         ("vac2-ucb", "cascade-lin-ucb")],
    ),
    "linear": (6000, 16, [("cascade-lin-ts", "cascade-ts"), ("lin-ts-cascade", "cascade-lin-ts")]),
    "long-tail": (1000, 12, [("cascade-lin-ts", "cascade-kl-ucb"), ("lin-ts-cascade", "cascade-lin-ts")]),
    "logistic": (2000, 12, [("logistic-ts", "cascade-lin-ts")]),
    "dependent-clicks": (
        20_000, 20, [("dcm-kl-ucb", "cascade-kl-ucb"), ("dcm-lin-ts:stop=0.5", "cascade-lin-ts")],
    ),
    "by-position": (
        6000, 16,
        [("pbm-ucb", "cascade-ucb1"), ("pbm-pie", "cascade-kl-ucb"), ("dcm-lin-ts", "cascade-lin-ts"),
         ("dcm-lin-ucb", "cascade-lin-ucb")],
    ),
    "types": (
        2000, 12,
        [("context-lin-ts", "cascade-lin-ts"), ("segment-lin-ts", "cascade-lin-ts"),
         ("c3-ucb", "cascade-lin-ucb")],
    ),
    "vectors": (10_000, 24, [("context-lin-ts", "cascade-lin-ts"), ("c3-ucb", "cascade-lin-ucb")]),
    "switch": (
        20_000, 20,
        [("discounted-lin-ts", "cascade-lin-ts"), ("discounted-lin-ucb", "cascade-lin-ucb"),
         ("cascade-glr-ucb", "cascade-kl-ucb")],
    ),
    "drift": (
        20_000, 12,
        [("discounted-lin-ts", "cascade-lin-ts"), ("discounted-lin-ucb", "cascade-lin-ucb")],
    ),
    "topics": (2000, 12, [("cascade-lsb", "cascade-lin-ucb"), ("cascade-hybrid", "cascade-lin-ucb")]),
    "topics-and-more": (4000, 12, [("cascade-hybrid", "cascade-lsb"), ("cascade-hybrid", "cascade-lin-ucb")]),
}  # fmt: skip

# What a reader of the papers would expect, and what is not so here: docs/guide.md says why.
NOT_SO = [
    ("dependent-clicks", "dcm-lin-ts", "cascade-lin-ts"),
    ("dependent-clicks", "dcm-lin-ucb", "cascade-lin-ucb"),
    ("switch", "cascade-ducb", "cascade-ucb1"),
    ("switch", "cascade-swucb", "cascade-ucb1"),
    ("topics-and-more", "cascade-lsb", "cascade-lin-ucb"),
]


@pytest.fixture(scope="module")
def regrets(tmp_path_factory):
    """The regret of every run in a world, by learner; a world is played once for all claims about it."""

    @cache
    def played_in(name):
        steps, runs, pairs = CLAIMS[name]
        more = [pair[1:] for pair in NOT_SO if pair[0] == name]
        played = compare(
            policies_named(sorted({learner for pair in [*pairs, *more] for learner in pair})),
            stock_worlds([name]),
            tmp_path_factory.mktemp(name),
            play_here,
            steps=steps,
            runs=runs,
            seed=SEED,
        )
        return {one.learner: one.regret for one in played}

    return played_in


def luck(regrets, world, winner, loser):
    """How likely it is that of two equals one loses so much less than the other."""
    less = regrets(world)[loser] - regrets(world)[winner]
    print(world, winner, loser, np.round(less))
    return wilcoxon(less, alternative="greater", method="exact").pvalue


@pytest.mark.parametrize(
    ("world", "winner", "loser"),
    [(world, *pair) for world, (_, _, pairs) in CLAIMS.items() for pair in pairs],
)
def test_who_wins_where(regrets, world, winner, loser):
    assert luck(regrets, world, winner, loser) < LUCK


@pytest.mark.parametrize(("world", "winner", "loser"), NOT_SO)
def test_what_is_not_so(regrets, world, winner, loser):
    assert luck(regrets, world, winner, loser) > LUCK


def test_the_worlds_are_those_of_the_guide():
    told = {world.name for world in stock_worlds() if world.own_ground}
    assert told == set(CLAIMS)
