"""The words of the project follow the style guide; files that do not yet are listed and only improve."""

import pytest

from tests.support import shrinking, style


@pytest.fixture(scope="module")
def hits_by_file():
    return style.check(style.files_of_the_project())


@pytest.mark.parametrize("rule", style.RULES, ids=lambda rule: f"{rule.where}-{rule.use.split(',')[0]}")
def test_each_rule_matches_its_bad_example_only(rule):
    assert rule in [hit[2] for hit in style.hits(rule.bad, ".py")]
    assert rule not in [hit[2] for hit in style.hits(rule.good, ".py")]


def test_no_file_has_more_hits_than_the_list_allows(hits_by_file):
    listed = style.not_clean()
    too_high = shrinking.too_high(style.counts(hits_by_file, listed), listed)
    hint = "after moving files run it with --moved"
    assert not too_high, f"see python -m tests.support.style {' '.join(too_high)}; {hint}"


def test_the_list_only_shrinks(hits_by_file):
    to_lower = shrinking.to_lower(style.counts(hits_by_file, style.not_clean()), style.not_clean())
    assert shrinking.NUMBERS_MAY_BE_HIGH or not to_lower, "run python -m tests.support.style --update"
