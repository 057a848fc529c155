"""The ledger of claims: made-up evidence on which every claim holds, fails or cannot be told."""

import itertools
import json
import re
import subprocess
import sys
import tomllib
from dataclasses import replace
from importlib.resources import files
from typing import Any

import pytest

from firstclick import make_policy
from firstclick.errors import UnknownName
from firstclick.studies.paper.claims import CLAIMS, GROUPS, OURS, SIGMAS, WIDTHS, WORDS
from firstclick.studies.paper.evidence import LEARNING_PARTS, Case
from firstclick.studies.paper.judge import METHOD, as_json, judge
from firstclick.studies.paper.verdicts import FAILS, HOLDS, UNTESTABLE
from tests.support.made_evidence import DATASETS, LIN_TS, PAPER, RANKED, UCB1

NEVER = {"yelp-parts", "yelp-k-others", "yelp-k-cause", "million-song-k-cause", "movielens-joined"}


def judged(made):
    return judge({dataset: one.evidence() for dataset, one in made.items()})


def findings(made):
    return {claim.id: finding for claim, finding in judged(made)}


def verdicts(made):
    return {name: finding.verdict for name, finding in findings(made).items()}


def test_on_evidence_as_the_paper_says_every_testable_claim_holds():
    assert verdicts(PAPER) == {claim.id: UNTESTABLE if claim.id in NEVER else HOLDS for claim in CLAIMS}


def upside_down(made):
    """Regrets turned around within their kind, the group small."""
    regrets = {cell: 1_200_000 / regret + 12_000 for cell, regret in made.regrets.items()}
    regrets |= {cell: 200.0 for cell in regrets if cell.policy == UCB1}
    regrets |= {cell: 9_000.0 for cell in regrets if cell.policy == LIN_TS and cell.items == 16}
    regrets |= {cell: 60_000.0 for cell in regrets if cell.policy == RANKED and cell.items == 16}
    regrets |= {Case(RANKED, "all"): 400.0}
    best = {4: 0.95, 8: 0.9, 12: 0.8}
    return replace(made, regrets=regrets, best=best, group_sizes={"American": 4, "Thai": 5}, at_first=0.02)


def test_on_evidence_turned_upside_down_every_testable_claim_fails():
    given = {dataset: upside_down(made) for dataset, made in PAPER.items()}
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
    # What is undecided does not ask for more runs of other data first.
    undecided = replace(made, regrets={**made.regrets, Case(k=8): 700.0}, facts=other)
    reason = findings({"movielens": undecided})["movielens-k-regret"].reason
    assert re.match("this is other data .* the rule alone would say: undecided", reason)
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


def test_the_groups_that_are_declared_are_the_papers():
    def read(name):
        return tomllib.loads(files("firstclick.studies.paper").joinpath(name).read_text("utf-8"))

    assert read("experiment-3.toml")["group"] == {name: group[0] for name, group in GROUPS.items()}
    for mode in read("modes.toml").values():
        for dataset, group in mode.get("group", {}).items():
            assert group in GROUPS[dataset]


def test_on_yelp_regret_has_to_increase_from_4_to_8_shown_and_elsewhere_to_12_too():
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
        assert claim.sentence.endswith(".")
        assert claim.criterion.rule.endswith(".")
        assert claim.criterion.rule.startswith("No rule") == (claim.id in NEVER)
    assert {claim.criterion.experiment for claim in CLAIMS} == {
        "data", "experiment 1", "experiment 2", "experiment 3", "experiment 4", "sweep of sigma",
        "sweep of c",
    }  # fmt: skip


NUMBER = re.compile(r"\d+(?:,\d{3})*(?:\.\d+)?[kM]?")


def test_every_number_in_a_rule_comes_from_the_words_or_from_the_sentence():
    given = {f"{limit:.3g}" for word in WORDS for limit in (word.low, word.high)}
    given |= {f"{value:g}" for value in (1, LEARNING_PARTS, min(WIDTHS), max(WIDTHS))}
    given |= {f"{value**2:g}" for value in (min(SIGMAS), max(SIGMAS))} | {"95"}
    for claim in CLAIMS:
        numbers = set(NUMBER.findall(claim.criterion.rule))
        figures = claim.criterion.find(PAPER[claim.dataset].evidence()).figures
        if "printed" in figures:
            assert figures["printed"] in numbers
            numbers -= {figures["printed"], *(f"{limit:,}" for limit in figures["limits"])}
        assert numbers <= given, claim.id


def declared(name):
    """What an experiment's file plays, its extra curves left out."""
    content = tomllib.loads(
        files("firstclick.studies.paper").joinpath(f"experiment-{name}.toml").read_text("utf-8")
    )
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
    assert set(content["claims"][0]) == {
        "id", "section", "dataset", "experiment", "sentence", "rule", "verdict", "measured", "figures",
        "reason",
    }  # fmt: skip
    assert [word["phrase"] for word in content["words"]] == [word.phrase for word in WORDS]
    assert "95%" in " ".join(METHOD)
    assert ({name: content[name] for name in ABOUT}, content["data"]) == (ABOUT, PLAYED)
    # Claims of the paper are counted, of the data that was played; questions of ours are not.
    rows = [row for row in content["claims"] if row["dataset"] == "movielens" and row["section"] != OURS]
    assert [row["verdict"] for row in rows].count(HOLDS) == len(rows) - 1 == 15
    assert content["verdicts"] == {"movielens": {HOLDS: 15, FAILS: 0, UNTESTABLE: 1}}


def test_judging_imports_neither_the_report_nor_matplotlib():
    code = "import sys, firstclick.studies.paper.judge; "
    code += "print(sorted({'matplotlib', 'firstclick.report'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
