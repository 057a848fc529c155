"""A warm start from a log, a fitted click model or counts: an event of the model's log like others."""

import json
import struct

import numpy as np
import pytest

from firstclick import Catalog, FirstclickError, InvalidInput, Ranker
from firstclick.click_models.click_fit import ClickFit
from firstclick.client import Client
from firstclick.serve import Item
from firstclick.serve.config import Settings
from firstclick.serve.startup import open_for
from tests.support.logs import append_unchecked
from tests.support.refusals import check_refused
from tests.support.seam import model as model_of
from tests.support.serving import a_server
from tests.support.shop import FEATURES, IDS, K

# Several clicks, positions that were examined, a slate that is too long, and items that the model never had.
LOG = [
    *({"items": IDS[step % 5 : step % 5 + 3], "click": (None, 0, 1, 2)[step % 4]} for step in range(40)),
    {"items": IDS[:3], "clicks": [2, 0]},
    {"items": IDS[:3], "clicks": [0, 2], "examined": 3},
    {"items": IDS[:6], "click": None},
    {"items": ["i1", "unknown", "i2"], "click": 2},
    {"items": ["unknown"], "click": 0},
    {"items": IDS[:2], "click": 1, "features": (FEATURES[:2] * 0.5).tolist()},
]
# i4 is unknown to the fit, and "gone" to the model.
FIT = ClickFit(
    model="pbm", items=("i5", "gone", "i0", "i1", "i2", "i6"), segments=("",), shares=np.ones(1),
    attraction=np.array([[0.4, 0.9, 0.1, 0.25, 0.05, 0.3]]), satisfaction=np.empty((0, 0)),
    chances=np.array([1.0, 0.5]), looks=np.array([[30.5, 50.0, 80.25, 10.0, 7.0, 0.0]]), k=2, slates=150.0,
)  # fmt: skip
LOOKS_OF_FIT = {"i5": 30.5, "i0": 80.25, "i1": 10.0, "i2": 7.0}


def play(shop, steps):
    for step in range(steps):
        slate = shop.recommend(request_id=f"{shop.seq} {step}")
        shop.feedback(slate, click=(None, 0, 2)[step % 3])


def looks_of_log(id):
    """How often this item was examined in LOG, by a cascade."""
    looks = 0
    for line in LOG:
        items, clicks = line["items"][:K], line.get("clicks", [line.get("click")])
        end = items.index("unknown") - 1 if "unknown" in items else K - 1
        last = line["examined"] - 1 if "examined" in line else end if None in clicks else min(*clicks, end)
        looks += id in items[: last + 1]
    return looks


@pytest.mark.parametrize("log", [LOG, FIT], ids=["log", "fit"])
@pytest.mark.parametrize(
    ("policy", "weight"), [("cascade-mixed", None), ("cascade-mixed", 0.25), ("cascade-ts", 0.5)]
)
def test_a_model_and_a_ranker_learn_the_same_from_a_log(open_shop, log, policy, weight):
    shop = open_shop(policy=policy, features=FEATURES)
    ranker = Ranker(Catalog(IDS, FEATURES), k=K, policy=policy, seed=5)
    ranker._key = shop.internals._key
    for part in [LOG, LOG[:3]] if log is LOG else [FIT]:
        seq, used = shop.warm_start(part if log is FIT else iter(part), weight=weight)
        assert (seq, used) == (shop.seq, ranker.warm_start(part, weight=weight))
    for name, array in shop.state().items():
        np.testing.assert_array_equal(array, getattr(ranker.state, name), err_msg=name)
    assert shop.audit().equal
    assert shop.describe()["slates"] == 0, "these slates were shown by another system"


@pytest.mark.parametrize("log", [LOG, FIT], ids=["log", "fit"])
def test_a_warm_start_survives_restart_import_rollback_and_fork(open_shop, tmp_path, log):
    shop = open_shop(policy="cascade-mixed")
    play(shop, 4)
    before = shop.seq
    seq, _ = shop.warm_start(log)
    play(shop, 20)
    known = shop.state()["logged_examined"]
    # The slate with features of its own is learned, and not counted by item.
    n_looks = sum(LOOKS_OF_FIT.values()) if log is FIT else sum(map(looks_of_log, IDS)) - 2
    assert known.sum() == n_looks
    digest = shop.digest()
    shop.service.import_model("copy", b"".join(shop.export()))
    assert shop.model("copy").digest() == digest
    fork, live = shop.fork("cascade-ts", "counting"), shop.state()["live_examined"]
    examined = fork.state()["examined"]
    for row, id in enumerate(IDS[:3]):
        # A policy that counts gets whole numbers.
        assert examined[row] == (looks_of_log(id) if log is LOG else LOOKS_OF_FIT[id] // 1) + live[row]
    shop.roll_back(before)
    assert not shop.state()["logged_examined"].any()
    shop.roll_back(seq)
    assert shop.state()["logged_examined"].tolist() == known.tolist()
    digest = shop.digest()
    for _ in range(2):
        shop.restart()
        assert shop.digest() == digest
        assert shop.audit().equal
        shop.snapshot()


def test_a_log_that_is_too_large_is_rejected_whole(open_shop, monkeypatch):
    shop = open_shop(policy="cascade-mixed")
    digest = shop.digest()
    check_refused(lambda: shop.warm_start([*LOG[:4], {"items": ["i1", "i1"], "click": 0}]), "log")
    monkeypatch.setattr("firstclick.serve.log.slate_pack.MOST_BYTES", 100)
    with pytest.raises(FirstclickError, match="the first 3 fit"):
        shop.warm_start(LOG)
    assert shop.digest() == digest


def test_the_event_has_how_much_was_learned(open_shop):
    shop = open_shop(features=False)
    shop.warm_start(LOG, weight=0.5)
    shop.warm_start(counts={"i5": (30.5, 12.25), "i0": (4.0, 0.0)}, weight=0.5)
    slates, counts = shop.events(1)
    assert [event["kind"] for event in (slates, counts)] == ["warm-start"] * 2
    assert (slates["slates"], slates["weight"], counts["items"], counts["weight"]) == (45, 0.5, 2, 0.5)
    # Damaged, or of more items than there are: nothing is learned, and nothing breaks.
    state = shop.state()
    for table in (struct.pack("<Idd", 0, 5.0, 1.0)[:-1], struct.pack("<Idd", 99, 5.0, 1.0)):
        append_unchecked(shop, "WarmStart", 1.0, 0, b"", b"", "", table)
    assert all((array == state[name]).all() for name, array in shop.state().items())


# `serve --warm-start FILE`


@pytest.fixture
def settings(tmp_path):
    """Settings of a server that is started on this file."""
    rows = "".join(f"{id},{row}\n" for row, id in enumerate(IDS))
    (tmp_path / "items.csv").write_text(f"id,price\n{rows}", encoding="utf-8")
    return lambda file, store="shop.db": Settings(
        catalog=tmp_path / "items.csv", store=str(tmp_path / store), name="m", k=K, warm_start=file
    )


def test_a_file_is_learned_at_the_first_start_and_never_again(tmp_path, settings):
    file, seen = tmp_path / "log.jsonl", []
    # The ids of a file are texts.
    lines = [json.dumps(line | {"items": [str(id) for id in line["items"]]}) for line in LOG[:40]]
    file.write_text("\n".join(lines) + "\n\n")

    def start(note):
        service, _, notes = open_for(settings(file), lambda done, total: seen.append((done, total)))
        with service:
            assert not note or any(note in each for each in notes)
            model = model_of(service, "m")
            return model.state()["log"][0], [event["kind"] for event in model.events()]

    looks, kinds = start(f"model 'm' has learned from 40 slates of {file}")
    assert looks > 60
    assert kinds.count("warm-start") == 1
    assert seen[-1] == (file.stat().st_size, file.stat().st_size)
    assert start("") == (looks, kinds)
    with file.open("a") as more:
        more.write(lines[0] + "\n")
    assert start("has learned from another log") == (looks, kinds)


def test_a_fit_is_learned_at_the_first_start_and_never_again(tmp_path, settings):
    file = tmp_path / "fit.npz"
    FIT.save(file)
    note = f"model 'm' has learned from 4 items of the click model {file}"
    for is_first in (True, False):
        service, _, notes = open_for(settings(file))
        with service:
            assert (note in notes) == is_first
            assert model_of(service, "m").state()["logged_examined"].sum() == sum(LOOKS_OF_FIT.values())


@pytest.mark.parametrize(
    ("name", "content", "word"),
    [
        ("log.jsonl", b'{"items": ["i1"], "click": 0}\n\n{"items": [}\n', "line 3"),
        ("fit.npz", b"PK\x03\x04 cut off", "damaged"), ("log.jsonl", None, "no such file"),
    ],
)  # fmt: skip
def test_a_wrong_file_stops_the_start(tmp_path, settings, name, content, word):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    with pytest.raises(InvalidInput, match=word):
        open_for(settings(tmp_path / name))


# Over HTTP


def test_a_log_and_counts_over_http(tmp_path):
    """A long log is sent in parts."""
    with a_server(tmp_path) as server, Client(server.address, model="shop") as client:
        slates = [{"items": ["tea", "cake"], "click": step % 2} for step in range(30_000)]
        assert client.warm_start([*slates, {"items": ["unknown"], "click": None}], weight=0.5) == 30_000
        assert client.recommend(candidates=["tea", "cake"]).items == ["cake", "tea"]
        with Client(server.address, model="m") as other:
            other.create(policy="cascade-mixed", k=K, items=[Item(id) for id in IDS])
            counts = {"i0": (400.0, 100.5), "i5": (300.0, 240.0), "unknown": (5.0, 1.0)}
            assert other.warm_start(counts=counts) == 2
            slate = other.recommend(candidates=["i0", "i5"])
            assert slate.items == ["i5", "i0"]
            assert slate.scores == pytest.approx([0.8, 0.25], abs=0.05)
