"""Rules that not every file follows yet: words of the style guide, and tests that import public names."""

import pytest

from tests.support import black_box, shrinking, style


@pytest.fixture(scope="module", params=[black_box, style], ids=["black_box", "style"])
def numbers(request):
    return request.param.count(), shrinking.read(request.param.LIST)


def test_no_file_breaks_a_rule_more_often_than_its_list_allows(numbers):
    too_high = shrinking.too_high(*numbers)
    assert not too_high, "see python -m tests.support.style and .black_box; after moving files use --moved"


def test_the_lists_only_shrink(numbers):
    to_lower = shrinking.to_lower(*numbers)
    assert not to_lower, "run python -m tests.support.style --update, and .black_box"


@pytest.mark.parametrize("rule", style.RULES, ids=lambda rule: f"{rule.where}-{rule.use.split(',')[0]}")
def test_each_rule_matches_its_bad_example_only(rule):
    assert rule in [hit[2] for hit in style.hits(rule.bad, ".py")]
    assert rule not in [hit[2] for hit in style.hits(rule.good, ".py")]


def test_internal_names_are_counted():
    public = (
        "from firstclick import Ranker, serve\nfrom firstclick.serve import open_service\nimport numpy.random"
    )
    assert black_box.internals(public + "\nimport firstclick.client") == []
    internal = (
        "from firstclick import registry\n"
        "from firstclick.serve import store\n"
        "from firstclick.serve.store.sqlite import SqliteStore\n"
        "from firstclick.cli import _main\n"
        "import firstclick.online.ranker as r\n"
        "def f():\n    from firstclick.kernels import hashing\n"
    )
    assert len(black_box.internals(internal)) == 6
