"""Verdicts are counted in a sentence and in a table, and what the paper does not say counts nowhere."""

from dataclasses import replace

from firstclick.studies.paper.claims import CLAIMS, OURS
from firstclick.studies.paper.summary import claim_rows, claims_headline, tally
from firstclick.studies.paper.verdicts import FAILS, HOLDS, UNTESTABLE, Finding

ABOUT = {name: next(claim for claim in CLAIMS if claim.dataset == name) for name in ("yelp", "movielens")}


def judged(*verdicts):
    return [(ABOUT[name], Finding(verdict, ("1.5",), {}, "why")) for name, verdict in verdicts]


ALL = judged(("yelp", HOLDS), ("yelp", FAILS), ("movielens", UNTESTABLE), ("movielens", HOLDS))
OF_OURS = [(replace(ABOUT["yelp"], section=OURS), Finding(FAILS, (), {}, ""))]


def test_verdicts_are_counted_in_a_sentence():
    assert "Of 4 claims of the paper 2 hold, 1 does not hold and 1 is not testable" in claims_headline(ALL)
    assert claims_headline([*ALL[:2], ALL[0]]) == "Of 3 claims of the paper 2 hold and 1 does not hold."
    assert claims_headline(ALL[:1]) == "Of 1 claim of the paper 1 holds."
    assert "2 are not testable" in claims_headline([ALL[2], ALL[2]])
    assert claims_headline([]) == ""


def test_verdicts_are_counted_for_each_data_set_with_their_symbols():
    table = tally(ALL)
    assert table is not None
    assert table.columns == ("data set", "✓ holds", "✗ does not hold", "○ not testable with this data")
    assert table.rows == (("Yelp", "1", "1", "0"), ("MovieLens", "1", "0", "1"))
    assert tally([]) is None


def test_a_row_of_ours_is_shown_as_ours_and_counted_nowhere():
    assert claims_headline([*ALL, *OF_OURS]) == claims_headline(ALL)
    assert claims_headline(OF_OURS) == ""
    assert tally([*ALL, *OF_OURS]) == tally(ALL)
    (row,) = claim_rows(OF_OURS)
    assert row.heading == "Our own question, not a claim of the paper · Yelp"


def test_a_row_has_what_was_found_and_the_kind_of_its_verdict():
    rows = claim_rows(ALL)
    assert [row.kind for row in rows] == ["yes", "no", "open", "yes"]
    assert [row.verdict for row in rows] == [HOLDS, FAILS, UNTESTABLE, HOLDS]
    claim = ABOUT["yelp"]
    assert (rows[0].id, rows[0].sentence, rows[0].rule) == (claim.id, claim.sentence, claim.criterion.rule)
    assert (rows[0].heading, rows[0].measured, rows[0].reason) == ("Section 4.4 · Yelp", ("1.5",), "why")
