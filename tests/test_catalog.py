"""A catalog keeps every row it ever had: ids, features, and what is withdrawn."""

import numpy as np
import pytest

from firstclick import Catalog
from firstclick.errors import InvalidInput, UnknownName

# 5 items with 2 features; ids with gaps, of both kinds.
ITEMS = ["a", 40, "4", 4, "zebra"]
FEATURES = np.array([[1.0, 0.5], [2.0, 0.25], [3.0, 0.0], [4.0, -1.0], [5.0, 9.0]])


def test_items_keep_their_order_and_features_their_rows():
    catalog = Catalog(ITEMS, FEATURES)
    assert (len(catalog), catalog.n_features, catalog.items) == (5, 2, ITEMS)
    assert catalog.rows([4, "a", "4"]).tolist() == [3, 0, 2]
    assert np.array_equal(catalog.arrays.features, FEATURES)
    assert np.array_equal(catalog.arrays.columns, FEATURES.T)


def test_a_catalog_without_features_has_none_and_may_be_of_any_iterable():
    catalog = Catalog(item for item in range(10, 22, 3))
    assert (catalog.items, catalog.n_features, catalog.features) == ([10, 13, 16, 19], None, None)


@pytest.mark.parametrize("items", [[np.int32(7), np.str_("x")], np.array([7, 30]), np.array(["x", "yy"])])
def test_ids_of_numpy_become_plain_ones(items):
    assert {type(item) for item in Catalog(items).items} <= {int, str}
    assert Catalog(items).rows(items).tolist() == [0, 1]


@pytest.mark.parametrize(
    "item", ["", " ", "nan", "None", "Grüße 🛒", "\ud800", "x" * 100_000, -3, 0, 2**80, "a\0b"]
)
def test_an_id_may_be_any_text_or_whole_number(item):
    catalog = Catalog(["first", item])
    assert catalog.rows([item]).tolist() == [1]
    assert catalog.items[1] == item


@pytest.mark.parametrize("item", [1.0, None, True, np.True_, b"a", ("a",), float("nan")])
def test_an_id_is_nothing_else(item):
    with pytest.raises(InvalidInput) as caught:
        Catalog(["a", item])
    assert str(caught.value) == f"an item id must be a text or a whole number, got {item!r}"


@pytest.mark.parametrize(
    "use", [Catalog, Catalog(["b", "12"]).add, Catalog(["b"]).rows, Catalog(["b"]).withdraw]
)
def test_one_text_is_not_taken_for_a_list_of_its_letters(use):
    with pytest.raises(
        InvalidInput, match=r"^items must be a list of ids, got the text 'b12'; say \['b12'\]$"
    ):
        use("b12")
    with pytest.raises(InvalidInput, match=r"^items must be a list of ids, got 12$"):
        use(12)


def test_no_items_or_an_item_twice_is_refused():
    with pytest.raises(InvalidInput, match=r"^no items given$"):
        Catalog([])
    with pytest.raises(InvalidInput, match=r"^item 'b' is given twice$"):
        Catalog(["a", "b", "c", "b"])
    with pytest.raises(InvalidInput, match=r"^item 7 is given twice$"):
        Catalog([7, "7", np.int64(7)])


@pytest.mark.parametrize(
    ("features", "sentence"),
    [
        (FEATURES[:4], "features must have one row for each of the 5 items, got 4"),
        (FEATURES.T, "features must have one row for each of the 5 items, got 2"),
        (FEATURES[:, 0], "features must have two dimensions (items x features), got 1"),
        (np.empty((5, 0)), "features must have at least one column, got 0"),
        ([[1.0, 2.0], [3.0]], "features must be numbers, one row per item"),
        ([["one", "two"]] * 5, "features must be numbers, one row per item"),
    ],
)
def test_features_that_do_not_fit_are_refused(features, sentence):
    with pytest.raises(InvalidInput) as caught:
        Catalog(ITEMS, features)
    assert str(caught.value) == sentence


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_a_feature_that_is_not_finite_is_refused_with_row_and_column(value):
    features = FEATURES.copy()
    features[3, 1] = value
    with pytest.raises(InvalidInput, match=f"^features must be finite, got {value} in row 3, column 1$"):
        Catalog(ITEMS, features)


def test_the_callers_array_may_change_afterwards_and_may_be_read_only():
    mine = FEATURES.copy()
    catalog = Catalog(ITEMS, mine)
    mine[:] = -7
    assert np.array_equal(catalog.features, FEATURES)
    mine.flags.writeable = False
    # Read-only arrays would be another type to compile for.
    assert Catalog(ITEMS, mine).arrays.features.flags.writeable


def test_added_items_follow_in_new_rows():
    catalog = Catalog(ITEMS, FEATURES)
    catalog.add(["new", 5], [[6, 7], [8, 9]])
    assert catalog.rows([5, "new"]).tolist() == [6, 5]
    assert catalog.arrays.columns[:, 5:].tolist() == [[6, 8], [7, 9]]
    assert len(catalog) == len(catalog.hidden) == len(catalog.arrays.labels) == 7


@pytest.mark.parametrize(
    ("items", "features", "sentence"),
    [
        (["new", "a"], [[1, 2], [3, 4]], "item 'a' is in the catalog already"),
        (["new", "new"], [[1, 2], [3, 4]], "item 'new' is given twice"),
        (["new"], None, "the catalog has 2 features an item; added items must be the same"),
        (["new"], [[1, 2, 3]], "items must have 2 features, got 3"),
        (["new", "newer"], [[1, 2]], "features must have one row for each of the 2 items, got 1"),
        (["new", "newer"], [[1, 2], [3, np.nan]], "features must be finite, got nan in row 1, column 1"),
        ([], np.empty((0, 2)), "no items given"),
    ],
)
def test_an_addition_that_is_refused_changes_nothing(items, features, sentence):
    catalog = Catalog(ITEMS, FEATURES)
    with pytest.raises(InvalidInput) as caught:
        catalog.add(items, features)
    assert str(caught.value) == sentence
    assert catalog.items == ITEMS
    assert np.array_equal(catalog.arrays.features, FEATURES)
    with pytest.raises(UnknownName):
        catalog.rows(["new"])


def test_features_are_refused_by_a_catalog_without():
    with pytest.raises(InvalidInput, match=r"^the catalog has no features; added items must be the same$"):
        Catalog(ITEMS).add(["new"], [[1.0, 2.0]])


def test_a_withdrawn_item_is_hidden_but_keeps_its_row():
    catalog = Catalog(ITEMS, FEATURES)
    catalog.withdraw(["4", 40])
    assert len(catalog) == 3
    assert catalog.hidden.tolist() == [0, 1, 1, 0, 0]
    assert catalog.rows([4, "4", 40]).tolist() == [3]
    assert catalog.items == ITEMS
    assert np.array_equal(catalog.features, FEATURES)


@pytest.mark.parametrize("items", [["a", "b"], ["a", 40]])
def test_withdrawing_an_item_that_is_not_shown_is_refused_and_changes_nothing(items):
    catalog = Catalog(ITEMS)
    catalog.withdraw([40])
    with pytest.raises(UnknownName, match=f"^no item {items[1]!r} in the catalog$"):
        catalog.withdraw(items)
    assert catalog.hidden.tolist() == [0, 1, 0, 0, 0]


def test_an_item_withdrawn_and_added_again_gets_a_new_row_with_its_new_features():
    catalog = Catalog(ITEMS, FEATURES)
    catalog.withdraw([40])
    catalog.add([40], [[-1.0, -2.0]])
    assert catalog.rows([40]).tolist() == [5]
    assert catalog.features[[1, 5]].tolist() == [[2.0, 0.25], [-1.0, -2.0]]
    catalog.withdraw([40])
    assert catalog.hidden.tolist() == [0, 1, 0, 0, 0, 1]


def test_an_unknown_candidate_is_refused_and_a_repeated_one_counts_once():
    catalog = Catalog(ITEMS)
    assert catalog.rows(["zebra", "a", "zebra"]).tolist() == [4, 0]
    with pytest.raises(UnknownName, match=r"^no item 'x' in the catalog$"):
        catalog.rows(["a", "x"])
    with pytest.raises(UnknownName, match=r"^no item '40' in the catalog, but there is 40$"):
        catalog.known_rows(["a", "40"])
    assert catalog.known_rows(["a", "x", 40]) == [0, 1]


def test_a_restored_catalog_finds_the_latest_row_of_each_id():
    catalog = Catalog(ITEMS, FEATURES)
    catalog.withdraw(["a"])
    catalog.add(["a"], [[0.0, 0.0]])
    again = Catalog.restored(catalog.items, catalog.features, catalog.hidden)
    assert again.rows(["a", 40]).tolist() == catalog.rows(["a", 40]).tolist() == [5, 1]
    assert len(again) == 5
