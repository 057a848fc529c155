"""A fitted click model, or counts, as a head start of a model: plain numbers in an event of its log."""

import numpy as np
import pytest

from firstclick import Catalog, Ranker
from firstclick.catalog.item import Item
from firstclick.click_models.click_fit import ClickFit
from firstclick.client import Client
from firstclick.errors import InvalidInput
from firstclick.serve.config import Settings
from firstclick.serve.http.server import Server
from firstclick.serve.log.events import COUNTED_ITEM, Event, Kind, WarmStart, Words, as_json, packed
from firstclick.serve.model.head_start import counts_body, learn_warm_start
from firstclick.serve.model.model import Model
from firstclick.serve.service import open_service
from firstclick.serve.startup import open_for
from firstclick.streams import stream
from firstclick.wire.errors import Malformed
from tests.support import seam
from tests.support.serving import a_service

IDS = [f"i{row}" for row in range(6)]
K = 2
# i4 is unknown to the fit, and "gone" to the model.
FIT = ClickFit(
    model="pbm", items=("i3", "gone", "i0", "i1", "i2", "i5"), segments=("",), shares=np.ones(1),
    attraction=np.array([[0.4, 0.9, 0.1, 0.25, 0.05, 0.3]]), satisfaction=np.empty((0, 0)),
    chances=np.array([1.0, 0.5]), looks=np.array([[30.5, 50.0, 80.25, 10.0, 7.0, 0.0]]), k=2, slates=150.0,
)  # fmt: skip


def new_model(service, name="m", policy="cascade-mixed"):
    return service.create(name, policy=policy, k=K, items=[Item(item) for item in IDS], seed=5)


@pytest.mark.parametrize(
    ("policy", "weight"), [("cascade-mixed", None), ("cascade-mixed", 0.3), ("cascade-ts", 0.5)]
)
def test_a_model_and_a_ranker_learn_the_same_from_a_fit(tmp_path, policy, weight):
    with open_service(str(tmp_path / "shop.db")) as service:
        model = new_model(service, policy=policy)
        ranker = Ranker(Catalog(IDS), k=K, policy=policy, seed=5)
        ranker._key = model._key
        seq, used = service.warm_start("m", FIT, weight=weight)
        assert (seq, used) == (model.seq, 4)
        assert ranker.warm_start(FIT, weight=weight) == 4
        for name, mine in model.engine.state._asdict().items():
            np.testing.assert_array_equal(mine, getattr(ranker.state, name), err_msg=name)


def test_a_head_start_of_counts_survives_restart_snapshot_import_rollback_and_fork(tmp_path):
    with open_service(str(tmp_path / "shop.db")) as service:
        model = new_model(service)
        seq, _ = service.warm_start("m", FIT)
        for step in range(20):
            slate = service.recommend("m", request_id=f"r{step}")
            service.feedback("m", slate, click=(None, 0, 1)[step % 3])
        digest = model.digest()
        assert Model.restored(model.id, "m", model.snapshot()[1], model.created).digest() == digest
        (tmp_path / "m.firstclick").write_bytes(b"".join(service.export("m")))
        with (
            open_service(str(tmp_path / "other.db")) as other,
            (tmp_path / "m.firstclick").open("rb") as file,
        ):
            assert other.import_model("m", file).digest() == digest
        fork = service.fork("m", "cascade-ts", "counting")
        live = model.engine.state.live_examined
        assert fork.engine.state.examined.tolist() == (np.array([80, 10, 7, 30, 0, 0]) + live).tolist()
        known = model.engine.state.logged_examined.copy()
        assert known.tolist() == [80.25, 10.0, 7.0, 30.5, 0.0, 0.0]
        service.roll_back("m", seq - 1)
        assert not model.engine.state.logged_examined.any()
        service.roll_back("m", seq)
        assert model.engine.state.logged_examined.tolist() == known.tolist()
        digest = model.digest()
    with open_service(str(tmp_path / "shop.db")) as service:
        assert seam.model(service, "m").digest() == digest
        assert service.audit("m").equal


def test_the_event_has_the_numbers_and_says_so_in_words(tmp_path):
    with open_service(str(tmp_path / "shop.db")) as service:
        model = new_model(service)
        body = counts_body(model.engine, {"i3": (30.5, 12.25), "i0": (4.0, 0.0)}, 0.5, lock=model.lock)
        table = np.frombuffer(body.counts, COUNTED_ITEM)
        assert table.tolist() == [(0, 4.0, 0.0), (3, 30.5, 12.25)]
        told = as_json(Event(7, Kind.WARM_START, b"12", packed(body), 3.0), Words(IDS))
        assert told == {
            "seq": 7, "kind": "warm-start", "received": 3.0, "nonce": "3132", "items": 2, "weight": 0.5,
        }  # fmt: skip
        # Damaged, or of more items than there are: nothing is learned, and nothing breaks.
        draw, digest = stream(1, "draw"), model.digest()
        beyond = np.array([(9, 5.0, 1.0)], COUNTED_ITEM).tobytes()
        for counts in (body.counts[:-1], beyond):
            assert not learn_warm_start(model.engine, WarmStart(1.0, 0, b"", b"", "", counts), draw)
        assert model.digest() == digest


def test_a_fit_is_a_file_of_the_server_and_learned_once(tmp_path):
    (tmp_path / "items.csv").write_text(
        "id,price\n" + "".join(f"{item},{row}\n" for row, item in enumerate(IDS))
    )
    file = tmp_path / "fit.npz"
    FIT.save(file)
    settings = Settings(
        catalog=tmp_path / "items.csv", store=str(tmp_path / "shop.db"), name="m", k=K, warm_start=file
    )
    for said in (f"model 'm' has learned from 4 items of the click model {file}", ""):
        service, _, notes = open_for(settings)
        with service:
            assert (said in notes) == bool(said)
            assert service.model("m").engine.state.logged_examined.sum() == 127.75
    file.write_bytes(file.read_bytes()[:200])
    with pytest.raises(InvalidInput, match=r"fit.npz: damaged, or not a file of firstclick"):
        open_for(
            Settings(store=str(tmp_path / "new.db"), catalog=settings.catalog, name="m", k=K, warm_start=file)
        )


def test_counts_over_http_and_by_the_client(tmp_path):
    with (
        a_service(tmp_path) as service,
        Server(service, Settings(port=0)) as server,
        Client(server.address, model="m") as client,
        Client(server.address, model="shop") as linear,
    ):
        model = new_model(service)
        assert (
            client.warm_start(counts={"i0": (400.0, 100.5), "i3": (300.0, 240.0), "unknown": (5.0, 1.0)}) == 2
        )
        held = model.engine.estimates(np.array([0, 3]))[0]
        assert held == pytest.approx([0.25, 0.8], abs=0.05)
        seq = model.seq
        for wrong, said in (
            ({"i0": (4.0, 5.0)}, "counts must have looks of at least 0, and clicks from 0 to"),
            ({"unknown": (4.0, 1.0)}, "counts must have items of the catalog"),
            ({"i0": (-1.0, 0.0)}, "at least 0"),
        ):
            with pytest.raises(Malformed, match=said):
                client.warm_start(counts=wrong)
        assert model.seq == seq
        with pytest.raises(Malformed, match="counts are not enough for cascade-lin-ts"):
            linear.warm_start(counts={"tea": (4.0, 1.0)})
