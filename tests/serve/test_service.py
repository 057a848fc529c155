"""The service in process: what is acknowledged is in the log, once, and the log is all there is."""

import threading
from pathlib import Path

import numpy as np
import pytest

from firstclick.catalog.item import Item
from firstclick.errors import InvalidInput
from firstclick.policies.cascade_lin_ts import CascadeLinTS
from firstclick.serve.dashboard.data import Views
from firstclick.serve.model.audit import audit_served, audit_stored
from firstclick.serve.model.exploration import Exploration
from firstclick.serve.model.export import export_model, import_model
from firstclick.serve.service import open_service
from firstclick.serve.store import open_store
from firstclick.wire.errors import Conflict, Expired, Malformed, Overloaded, Unavailable, Unknown
from firstclick.wire.feedback import Receipt
from tests.support import seam
from tests.support.made_log import N_FEATURES, K, made_items


@pytest.fixture
def place(tmp_path):
    return str(tmp_path / "shop.db")


@pytest.fixture
def service(place):
    with open_service(place) as service:
        service.create("shop", policy="cascade-lin-ts", k=K, items=made_items(), seed=5)
        yield service


def test_no_best_slate_is_told_where_estimates_do_not_give_it(service, monkeypatch):
    service.recommend("shop")
    usual = Views(service, "").of("shop")
    assert usual.best is not None
    assert usual.exploring is not None
    monkeypatch.setattr(CascadeLinTS, "best_by_estimates", False)
    service.exploring["shop"] = Exploration()
    service.recommend("shop")
    told = Views(service, "").of("shop")
    assert (told.best, told.exploring) == (None, None)
    assert all(item.mean is not None for item in told.estimates)
    service.model("shop").wants_context = True
    assert all(item.mean is None for item in Views(service, "").of("shop").estimates)


def test_features_may_be_whatever_becomes_numbers(service):
    rows = [list(range(N_FEATURES)), tuple(map(str, range(N_FEATURES))), np.ma.arange(N_FEATURES)]
    service.put_items("shop", [Item(f"x{i}", features=row) for i, row in enumerate(rows)])
    catalog = service.model("shop").catalog
    first, *others = catalog.rows([f"x{i}" for i in range(len(rows))]).tolist()
    assert all((catalog.features[row] == catalog.features[first]).all() for row in others)
    service.create(
        "other", policy="cascade-lin-ts", k=1, items=[Item("x", features=row) for row in rows[1:2]]
    )


def test_a_store_is_a_path_or_an_address(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInput, match=r"a path must be a text that is not empty, or a Path, got None"):
        open_service(None)
    assert list(tmp_path.iterdir()) == []


def play(service, steps, *, name="shop"):
    """Slates answered; every fourth without a click."""
    said = [(service.recommend(name).token, None if step % 4 == 3 else step % K) for step in range(steps)]
    for outcome in service.feedback_batch(name, said):
        assert isinstance(outcome, Receipt)
        assert outcome.status == "accepted"
    return said


def test_a_recommendation_writes_nothing(service, place):
    before = Path(place).read_bytes(), Path(place + "-wal").read_bytes(), seam.model(service, "shop").digest()
    for _ in range(20):
        service.recommend("shop", exclude=["i1"], pinned={0: "i2"}, request_id="x")
    assert (Path(place).read_bytes(), Path(place + "-wal").read_bytes()) == before[:2]
    assert seam.model(service, "shop").digest() == before[2]


def test_everything_is_there_after_a_restart_with_and_without_snapshots(place):
    with open_service(place) as service:
        service.create("shop", policy="cascade-lin-ts", k=K, items=made_items(), seed=5)
        play(service, 30)
        seam.model(service, "shop").snapshot()
        play(service, 30)
        service.put_items("shop", made_items(2, first=40))
        service.withdraw_items("shop", ["i3"])
        play(service, 10)
        digest, slate = seam.model(service, "shop").digest(), service.recommend("shop", request_id="a").items
        late = service.recommend("shop").token
    with open_service(place) as service:
        assert seam.model(service, "shop").digest() == digest
        assert service.recommend("shop", request_id="a").items == slate
        assert service.feedback("shop", late, 0).status == "accepted"
        assert audit_served(service.store, service.model("shop")).equal
    with open_store(place, read_only=True) as store:
        (found,) = (audit_stored(store, stored) for stored in store.models())
        assert (found.equal, found.compared, found.seq) == (True, 1, 74)


def test_many_threads_one_log(service):
    tokens = [service.recommend("shop").token for _ in range(200)]
    receipts = []

    def send():
        receipts.extend(service.feedback("shop", token, 1) for token in tokens)

    threads = [threading.Thread(target=send) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(receipt.seq for receipt in receipts if receipt.status == "accepted") == list(range(2, 202))
    assert len(receipts) == 800
    assert service.model("shop").click_stats.slates == 200
    assert audit_served(service.store, service.model("shop")).equal
    assert service.writer.commits < 800


def test_models_do_not_take_one_anothers_tokens(service):
    service.create("other", policy="cascade-ts", k=2, items=[Item(1), Item(2), Item("2")])
    with pytest.raises(Unknown, match="another model's"):
        service.feedback("other", service.recommend("shop").token, 0)
    shown = service.recommend("other")
    assert service.feedback("other", shown.token, 0).seq == 2
    assert service.names() == ["other", "shop"]


def test_old_slates_expire(place):
    with open_service(place, token_days=1e-9) as service:
        service.create("shop", policy="cascade-lin-ts", k=K, items=made_items())
        token = service.recommend("shop").token
        with pytest.raises(Expired):
            service.feedback("shop", token, 0)


def test_a_full_queue_refuses_and_says_when_to_come_again(place, monkeypatch):
    with open_service(place, max_queue=10, max_batch=4) as service:
        service.create("shop", policy="cascade-lin-ts", k=K, items=made_items())
        tokens = [service.recommend("shop").token for _ in range(40)]
        held, append = threading.Event(), service.store.append
        monkeypatch.setattr(service.store, "append", lambda *given: (held.wait(), append(*given))[1])
        answers = []
        for token in tokens:
            service.send_feedback("shop", [(token, None)], answers.append)
        refused = [answer[0] for answer in answers]
        assert 25 <= len(refused) <= 30
        assert all(isinstance(refusal, Overloaded) and refusal.retry_after >= 1 for refusal in refused)
        held.set()
        for token in tokens:
            while isinstance(service.feedback_batch("shop", [(token, None)])[0], Overloaded):
                pass
        assert service.model("shop").click_stats.slates == 40


def test_a_store_that_cannot_write_means_unavailable_and_nothing_learned(service, monkeypatch):
    def fail(batch, folded):
        raise Unavailable("the disk is full; free some space")

    token = service.recommend("shop").token
    digest = seam.model(service, "shop").digest()
    with monkeypatch.context() as patch:
        patch.setattr(service.store, "append", fail)
        with pytest.raises(Unavailable, match="disk is full"):
            service.feedback("shop", token, 0)
        assert seam.model(service, "shop").digest() == digest
        assert service.recommend("shop").items  # reads outlive the store
    assert service.feedback("shop", token, 0).status == "accepted"


def test_rolling_back(service):
    play(service, 5)
    digest = service.model("shop").engine.state.precision.copy()
    play(service, 5)
    assert service.roll_back("shop", 6) == 12
    np.testing.assert_array_equal(service.model("shop").engine.state.precision, digest)
    assert audit_served(service.store, service.model("shop")).equal
    with pytest.raises(Malformed, match="from 1 to 12"):
        service.roll_back("shop", 13)


def test_a_model_moves_between_stores(service, tmp_path):
    play(service, 20)
    service.put_items("shop", made_items(1, first=30))
    service.roll_back("shop", 10)
    play(service, 5)
    (stored,) = service.store.models()
    content = b"".join(export_model(service.store, stored))
    with open_service(str(tmp_path / "other.db")) as other:
        other.import_model("moved", content)
        assert seam.model(other, "moved").digest() == seam.model(service, "shop").digest()
        play(other, 3, name="moved")
        assert audit_served(other.store, other.model("moved")).equal
        with pytest.raises(Conflict):
            import_model(other.store, "moved", content)
        for broken in (b"", b"\x80\x04", content[:8] + b"x" + content[9:], content + b"x"):
            with pytest.raises(Malformed, match=r"not an exported model|changed or damaged"):
                import_model(other.store, "again", broken)


def test_token_keys_rotate_and_old_tokens_stay_good_for_their_time(service, monkeypatch):
    token = service.recommend("shop").token
    monkeypatch.setattr("firstclick.serve.maintenance.ROTATE_DAYS", 0.0)
    service.maintenance._follow_token_keys()
    assert len(service.store.token_keys()) == 2
    assert service.recommend("shop").token[:8] != token[:8]
    assert service.feedback("shop", token, None).status == "accepted"
