"""The service in process: what is acknowledged is in the log, once, and the log is all there is."""

import threading
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from made_log import N_FEATURES, K, made_items

from firstclick.catalog.item import Item
from firstclick.errors import InvalidInput
from firstclick.policies.cascade_lin_ts import CascadeLinTS
from firstclick.serve.dashboard.data import Views
from firstclick.serve.model.audit import audit_served, audit_stored
from firstclick.serve.model.exploration import Exploration
from firstclick.serve.model.export import export_model, import_model
from firstclick.serve.service import Service, open_service
from firstclick.serve.store import open_store
from firstclick.wire.errors import Conflict, Expired, Malformed, Overloaded, Refused, Unavailable, Unknown
from firstclick.wire.feedback import Receipt
from tests.support import seam


@pytest.fixture
def place(tmp_path: Path) -> str:
    return str(tmp_path / "shop.db")


@pytest.fixture
def service(place: str) -> Iterator[Service]:
    with open_service(place) as service:
        service.create("shop", policy="cascade-lin-ts", k=K, items=made_items(), seed=5)
        yield service


@pytest.mark.parametrize("word", ["exclude", "candidates"])
def test_a_text_is_the_name_of_a_list_not_an_id(service: Service, word: str) -> None:
    with pytest.raises(Malformed, match=r"no list 'i3' in model 'shop'.*If it is an id, say \['i3'\]"):
        service.recommend("shop", **{word: "i3"})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("asked", "answer"),
    [
        ({"k": "2"}, "k must be a whole number, got '2'"),
        ({"k": True}, "k must be a whole number, got True"),
        ({"pinned": ["i3"]}, r"pinned must say the item for each position, as in {0: 'tea'}, got \['i3'\]"),
        ({"pinned": {"0": "i3", 1: "i4"}}, "pinned: a position must be a whole number, got '0'"),
        ({"exclude": 7}, "exclude must be a list of ids, got 7"),
        ({"request_id": 7}, "request_id must be a text, got 7"),
    ],
)
def test_what_is_of_the_wrong_kind_is_named(service: Service, asked: dict[str, Any], answer: str) -> None:
    with pytest.raises(Malformed, match=answer):
        service.recommend("shop", **asked)


def test_the_first_click_counts_no_further_for_a_policy_that_wants_all(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(CascadeLinTS, "wants_all_clicks", True)
    for said, examined in (
        ({"click": 1}, 2),
        ({"clicks": [1]}, None),
        ({"click": None}, None),
        ({"click": 0, "examined": 3}, 3),
    ):
        service.feedback("shop", service.recommend("shop"), **said)  # type: ignore[arg-type]
        _, feedback = service.model("shop").recent[-1]
        assert feedback.examined == examined, said


def test_no_best_slate_is_told_where_estimates_do_not_give_it(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
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


def test_items_and_slates_of_the_wrong_kind_are_named(service: Service) -> None:
    with pytest.raises(
        Malformed, match=r"an item must be an Item\(id, name, group, features, available\), got {'id': 'x'}"
    ):
        service.put_items("shop", [{"id": "x"}])  # type: ignore[list-item]
    with pytest.raises(Malformed, match="a slate, or its token, must be given with a click, got 7"):
        service.feedback("shop", 7, 0)  # type: ignore[arg-type]
    with pytest.raises(Malformed, match=r"item .x.: features must be a list of numbers, got 0\.5"):
        service.put_items("shop", [Item("x", features=0.5)])  # type: ignore[arg-type]
    with pytest.raises(Malformed, match=r"an item id must be a text, or a whole number .* got None"):
        service.put_items("shop", [Item(None)])  # type: ignore[arg-type]
    with pytest.raises(Malformed, match="item 'x': group must be a text, got 7"):
        service.put_items("shop", [Item("x", group=7)])  # type: ignore[arg-type]
    with pytest.raises(Malformed, match="items must be a list of ids, got the text 'i3'"):
        service.withdraw_items("shop", "i3")
    for wrong in (1.0, True, "1"):
        with pytest.raises(Malformed, match="seq must be a whole number from 1 to 1, the last event, got"):
            service.roll_back("shop", wrong)  # type: ignore[arg-type]
    assert seam.model(service, "shop").seq == 1
    letters = list("abcdefgh"[:N_FEATURES])
    with pytest.raises(Malformed, match="features must be numbers, one row per item"):
        service.put_items("shop", [Item("x", features=letters)])  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("features", "sentence"),
    [
        (
            [1, 10**400] + [0] * (N_FEATURES - 2),
            "at most 1e+100 in size, got a whole number of about 401 digits",
        ),
        (np.ma.masked_less(np.arange(N_FEATURES), 1), "features must not be masked, got a masked value"),
        (
            np.array(["2026"] * N_FEATURES, "datetime64[ns]"),
            "must be numbers, got dates or times (datetime64",
        ),
        (
            [datetime(2026, 11, 17)] * N_FEATURES,
            "must be numbers, got dates or times (datetime.datetime(2026",
        ),
        ([[1], [2, 3]], "features must be a list of numbers, got [[1], [2, 3]]"),
    ],
)
def test_features_that_are_no_plain_numbers_are_refused_at_every_door(
    service: Service, features: Any, sentence: str
) -> None:
    item = Item("x", features=features)
    with pytest.raises(Malformed) as caught:
        service.put_items("shop", [item])
    assert sentence in str(caught.value)
    with pytest.raises(Malformed) as caught:
        service.create("other", policy="cascade-lin-ts", k=1, items=[item])
    assert sentence in str(caught.value)
    with pytest.raises(Malformed, match=r"features must (be|not be)"):
        service.recommend("shop", candidates=["i1"], features=[features])
    assert seam.model(service, "shop").seq == 1


def test_features_may_be_whatever_becomes_numbers(service: Service) -> None:
    rows = [list(range(N_FEATURES)), tuple(map(str, range(N_FEATURES))), np.ma.arange(N_FEATURES)]
    service.put_items("shop", [Item(f"x{i}", features=row) for i, row in enumerate(rows)])  # type: ignore[arg-type]
    catalog = service.model("shop").catalog
    first, *others = catalog.rows([f"x{i}" for i in range(len(rows))]).tolist()
    assert all((catalog.features[row] == catalog.features[first]).all() for row in others)
    service.create(
        "other", policy="cascade-lin-ts", k=1, items=[Item("x", features=row) for row in rows[1:2]]
    )  # type: ignore[misc]


HUGE = 10**5000


@pytest.mark.parametrize(
    "ask",
    [
        lambda service: service.put_items("shop", [Item(HUGE)]),
        lambda service: service.put_items("shop", [Item(-HUGE, features=5)]),
        lambda service: service.put_items("shop", [HUGE]),
        lambda service: service.withdraw_items("shop", [HUGE]),
        lambda service: service.recommend("shop", candidates=[HUGE]),
        lambda service: service.recommend("shop", exclude=[HUGE]),
        lambda service: service.recommend("shop", pinned={0: HUGE}),
        lambda service: service.recommend("shop", pinned={HUGE: "i1"}),
        lambda service: service.recommend("shop", k=HUGE),
        lambda service: service.recommend("shop", request_id=HUGE),
        lambda service: service.recommend(HUGE),
        lambda service: service.feedback("shop", service.recommend("shop"), click=HUGE),
        lambda service: service.feedback("shop", service.recommend("shop"), clicks=[HUGE, HUGE]),
        lambda service: service.feedback("shop", service.recommend("shop"), clicks=HUGE),
        lambda service: service.feedback("shop", service.recommend("shop"), click=0, examined=HUGE),
        lambda service: service.feedback("shop", HUGE, click=0),
        lambda service: service.roll_back("shop", HUGE),
        lambda service: service.create(HUGE, policy="random", k=1, items=[Item("a")]),
        lambda service: service.create("other", policy="random", k=HUGE, items=[Item("a")]),
        lambda service: service.create("other", policy="random", k=1, seed=HUGE, items=[Item("a")]),
    ],
)
def test_a_number_that_python_does_not_write_is_refused_at_every_door(
    service: Service, ask: Callable[[Service], object]
) -> None:
    with pytest.raises(Refused, match=r"a (negative )?whole number of about 5,001 digits"):
        ask(service)
    assert seam.model(service, "shop").seq == 1
    assert service.names() == ["shop"]


def test_the_seed_of_a_model_has_64_bits_at_most(service: Service) -> None:
    with pytest.raises(Malformed, match=r"seed must be at most 2\^64 - 1, got 18446744073709551616"):
        service.create("other", policy="random", k=1, seed=2**64, items=[Item("a")])
    assert service.create("other", policy="random", k=1, seed=2**64 - 1, items=[Item("a")]).created.seed


def test_a_store_is_a_path_or_an_address(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidInput, match=r"a path must be a text that is not empty, or a Path, got None"):
        open_service(None)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def play(service: Service, steps: int, *, name: str = "shop") -> list[tuple[str, int | None]]:
    """Slates answered; every fourth without a click."""
    said = [(service.recommend(name).token, None if step % 4 == 3 else step % K) for step in range(steps)]
    for outcome in service.feedback_batch(name, said):
        assert isinstance(outcome, Receipt)
        assert outcome.status == "accepted"
    return said


def test_feedback_is_accepted_once_and_the_first_word_stays(service: Service) -> None:
    token = service.recommend("shop").token
    assert service.feedback("shop", token, 1) == Receipt("accepted", 2)
    assert service.feedback("shop", token, 1) == Receipt("duplicate", 2)
    with pytest.raises(Conflict, match="as event 2"):
        service.feedback("shop", token, None)
    assert service.model("shop").click_stats.slates == 1
    assert service.outcomes["shop"] == {"accepted": 1, "duplicate": 1, "conflict": 1}


def test_a_recommendation_writes_nothing(service: Service, place: str) -> None:
    before = Path(place).read_bytes(), Path(place + "-wal").read_bytes(), seam.model(service, "shop").digest()
    for _ in range(20):
        service.recommend("shop", exclude=["i1"], pinned={0: "i2"}, request_id="x")
    assert (Path(place).read_bytes(), Path(place + "-wal").read_bytes()) == before[:2]
    assert seam.model(service, "shop").digest() == before[2]


def test_one_request_id_is_counted_once_and_gives_one_slate(service: Service) -> None:
    first, again = (service.recommend("shop", request_id="page 7") for _ in range(2))
    assert first.items == again.items
    assert service.feedback("shop", first.token, 0).status == "accepted"
    assert service.feedback("shop", again.token, 0).status == "duplicate"
    with pytest.raises(Conflict):
        service.feedback("shop", again.token, 1)
    assert service.model("shop").click_stats.slates == 1


def test_everything_is_there_after_a_restart_with_and_without_snapshots(place: str) -> None:
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


def test_many_threads_one_log(service: Service) -> None:
    tokens = [service.recommend("shop").token for _ in range(200)]
    receipts: list[Receipt] = []

    def send() -> None:
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


def test_a_batch_answers_each_entry_for_itself(service: Service) -> None:
    good, twice = service.recommend("shop").token, service.recommend("shop").token
    outcomes = service.feedback_batch(
        "shop", [(good, None), ("nonsense", 0), (twice, 2), (twice, 2), (twice, 1), (good, 99)]
    )
    assert [outcome.status for outcome in outcomes] == [
        "accepted", "unknown", "accepted", "duplicate", "conflict", "malformed",
    ]  # fmt: skip


def test_models_do_not_take_one_anothers_tokens(service: Service) -> None:
    service.create("other", policy="cascade-ts", k=2, items=[Item(1), Item(2), Item("2")])
    with pytest.raises(Unknown, match="another model's"):
        service.feedback("other", service.recommend("shop").token, 0)
    shown = service.recommend("other")
    assert service.feedback("other", shown.token, 0).seq == 2
    assert service.names() == ["other", "shop"]


def test_old_slates_expire(place: str) -> None:
    with open_service(place, token_days=1e-9) as service:
        service.create("shop", policy="cascade-lin-ts", k=K, items=made_items())
        token = service.recommend("shop").token
        with pytest.raises(Expired):
            service.feedback("shop", token, 0)


def test_a_full_queue_refuses_and_says_when_to_come_again(
    place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_service(place, max_queue=10, max_batch=4) as service:
        service.create("shop", policy="cascade-lin-ts", k=K, items=made_items())
        tokens = [service.recommend("shop").token for _ in range(40)]
        held, append = threading.Event(), service.store.append
        monkeypatch.setattr(service.store, "append", lambda *given: (held.wait(), append(*given))[1])
        answers: list[list[Receipt | Refused]] = []
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


def test_a_store_that_cannot_write_means_unavailable_and_nothing_learned(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(batch: object, folded: object) -> None:
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


def test_a_withdrawn_item_is_never_shown_again_and_a_changed_one_is_learned_as_shown(
    service: Service,
) -> None:
    shown = service.recommend("shop", candidates=["i1", "i2", "i4"])
    service.withdraw_items("shop", ["i1"])
    assert all("i1" not in service.recommend("shop").items for _ in range(50))
    assert service.feedback("shop", shown.token, shown.items.index("i1")).status == "accepted"
    assert service.withdraw_items("shop", ["i1"]) == 4  # as a client does that heard no answer
    with pytest.raises(Unknown, match="'never'"):
        service.withdraw_items("shop", ["i2", "never"])
    assert service.model("shop").items.is_shown("i2")
    service.put_items("shop", [made_items()[1]])
    assert service.model("shop").items.is_shown("i1")


def test_rolling_back(service: Service) -> None:
    play(service, 5)
    digest = service.model("shop").engine.state.precision.copy()
    play(service, 5)
    assert service.roll_back("shop", 6) == 12
    np.testing.assert_array_equal(service.model("shop").engine.state.precision, digest)
    assert audit_served(service.store, service.model("shop")).equal
    with pytest.raises(Malformed, match="from 1 to 12"):
        service.roll_back("shop", 13)


def test_a_model_moves_between_stores(service: Service, tmp_path: Path) -> None:
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


@pytest.mark.parametrize(
    ("items", "sentence"),
    [
        ([], "no items"),
        (
            [Item("a", features=np.ones(N_FEATURES + 1))],
            "every item must have 4 features, got 5; a model with other features is a new model",
        ),
        ([Item("a", features=np.ones(0))], "must have 4 features, got 0"),
        ([Item("a", features=np.array([1.0, np.nan, 0, 0]))], "finite"),
        ([Item("a", features=np.full(4, 1e300))], "at most"),
        ([Item("", features=np.ones(4))], "1 to 256 characters"),
        ([Item("a" * 300, features=np.ones(4))], "1 to 256 characters"),
        ([Item(2**60, features=np.ones(4))], "2\\^53"),
        ([Item("a", "n" * 2000, features=np.ones(4))], "at most 1000"),
        ([Item("a", "\ud800", features=np.ones(4))], "lone surrogate"),
        ([Item("a", features=np.ones(4))] * 2, "given twice"),
    ],
)
def test_bad_items_are_refused_and_change_nothing(service: Service, items: list[Item], sentence: str) -> None:
    with pytest.raises(Malformed, match=sentence):
        service.put_items("shop", items)
    assert seam.model(service, "shop").seq == 1


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"policy": "cascade-lints"}, "did you mean 'cascade-lin-ts'"),
        ({"policy": "cascade-lin-ts:sigma=-1"}, "sigma must be above 0"),
        ({"k": 0}, "k must be"),
        ({"k": 256}, "k must be"),
        ({"name": "../etc"}, "a model's name must be"),
        ({"name": ""}, "a model's name must be"),
        ({"name": 5}, "a model's name must be"),
        ({"items": [Item("a"), Item("b")]}, "needs features"),
        ({"seed": -1}, "seed must be"),
    ],
)
def test_bad_models_are_refused(service: Service, asked: dict, sentence: str) -> None:
    given = {"name": "new", "policy": "cascade-lin-ts", "k": 2, "items": made_items()} | asked
    with pytest.raises(Malformed, match=sentence):
        service.create(given.pop("name"), **given)
    assert service.names() == ["shop"]
    with pytest.raises(Conflict, match="shop"):
        service.create("shop", policy="cascade-lin-ts", k=2, items=made_items())


def test_token_keys_rotate_and_old_tokens_stay_good_for_their_time(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = service.recommend("shop").token
    monkeypatch.setattr("firstclick.serve.maintenance.ROTATE_DAYS", 0.0)
    service.maintenance._follow_token_keys()
    assert len(service.store.token_keys()) == 2
    assert service.recommend("shop").token[:8] != token[:8]
    assert service.feedback("shop", token, None).status == "accepted"
