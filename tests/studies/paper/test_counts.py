"""Claims that only count: what rounds to a printed number, what is exactly it, and who counts it."""

import pytest

from firstclick.data.sources import make_source
from firstclick.studies.paper.claims import CLAIMS
from firstclick.studies.paper.evidence import Evidence
from firstclick.studies.paper.verdicts import FAILS, HOLDS, UNTESTABLE, counted, largest_group
from tests.support.made_evidence import DATASETS, PAPER


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


@pytest.mark.parametrize(("printed", "number"), [("3k", 3_000), ("400k", 400_000)])
def test_chosen_number_must_be_itself(printed, number):
    criterion = counted("kept users", printed, number)
    found = [criterion.find(data({"kept users": number + more})) for more in (-1, 0, 1)]
    assert [finding.verdict for finding in found] == [FAILS, HOLDS, FAILS]
    assert found[2].reason.startswith(f"{number + 1:,} ")
    for claim in CLAIMS:
        if "-kept-" in claim.id:
            limits = claim.criterion.find(PAPER[claim.dataset].evidence()).figures["limits"]
            kept = int(claim.sentence.split()[1].removesuffix("k")) * 1_000
            assert limits == [kept, kept + 1], claim.id


def test_the_largest_group_is_larger_than_all_but_its_own_parts():
    criterion = largest_group("American", ("American (New)", "American (Traditional)"))
    sizes = {"Nightlife": 300, "American (New)": 420, "American": 420, "Mexican": 419}
    assert criterion.find(data(group_sizes=sizes)).verdict == HOLDS
    finding = criterion.find(data(group_sizes={**sizes, "Mexican": 420}))
    assert finding.verdict == FAILS
    assert finding.measured == ("American: 420 items", "Mexican: 420 items")
    assert criterion.find(data(group_sizes={"Mexican": 4})).verdict == UNTESTABLE


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
def test_every_count_that_a_claim_asks_for_is_given_by_the_source(dataset, tmp_path):
    for name, text in SMALL_FILES[dataset].items():
        (tmp_path / name).write_text(text)
    given = make_source(dataset).load(tmp_path).facts
    kept, evidence = {"kept users", "kept items"}, PAPER[dataset].evidence()
    asked = {
        finding.figures["fact"]
        for claim in CLAIMS
        if claim.dataset == dataset and "fact" in (finding := claim.criterion.find(evidence)).figures
    }
    assert asked
    assert asked <= set(given) | kept
