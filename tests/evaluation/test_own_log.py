"""A model's own log as a ranked log: what was shown and clicked, corrections and time-outs included."""

import time

import numpy as np
import pytest

from firstclick.errors import InvalidInput, UnknownName
from firstclick.evaluation.own_log import log_in_model_file, log_in_store
from firstclick.files.writing import write_whole
from firstclick.logs.ranked_log import NOT_TOLD
from firstclick.serve.model.archive import archive
from firstclick.serve.model.export import export_model
from firstclick.serve.service import open_service
from firstclick.serve.store import open_store
from tests.support.made_log import K, made_items

WAIT = 60.0


@pytest.fixture
def place(tmp_path):
    return str(tmp_path / "shop.db")


def shop(place, policy="random", **how):
    service = open_service(place)
    service.create("shop", policy=policy, k=K, items=made_items(), seed=5, no_click_after=WAIT, **how)
    return service


def give_up(service, n):
    assert service.no_clicks._give_up(service.model("shop"), time.time() + WAIT + 1) == n


def whole(log):
    (batch,) = log.batches()
    return batch


def shown(log, batch, row):
    return [log.items[code] for code in batch.items[row] if code >= 0]


@pytest.fixture
def told(place):
    """Five slates: a click, two clicks with `examined`, no click, a time-out, one with a late click."""
    with shop(place) as service:
        slates = [service.recommend("shop") for _ in range(3)]
        slates.append(service.recommend("shop", k=2))
        service.feedback("shop", slates[0].token, click=1)
        service.feedback("shop", slates[1].token, clicks=[0, 2], examined=3)
        service.feedback("shop", slates[2].token, click=None)
        late = service.recommend("shop")
        give_up(service, 2)
        service.feedback("shop", late.token, click=2)
        slates.append(late)
        yield place, slates


def test_slates_clicks_and_numbers_are_those_of_the_events(told):
    place, slates = told
    log = log_in_store(place, "shop")
    batch = whole(log)
    assert log.k == K
    assert [shown(log, batch, row) for row in range(5)] == [list(slate.items) for slate in slates]
    assert batch.clicks.tolist() == [[0, 1, 0], [1, 0, 1], [0, 0, 0], [0, 0, 0], [0, 0, 1]]
    assert batch.examined.tolist()[1] == 3
    assert batch.examined.tolist()[0] == NOT_TOLD
    assert batch.reported.all()
    assert (np.diff(batch.numbers) > 0).all()
    assert log.timed_out == 1
    assert any("1 slates that nobody reported in time are taken as no click" in note for note in log.notes)


def test_a_time_out_can_be_taken_as_not_reported(told):
    batch = whole(log_in_store(told[0], "shop", timed_out="not-reported"))
    # The correction is a report.
    assert batch.reported.tolist() == [True, True, True, False, True]
    with pytest.raises(InvalidInput, match="timed_out must be one of no-click, not-reported"):
        log_in_store(told[0], "shop", timed_out="click")


def test_an_exported_file_and_the_store_say_the_same(told, tmp_path):
    out = tmp_path / "shop.model"
    with open_store(told[0], read_only=True) as store:
        (stored,) = store.models()
        write_whole(out, export_model(store, stored))
    in_store, in_file = log_in_store(told[0], "shop"), log_in_model_file(out)
    assert in_file.items == in_store.items
    for one, other in zip(whole(in_store), whole(in_file), strict=True):
        assert (one is None and other is None) or np.array_equal(one, other, equal_nan=True)


def test_slates_that_were_rolled_back_were_shown(place):
    with shop(place, "cascade-ts") as service:
        for click in (0, 1, 2):
            service.feedback("shop", service.recommend("shop").token, click=click)
        service.roll_back("shop", 1)
        service.feedback("shop", service.recommend("shop").token, click=None)
    assert whole(log_in_store(place, "shop")).clicks.sum(axis=1).tolist() == [1, 1, 1, 0]


def test_an_archived_log_is_read_from_the_store_and_its_files(place, tmp_path):
    with shop(place, "cascade-ts") as service:
        for click in (0, 1, 2, None):
            service.feedback("shop", service.recommend("shop").token, click=click)
    before = whole(log_in_store(place, "shop"))
    out = tmp_path / "old.archive"
    with open_store(place) as store:
        (stored,) = store.models()
        archive(store, stored, int(before.numbers[2]), out, token_days=0.0)
    rest = log_in_store(place, "shop")
    assert whole(rest).numbers.tolist() == before.numbers[2:].tolist()
    assert any("what came before is archived" in note for note in rest.notes)
    again = whole(log_in_store(place, "shop", archives=[out]))
    assert np.array_equal(again.items, before.items)
    assert np.array_equal(again.clicks, before.clicks)


def test_uniform_slates_have_their_exact_propensities(place):
    with shop(place, "cascade-ts", explore=1.0) as service:
        service.feedback("shop", service.recommend("shop").token, click=0)
        service.feedback("shop", service.recommend("shop", k=2).token, click=0)
    batch = whole(log_in_store(place, "shop"))
    assert batch.propensities is not None
    chances = [1 / 13, 1 / 13 / 12, 1 / 13 / 12 / 11]
    assert np.allclose(batch.propensities, [chances, [chances[0], chances[1], chances[1]]], rtol=1e-12)


def test_other_slates_have_none(place):
    with shop(place, "cascade-ts", explore=0.5) as service:
        service.feedback("shop", service.recommend("shop").token, click=0)
    assert whole(log_in_store(place, "shop")).propensities is None


def test_slates_that_were_never_reported_are_counted(place):
    with shop(place, "cascade-ts") as service:
        for _ in range(4):
            slate = service.recommend("shop")
        service.feedback("shop", slate.token, click=0)
        service.no_clicks._append_counts(service.model("shop"), time.time() + 3600)
    assert log_in_store(place, "shop").unreported == 3


def test_clear_words_where_there_is_nothing_to_read(place):
    with shop(place):
        pass
    with pytest.raises(InvalidInput, match="model 'shop' has no slate with a reported outcome yet"):
        log_in_store(place, "shop")
    with pytest.raises(UnknownName, match=r"no model 'shoe' in .*; there are: shop"):
        log_in_store(place, "shoe")
    with pytest.raises(InvalidInput, match=r"no store nowhere\.db"):
        log_in_store("nowhere.db", "shop")
