"""Tests import public names; the files that import internals are listed, and their number shrinks."""

import pytest

from tests.support import black_box, shrinking


@pytest.fixture(scope="module")
def now():
    return black_box.count()


def test_no_file_imports_more_internals_than_the_list_allows(now):
    too_high = shrinking.too_high(now, shrinking.read(black_box.LIST))
    assert not too_high, "see python -m tests.support.black_box; after moving files run it with --moved"


def test_the_list_of_white_box_tests_only_shrinks(now):
    to_lower = shrinking.to_lower(now, shrinking.read(black_box.LIST))
    assert shrinking.NUMBERS_MAY_BE_HIGH or not to_lower, "run python -m tests.support.black_box --update"


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
