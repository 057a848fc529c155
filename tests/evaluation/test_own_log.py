"""The log of a model as a ranked log: slates and clicks, corrections and timeouts included."""

from functools import partial

import numpy as np
import pytest

from firstclick.errors import InvalidInput, UnknownName
from firstclick.evaluation.own_log import log_in_model_file, log_in_store
from firstclick.files.writing import write_whole
from firstclick.logs.ranked_log import NOT_TOLD
from firstclick.serve.model.archive import archive
from firstclick.serve.model.export import export_model
from firstclick.serve.store import open_store
from tests.support.clock import Clock
from tests.support.shop import items


@pytest.fixture
def open_random(open_shop):
    return partial(open_shop, policy="random", features=False, no_click_after=60.0, clock=Clock())


@pytest.fixture
def store(tmp_path):
    return str(tmp_path / "shop.db")


def batch_of(log):
    (batch,) = log.batches()
    return batch


def play(shop, *clicks):
    for click in clicks:
        shop.feedback(shop.recommend(), click=click)


@pytest.fixture
def slates(open_random):
    """Five slates: a click, two clicks with `examined`, no click, a timeout, one with a late click."""
    clock = Clock()
    with open_random(clock=clock) as shop:
        slates = [shop.recommend() for _ in range(3)]
        slates.append(shop.recommend(k=2))
        shop.feedback(slates[0], click=1)
        shop.feedback(slates[1], clicks=[0, 2], examined=3)
        shop.feedback(slates[2], click=None)
        slates.append(shop.recommend())
        clock.move(61)
        shop.run_background()
        shop.feedback(slates[-1], click=2)
        return slates


def test_slates_clicks_and_numbers_are_those_of_the_events(slates, store):
    log = log_in_store(store, "shop")
    batch = batch_of(log)
    assert log.k == 3
    shown = [[log.items[code] for code in row if code >= 0] for row in batch.items]
    assert shown == [list(slate.items) for slate in slates]
    assert batch.clicks.tolist() == [[0, 1, 0], [1, 0, 1], [0, 0, 0], [0, 0, 0], [0, 0, 1]]
    assert batch.examined.tolist()[:2] == [NOT_TOLD, 3]
    assert batch.reported.all()
    assert (np.diff(batch.numbers) > 0).all()
    assert log.timed_out == 1
    assert any(note.startswith("1 slates") for note in log.notes)
    # A timeout can be taken as not reported; the correction is a report.
    batch = batch_of(log_in_store(store, "shop", timed_out="not-reported"))
    assert batch.reported.tolist() == [True, True, True, False, True]
    with pytest.raises(InvalidInput, match="timed_out must be"):
        log_in_store(store, "shop", timed_out="click")


def test_exported_file_gives_the_same_log_as_the_store(slates, store, tmp_path):
    out = tmp_path / "shop.model"
    with open_store(store, read_only=True) as opened:
        (stored,) = opened.models()
        write_whole(out, export_model(opened, stored))
    in_store, in_file = log_in_store(store, "shop"), log_in_model_file(out)
    assert in_file.items == in_store.items
    for one, other in zip(batch_of(in_store), batch_of(in_file), strict=True):
        assert (one is None and other is None) or np.array_equal(one, other, equal_nan=True)


def test_archived_log_is_read_from_the_store_and_its_files(open_random, store, tmp_path):
    with open_random() as shop:
        play(shop, 0, 1, 2, None)
    before = batch_of(log_in_store(store, "shop"))
    out = tmp_path / "old.archive"
    with open_store(store) as opened:
        (stored,) = opened.models()
        archive(opened, stored, int(before.numbers[2]), out, token_days=0.0)
    rest = log_in_store(store, "shop")
    assert batch_of(rest).numbers.tolist() == before.numbers[2:].tolist()
    assert any("archived" in note for note in rest.notes)
    again = batch_of(log_in_store(store, "shop", archives=[out]))
    assert np.array_equal(again.items, before.items)
    assert np.array_equal(again.clicks, before.clicks)


def test_slates_rolled_back_were_shown_and_slates_not_reported_are_counted(open_random, store):
    clock = Clock()
    with open_random(policy="cascade-ts", clock=clock, no_click_after=86_400.0) as shop:
        play(shop, 0, 1, 2)
        shop.roll_back(1)
        play(shop, None)
        for _ in range(3):
            shop.recommend()
        clock.move(3600)
        shop.run_background()
    log = log_in_store(store, "shop")
    assert batch_of(log).clicks.sum(axis=1).tolist() == [1, 1, 1, 0]
    assert log.unreported == 3


def test_only_uniform_slates_have_their_propensities(open_random, store):
    with open_random(policy="cascade-ts", explore=1.0) as shop:
        play(shop, 0)
        shop.feedback(shop.recommend(k=2), click=0)
        shop.service.create("other", policy="cascade-ts", k=3, items=items(features=False), explore=0.5)
        play(shop.model("other"), 0)
    chances = [1 / 13, 1 / 13 / 12, 1 / 13 / 12 / 11]
    found = batch_of(log_in_store(store, "shop")).propensities
    np.testing.assert_allclose(found, [chances, [chances[0], chances[1], chances[1]]], rtol=1e-12)
    assert batch_of(log_in_store(store, "other")).propensities is None


def test_log_without_slates_models_or_store_is_refused(open_random, store):
    open_random().close()
    for place, model, problem in (
        (store, "shop", "no slate with a reported outcome"),
        (store, "shoe", "there are: shop"),
        ("nowhere.db", "shop", r"no store nowhere\.db"),
    ):
        with pytest.raises((InvalidInput, UnknownName), match=problem):
            log_in_store(place, model)
