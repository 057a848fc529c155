"""Every quantitative or comparative sentence of sections 4.4 to 4.6 of Zong et al. 2016, with its criterion.

The sentences are in our words. What the authors assume or choose ("we assume", "our objective is") is no
claim and has no row.

The paper does not define its words ("similar", "performs well"). Their limits were written before the runs
that they judge, and follow from how the paper uses the words; where that says nothing, the reason says that
the limit is ours. A reader who means something else finds the measured figure beside every verdict.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from firstclick.studies.paper.evidence import LEARNING_PARTS, Case, Evidence
from firstclick.studies.paper.statistics import Runs
from firstclick.studies.paper.verdicts import Criterion, Word, compared, counted, largest_group, untestable

# ---- What the words mean

RATIO = "the ratio of the mean regrets"
SIMILAR = Word(
    "similar", RATIO, 1 / 2.5, 2.5,
    "section 4.4 calls methods similar of which one has about two times the regret of another, and tells "
    "almost three times apart from that; the limit is where these two meet, in both directions",
)  # fmt: skip
ABOUT_TWO_TIMES = Word(
    "about two times larger", RATIO, 1.5, 2.5, "it rounds to two; “times larger” is read as “times as large”"
)
ROUGHLY_DOUBLES = Word("roughly doubles", RATIO, 1.5, 2.5, "it rounds to two")
ROUGHLY_HALVES = Word("roughly halves", RATIO, 1 / 2.5, 1 / 1.5, "the reverse of “roughly doubles”")
ALMOST_THREE_TIMES = Word(
    "almost three times larger", RATIO, 2.5, 3.0, "it rounds to three and has not reached it"
)
ORDERS_OF_MAGNITUDE = Word(
    "orders of magnitude larger", RATIO, 100.0, math.inf,
    "the plural is taken at its word: two orders, ten times ten", in_orders=True,
)  # fmt: skip
PERFORMS_WELL = Word(
    "performs well", "the mean regret, as a share of the best slate’s clicks in all steps,", -math.inf, 0.1,
    "the paper gives no measure, so this one is ours: over the whole run, learning included, less than a "
    "tenth of the clicks that can be had is lost",
)  # fmt: skip
CAN_LEARN = Word(
    "can learn",
    f"the mean regret per step after the first 1/{LEARNING_PARTS} of the steps, over that within it,",
    -math.inf, 1.0, "a learner gets better: it loses fewer clicks per step later than at the start",
)  # fmt: skip


def _more(phrase: str, of: str) -> Word:
    reason = "an order without a word on how far apart: any difference that chance does not explain"
    return Word(phrase, of, 0.0, math.inf, reason, is_ratio=False)


LOWER = _more("lower", "the other mean regret less this one")
IMPROVES = _more("improves", "the mean regret before less the one after")
LOWEST = _more("lowest", "each other mean regret less this one")
INCREASES = _more("increases", "the mean at each setting less that at the setting before")
GAP_INCREASES = _more(
    "the gap increases", "the mean difference between two regrets less that difference with fewer items"
)
INCREASES_FASTER = _more("increases faster", "the growth of the one mean less the growth of the other")

WORDS = (
    SIMILAR, ABOUT_TWO_TIMES, ALMOST_THREE_TIMES, ORDERS_OF_MAGNITUDE, ROUGHLY_DOUBLES, ROUGHLY_HALVES,
    PERFORMS_WELL, CAN_LEARN, LOWER, IMPROVES, LOWEST, INCREASES, GAP_INCREASES, INCREASES_FASTER,
)  # fmt: skip

# "A wide range of sigma^2": four orders of magnitude, two on either side of the paper's own setting.
SIGMAS = (0.1, 0.3, 1.0, 3.0, 10.0)
# The paper never plays CascadeLinUCB, and its theorem's c is for worlds in which its assumptions hold.
WIDTHS = (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)

# The group of items that experiment 3 is about, the paper's word first and then other names for it: the
# authors' code takes one of the two American categories, and genre files differ in what they call rock.
GROUPS = {
    "yelp": ("American", "American (New)"),
    "million-song": ("Rock", "Pop_Rock"),
    "movielens": ("Adventure",),
}

# ---- What is compared: a policy in a setting, by the number of items, of features, or of items shown

SIZES: tuple[int | str, ...] = (16, 256, "all")
UCB1, LIN_TS, RANKED = (
    {items: Case(policy, items) for items in SIZES}
    for policy in ("cascade-ucb1", "cascade-lin-ts", "ranked-lin-ts")
)
RANK = {rank: Case(rank=rank) for rank in (10, 20, 40)}
RANK_IN_GROUP = {rank: Case(rank=rank, group=True) for rank in RANK}
SHOWN = {k: Case(k=k) for k in (4, 8, 12)}
RISING = ((SHOWN[8], SHOWN[4]), (SHOWN[12], SHOWN[8]))


def regrets(
    experiment: str, word: Word, *pairs: tuple[Case, Case], measure: str = "regret", called: str = "",
    note: str = "",
) -> Criterion:  # fmt: skip
    """The word is true of the regrets (or rewards) of the two cases of each pair; `called` names a pair."""

    def name(first: Case, second: Case) -> str:
        if called:
            return called.format(first, second)
        shared = replace(first, policy=second.policy) == second
        return f"{first.policy if shared else first} {'/' if word.is_ratio else '−'} {second}"

    def sides(evidence: Evidence, first: Case, second: Case) -> tuple[Runs, Runs]:
        sums = getattr(evidence, measure)
        return sums[first], sums[second]

    return compared(experiment, word, {name(*pair): pair for pair in pairs}, sides, note)


def best_gains_more(*pairs: tuple[Case, Case]) -> Criterion:
    """From the second case of each pair to the first, the best slate gains more clicks than the policy."""
    called = "(best slate’s clicks − expected clicks), {.k} shown − {.k} shown"
    note = "The best slate’s reward less the expected reward is the expected regret: this is the test of the "
    note += "row on regret, said in terms of reward."
    return regrets("experiment 4", INCREASES_FASTER, *pairs, called=called, note=note)


def gap_increases(*pairs: tuple[Mapping[int | str, Case], Mapping[int | str, Case]]) -> Criterion:
    """The regret of the first policy above that of the second grows with each step up in items."""

    def sides(
        evidence: Evidence, first: Case, second: Case, first_before: Case, second_before: Case
    ) -> tuple[Runs, Runs]:
        regret = evidence.regret
        return regret[first] - regret[second], regret[first_before] - regret[second_before]

    name = "({0.policy} − {1.policy}), {0.items} items − {2.items} items"
    compare = [(a[many], b[many], a[few], b[few]) for a, b in pairs for few, many in pairwise(SIZES)]
    return compared("experiment 1", GAP_INCREASES, {name.format(*cases): cases for cases in compare}, sides)


def performs_well(experiment: str, cases: Iterable[Case], note: str = "") -> Criterion:
    """Each case loses a small share of the best slate's clicks."""

    def sides(evidence: Evidence, case: Case) -> tuple[Runs, Runs]:
        return evidence.regret[case], evidence.best[case]

    named = {f"{case}: regret / best clicks": [case] for case in cases}
    return compared(experiment, PERFORMS_WELL, named, sides, note)


def can_learn(experiment: str, cases: Iterable[Case]) -> Criterion:
    """Each case loses fewer clicks per step later than in the first part of the steps."""

    def sides(evidence: Evidence, case: Case) -> tuple[Runs, Runs]:
        start = evidence.steps // LEARNING_PARTS
        if start == 0:
            raise KeyError(f"run of {LEARNING_PARTS} steps")
        early, all_steps = evidence.early_regret[case], evidence.regret[case]
        return (all_steps - early) / (evidence.steps - start), early / start

    named = {f"{case}: regret per step, later / at first": [case] for case in cases}
    return compared(experiment, CAN_LEARN, named, sides)


def swept(policy: str, parameter: str, values: Sequence[float]) -> list[Case]:
    """The policy at each value; 1 is the default of both parameters, and left out of a policy's label."""
    return [Case(policy if value == 1 else f"{policy}:{parameter}={value:g}") for value in values]


# ---- What the paper says

TITLES = {"yelp": "Yelp", "million-song": "Million Song", "movielens": "MovieLens"}
# The section of a row that asks what the paper does not say: shown in the ledger, in no count of its claims.
OURS = "ours"


@dataclass(frozen=True)
class Claim:
    """A sentence of the paper in our words, where it stands, and how it is tested."""

    id: str
    dataset: str
    section: str
    sentence: str
    criterion: Criterion


def _about(dataset: str, section: str, *rows: tuple[str, str, Criterion]) -> tuple[Claim, ...]:
    return tuple(
        Claim(f"{dataset}-{name}", dataset, section, sentence, rule) for name, sentence, rule in rows
    )


ALL_SIMILAR = regrets(
    "experiment 1", SIMILAR, (UCB1[16], LIN_TS[16]), (RANKED[16], LIN_TS[16]), (UCB1[16], RANKED[16])
)
CAUSE = untestable("experiment 4", "a cause: no experiment takes the mismatch away and keeps the rest")

YELP = _about("yelp", "4.4",
    ("parts", "The data has five parts.", untestable("data", "only two of its files are read")),
    ("businesses", "The data holds 78k businesses.", counted("businesses", "78k", 77_500, 78_500)),
    ("restaurants", "Of the businesses 11k are restaurants.", counted("restaurants", "11k", 10_500, 11_500)),
    ("reviews", "The data holds 2.2M reviews.", counted("reviews", "2.2M", 2_150_000, 2_250_000)),
    ("users", "The reviews are by 550k users.", counted("users", "550k", 545_000, 555_000)),
    ("kept-items", "The 3k most reviewed restaurants are kept.", counted("kept items", "3k", 3_000)),
    ("kept-users", "The 20k most reviewing users are kept.", counted("kept users", "20k", 20_000)),
    ("similar-16", "With 16 items all three learners perform similarly.", ALL_SIMILAR),
    ("ranked-similar-16", "With 16 items the regrets of CascadeLinTS and RankedLinTS are similar.",
     regrets("experiment 1", SIMILAR, (RANKED[16], LIN_TS[16]))),
    ("ucb1-twice-16", "With 16 items the regret of CascadeUCB1 is about two times that of CascadeLinTS.",
     regrets("experiment 1", ABOUT_TWO_TIMES, (UCB1[16], LIN_TS[16]))),
    ("gap", "The gap between CascadeLinTS and both others increases with the number of items.",
     gap_increases((UCB1, LIN_TS), (RANKED, LIN_TS))),
    ("ucb1-orders",
     "With all items the regret of CascadeUCB1 is orders of magnitude larger than that of CascadeLinTS.",
     regrets("experiment 1", ORDERS_OF_MAGNITUDE, (UCB1["all"], LIN_TS["all"]))),
    ("ranked-thrice", "With all items the regret of RankedLinTS is almost three times that of CascadeLinTS.",
     regrets("experiment 1", ALMOST_THREE_TIMES, (RANKED["all"], LIN_TS["all"]))),
    ("d-well", "CascadeLinTS performs well with 10, 20 and 40 features.",
     performs_well("experiment 2", RANK.values())),
    ("d-40", "The regret of CascadeLinTS roughly doubles with 40 features instead of 20.",
     regrets("experiment 2", ROUGHLY_DOUBLES, (RANK[40], RANK[20]))),
    ("d-10-improves", "The regret of CascadeLinTS improves with 10 features instead of 20.",
     regrets("experiment 2", IMPROVES, (RANK[20], RANK[10]))),
    ("d-10-halves", "The regret of CascadeLinTS is roughly halved with 10 features instead of 20.",
     regrets("experiment 2", ROUGHLY_HALVES, (RANK[10], RANK[20]))),
    ("american-largest", "American is the largest category of restaurants.",
     largest_group("American", ("American (New)", "American (Traditional)"))),
    ("american-learns", "On American restaurants CascadeLinTS can learn with 10, 20 and 40 features.",
     can_learn("experiment 3", RANK_IN_GROUP.values())),
    ("learns", "On all restaurants, likewise, CascadeLinTS can learn with 10, 20 and 40 features.",
     can_learn("experiment 2", RANK.values())),
    ("k-regret", "The regret of CascadeLinTS increases when 8 instead of 4 items are shown.",
     regrets("experiment 4", INCREASES, RISING[0])),
    ("k-others", "In Kveton et al. 2015, unlike here, regret decreases with the number of items shown.",
     untestable("experiment 4", "a result of other work, for items that attract independently of one "
                "another, which these do not")),
    ("k-reward",
     "The reward of CascadeLinTS increases with the number of items shown: it learns better policies.",
     regrets("experiment 4", INCREASES, *RISING, measure="reward")),
    ("k-best", "From 4 to 8 shown the best slate’s reward increases faster than the learned policies’.",
     best_gains_more(RISING[0])),
    ("k-cause",
     "Longer best slates are harder to learn, as attraction is not linear and items are not independent.",
     CAUSE),
)  # fmt: skip


def _after_yelp(
    group: str, best_rank: int, against_ranked: tuple[str, str, Criterion]
) -> tuple[tuple[str, str, Criterion], ...]:
    """The results of sections 4.5 and 4.6, which are worded alike but for RankedLinTS and the best rank."""
    others = [rank for rank in RANK if rank != best_rank]
    return (
        ("similar-16", "With 16 items the regrets of all three learners are similar.", ALL_SIMILAR),
        ("gap", "The gap between CascadeUCB1 and the other two increases with the number of items.",
         gap_increases((UCB1, LIN_TS), (UCB1, RANKED))),
        ("ucb1-orders",
         "The regret of CascadeUCB1 becomes orders of magnitude larger than that of CascadeLinTS.",
         regrets("experiment 1", ORDERS_OF_MAGNITUDE, (UCB1["all"], LIN_TS["all"]))),
        against_ranked,
        ("d-well", "CascadeLinTS performs well with 10, 20 and 40 features.",
         performs_well("experiment 2", RANK.values())),
        ("group-d-well", f"On {group}, too, CascadeLinTS performs well with 10, 20 and 40 features.",
         performs_well("experiment 3", RANK_IN_GROUP.values())),
        ("d-lowest", f"The regret of CascadeLinTS is lowest with {best_rank} features, of 10, 20 and 40.",
         regrets("experiment 2", LOWEST, *((RANK[rank], RANK[best_rank]) for rank in others))),
        ("group-d-lowest",
         f"On {group}, too, the regret of CascadeLinTS is lowest with {best_rank} features.",
         regrets("experiment 3", LOWEST,
                 *((RANK_IN_GROUP[rank], RANK_IN_GROUP[best_rank]) for rank in others))),
        ("k-regret", "The regret of CascadeLinTS increases with the number of items shown.",
         regrets("experiment 4", INCREASES, *RISING)),
        ("k-reward", "The reward of CascadeLinTS increases with the number of items shown.",
         regrets("experiment 4", INCREASES, *RISING, measure="reward")),
        ("k-best",
         "The best slate’s reward increases faster with the number shown than the learned policies’.",
         best_gains_more(*RISING)),
    )  # fmt: skip


MILLION_SONG = _about("million-song", "4.5",
    ("tracks", "The data describes a million songs.", counted("tracks", "1M", 500_000, 1_500_000)),
    ("kept-items", "The 10k most played songs are kept.", counted("kept items", "10k", 10_000)),
    ("kept-users", "The 400k most active users are kept.", counted("kept users", "400k", 400_000)),
    *_after_yelp("Rock songs", 10, (
        "ranked-similar",
        "The regrets of CascadeLinTS and RankedLinTS are similar for every number of items.",
        regrets("experiment 1", SIMILAR, *((RANKED[items], LIN_TS[items]) for items in SIZES)))),
    ("k-cause", "This is because the model does not fit the data.", CAUSE),
)  # fmt: skip

MOVIELENS = _about("movielens", "4.6",
    ("ratings", "The data holds 1M ratings.", counted("ratings", "1M", 500_000, 1_500_000)),
    ("movies", "The ratings are of 4k movies.", counted("movies", "4k", 3_500, 4_500)),
    ("users", "The ratings are by 6k users.", counted("users", "6k", 5_500, 6_500)),
    ("joined", "The users joined in 2000.",
     untestable("data", "the files say when a movie was rated, not when a user joined")),
    *_after_yelp("adventure movies", 20, (
        "ranked-higher",
        "The regret of CascadeLinTS is lower than that of RankedLinTS for every number of items.",
        regrets("experiment 1", LOWER, *((RANKED[items], LIN_TS[items]) for items in SIZES)))),
)  # fmt: skip

SIGMA = (
    "sigma", "CascadeLinTS and CascadeLinUCB both perform well for a wide range of sigma² (a footnote).",
    performs_well("sweep of sigma",
        swept("cascade-lin-ts", "sigma", SIGMAS) + swept("cascade-lin-ucb", "sigma", SIGMAS),
        f"“A wide range” is sigma² from {min(SIGMAS) ** 2:g} to {max(SIGMAS) ** 2:g}."),
)  # fmt: skip
WIDTH = (
    "c", "Ours, the paper leaves it open: CascadeLinUCB performs well for a wide range of c.",
    performs_well("sweep of c", swept("cascade-lin-ucb", "c", WIDTHS),
        f"“A wide range” is c from {min(WIDTHS):g} to {max(WIDTHS):g}."),
)  # fmt: skip
SWEEPS = [
    claim for dataset in TITLES for claim in (*_about(dataset, "3.1", SIGMA), *_about(dataset, OURS, WIDTH))
]

CLAIMS = (*YELP, *MILLION_SONG, *MOVIELENS, *SWEEPS)
