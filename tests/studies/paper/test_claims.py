"""The ledger of claims: synthetic evidence on which every claim holds, fails or is not testable."""

import itertools
import json
import re
import tomllib
from dataclasses import replace
from importlib.resources import files
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from firstclick import make_policy
from firstclick.errors import UnknownName
from firstclick.experiments.cells import recorded_steps
from firstclick.studies.paper.claims import CLAIMS, GROUPS, OURS, WORDS
from firstclick.studies.paper.evidence import Case, Evidence, evidence_of
from firstclick.studies.paper.experiments import mode_named
from firstclick.studies.paper.judge import as_json, judge
from firstclick.studies.paper.summary import claim_rows, claims_headline, tally
from firstclick.studies.paper.verdicts import FAILS, HOLDS, UNTESTABLE, Finding, counted, largest_group
from tests.support.made_evidence import DATASETS, LIN_TS, PAPER, RANKED, UCB1

NEVER = {"yelp-parts", "yelp-k-others", "yelp-k-cause", "million-song-k-cause", "movielens-joined"}


def judged(made):
    return judge({dataset: one.evidence() for dataset, one in made.items()})


def findings(made):
    return {claim.id: finding for claim, finding in judged(made)}


def verdicts(made):
    return {name: finding.verdict for name, finding in findings(made).items()}


def read(name):
    return tomllib.loads(files("firstclick.studies.paper").joinpath(name).read_text("utf-8"))


def test_on_evidence_as_the_paper_says_every_testable_claim_holds():
    assert verdicts(PAPER) == {claim.id: UNTESTABLE if claim.id in NEVER else HOLDS for claim in CLAIMS}


def test_on_evidence_turned_upside_down_every_testable_claim_fails():
    given = {}
    for dataset, made in PAPER.items():
        # Regrets turned around within their kind, the group small.
        regrets = {cell: 1_200_000 / regret + 12_000 for cell, regret in made.regrets.items()}
        regrets |= {cell: 200.0 for cell in regrets if cell.policy == UCB1}
        regrets |= {cell: 9_000.0 for cell in regrets if cell.policy == LIN_TS and cell.items == 16}
        regrets |= {cell: 60_000.0 for cell in regrets if cell.policy == RANKED and cell.items == 16}
        regrets |= {Case(RANKED, "all"): 400.0}
        sizes, best = {"American": 4, "Thai": 5}, {4: 0.95, 8: 0.9, 12: 0.8}
        given[dataset] = replace(made, regrets=regrets, best=best, group_sizes=sizes, at_first=0.02)
    counts = {
        claim.id
        for claim in CLAIMS
        if "printed" in claim.criterion.find(PAPER[claim.dataset].evidence()).figures
    }
    assert verdicts(given) == {
        claim.id: UNTESTABLE if claim.id in NEVER else HOLDS if claim.id in counts else FAILS
        for claim in CLAIMS
    }


@pytest.mark.parametrize("dataset", DATASETS)
def test_other_data_fails_its_counts_and_decides_no_experiment(dataset):
    made = PAPER[dataset]
    tenfold = replace(made, facts={fact: 10 * count for fact, count in made.facts.items()})
    for claim, finding in judged({dataset: tenfold}):
        if claim.dataset != dataset or claim.id in NEVER:
            continue
        if claim.criterion.experiment == "data":
            assert finding.verdict == (HOLDS if "largest" in claim.id else FAILS)
        else:
            assert finding.verdict == UNTESTABLE
            assert finding.reason.startswith("this is other data than the paper’s: ")
            assert "the rule alone would say: holds" in finding.reason
            assert finding.measured


def test_one_count_that_differs_makes_it_other_data_and_a_missing_one_does_not():
    made = PAPER["movielens"]
    other = {**made.facts, "users": 200}
    rows = findings({"movielens": replace(made, facts=other)})
    assert (rows["movielens-ratings"].verdict, rows["movielens-users"].verdict) == (HOLDS, FAILS)
    assert "200 users, the paper has 6k" in rows["movielens-similar-16"].reason
    without = replace(made, facts={"ratings": 1_000_209, "movies": 3_706})
    assert verdicts({"movielens": without})["movielens-similar-16"] == HOLDS
    # Runs of another length decide only what the data itself says.
    short = replace(made, steps=20_000, best={4: 0.8, 8: 0.9, 12: 0.95})
    rows = findings({"movielens": short})
    assert (rows["movielens-users"].verdict, rows["movielens-similar-16"].verdict) == (HOLDS, UNTESTABLE)
    assert "20,000" in rows["movielens-similar-16"].reason


ON_THE_GROUP = {claim.id for claim in CLAIMS if claim.criterion.experiment == "experiment 3"}


@pytest.mark.parametrize(
    ("dataset", "played", "paper"),
    [("movielens", "Drama", "Adventure"), ("million-song", "Jazz", "Rock"), ("yelp", "Thai", "American")],
)
def test_another_group_than_the_papers_decides_nothing_about_it(dataset, played, paper):
    given = {dataset: replace(PAPER[dataset], group=played)}
    for claim, finding in judged(given):
        if claim.dataset != dataset or claim.id in NEVER:
            continue
        if claim.id in ON_THE_GROUP:
            assert finding.verdict == UNTESTABLE
            assert finding.reason.startswith(f"{played} was played, not {paper}; ")
            assert finding.measured[0] == f"the group is {played}"
        else:
            assert finding.verdict == HOLDS


def test_group_of_the_paper_has_other_names_and_a_size():
    for dataset, played in (("million-song", "Pop_Rock"), ("yelp", "American (New)")):
        given = verdicts({dataset: replace(PAPER[dataset], group=played)})
        assert {given[name] for name in ON_THE_GROUP if name.startswith(dataset)} == {HOLDS}
    finding = findings(PAPER)["movielens-group-d-well"]
    assert finding.measured[0] == "the group is Adventure, 283 items"
    assert finding.figures["group"] == "Adventure"
    # The groups that are declared are those of the paper.
    assert read("experiment-3.toml")["group"] == {name: group[0] for name, group in GROUPS.items()}


def test_regret_has_to_increase_to_8_shown_on_yelp_and_to_12_elsewhere():
    for dataset, verdict in (("yelp", HOLDS), ("million-song", FAILS), ("movielens", FAILS)):
        made = PAPER[dataset]
        found = verdicts({dataset: replace(made, regrets={**made.regrets, Case(k=12): 800.0})})
        assert (found[f"{dataset}-k-regret"], found[f"{dataset}-k-best"]) == (verdict, verdict)
        assert found[f"{dataset}-k-reward"] == HOLDS


def test_synthetic_data_has_figures_and_no_verdict():
    rows = judged({**PAPER, "yelp": replace(PAPER["yelp"], synthetic=True)})
    for claim, finding in rows:
        if claim.dataset == "yelp" and claim.id not in NEVER:
            assert finding.verdict == UNTESTABLE
            assert finding.reason.startswith("the data is synthetic")
            assert "the rule alone would say: holds" in finding.reason
            assert finding.measured
    assert {finding.verdict for claim, finding in rows if claim.dataset == "movielens"} == {HOLDS, UNTESTABLE}


def test_claims_on_what_was_not_played_are_untestable():
    made = PAPER["movielens"]
    without_ranks = {cell: regret for cell, regret in made.regrets.items() if cell.rank == 20}
    rows = findings({"movielens": replace(made, regrets=without_ranks)})
    assert rows["movielens-similar-16"].verdict == HOLDS
    assert rows["movielens-d-lowest"].verdict == UNTESTABLE
    assert rows["movielens-d-lowest"].reason.startswith("experiment 2 was not played")
    assert rows["yelp-gap"].reason == "Yelp was not played"
    with pytest.raises(UnknownName, match="'netflix'"):
        judged({"netflix": PAPER["yelp"]})


def test_every_claim_has_its_own_id_a_place_a_sentence_and_a_rule():
    assert len({claim.id for claim in CLAIMS}) == len(CLAIMS) == 61
    section = {"yelp": "4.4", "million-song": "4.5", "movielens": "4.6"}
    for claim in CLAIMS:
        assert claim.id.startswith(f"{claim.dataset}-")
        assert claim.section in (section[claim.dataset], "3.1", "ours")
        assert claim.criterion.rule.startswith("No rule") == (claim.id in NEVER)


NUMBER = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?[kM]?")


def test_every_number_in_a_rule_is_a_limit_that_decides():
    given = {f"{limit:.3g}" for word in WORDS for limit in (word.low, word.high)}
    # Intervals of 95%, a tenth of the steps, and where the sweeps of c and of sigma squared begin and end.
    given |= {"95", "1", "10", "0.03", "0.01", "100"}
    for claim in CLAIMS:
        numbers = set(NUMBER.findall(claim.criterion.rule))
        figures = claim.criterion.find(PAPER[claim.dataset].evidence()).figures
        if "printed" not in figures:
            assert numbers <= given, claim.id
            continue
        low, end = figures["limits"]
        limits = {f"{low:,}"} if "chosen" in claim.criterion.rule else {f"{low:,}", f"{end:,}"}
        assert numbers == {figures["printed"], *limits}, claim.id


def declared(name):
    """What an experiment's file plays, its extra curves left out."""
    content = read(f"experiment-{name}.toml")
    policies = [make_policy(spec).label for spec in content["policies"]]
    axes = [
        value if isinstance(value, list) else [value] for value in map(content.get, ("items", "rank", "k"))
    ]
    return {Case(*setting, "group" in content) for setting in itertools.product(policies, *axes)}


@pytest.mark.parametrize("name", ["1", "2", "3", "4", "sigma", "c"])
@pytest.mark.parametrize("dataset", DATASETS)
def test_the_claims_of_an_experiment_look_at_what_it_plays_and_at_nothing_else(dataset, name):
    asked = set()

    class Listening(dict[Case, Any]):
        def __getitem__(self, case):
            asked.add(case)
            return super().__getitem__(case)

    evidence = PAPER[dataset].evidence()
    evidence = replace(evidence, regret=Listening(evidence.regret), reward=Listening(evidence.reward))
    experiment = f"sweep of {name}" if name in ("sigma", "c") else f"experiment {name}"
    for claim in CLAIMS:
        if (claim.dataset, claim.criterion.experiment) == (dataset, experiment):
            claim.criterion.find(evidence)
    assert asked == declared(name)


ABOUT = {"mode": "paper", "steps": 100_000, "runs": 11, "seed": 3}
PLAYED = {"movielens": {"title": "MovieLens", "sha256": "0f", "synthetic": False}}


def test_ledger_is_plain_json_in_the_same_order_each_time():
    content, again = (as_json(judged({"movielens": PAPER["movielens"]}), ABOUT, PLAYED) for _ in range(2))
    assert json.dumps(content, allow_nan=False) == json.dumps(again, allow_nan=False)
    assert [row["id"] for row in content["claims"]] == [claim.id for claim in CLAIMS]
    assert [word["phrase"] for word in content["words"]] == [word.phrase for word in WORDS]
    assert ({name: content[name] for name in ABOUT}, content["data"]) == (ABOUT, PLAYED)
    # Claims of the paper are counted, of the data that was played; questions of ours are not.
    rows = [row for row in content["claims"] if row["dataset"] == "movielens" and row["section"] != OURS]
    assert [row["verdict"] for row in rows].count(HOLDS) == len(rows) - 1 == 15
    assert content["verdicts"] == {"movielens": {HOLDS: 15, FAILS: 0, UNTESTABLE: 1}}


def data(facts=None, group_sizes=None):
    return Evidence(False, 100_000, facts or {}, group_sizes or {}, "")


@pytest.mark.parametrize(
    ("claim", "low", "high"),
    [
        ("yelp-businesses", 77_500, 78_500),
        ("yelp-restaurants", 10_500, 11_500),
        ("yelp-reviews", 2_150_000, 2_250_000),
        ("yelp-users", 545_000, 555_000),
        ("million-song-tracks", 500_000, 1_500_000),
        ("movielens-ratings", 500_000, 1_500_000),
        ("movielens-movies", 3_500, 4_500),
        ("movielens-users", 5_500, 6_500),
    ],
)
def test_count_holds_if_it_rounds_to_what_is_printed(claim, low, high):
    (criterion,) = [one.criterion for one in CLAIMS if one.id == claim]
    fact = claim.rpartition("-")[2]
    found = [criterion.find(data({fact: count, "others": 3})) for count in (low - 1, low, high - 1, high)]
    assert [finding.verdict for finding in found] == [FAILS, HOLDS, HOLDS, FAILS]
    assert found[0].reason.startswith(f"{low - 1:,} ")
    finding = criterion.find(data({"others": low}))
    assert (finding.verdict, fact in finding.reason) == (UNTESTABLE, True)


def test_chosen_number_must_be_itself():
    number = 3_000
    criterion = counted("kept users", "3k", number)
    found = [criterion.find(data({"kept users": number + more})) for more in (-1, 0, 1)]
    assert [finding.verdict for finding in found] == [FAILS, HOLDS, FAILS]
    assert found[2].reason.startswith(f"{number + 1:,} ")


def test_the_largest_group_is_larger_than_all_but_its_own_parts():
    criterion = largest_group("American", ("American (New)", "American (Traditional)"))
    sizes = {"Nightlife": 300, "American (New)": 420, "American": 420, "Mexican": 419}
    assert criterion.find(data(group_sizes=sizes)).verdict == HOLDS
    finding = criterion.find(data(group_sizes={**sizes, "Mexican": 420}))
    assert finding.verdict == FAILS
    assert finding.measured == ("American: 420 items", "Mexican: 420 items")
    assert criterion.find(data(group_sizes={"Mexican": 4})).verdict == UNTESTABLE


CLAIM = {name: next(claim for claim in CLAIMS if claim.dataset == name) for name in ("yelp", "movielens")}


def verdicts_on(*verdicts):
    return [(CLAIM[name], Finding(verdict, ("1.5",), {}, "why")) for name, verdict in verdicts]


ALL = verdicts_on(("yelp", HOLDS), ("yelp", FAILS), ("movielens", UNTESTABLE), ("movielens", HOLDS))
OF_OURS = [(replace(CLAIM["yelp"], section=OURS), Finding(FAILS, (), {}, ""))]


def test_verdicts_are_counted_in_a_sentence_and_a_table():
    assert "Of 4 claims of the paper 2 hold, 1 does not hold and 1 is not testable" in claims_headline(ALL)
    assert claims_headline(ALL[:1]) == "Of 1 claim of the paper 1 holds."
    table = tally(ALL)
    assert table.columns == ("data set", "✓ holds", "✗ does not hold", "○ not testable with this data")
    assert table.rows == (("Yelp", "1", "1", "0"), ("MovieLens", "1", "0", "1"))
    # A row of ours is shown as ours and counted nowhere.
    assert claims_headline([*ALL, *OF_OURS]) == claims_headline(ALL)
    assert tally([*ALL, *OF_OURS]) == table
    assert (claims_headline(OF_OURS), claims_headline([]), tally([])) == ("", "", None)
    rows = claim_rows(ALL)
    assert [row.kind for row in rows] == ["yes", "no", "open", "yes"]
    assert [row.verdict for row in rows] == [HOLDS, FAILS, UNTESTABLE, HOLDS]
    claim = CLAIM["yelp"]
    assert (rows[0].id, rows[0].sentence, rows[0].rule) == (claim.id, claim.sentence, claim.criterion.rule)


def comparison(group="", n_items=256, policy="cascade-lin-ts", steps=300, more=0.0):
    step = recorded_steps(steps)
    regrets = np.array([[1.0], [2.0], [4.0]]) * step + more
    return SimpleNamespace(
        dataset=SimpleNamespace(
            matrix=np.empty((5, 290)),
            source=SimpleNamespace(synthetic=False),
            interactions=SimpleNamespace(facts={"users": 7}, groups=lambda: {"Drama": [1, 2, 3]}),
        ),
        setting=SimpleNamespace(group=group, rank=20, k=4, n_items=n_items, steps=steps),
        results=SimpleNamespace(
            step=step, results=[SimpleNamespace(policy=policy, expected_regret=regrets, reward=-regrets)]
        ),
        optimal_rewards=np.array([0.5, 0.25, 0.75]),
    )


def evidence(*comparisons, mode="paper"):
    return evidence_of(comparisons, mode_named(mode))


@pytest.mark.parametrize("steps", [10, 19, 2_001, 100_000])
def test_sums_are_those_at_the_last_step_and_at_a_tenth(steps):
    # The first of two equal cases counts.
    found = evidence(comparison(steps=steps), comparison(steps=steps, more=3.0))
    case = Case("cascade-lin-ts")
    np.testing.assert_array_equal(found.regret[case], [steps, 2 * steps, 4 * steps])
    np.testing.assert_array_equal(found.reward[case], -found.regret[case])
    np.testing.assert_array_equal(found.early_regret[case], np.array([1, 2, 4]) * (steps // 10))
    np.testing.assert_array_equal(found.best[case], np.array([0.5, 0.25, 0.75]) * steps)
    assert set(found.regret) == {case}


def test_all_items_go_by_their_number_too_and_a_group_is_a_case_of_its_own():
    found = evidence(comparison(n_items=290), comparison("Drama"))
    assert set(found.regret) == {Case(items=290), Case(items="all"), Case(group=True)}
    assert found.facts == {"users": 7, "kept users": 5, "kept items": 290}
    assert (found.group, found.group_sizes) == ("Drama", {"Drama": 3})
    # A run shorter than ten steps has no early regret.
    short = evidence(comparison(steps=9))
    assert (short.group, len(short.regret), len(short.early_regret)) == ("", 1, 0)


def test_what_a_mode_plays_in_the_place_of_a_policy_goes_by_its_name():
    played = comparison(policy="cascade-ucb1:start=pessimistic")
    assert set(evidence(played, mode="authors").regret) == {Case("cascade-ucb1")}
    assert set(evidence(played).regret) == {Case("cascade-ucb1:start=pessimistic")}
