"""The ledger of claims: made-up evidence in which each kind of claim holds, fails and cannot be told."""

import itertools
import json
import math
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib.resources import files
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from firstclick.errors import UnknownName
from firstclick.paper import words
from firstclick.paper.checks import Cell, Rule, counted, largest_group
from firstclick.paper.claims import CLAIMS, METHOD, Finding, as_json, judge
from firstclick.paper.parts import (
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
from firstclick.registry import make_policy

HOLDS, FAILS, UNTESTABLE = "holds", "does not hold", "not testable with this data"
UCB1, LIN_TS, LIN_UCB, RANKED = "cascade-ucb1", "cascade-lin-ts", "cascade-lin-ucb", "ranked-lin-ts"

# Seven runs whose mean is 0 and whose standard deviation is 1; the same users are hard for every policy.
SPREAD = np.array([0.5, -1.5, 0.25, 1.25, -0.75, -0.5, 0.75])
SPREAD = (SPREAD - SPREAD.mean()) / SPREAD.std(ddof=1)
OTHER = np.roll(SPREAD, 3)


@dataclass(frozen=True)
class Made:
    """Evidence made by hand: a mean regret per cell, with noise that cells share and noise of their own."""

    regrets: Mapping[Cell, float]
    best: Mapping[int, float] = field(default_factory=lambda: {4: 0.8, 8: 0.9, 12: 0.95})
    noise: float = 0.01
    n_runs: int = 7
    at_first: float = 0.3  # share of the regret within the first tenth of the steps
    synthetic: bool = False
    steps: int = 100_000
    facts: Mapping[str, int] = field(default_factory=dict)
    group_sizes: Mapping[str, int] = field(default_factory=dict)

    def runs(
        self, policy: str, *, items: int | str = 256, rank: int = 20, k: int = 4, group: bool = False,
        measure: str = "expected_regret", step: int | None = None,
    ) -> NDArray[np.float64] | None:  # fmt: skip
        cell = Cell(policy, items, rank, k, group)
        if cell not in self.regrets:
            return None
        own = np.roll(OTHER, len(str(cell)))
        regret = self.regrets[cell] * (1 + self.noise * (SPREAD + own))
        if step is not None:
            assert step == self.steps // 10
            return (self.at_first * regret)[: self.n_runs]
        if measure == "reward":
            regret = self.best[k] * self.steps - regret
        return regret[: self.n_runs]

    def optimal(
        self, *, items: int | str = 256, rank: int = 20, k: int = 4, group: bool = False
    ) -> NDArray[np.float64] | None:
        return np.full(self.n_runs, self.best[k])


def found(parts: Part | list[Part] | tuple[Part, ...], **evidence: Any) -> Finding:
    parts = [parts] if isinstance(parts, Part) else parts
    return every("experiment 9", *parts).check(Made(**evidence))


def pair(word: words.Word, value: float, **more_of_it: Any) -> Finding:
    """What is found when UCB1 has `value` times the regret of LinTS, at 16 items."""
    above, below = Cell(UCB1, 16), Cell(LIN_TS, 16)
    return found(ratio(word, above, below), regrets={above: 700 * value, below: 700.0}, **more_of_it)


RATIO_WORDS = [
    word for word in words.WORDS if word.is_ratio and word not in (words.PERFORMS_WELL, words.CAN_LEARN)
]


@pytest.mark.parametrize("word", RATIO_WORDS, ids=lambda word: word.phrase)
def test_a_ratio_holds_between_its_limits_fails_beyond_them_and_is_undecided_at_them(
    word: words.Word,
) -> None:
    limits = [limit for limit in (word.low, word.high) if math.isfinite(limit)]
    inside = math.sqrt(word.low * word.high) if len(limits) == 2 else 1.3 * limits[0]
    assert pair(word, inside).verdict == HOLDS
    assert pair(word, 0.8 * word.low).verdict == FAILS
    assert pair(word, 1.2 * limits[-1]).verdict == (FAILS if len(limits) == 2 else HOLDS)
    for limit in limits:
        finding = pair(word, limit)
        assert finding.verdict == UNTESTABLE
        assert re.fullmatch(
            r"undecided with 7 runs: the 95% interval [\d.,]+ to [\d.,]+ of cascade-ucb1 / "
            rf"cascade-lin-ts, 16 items crosses the limit {re.escape(f'{limit:.3g}')}; more runs would tell",
            finding.reason,
        )


def test_the_words_of_one_language_fit_together() -> None:
    # Section 4.4 calls learners similar although one has about two times another's regret.
    assert words.SIMILAR.low < words.ABOUT_TWO_TIMES.low
    assert words.ABOUT_TWO_TIMES.high <= words.SIMILAR.high == words.ALMOST_THREE_TIMES.low
    assert words.ALMOST_THREE_TIMES.high < words.ORDERS_OF_MAGNITUDE.low == 10**2
    for doubles, halves in (
        (words.ROUGHLY_DOUBLES.low, words.ROUGHLY_HALVES.high),
        (words.SIMILAR.high, words.SIMILAR.low),
    ):
        assert doubles * halves == pytest.approx(1)


def test_figures_carry_the_ratio_its_interval_its_limits_and_the_order_of_magnitude() -> None:
    finding = pair(words.ORDERS_OF_MAGNITUDE, 40.0)
    (part,) = finding.figures["parts"]
    assert part["estimate"] == pytest.approx(40)
    assert 39 < part["low"] < 40 < part["high"] < 41
    assert part["limits"] == [100.0, None]
    assert part["orders_of_magnitude"] == pytest.approx(math.log10(40))
    assert part["means"] == pytest.approx([28_000, 700])
    assert (part["runs"], part["confidence"], part["kind"]) == (7, 0.95, "ratio")
    assert finding.verdict == FAILS
    assert re.fullmatch(
        r"cascade-ucb1 / cascade-lin-ts, 16 items: 28,000 / 700 = 40\.\d+ "
        r"\(39\.\d+ to 40\.\d+\), 1\.6 orders of magnitude",
        finding.measured[0],
    )
    assert finding.reason == f"not above 100: {finding.measured[0]}"


A, B = Cell(RANKED, 16), Cell(LIN_TS, 16)
BY_K = [Cell(k=k) for k in (4, 8, 12)]


@pytest.mark.parametrize(
    ("parts", "holds", "fails", "undecided"),
    [
        (more(words.LOWER, A, B), {A: 900, B: 800}, {A: 800, B: 900}, {A: 800, B: 801}),
        (
            rising(BY_K),
            dict(zip(BY_K, (700, 800, 900), strict=True)),
            dict(zip(BY_K, (700, 900, 800), strict=True)),
            dict(zip(BY_K, (700, 900, 901), strict=True)),
        ),
        (
            wider_gap(RANKED, LIN_TS, 16, 256),
            {A: 900, B: 800, Cell(RANKED): 1300, Cell(): 1000},
            {A: 900, B: 500, Cell(RANKED): 1300, Cell(): 1200},
            {A: 900, B: 800, Cell(RANKED): 1300, Cell(): 1200},
        ),
        # The best slate gains 10,000 clicks from 4 to 8: a regret that rises was gained less.
        (
            best_outgrows(*BY_K[:2]),
            {BY_K[0]: 700, BY_K[1]: 900},
            {BY_K[0]: 900, BY_K[1]: 700},
            {BY_K[0]: 900, BY_K[1]: 901},
        ),
        (performs_well(Cell()), {Cell(): 7_000}, {Cell(): 9_000}, {Cell(): 8_000}),
        (performs_well(Cell()), {Cell(): -500}, {Cell(): 40_000}, {Cell(): 8_010}),
    ],
    ids=["lower", "rising", "wider gap", "best outgrows", "performs well", "performs well, negative regret"],
)
def test_a_comparison_holds_fails_and_is_undecided(
    parts: Any, holds: dict[Cell, float], fails: dict[Cell, float], undecided: dict[Cell, float]
) -> None:
    assert found(parts, regrets=holds).verdict == HOLDS
    assert found(parts, regrets=fails).verdict == FAILS
    finding = found(parts, regrets=undecided)
    assert finding.verdict == UNTESTABLE
    assert "undecided with 7 runs" in finding.reason


def test_the_reward_rises_where_the_best_slate_gains_more_than_the_regret_grows() -> None:
    regrets = dict(zip(BY_K, (700.0, 2_000.0, 4_000.0), strict=True))
    assert found(rising(BY_K, "reward"), regrets=regrets).verdict == HOLDS
    regrets[BY_K[2]] = 9_000.0
    assert found(rising(BY_K, "reward"), regrets=regrets).verdict == FAILS


@pytest.mark.parametrize(("at_first", "verdict"), [(0.3, HOLDS), (0.05, FAILS)])
def test_a_learner_learns_if_it_loses_less_per_step_later_than_at_first(
    at_first: float, verdict: str
) -> None:
    finding = found(learns(Cell()), regrets={Cell(): 700.0}, at_first=at_first)
    assert finding.verdict == verdict
    (part,) = finding.figures["parts"]
    assert part["estimate"] == pytest.approx((1 - at_first) / 9 / at_first)


def test_runs_shorter_than_ten_steps_show_no_learning() -> None:
    assert found(learns(Cell()), regrets={Cell(): 7.0}, steps=9).verdict == UNTESTABLE


def test_equal_regrets_are_not_lower() -> None:
    assert found(more(words.LOWER, A, A), regrets={A: 900.0}).verdict == FAILS


def test_one_part_outside_refutes_what_the_others_support_and_whatever_was_not_played() -> None:
    parts = [
        ratio(words.SIMILAR, A, B),
        ratio(words.SIMILAR, Cell(RANKED), Cell()),
        ratio(words.SIMILAR, A, Cell(k=8)),
    ]
    regrets = {A: 900.0, B: 800.0, Cell(RANKED): 4_000.0, Cell(): 1_000.0}
    finding = found(parts, regrets=regrets)
    assert finding.verdict == FAILS
    assert len(finding.measured) == len(finding.figures["parts"]) == 2
    regrets[Cell(RANKED)] = 2_000.0
    finding = found(parts, regrets=regrets)
    assert finding.verdict == UNTESTABLE
    assert finding.reason == "experiment 9 was not played: there is no cascade-lin-ts, 8 shown"


def test_one_of_many_parts_must_be_further_outside_to_refute() -> None:
    # Just outside with 95 % confidence, and not with 99.5 %.
    part, inside = ratio(words.SIMILAR, A, B), ratio(words.SIMILAR, B, B)
    regrets = {A: 2.55 * 800, B: 800.0}
    assert found(part, regrets=regrets).verdict == FAILS
    finding = found([part, *[inside] * 9], regrets=regrets)
    assert finding.verdict == UNTESTABLE
    assert "the 99.5% interval" in finding.reason
    # To hold, every part has to pass its own test and no more.
    regrets[A] = 2.45 * 800
    assert (
        found(part, regrets=regrets).verdict == found([part, *[inside] * 9], regrets=regrets).verdict == HOLDS
    )


@pytest.mark.parametrize("regret", [0.0, -300.0])
def test_no_ratio_is_formed_with_a_regret_that_is_not_above_zero(regret: float) -> None:
    finding = found(ratio(words.SIMILAR, A, B), regrets={A: 900.0, B: regret})
    assert finding.verdict == UNTESTABLE
    assert finding.reason.startswith("no ratio can be formed with 7 runs: ranked-lin-ts / cascade-lin")
    assert finding.measured


def test_one_run_decides_nothing_and_shows_its_figures() -> None:
    finding = pair(words.SIMILAR, 1.0, n_runs=1)
    assert (finding.verdict, finding.reason) == (UNTESTABLE, "a single run proves nothing: play at least 2")
    assert finding.measured[0].endswith(": 713 / 693")
    assert pair(words.SIMILAR, 1.0, n_runs=2).verdict == HOLDS


@pytest.mark.parametrize(
    ("printed", "low", "high"),
    [
        ("78k", 77_500, 78_500),
        ("2.2M", 2_150_000, 2_250_000),
        ("550k", 545_000, 555_000),
        ("4k", 3_500, 4_500),
        ("1M", 500_000, 1_500_000),
        ("10k", 5_000, 15_000),
    ],
)
def test_a_count_holds_if_it_rounds_to_what_is_printed(printed: str, low: int, high: int) -> None:
    def verdict(count: int) -> str:
        return counted("songs", printed).check(Made({}, facts={"songs": count, "users": 3})).verdict

    assert [verdict(count) for count in (low - 1, low, high - 1, high)] == [FAILS, HOLDS, HOLDS, FAILS]
    finding = counted("plays", printed).check(Made({}, facts={"songs": low}))
    assert (finding.verdict, finding.reason) == (UNTESTABLE, "the source did not count plays")


def test_the_largest_group_is_larger_than_all_but_its_own_parts() -> None:
    rule = largest_group("American", ("American (New)", "American (Traditional)"))
    sizes = {"Nightlife": 300, "American (New)": 420, "American": 420, "Mexican": 419}
    assert rule.check(Made({}, group_sizes=sizes)).verdict == HOLDS
    finding = rule.check(Made({}, group_sizes={**sizes, "Mexican": 420}))
    assert finding.verdict == FAILS
    assert finding.measured == ("American: 420 items", "Mexican: 420 items")
    assert rule.check(Made({}, group_sizes={"Mexican": 4})).verdict == UNTESTABLE


def as_the_paper_says(dataset: str) -> Made:
    """Evidence on which every testable sentence about a data set holds."""
    regrets: dict[Cell, float] = {}
    ranked = {"yelp": (1.4, 2.0, 2.75), "million-song": (0.9, 1.2, 1.0), "movielens": (1.3, 1.5, 1.1)}
    for size, ucb1, times in zip((16, 256, "all"), (1.9, 15.0, 150.0), ranked[dataset], strict=True):
        regrets |= {Cell(UCB1, size): 700 * ucb1, Cell(LIN_TS, size): 700.0, Cell(RANKED, size): 700 * times}
    by_rank = {"yelp": (0.5, 1.9), "million-song": (0.8, 1.3), "movielens": (1.3, 1.2)}[dataset]
    for rank, times in zip((10, 20, 40), (by_rank[0], 1.0, by_rank[1]), strict=True):
        regrets |= {Cell(rank=rank): 700 * times, Cell(rank=rank, group=True): 500 * times}
    regrets |= {Cell(k=8): 900.0, Cell(k=12): 1_000.0}
    regrets |= {
        Cell(f"{policy}:sigma={sigma:g}"): 800 for policy in (LIN_TS, LIN_UCB) for sigma in words.SIGMAS
    }
    regrets |= {Cell(f"{LIN_UCB}:c={c:g}"): 800 for c in words.WIDTHS} | {Cell(LIN_UCB): 800}
    facts = {
        "yelp": {
            "businesses": 77_900, "restaurants": 11_200, "reviews": 2_200_500, "users": 552_000,
            "kept items": 3_000, "kept users": 20_000,
        },
        "million-song": {"tracks": 1_000_000, "kept items": 10_000, "kept users": 400_000},
        "movielens": {"ratings": 1_000_209, "movies": 3_706, "users": 6_040},
    }  # fmt: skip
    return Made(regrets, facts=facts[dataset], group_sizes={"American": 500, "Mexican": 400})


DATASETS = ("yelp", "million-song", "movielens")
PAPER = {dataset: as_the_paper_says(dataset) for dataset in DATASETS}
NEVER = {"yelp-parts", "yelp-k-others", "yelp-k-cause", "million-song-k-cause", "movielens-joined"}


def verdicts(evidence: Mapping[str, Made]) -> dict[str, str]:
    return {row.claim.id: row.finding.verdict for row in judge(evidence)}


def test_on_evidence_as_the_paper_says_every_testable_claim_holds() -> None:
    assert verdicts(PAPER) == {claim.id: UNTESTABLE if claim.id in NEVER else HOLDS for claim in CLAIMS}


def upside_down(made: Made) -> Made:
    """Regrets turned around within their kind, counts tenfold, the group small."""
    regrets = {cell: 1_200_000 / regret + 12_000 for cell, regret in made.regrets.items()}
    regrets |= {cell: 200.0 for cell in regrets if cell.policy == UCB1}
    regrets |= {cell: 9_000.0 for cell in regrets if cell.policy == LIN_TS and cell.items == 16}
    regrets |= {cell: 60_000.0 for cell in regrets if cell.policy == RANKED and cell.items == 16}
    regrets |= {Cell(RANKED, "all"): 400.0}
    facts = {fact: 10 * count for fact, count in made.facts.items()}
    best = {4: 0.95, 8: 0.9, 12: 0.8}
    return replace(
        made, regrets=regrets, best=best, facts=facts, group_sizes={"American": 4, "Thai": 5}, at_first=0.02
    )


def test_on_evidence_turned_upside_down_every_testable_claim_fails() -> None:
    given = {dataset: upside_down(made) for dataset, made in PAPER.items()}
    assert verdicts(given) == {claim.id: UNTESTABLE if claim.id in NEVER else FAILS for claim in CLAIMS}


def test_made_up_data_has_figures_and_no_verdict() -> None:
    rows = judge({**PAPER, "yelp": replace(PAPER["yelp"], synthetic=True)})
    for row in rows:
        if row.claim.dataset == "yelp" and row.claim.id not in NEVER:
            assert row.finding.verdict == UNTESTABLE
            assert row.finding.reason.startswith(
                "the data is synthetic, and made-up data says nothing about Yelp"
            )
            assert "the rule alone would say: holds" in row.finding.reason
            assert row.finding.measured
    assert {row.finding.verdict for row in rows if row.claim.dataset == "movielens"} == {HOLDS, UNTESTABLE}


def test_runs_of_another_length_decide_only_what_the_data_itself_says() -> None:
    short = {"movielens": replace(PAPER["movielens"], steps=20_000, best={4: 0.8, 8: 0.9, 12: 0.95})}
    rows = {row.claim.id: row.finding for row in judge(short)}
    assert rows["movielens-users"].verdict == HOLDS
    finding = rows["movielens-similar-16"]
    assert finding.verdict == UNTESTABLE
    assert finding.reason.startswith(
        "the paper plays 100,000 steps, and these runs have 20,000; the rule alone"
    )


def test_what_was_not_played_is_said() -> None:
    made = PAPER["movielens"]
    without_ranks = {cell: regret for cell, regret in made.regrets.items() if cell.rank == 20}
    rows = {row.claim.id: row.finding for row in judge({"movielens": replace(made, regrets=without_ranks)})}
    assert rows["movielens-similar-16"].verdict == HOLDS
    assert rows["movielens-d-lowest"].verdict == UNTESTABLE
    assert rows["movielens-d-lowest"].reason.startswith(
        "experiment 2 was not played: there is no cascade-lin-ts, 10"
    )
    assert rows["yelp-gap"].reason == "Yelp was not played"


def test_an_unknown_data_set_is_refused() -> None:
    with pytest.raises(
        UnknownName, match=r"^no claim is about data set 'netflix'; the paper has yelp, million-song"
    ):
        judge({"netflix": PAPER["yelp"]})


def test_every_claim_has_its_own_id_a_place_a_sentence_and_a_rule() -> None:
    assert len({claim.id for claim in CLAIMS}) == len(CLAIMS) == 61
    section = {"yelp": "4.4", "million-song": "4.5", "movielens": "4.6"}
    for claim in CLAIMS:
        assert claim.id.startswith(f"{claim.dataset}-")
        assert claim.section in (section[claim.dataset], "3.1", "ours")
        assert claim.sentence.endswith(".")
        assert claim.rule.endswith(".")
        assert claim.rule.startswith("No rule") == (claim.id in NEVER)
    assert {claim.experiment for claim in CLAIMS} == {
        "data", "experiment 1", "experiment 2", "experiment 3", "experiment 4", "sweep of sigma",
        "sweep of c",
    }  # fmt: skip


NUMBER = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?[kM]?")


def test_every_number_in_a_rule_comes_from_the_words_or_from_the_sentence() -> None:
    given = {f"{limit:.3g}" for word in words.WORDS for limit in (word.low, word.high)}
    given |= {f"{value:g}" for value in (1, words.LEARNING_PARTS, min(words.WIDTHS), max(words.WIDTHS))}
    given |= {f"{value**2:g}" for value in (min(words.SIGMAS), max(words.SIGMAS))} | {"95"}
    for claim in CLAIMS:
        printed = [number for number in NUMBER.findall(claim.rule) if number[-1] in "kM"]
        rounded = {f"{end:,}" for number in printed for end in words.rounds_to(number)}
        numbers = {number for number in NUMBER.findall(claim.rule) if number[-1] not in "kM"}
        assert numbers <= given | rounded, claim.id


def test_a_word_with_other_limits_changes_the_rule_and_the_verdict() -> None:
    def rule(word: words.Word) -> Rule:
        return every("experiment 9", ratio(word, A, B))

    made, strict = Made({A: 1_200.0, B: 800.0}), replace(words.SIMILAR, low=0.7, high=1.4)
    assert "between 0.4 and 2.5" in rule(words.SIMILAR).text
    assert "between 0.7 and 1.4" in rule(strict).text
    assert (rule(words.SIMILAR).check(made).verdict, rule(strict).check(made).verdict) == (HOLDS, FAILS)


def declared(name: str) -> set[Cell]:
    """What an experiment's file plays, its extra curves left out."""
    content = tomllib.loads(files("firstclick.paper").joinpath(f"experiment-{name}.toml").read_text("utf-8"))
    policies = [make_policy(spec).label for spec in content["policies"]]
    axes = [
        value if isinstance(value, list) else [value] for value in map(content.get, ("items", "rank", "k"))
    ]
    return {Cell(*setting, "group" in content) for setting in itertools.product(policies, *axes)}


@pytest.mark.parametrize("name", ["1", "2", "3", "4", "sigma", "c"])
@pytest.mark.parametrize("dataset", DATASETS)
def test_the_claims_of_an_experiment_look_at_what_it_plays_and_at_nothing_else(
    dataset: str, name: str
) -> None:
    asked = set()

    class Listening(Made):
        def runs(self, policy: str, **setting: Any) -> NDArray[np.float64] | None:
            names = ("items", "rank", "k", "group")
            asked.add(Cell(policy, *(setting[name] for name in names)))
            return super().runs(policy, **setting)

    experiment = f"sweep of {name}" if name in ("sigma", "c") else f"experiment {name}"
    for claim in CLAIMS:
        if (claim.dataset, claim.experiment) == (dataset, experiment):
            claim.check(Listening(PAPER[dataset].regrets))
    assert asked == declared(name)


def test_the_ledger_is_plain_json_in_the_same_order_each_time() -> None:
    content = as_json(judge({"movielens": PAPER["movielens"]}))
    text = json.dumps(content, allow_nan=False)
    assert text == json.dumps(as_json(judge({"movielens": PAPER["movielens"]})), allow_nan=False)
    assert [row["id"] for row in content["claims"]] == [claim.id for claim in CLAIMS]
    assert sum(content["verdicts"].values()) == len(CLAIMS)
    assert content["verdicts"][HOLDS] == sum(row["verdict"] == HOLDS for row in content["claims"]) > 10
    assert set(content["claims"][0]) == {
        "id", "section", "dataset", "experiment", "sentence", "rule", "verdict", "measured", "figures",
        "reason",
    }  # fmt: skip
    assert [word["phrase"] for word in content["words"]] == [word.phrase for word in words.WORDS]
    assert "95%" in " ".join(METHOD)
