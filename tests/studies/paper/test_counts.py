"""Claims that only count: what rounds to a printed number, what is exactly it, and who counts it."""

from pathlib import Path

import pytest
from made_evidence import DATASETS, PAPER, Made

from firstclick.data.sources import make_source
from firstclick.report.claims import FAILS, HOLDS, UNTESTABLE
from firstclick.studies.paper.checks import counted, largest_group
from firstclick.studies.paper.claim import CLAIMS


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


@pytest.mark.parametrize(("printed", "number"), [("3k", 3_000), ("400k", 400_000)])
def test_a_number_that_is_chosen_must_be_itself(printed: str, number: int) -> None:
    rule = counted("kept users", printed, exactly=True)
    found = [rule.check(Made({}, facts={"kept users": number + more})) for more in (-1, 0, 1)]
    assert [finding.verdict for finding in found] == [FAILS, HOLDS, FAILS]
    assert found[2].reason == f"{number + 1:,} is not {printed}"
    for claim in CLAIMS:
        if "-kept-" in claim.id:
            assert "as this is chosen" in claim.rule, claim.id


def test_the_largest_group_is_larger_than_all_but_its_own_parts() -> None:
    rule = largest_group("American", ("American (New)", "American (Traditional)"))
    sizes = {"Nightlife": 300, "American (New)": 420, "American": 420, "Mexican": 419}
    assert rule.check(Made({}, group_sizes=sizes)).verdict == HOLDS
    finding = rule.check(Made({}, group_sizes={**sizes, "Mexican": 420}))
    assert finding.verdict == FAILS
    assert finding.measured == ("American: 420 items", "Mexican: 420 items")
    assert rule.check(Made({}, group_sizes={"Mexican": 4})).verdict == UNTESTABLE


SMALL_FILES = {
    "yelp": {
        "business.json": '{"business_id": "b7", "name": "Nova", "categories": "Restaurants, Bars"}\n',
        "review.json": '{"review_id": "r", "user_id": "u", "business_id": "b7", "text": ""}\n',
    },
    "million-song": {
        "train_triplets.txt": "u50\tSOA\t3\n",
        "unique_tracks.txt": "TR2<SEP>SOA<SEP>First<SEP>Take\nTR9<SEP>SOZ<SEP>Nobody<SEP>Unplayed\n",
    },
    "movielens": {"ratings.dat": "7::31::5::978300760\n", "movies.dat": "31::Made-up (1999)::Drama\n"},
}


@pytest.mark.parametrize("dataset", DATASETS)
def test_every_count_that_a_claim_asks_for_is_given_by_the_source(dataset: str, tmp_path: Path) -> None:
    for name, text in SMALL_FILES[dataset].items():
        (tmp_path / name).write_text(text)
    given = make_source(dataset).load(tmp_path).facts
    kept = {"kept users", "kept items"}
    asked = {
        finding.figures["fact"]
        for claim in CLAIMS
        if claim.dataset == dataset and "fact" in (finding := claim.check(PAPER[dataset])).figures
    }
    assert asked
    assert asked <= set(given) | kept
