"""A log of others' slates as a head start of a model: an event of its log like others."""

import json

import numpy as np
import pytest

from firstclick import Catalog, Ranker
from firstclick.catalog.item import Item
from firstclick.client import Client
from firstclick.errors import InvalidInput
from firstclick.online.log_file import mark_of
from firstclick.serve.config import Settings
from firstclick.serve.http.server import Server
from firstclick.serve.log import slate_pack
from firstclick.serve.model.model import Model
from firstclick.serve.service import open_service
from firstclick.serve.startup import open_for
from firstclick.streams import stream
from firstclick.wire.errors import Malformed, TooLarge
from tests.support import seam
from tests.support.serving import a_service

IDS = [f"i{row}" for row in range(9)]
FEATURES = stream(3, "features").random((9, 3)) * [90.0, 1.0, 7.0]
K = 3
# Several clicks, looks that were told, a slate that is too long, and items that the model never had.
LOG = [
    *({"items": IDS[step % 5 : step % 5 + 3], "click": (None, 0, 1, 2)[step % 4]} for step in range(40)),
    {"items": IDS[:3], "clicks": [2, 0]},
    {"items": IDS[:3], "clicks": [0, 2], "examined": 3},
    {"items": IDS[:6], "click": None},
    {"items": ["i1", "unknown", "i2"], "click": 2},
    {"items": ["unknown"], "click": 0},
    {"items": IDS[:2], "click": 1, "features": (FEATURES[:2] * 0.5).tolist()},
]


def new_model(service, name="m", policy="cascade-mixed"):
    items = [Item(item, features=row) for item, row in zip(IDS, FEATURES, strict=True)]
    return service.create(name, policy=policy, k=K, items=items, seed=5)


def play(service, steps, name="m"):
    for step in range(steps):
        slate = service.recommend(name, request_id=f"{name} {seam.model(service, name).seq} {step}")
        service.feedback(name, slate, click=(None, 0, 2)[step % 3])


@pytest.mark.parametrize(
    ("policy", "weight"), [("cascade-mixed", None), ("cascade-mixed", 0.25), ("cascade-ts", 0.5)]
)
def test_a_model_and_a_ranker_learn_the_same_from_a_log(tmp_path, policy, weight):
    with open_service(str(tmp_path / "shop.db")) as service:
        model = new_model(service, policy=policy)
        ranker = Ranker(Catalog(IDS, FEATURES), k=K, policy=policy, seed=5)
        ranker._key = model._key
        for log in (LOG, LOG[:3]):
            seq, used = service.warm_start("m", iter(log), weight=weight)
            assert (seq, used) == (model.seq, ranker.warm_start(log, weight=weight))
        for name, mine in model.engine.state._asdict().items():
            np.testing.assert_array_equal(mine, getattr(ranker.state, name), err_msg=name)
        assert service.audit("m").equal
        assert model.click_stats.slates == 0, "nobody has seen these slates here"


def test_a_head_start_survives_restart_snapshot_import_rollback_and_fork(tmp_path):
    with open_service(str(tmp_path / "shop.db")) as service:
        model = new_model(service)
        play(service, 4)
        before = model.seq
        seq, _ = service.warm_start("m", LOG)
        play(service, 30)
        digest = model.digest()
        page = model.snapshot()[1]
        again = Model.restored(model.id, "m", page, model.created)
        assert again.digest() == digest
        assert again.warm_starts == [""]
        (tmp_path / "m.firstclick").write_bytes(b"".join(service.export("m")))
        with (
            open_service(str(tmp_path / "other.db")) as other,
            (tmp_path / "m.firstclick").open("rb") as file,
        ):
            assert other.import_model("m", file).digest() == digest
        for policy in ("cascade-mixed", "cascade-ts"):
            fork = service.fork("m", policy, f"of-{policy}")
            assert fork.engine.state.examined.sum() > 30
        assert fork.engine.state.examined[1] == 1 + sum(
            "i1" in one["items"][:K] and one["items"].index("i1") <= _last_look(one) for one in LOG
        ) + (model.engine.state.live_examined[1] - 1)
        known = model.engine.state.logged_examined.copy()
        assert known.any()
        service.roll_back("m", before)
        assert not model.engine.state.logged_examined.any()
        service.roll_back("m", seq)
        assert model.engine.state.logged_examined.tolist() == known.tolist()
        digest = model.digest()
    with open_service(str(tmp_path / "shop.db")) as service:
        assert seam.model(service, "m").digest() == digest
        assert service.audit("m").equal


def _last_look(line):
    """The last position that a cascade takes for examined."""
    if "examined" in line:
        return int(line["examined"]) - 1
    clicks = line.get("clicks", [line.get("click")])
    items = line["items"]
    end = items.index("unknown") - 1 if "unknown" in items else K - 1
    return end if clicks == [None] else min(min(clicks), end)


def test_a_bad_line_is_named_and_nothing_is_learned(tmp_path, monkeypatch):
    with open_service(str(tmp_path / "shop.db")) as service:
        model = new_model(service)
        digest = model.digest()
        bad = [
            (
                [*LOG[:2], {"items": ["i1"]}],
                None,
                "log line 3: a slate needs items, and click or clicks",
            ),
            (
                [*LOG[:4], {"items": ["i1", "i1"], "click": 0}],
                None,
                "log line 5: items must be distinct",
            ),
            ([{"items": ["unknown"], "click": 0}], None, "log must have slates with items of the model"),
            ([], None, "log must have slates"),
            (LOG, 0, "weight must be a number above 0 and at most 1, got 0"),
            (map(json.loads, ["{}", "{"]), None, "log line 1"),
        ]
        for log, weight, sentence in bad:
            with pytest.raises(Malformed, match=sentence):
                service.warm_start("m", log, weight=weight)
        monkeypatch.setattr(slate_pack, "MOST_BYTES", 100)
        with pytest.raises(TooLarge, match="the first 3 fit: give the log in several parts"):
            service.warm_start("m", LOG)
        assert model.digest() == digest


def test_the_log_tells_of_it_in_words(tmp_path):
    from firstclick.serve.log.events import Event, Kind, Words, as_json, packed
    from firstclick.serve.model.head_start import warm_start_body

    with open_service(str(tmp_path / "shop.db")) as service:
        model = new_model(service)
        body = warm_start_body(model.engine, LOG, 0.5, lock=model.lock)
    told = as_json(Event(7, Kind.WARM_START, b"12", packed(body), 3.0), Words(IDS))
    assert told == {
        "seq": 7, "kind": "warm-start", "received": 3.0, "nonce": "3132", "slates": 45, "weight": 0.5,
    }  # fmt: skip


def test_a_file_is_learned_at_the_first_start_and_never_again(tmp_path):
    (tmp_path / "items.csv").write_text(
        "id,price\n" + "".join(f"{item},{row}\n" for row, item in enumerate(IDS))
    )
    file = tmp_path / "log.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in LOG[:40]) + "\n")
    settings = Settings(
        catalog=tmp_path / "items.csv", store=str(tmp_path / "shop.db"), name="m", k=K, warm_start=file
    )
    seen = []

    def digest_of(notes):
        service, _, told = open_for(settings, lambda done, total: seen.append((done, total)))
        with service:
            model = service.model("m")
            assert any(notes in note for note in told) or not notes, told
            return int(model.engine.state.log[0]), model.warm_starts.copy()

    looks, marks = digest_of(f"model 'm' has learned from 40 slates of {file}")
    assert looks > 60
    assert marks == [mark_of(file)]
    assert seen[-1] == (file.stat().st_size, file.stat().st_size)
    assert digest_of("") == (looks, marks)
    with file.open("a") as more:
        more.write(json.dumps(LOG[0]) + "\n")
    assert digest_of("has learned from another log") == (looks, marks)


def test_a_file_with_a_bad_line_stops_the_start(tmp_path):
    (tmp_path / "items.csv").write_text(
        "id,price\n" + "".join(f"{item},{row}\n" for row, item in enumerate(IDS))
    )
    file = tmp_path / "log.jsonl"
    file.write_text(json.dumps(LOG[0]) + '\n\n{"items": [}\n')
    settings = Settings(
        catalog=tmp_path / "items.csv", store=str(tmp_path / "shop.db"), name="m", k=K, warm_start=file
    )
    with pytest.raises(InvalidInput, match="log line 3 cannot be read"):
        open_for(settings)
    file.unlink()
    with pytest.raises(InvalidInput, match="no such file"):
        open_for(settings)


def test_a_log_over_http_and_by_the_client(tmp_path):
    with (
        a_service(tmp_path) as service,
        Server(service, Settings(port=0)) as server,
        Client(server.address, model="shop") as client,
    ):
        model = service.model("shop")
        slates = [{"items": ["tea", "cake"], "click": step % 2} for step in range(30_000)]
        assert client.warm_start([*slates, {"items": ["unknown"], "click": None}], weight=0.5) == 30_000
        held = dict(
            zip(["tea", "cake", "espresso"], model.engine.estimates(np.array([1, 3, 0]))[0], strict=True)
        )
        assert held["cake"] > 0.9
        assert held["tea"] == pytest.approx(0.5, abs=0.05)
        seq = model.seq
        for bad, weight, sentence in (
            (
                [{"items": ["tea"], "click": 0}, {"items": ["tea"]}],
                None,
                "log line 2: a slate needs items",
            ),
            ([{"items": ["tea"], "click": 3}], None, "log line 1: "),
            ([{"items": ["tea"], "clicked": 0}], None, "clicked"),
            ([{"items": ["tea"], "click": 0}], 2, "weight must be a number, at most 1"),
        ):
            with pytest.raises(Malformed, match=sentence):
                client.warm_start(bad, weight=weight)
        assert model.seq == seq
