"""A search of the tree finds exactly what a scan finds: for any features, filters and thetas."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from benchmarks.scanning import scanning
from firstclick import Catalog, Ranker
from firstclick.catalog import kernel_rows
from firstclick.catalog import search_tree as index_module
from firstclick.catalog.search_tree import build_tree, catalog_arrays
from firstclick.kernels.arrays import NO_LIMITS
from firstclick.kernels.hashing import mix
from firstclick.kernels.ranking import FAN, LEAF
from firstclick.kernels.search.tree import SCANS, rank_by_product
from tests.support.awkward import KINDS, kind_of_features
from tests.support.policies import policies

FEW = 64  # items from which these tests build a tree


@pytest.fixture(autouse=True)
def small_indexes(monkeypatch):
    monkeypatch.setattr(index_module, "FEWEST_ITEMS", FEW)


def slates(features, thetas, k, *, hidden=None, tree=None):
    """The slates of the search and of the scan, for each theta, with the steps' own keys for ties."""
    request = NO_LIMITS if hidden is None else NO_LIMITS._replace(hidden=hidden)
    searched = catalog_arrays(features, len(features))
    if tree is not None:
        searched = searched._replace(tree=tree)
    scanned = scanning(searched)
    assert searched.tree.covered > 0
    found = []
    for catalog in (searched, scanned):
        mine = []
        for step, theta in enumerate(thetas):
            slate = np.full(k, -1)
            catalog.tree.scans[0] = 0
            n = rank_by_product(theta, catalog, request, np.uint64(mix(np.uint64(5), np.uint64(step))), slate)
            mine.append(slate[:n].tolist())
        found.append(mine)
    return found


@settings(max_examples=100)
@given(
    kind=st.sampled_from(KINDS),
    n_items=st.integers(FEW, 700),
    d=st.sampled_from([1, 2, 3, 5, 9, 64]),
    k=st.integers(1, 6),
    seed=st.integers(0, 2**32),
    hide=st.sampled_from([0.0, 0.3, 0.97, 1.0]),
    size=st.sampled_from([0.0, 1e-30, 1.0, 1e6, 1e200]),
)
def test_search_equals_the_scan(kind, n_items, d, k, seed, hide, size):
    draw = np.random.default_rng(seed)
    features = np.ascontiguousarray(kind_of_features(kind, draw, n_items, d))
    if features.max() == features.min():
        return
    hidden = None if hide == 0 else (draw.random(n_items) < hide).astype(np.uint8)
    thetas = size * draw.normal(size=(4, d))
    searched, scanned = slates(features, thetas, k, hidden=hidden)
    assert searched == scanned


@pytest.mark.parametrize("kind", KINDS)
def test_search_equals_the_scan_for_each_kind_of_features(kind):
    draw = np.random.default_rng(9)
    # More than LEAF * FAN items, so that boxes of boxes are searched.
    features = np.ascontiguousarray(kind_of_features(kind, draw, LEAF * FAN + 401, 7))
    thetas = draw.normal(size=(20, 7))
    thetas[::2, 0] = 5 * np.abs(thetas[::2, 0])  # an intercept that matters
    for k in (1, 4, 65, 500) if kind == "long tail" else (1, 4):
        searched, scanned = slates(features, thetas[:: k // 32 + 1], k)
        assert searched == scanned
        assert len(searched[0]) == k


def test_numbers_beyond_floating_point_are_left_to_the_scan():
    draw = np.random.default_rng(3)
    features = np.column_stack([np.full(300, 1e90), draw.normal(size=(300, 3))])
    thetas = draw.normal(size=(6, 4))
    thetas[:, 0] = 1e250
    thetas[3:, 0] = np.nan
    searched, scanned = slates(features, thetas, 4)
    assert searched == scanned


def test_where_there_is_little_to_leave_out_most_calls_scan():
    draw = np.random.default_rng(3)
    features = kind_of_features("sphere", draw, 400, 9)
    catalog = catalog_arrays(features, 400)
    slate = np.empty(4, np.int64)
    left = []
    for step in range(SCANS + 2):
        rank_by_product(draw.normal(size=9), catalog, NO_LIMITS, np.uint64(step), slate)
        left.append(int(catalog.tree.scans[0]))
    assert left == [*range(SCANS, -1, -1), SCANS]


def test_rows_added_after_the_index_are_found(monkeypatch):
    draw = np.random.default_rng(4)
    features = kind_of_features("long tail", draw, 400, 5)
    old = build_tree(features[:300].copy())
    features[350] *= 100
    searched, scanned = slates(features, draw.normal(size=(30, 5)), 4, tree=old)
    assert searched == scanned
    assert any(350 in slate for slate in searched)
    # A catalog keeps its index until many rows came after it.
    monkeypatch.setattr(kernel_rows, "MOST_AFTER", 10)
    catalog = Catalog(range(100), features[:100])
    first = catalog.arrays.tree
    assert first.covered == 100
    catalog.add(range(100, 110), features[100:110])
    assert catalog.arrays.tree is first
    catalog.add([110], features[110:111])
    assert catalog.arrays.tree.covered == 111


@pytest.mark.parametrize("policy", policies(["cascade-lin-ts", "ranked-lin-ts"]))
def test_ranker_recommends_the_same_with_and_without_the_index(policy, monkeypatch):
    draw = np.random.default_rng(8)
    features = kind_of_features("long tail", draw, 300, 5)
    slates_of = []
    for fewest in (FEW, 10**9):
        monkeypatch.setattr(index_module, "FEWEST_ITEMS", fewest)
        ranker = Ranker(Catalog(range(200), features[:200]), k=3, policy=policy, seed=4)
        mine = []
        for step in range(120):
            if step == 40:
                ranker.add_items(range(200, 300), features[200:])
            if step == 80:
                ranker.withdraw_items([0, 1, 250])
            slate = ranker.recommend(exclude=[5] if step % 3 else [])
            mine.append(list(slate.items))
            ranker.learn(slate, click=step % 4 if step % 4 < 3 else None)
        slates_of.append(mine)
    assert slates_of[0] == slates_of[1]
    assert not any({0, 1, 250} & set(slate) for slate in slates_of[0][80:])


def test_constant_features_are_put_aside():
    tree = build_tree(kind_of_features("intercept", np.random.default_rng(6), 500, 5))
    assert tree.constant.tolist() == [1, 0, 0, 0, 0]
    assert tree.rotation.shape == (5, 4)


def test_few_or_equal_items_have_no_tree(monkeypatch):
    rows = np.random.default_rng(0).normal(size=(500, 3))
    for features in (rows[: FEW - 1], np.ones((500, 3)), 1e-312 * rows, np.empty((500, 0))):
        assert build_tree(features).covered == 0
    assert build_tree(rows).covered == 500
    assert catalog_arrays(None, 5).features.shape == (5, 0)
    monkeypatch.setattr(index_module, "HALVES", False)  # No half precision: every search is a scan.
    assert build_tree(rows).covered == 0
