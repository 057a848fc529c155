"""Every quantitative or comparative sentence of sections 4.4 to 4.6 of Zong et al. 2016, with its rule.

The sentences are in our words, the rules in those of `words.py`. What the authors assume or choose ("we
assume", "our objective is") is no claim and has no row.
"""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from firstclick.report.claims import OURS
from firstclick.studies.paper.checks import (
    DATA,
    LIN_TS,
    LIN_UCB,
    RANKED,
    UCB1,
    Cell,
    Claim,
    Rule,
    counted,
    largest_group,
    untestable,
)
from firstclick.studies.paper.paired_tests import (
    Part,
    best_outgrows,
    every,
    learns,
    more,
    performs_well,
    ratio,
    rising,
    wider_gap,
)
from firstclick.studies.paper.thresholds import (
    ABOUT_TWO_TIMES,
    ALMOST_THREE_TIMES,
    IMPROVES,
    LOWER,
    LOWEST,
    ORDERS_OF_MAGNITUDE,
    ROUGHLY_DOUBLES,
    ROUGHLY_HALVES,
    SIGMAS,
    SIMILAR,
    WIDTHS,
)

SMALL, MIDDLE, ALL = SIZES = (16, 256, "all")
BY_RANK = [Cell(rank=rank) for rank in (10, 20, 40)]
BY_RANK_IN_GROUP = [replace(cell, group=True) for cell in BY_RANK]
BY_K = [Cell(k=k) for k in (4, 8, 12)]
EXPERIMENT_1, EXPERIMENT_2, EXPERIMENT_3, EXPERIMENT_4 = (f"experiment {number}" for number in (1, 2, 3, 4))


def _versus(policy: str, items: int | str) -> tuple[Cell, Cell]:
    return Cell(policy, items), Cell(LIN_TS, items)


def _swept(policy: str, parameter: str, values: Sequence[float]) -> list[Part]:
    """The policy at each value; 1 is the default of both parameters, and left out of a policy's label."""
    labels = [policy if value == 1 else f"{policy}:{parameter}={value:g}" for value in values]
    return [performs_well(Cell(label)) for label in labels]


def _gaps(pairs: Sequence[tuple[str, str]]) -> list[Part]:
    return [
        wider_gap(policy, other, few, many)
        for policy, other in pairs
        for few, many in ((SMALL, MIDDLE), (MIDDLE, ALL))
    ]


def _lowest(cells: Sequence[Cell], rank: int) -> list[Part]:
    (lowest,) = [cell for cell in cells if cell.rank == rank]
    return [more(LOWEST, cell, lowest) for cell in cells if cell is not lowest]


ALL_SIMILAR_WHEN_SMALL = every(
    EXPERIMENT_1,
    ratio(SIMILAR, *_versus(UCB1, SMALL)),
    ratio(SIMILAR, *_versus(RANKED, SMALL)),
    ratio(SIMILAR, Cell(UCB1, SMALL), Cell(RANKED, SMALL)),
)
UCB1_ORDERS_ABOVE = every(EXPERIMENT_1, ratio(ORDERS_OF_MAGNITUDE, *_versus(UCB1, ALL)))
UCB1_LEAVES_THE_REST = every(EXPERIMENT_1, *_gaps([(UCB1, LIN_TS), (UCB1, RANKED)]))
WELL_FOR_EVERY_RANK = every(EXPERIMENT_2, *map(performs_well, BY_RANK))
WELL_FOR_EVERY_RANK_IN_GROUP = every(EXPERIMENT_3, *map(performs_well, BY_RANK_IN_GROUP))
REWARD_RISES_WITH_K = every(EXPERIMENT_4, *rising(BY_K, "reward"))
A_CAUSE = untestable(EXPERIMENT_4, "a cause: no experiment takes the mismatch away and keeps the rest")

kept = partial(counted, exactly=True)

yelp = partial(Claim, section="4.4", dataset="yelp")
YELP = (
    yelp("yelp-parts", "The data has five parts.", untestable(DATA, "only two of its files are read")),
    yelp("yelp-businesses", "The data holds 78k businesses.", counted("businesses", "78k")),
    yelp("yelp-restaurants", "Of the businesses 11k are restaurants.", counted("restaurants", "11k")),
    yelp("yelp-reviews", "The data holds 2.2M reviews.", counted("reviews", "2.2M")),
    yelp("yelp-users", "The reviews are by 550k users.", counted("users", "550k")),
    yelp("yelp-kept-items", "The 3k most reviewed restaurants are kept.", kept("kept items", "3k")),
    yelp("yelp-kept-users", "The 20k most reviewing users are kept.", kept("kept users", "20k")),
    yelp("yelp-similar-16", "With 16 items all three learners perform similarly.", ALL_SIMILAR_WHEN_SMALL),
    yelp(
        "yelp-ranked-similar-16",
        "With 16 items the regrets of CascadeLinTS and RankedLinTS are similar.",
        every(EXPERIMENT_1, ratio(SIMILAR, *_versus(RANKED, SMALL))),
    ),
    yelp(
        "yelp-ucb1-twice-16",
        "With 16 items the regret of CascadeUCB1 is about two times that of CascadeLinTS.",
        every(EXPERIMENT_1, ratio(ABOUT_TWO_TIMES, *_versus(UCB1, SMALL))),
    ),
    yelp(
        "yelp-gap",
        "The gap between CascadeLinTS and both others increases with the number of items.",
        every(EXPERIMENT_1, *_gaps([(UCB1, LIN_TS), (RANKED, LIN_TS)])),
    ),
    yelp(
        "yelp-ucb1-orders",
        "With all items the regret of CascadeUCB1 is orders of magnitude larger than that of CascadeLinTS.",
        UCB1_ORDERS_ABOVE,
    ),
    yelp(
        "yelp-ranked-thrice",
        "With all items the regret of RankedLinTS is almost three times that of CascadeLinTS.",
        every(EXPERIMENT_1, ratio(ALMOST_THREE_TIMES, *_versus(RANKED, ALL))),
    ),
    yelp("yelp-d-well", "CascadeLinTS performs well with 10, 20 and 40 features.", WELL_FOR_EVERY_RANK),
    yelp(
        "yelp-d-40",
        "The regret of CascadeLinTS roughly doubles with 40 features instead of 20.",
        every(EXPERIMENT_2, ratio(ROUGHLY_DOUBLES, Cell(rank=40), Cell())),
    ),
    yelp(
        "yelp-d-10-improves",
        "The regret of CascadeLinTS improves with 10 features instead of 20.",
        every(EXPERIMENT_2, more(IMPROVES, Cell(), Cell(rank=10))),
    ),
    yelp(
        "yelp-d-10-halves",
        "The regret of CascadeLinTS is roughly halved with 10 features instead of 20.",
        every(EXPERIMENT_2, ratio(ROUGHLY_HALVES, Cell(rank=10), Cell())),
    ),
    yelp(
        "yelp-american-largest",
        "American is the largest category of restaurants.",
        largest_group("American", ("American (New)", "American (Traditional)")),
    ),
    yelp(
        "yelp-american-learns",
        "On American restaurants CascadeLinTS can learn with 10, 20 and 40 features.",
        every(EXPERIMENT_3, *map(learns, BY_RANK_IN_GROUP)),
    ),
    yelp(
        "yelp-learns",
        "On all restaurants, likewise, CascadeLinTS can learn with 10, 20 and 40 features.",
        every(EXPERIMENT_2, *map(learns, BY_RANK)),
    ),
    yelp(
        "yelp-k-regret",
        "The regret of CascadeLinTS increases when 8 instead of 4 items are shown.",
        every(EXPERIMENT_4, *rising(BY_K[:2])),
    ),
    yelp(
        "yelp-k-others",
        "In Kveton et al. 2015, unlike here, regret decreases with the number of items shown.",
        untestable(
            EXPERIMENT_4,
            "a result of other work, for items that attract independently of one another, which these do not",
        ),
    ),
    yelp(
        "yelp-k-reward",
        "The reward of CascadeLinTS increases with the number of items shown: it learns better policies.",
        REWARD_RISES_WITH_K,
    ),
    yelp(
        "yelp-k-best",
        "From 4 to 8 shown the best slate’s reward increases faster than the learned policies’.",
        best_outgrows(EXPERIMENT_4, BY_K[:2]),
    ),
    yelp(
        "yelp-k-cause",
        "Longer best slates are harder to learn, as attraction is not linear and items are not independent.",
        A_CAUSE,
    ),
)


def _after_yelp(
    section: str, dataset: str, *, group: str, best_rank: int, against_ranked: tuple[str, str, Rule]
) -> tuple[Claim, ...]:
    """The results of sections 4.5 and 4.6, which are worded alike but for RankedLinTS and the best rank."""
    claim = partial(Claim, section=section, dataset=dataset)
    return (
        claim(
            f"{dataset}-similar-16",
            "With 16 items the regrets of all three learners are similar.",
            ALL_SIMILAR_WHEN_SMALL,
        ),
        claim(
            f"{dataset}-gap",
            "The gap between CascadeUCB1 and the other two increases with the number of items.",
            UCB1_LEAVES_THE_REST,
        ),
        claim(
            f"{dataset}-ucb1-orders",
            "The regret of CascadeUCB1 becomes orders of magnitude larger than that of CascadeLinTS.",
            UCB1_ORDERS_ABOVE,
        ),
        claim(f"{dataset}-{against_ranked[0]}", *against_ranked[1:]),
        claim(
            f"{dataset}-d-well",
            "CascadeLinTS performs well with 10, 20 and 40 features.",
            WELL_FOR_EVERY_RANK,
        ),
        claim(
            f"{dataset}-group-d-well",
            f"On {group}, too, CascadeLinTS performs well with 10, 20 and 40 features.",
            WELL_FOR_EVERY_RANK_IN_GROUP,
        ),
        claim(
            f"{dataset}-d-lowest",
            f"The regret of CascadeLinTS is lowest with {best_rank} features, of 10, 20 and 40.",
            every(EXPERIMENT_2, *_lowest(BY_RANK, best_rank)),
        ),
        claim(
            f"{dataset}-group-d-lowest",
            f"On {group}, too, the regret of CascadeLinTS is lowest with {best_rank} features.",
            every(EXPERIMENT_3, *_lowest(BY_RANK_IN_GROUP, best_rank)),
        ),
        claim(
            f"{dataset}-k-regret",
            "The regret of CascadeLinTS increases with the number of items shown.",
            every(EXPERIMENT_4, *rising(BY_K)),
        ),
        claim(
            f"{dataset}-k-reward",
            "The reward of CascadeLinTS increases with the number of items shown.",
            REWARD_RISES_WITH_K,
        ),
        claim(
            f"{dataset}-k-best",
            "The best slate’s reward increases faster with the number shown than the learned policies’.",
            best_outgrows(EXPERIMENT_4, BY_K),
        ),
    )


song = partial(Claim, section="4.5", dataset="million-song")
MILLION_SONG = (
    song("million-song-tracks", "The data describes a million songs.", counted("tracks", "1M")),
    song("million-song-kept-items", "The 10k most played songs are kept.", kept("kept items", "10k")),
    song("million-song-kept-users", "The 400k most active users are kept.", kept("kept users", "400k")),
    *_after_yelp(
        "4.5",
        "million-song",
        group="Rock songs",
        best_rank=10,
        against_ranked=(
            "ranked-similar",
            "The regrets of CascadeLinTS and RankedLinTS are similar for every number of items.",
            every(EXPERIMENT_1, *(ratio(SIMILAR, *_versus(RANKED, size)) for size in SIZES)),
        ),
    ),
    song(
        "million-song-k-cause",
        "This is because the model does not fit the data.",
        A_CAUSE,
    ),
)

movie = partial(Claim, section="4.6", dataset="movielens")
MOVIELENS = (
    movie("movielens-ratings", "The data holds 1M ratings.", counted("ratings", "1M")),
    movie("movielens-movies", "The ratings are of 4k movies.", counted("movies", "4k")),
    movie("movielens-users", "The ratings are by 6k users.", counted("users", "6k")),
    movie(
        "movielens-joined",
        "The users joined in 2000.",
        untestable(DATA, "the files say when a movie was rated, not when a user joined"),
    ),
    *_after_yelp(
        "4.6",
        "movielens",
        group="adventure movies",
        best_rank=20,
        against_ranked=(
            "ranked-higher",
            "The regret of CascadeLinTS is lower than that of RankedLinTS for every number of items.",
            every(EXPERIMENT_1, *(more(LOWER, *_versus(RANKED, size)) for size in SIZES)),
        ),
    ),
)

SWEEPS = tuple(
    claim
    for dataset in ("yelp", "million-song", "movielens")
    for claim in (
        Claim(
            f"{dataset}-sigma",
            "CascadeLinTS and CascadeLinUCB both perform well for a wide range of sigma² (a footnote).",
            every(
                "sweep of sigma",
                *_swept(LIN_TS, "sigma", SIGMAS),
                *_swept(LIN_UCB, "sigma", SIGMAS),
                note=f"“A wide range” is sigma² from {min(SIGMAS) ** 2:g} to {max(SIGMAS) ** 2:g}.",
            ),
            section="3.1",
            dataset=dataset,
        ),
        Claim(
            f"{dataset}-c",
            "Ours, the paper leaves it open: CascadeLinUCB performs well for a wide range of c.",
            every(
                "sweep of c",
                *_swept(LIN_UCB, "c", WIDTHS),
                note=f"“A wide range” is c from {min(WIDTHS):g} to {max(WIDTHS):g}.",
            ),
            section=OURS,
            dataset=dataset,
        ),
    )
)

CLAIMS = YELP + MILLION_SONG + MOVIELENS + SWEEPS
