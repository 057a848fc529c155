"""A catalog keeps every row it ever had: ids, features, and what is withdrawn."""

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from firstclick import Catalog, Ranker
from firstclick.errors import InvalidInput, UnknownName
from tests.support.policies import policies

# 5 items with 2 features; ids with gaps, of both kinds.
ITEMS = ["a", 40, "4", 4, "zebra"]
FEATURES = np.array([[1.0, 0.5], [2.0, 0.25], [3.0, 0.0], [4.0, -1.0], [5.0, 9.0]])


def test_items_keep_their_order_and_features_their_rows():
    catalog = Catalog(ITEMS, FEATURES)
    assert (len(catalog), catalog.n_features, catalog.items) == (5, 2, ITEMS)
    assert catalog.rows([4, "a", "4", "a"]).tolist() == [3, 0, 2]
    assert np.array_equal(catalog.arrays.features, FEATURES)
    assert np.array_equal(catalog.arrays.columns, FEATURES.T)
    catalog = Catalog(item for item in range(10, 22, 3))
    assert (catalog.items, catalog.n_features, catalog.features) == ([10, 13, 16, 19], None, None)


def test_ids_are_any_text_or_whole_number():
    texts = ["", " ", "nan", "None", "Grüße 🛒", "\ud800", "x" * 100_000, "a\0b"]
    ids = [*texts, -3, 0, 2**80, 2**128 - 1, 1 - 2**128, np.int32(7), np.str_("x")]
    catalog = Catalog(ids)
    assert catalog.items == ids
    assert {type(item) for item in catalog.items} == {int, str}
    assert catalog.rows(ids).tolist() == list(range(len(ids)))
    assert Catalog(np.array(["x", "yy"])).items == ["x", "yy"]


def test_callers_array_may_change_afterwards_be_read_only_or_masked():
    mine = FEATURES.copy()
    catalog = Catalog(ITEMS, mine)
    mine[:] = -7
    assert np.array_equal(catalog.features, FEATURES)
    mine.flags.writeable = False
    # Read-only arrays would be another type to compile for.
    assert Catalog(ITEMS, mine).arrays.features.flags.writeable
    catalog = Catalog(ITEMS, np.ma.array(FEATURES))
    assert type(catalog.features) is np.ndarray
    assert np.array_equal(catalog.features, FEATURES)


NAN = float("nan")


@pytest.mark.parametrize(
    "features",
    [
        [[1.0, 4.0], None, [2.0, 6.0], None],
        ([1.0, 4.0], [NAN, NAN], np.array([2.0, 6.0]), None),
        np.array([[1.0, 4.0], [NAN, NAN], [2.0, 6.0], [NAN, NAN]]),
    ],
)
def test_item_without_features_gets_the_mean_of_those_with_some(features):
    catalog = Catalog(["a", "b", "c", "d"], features)
    assert catalog.features.tolist() == [[1, 4], [1.5, 5], [2, 6], [1.5, 5]]
    assert catalog.cold_rows == [1, 3]
    again = Catalog.restored(catalog.items, catalog.features, catalog.hidden, cold_rows=catalog.cold_rows)
    # Withdrawn items count too, cold ones do not.
    again.withdraw(["c", "d"])
    again.add(["e", "f"], [None, [9.0, 20.0]])
    assert again.features[4:].tolist() == [[4, 10], [9, 20]]


def test_cold_item_is_to_a_linear_policy_an_average_item(tmp_path):
    ranker = Ranker(Catalog([*ITEMS, "cold"], [*FEATURES, None]), k=2, policy="cascade-lin-ts", seed=3)
    for step in range(5):
        ranker.learn(ranker.recommend(), click=step % 2)
    ranker.add_items(["colder", 2**128 - 1], [None, FEATURES.mean(axis=0)])
    means, deviations = ranker.estimates(["cold", "colder", 2**128 - 1])
    np.testing.assert_allclose(means, means[0], rtol=1e-12)
    np.testing.assert_allclose(deviations, deviations[0], rtol=1e-12)
    ranker.save(tmp_path / "r.npz")
    loaded = Ranker.load(tmp_path / "r.npz").catalog
    assert (loaded.cold_rows, loaded.items) == ([5, 6], ranker.catalog.items)
    other = Ranker(ranker.catalog, k=2, policy="cascade-lin-ts", seed=4)
    assert ranker.merge(other).catalog.cold_rows == [5, 6]


def test_restored_catalog_is_its_own_and_never_read_only():
    catalog = Catalog(ITEMS, FEATURES)
    hidden, features = np.zeros(5, np.uint8), FEATURES.copy()
    features.flags.writeable = False
    again = Catalog.restored(catalog.items, features, hidden)
    assert again.arrays.features.flags.writeable
    again.withdraw(["a"])
    again.add(["new"], [[7.0, 7.0]])
    assert (hidden.tolist(), catalog.items) == ([0] * 5, ITEMS)
    # Two catalogs on the same rows, as after a merge: what one adds the other does not see.
    catalog.add(["x"], [[1.0, 1.0]])
    second = Catalog.restored(catalog.items, catalog.features, catalog.hidden)
    second.add(["y"], [[2.0, 2.0]])
    catalog.add(["z"], [[3.0, 3.0]])
    assert (second.features[6].tolist(), catalog.features[6].tolist()) == ([2.0, 2.0], [3.0, 3.0])


def test_items_of_no_shown_row_are_refused_and_nothing_changes():
    catalog = Catalog(ITEMS, FEATURES)
    catalog.withdraw([40])
    for call, items in (
        (catalog.withdraw, ["a", "b"]),
        (catalog.withdraw, ["a", 40]),
        (catalog.show_again, ["a", "40"]),
        (catalog.rows, ["a", "x"]),
        (catalog.known_rows, ["a", "40"]),
    ):
        with pytest.raises(UnknownName, match=f"got {items[1]!r}"):
            call(items)
        assert catalog.hidden.tolist() == [0, 1, 0, 0, 0]
    with pytest.raises(UnknownName, match=r"did you mean 40\?$"):
        catalog.known_rows(["a", "40"])
    with pytest.raises(InvalidInput, match="must be new to the catalog"):
        catalog.add(["a"], [[0, 0]])
    with pytest.raises(InvalidInput, match="must be a text or a whole number"):
        catalog.row_of(True)
    assert catalog.known_rows(["a", "x", 40]) == [0, 1]
    assert [catalog.row_of(item) for item in (4, "4", np.int64(40), "40")] == [3, 2, 1, None]
    assert [catalog.is_shown(row) for row in (-1, 0, 1, 4, 5)] == [False, True, False, True, False]


def test_rows_added_one_by_one_are_seldom_moved():
    for features in (None, [[1.0, 2.0, 3.0]]):
        catalog = Catalog(["first"], features)
        bases = []  # Kept, or a later array could lie where an earlier one was.
        for item in range(1500):
            catalog.add([item], features)
            if not bases or bases[-1] is not catalog.arrays.columns:
                bases.append(catalog.arrays.columns)
        assert len(bases) < 20  # log(1500) / log(1.5) is 18.04


def state_of(catalog):
    """All that a catalog says."""
    ids = dict.fromkeys(catalog.items)
    return (
        catalog.items, catalog.hidden.tolist(), catalog.n_hidden, len(catalog),
        [catalog.row_of(item) for item in ids], catalog.rows(ids).tolist(),
    )  # fmt: skip


class CatalogMachine(RuleBasedStateMachine):
    """A catalog that is changed at random, against plain lists; what it gave out stays right."""

    def __init__(self):
        super().__init__()
        self.table, self.shown, self.ids = [[0.0, 0.5], [1.0, 1.5]], [True, True], [0, 1]
        self.catalog = Catalog(self.ids, self.table)
        self.cold, self.given, self.earlier = [], [], []
        self.keep()

    def keep(self):
        arrays = self.catalog.arrays
        self.given.append((arrays, [row.copy() for row in arrays.features], len(self.table)))

    def row_of(self, item):
        rows = [row for row, other in enumerate(self.ids) if other == item]
        return next((row for row in rows if self.shown[row]), rows[-1] if rows else None)

    @rule(items=st.lists(st.integers(0, 12), min_size=1, max_size=5, unique=True), cold=st.booleans())
    def add(self, items, cold):
        rows = [[float(len(self.table) + i), -float(item)] for i, item in enumerate(items)]
        known = [row for place, row in enumerate(self.table) if place not in self.cold] + rows[cold:]
        given = [*[None] * cold, *rows[cold:]]
        if any(self.row_of(item) is not None and self.shown[self.row_of(item)] for item in items):
            with pytest.raises(InvalidInput):
                self.catalog.add(items, given)
        else:
            self.catalog.add(items, given)
            if cold:
                rows[0] = np.mean(known, axis=0).tolist()
                self.cold.append(len(self.table))
            self.table += rows
            self.shown += [True] * len(items)
            self.ids = self.ids + items
            self.keep()

    @rule(data=st.data())
    def change(self, data):
        items = data.draw(st.lists(st.sampled_from(self.ids), max_size=3, unique=True))
        rows = [[float(item), 0.25 * len(self.given)] for item in items]
        self.catalog.change(items, np.reshape(rows, (-1, 2)))
        for item, row in zip(items, rows, strict=True):
            self.table[self.row_of(item)] = row
        self.cold = [row for row in self.cold if row not in map(self.row_of, items)]
        # What was given out changes with the catalog.
        self.given.clear()
        self.keep()

    @rule(items=st.lists(st.integers(0, 12), max_size=5))
    def withdraw(self, items):
        rows = [self.row_of(item) for item in items]
        if any(row is None or not self.shown[row] for row in rows):
            with pytest.raises(UnknownName):
                self.catalog.withdraw(items)
        else:
            self.catalog.withdraw(items)
            for row in rows:
                self.shown[row] = False

    @rule(items=st.lists(st.integers(0, 12), max_size=5))
    def show_again(self, items):
        rows = [self.row_of(item) for item in items]
        if None in rows:
            with pytest.raises(UnknownName):
                self.catalog.show_again(items)
        else:
            self.catalog.show_again(items)
            for row in rows:
                self.shown[row] = True

    @rule()
    def remember(self):
        catalog = self.catalog
        copy = Catalog.restored(catalog.items, catalog.features, catalog.hidden)
        self.earlier.append((copy, list(self.shown)))

    @precondition(lambda self: self.earlier)
    @rule(data=st.data())
    def show_as(self, data):
        earlier, shown = data.draw(st.sampled_from(self.earlier))
        self.catalog.show_as(earlier.hidden)
        self.shown = shown + [False] * (len(self.ids) - len(shown))

    @invariant()
    def is_as_expected(self):
        catalog, arrays = self.catalog, self.catalog.arrays
        ids = dict.fromkeys(self.ids)
        rows = [self.row_of(item) for item in ids]
        assert state_of(catalog) == (
            self.ids, [int(not shown) for shown in self.shown], self.shown.count(False), sum(self.shown),
            rows, [row for row in rows if self.shown[row]],
        )  # fmt: skip
        again = Catalog.restored(catalog.items, catalog.features, catalog.hidden)
        assert state_of(again) == state_of(catalog)
        assert (catalog.features.tolist(), catalog.cold_rows) == (self.table, self.cold)
        n_rows = len(self.table)
        assert arrays.rows.tolist() == arrays.labels.tolist() == list(range(n_rows))
        assert (arrays.labels.dtype, catalog.hidden.dtype) == (np.uint64, np.uint8)
        for array in (arrays.features, arrays.columns, arrays.rows, arrays.labels, catalog.hidden):
            # Another layout, or read-only, would be another type to compile for.
            assert array.flags.c_contiguous
            assert array.flags.writeable
        for given, features, size in self.given:
            assert np.array_equal(given.features, features)
            assert np.array_equal(given.columns[:, :size], np.transpose(features))
            assert len(given.rows) == len(given.labels) == size


TestCatalogMachine = CatalogMachine.TestCase
TestCatalogMachine.settings = settings(max_examples=40, stateful_step_count=30)


# One of each kind of shortcut.
@pytest.mark.parametrize(
    "policy", policies(["cascade-lin-ts", "cascade-lin-ucb", "cascade-ts", "cascade-ucb1"])
)
@pytest.mark.parametrize("n_items", [70, pytest.param(1500, marks=pytest.mark.long)])
def test_catalog_that_grew_gives_the_same_slates(policy, n_items):
    features = np.random.default_rng(3).normal(size=(n_items, 4))
    whole, grown = Catalog(range(n_items), features), Catalog(range(7), features[:7])
    one = Ranker(whole, k=4, policy=policy, seed=5)
    rows = grown.kernel_rows(one._engine.scale)
    for start in range(7, n_items, 11):
        stop = min(start + 11, n_items)
        grown.add(range(start, stop), features[start:stop])
        assert grown.kernel_rows(one._engine.scale) is rows
    # There is room behind the rows: what lies there must not matter.
    rows._room.columns[:, n_items:] = np.nan
    assert rows.arrays.columns.shape[1] > n_items
    rankers = [one, Ranker(grown, k=4, policy=policy, seed=5)]
    assert rankers[1]._engine._rows is rows, "rankers that share a catalog and a scale share its rows"
    for step in range(25):
        asked = {"candidates": range(3, n_items, 5)} if step % 6 == 5 else {}
        slates = [ranker.recommend(exclude=[step], **asked) for ranker in rankers]
        assert slates[0].items == slates[1].items
        for ranker, slate in zip(rankers, slates, strict=True):
            ranker.learn(slate, click=step % 4)
