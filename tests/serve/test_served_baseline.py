"""The list that is shown today, in the service: set, changed, kept, counted, and never fallen far below."""

import threading
import time
from collections import Counter
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest

from firstclick.catalog.item import Item
from firstclick.errors import FirstclickError
from firstclick.online.baseline import Choice
from firstclick.online.floor import Floor
from firstclick.serve.config import Settings
from firstclick.serve.log.drawn import read_drawn
from firstclick.serve.model.audit import audit_stored
from firstclick.serve.model.launch import Launch
from firstclick.serve.model.model import Model
from firstclick.serve.model.open_slates import OpenSlates
from firstclick.serve.model.replay import catch_up, recover
from firstclick.serve.model.slates import audit_slates
from firstclick.serve.service import open_service
from firstclick.serve.startup import open_for
from firstclick.wire.errors import Unknown
from tests.support import seam
from tests.support.launching import LIST, a_shop, answered, drawn_of, slates_of
from tests.support.made_log import K
from tests.support.serving import a_site


@pytest.fixture
def shop(tmp_path):
    with a_shop(tmp_path / "shop.db", baseline=LIST) as service:
        yield service


def stored(service, name="shop"):
    return next(one for one in service.store.models() if one.name == name)


def test_the_first_pages_are_the_list_but_for_the_share_that_may_be_lost(shop):
    slates = [shop.recommend("shop") for _ in range(300)]
    kinds = Counter(slate.reasons for slate in slates)
    assert set(kinds) == {("floor",) * K, ("policy",) * K}
    assert 3 <= kinds["policy", "policy", "policy"] <= 35
    assert all(slate.items == LIST[:K] for slate in slates if slate.reasons[0] == "floor")


def test_a_list_leaves_out_what_the_request_does_not_allow(shop):
    shop.set_baseline("shop", LIST, 0.0001)
    ask = lambda **more: shop.recommend("shop", **more)  # noqa: E731
    assert ask(exclude=["i2"]).items == ["i7", "i9", "i4"]
    assert ask(candidates=["i4", "i9", "i1"]).items == ["i9", "i4", "i1"]
    assert ask(candidates=["i4", "i9", "i1"]).reasons == ("floor", "floor", "policy")
    pinned = ask(pinned={0: "i2"})
    assert (pinned.items, pinned.reasons) == (["i2", "i7", "i9"], ("pinned", "floor", "floor"))
    assert ask(k=1).items == ["i7"]
    shop.withdraw_items("shop", ["i7"])
    shop.set_available("shop", off=["i9"])
    slate = ask()
    assert (slate.items[:2], slate.reasons) == (["i2", "i4"], ("floor", "floor", "policy"))
    facts = shop.model("shop").launch.facts()
    assert facts is not None
    assert (facts["shown"], len(facts["items"])) == (2, 4)


def test_the_floor_counts_what_the_log_says(shop):
    """Beside a floor that is told of each page, as its own words have it."""
    told, rng = Floor(0.4), np.random.default_rng(3)
    shop.set_baseline("shop", LIST, 0.4)
    shop.set_explore("shop", 0.2)
    for page in range(200):
        slate = shop.recommend("shop")
        click = None if rng.random() < 0.5 else int(rng.integers(K))
        if page % 3:
            shop.feedback("shop", slate, click)
            drawn = drawn_of(slates_of(shop)[-1])
            assert drawn.chosen is not None
            told.observe(
                drawn.chosen.share, by_policy=slate.reasons[0] in ("policy", "explored"),
                clicked=click is not None,
            )  # fmt: skip
    baseline = shop.model("shop").launch.baseline
    assert baseline is not None
    assert baseline.floor.report() == told.report()
    assert {slate.reasons[0] for slate in (shop.recommend("shop") for _ in range(300))} == {
        "policy", "explored", "floor"
    }  # fmt: skip


def with_room(service):
    """The list, when clicks on slates of the policy have made room for some more."""
    service.set_baseline("shop", LIST, 0.3)
    baseline = service.model("shop").launch.baseline
    assert baseline is not None
    while not baseline.floor.report().room > 3:
        slate = service.recommend("shop")
        service.feedback("shop", slate, 0 if slate.reasons[0] == "policy" else None)
    return baseline


def test_slates_that_are_out_count_as_no_click(shop):
    """By hand: what is left of the room, as each slate takes its part of it and as they come back."""
    baseline = with_room(shop)
    room, shares, out = baseline.floor.report().room, [], 0.0
    slates = []
    for _ in range(40):
        slate = shop.recommend("shop")
        drawn = shop.keys.read(slate.token, shop.model("shop").id, days=1)
        chosen = read_drawn(drawn.fields).chosen
        assert chosen is not None
        assert chosen.share == pytest.approx(min(0.3 + max(room - out, 0.0), 1.0))
        out += max(chosen.share - 0.3, 0.0)
        shares.append(chosen.share)
        slates.append(slate)
    assert shares[0] == 1.0
    assert shares[-1] == pytest.approx(0.3)
    assert out <= room + 1e-9
    assert shop.model("shop").open.excess == pytest.approx(out)
    for slate in slates:
        shop.feedback("shop", slate, None)
    assert shop.model("shop").open.excess == 0.0
    # None was clicked. What shares of 0.3 and below take is what the promise allows: nothing of the room.
    left = baseline.floor.report()
    assert left.room >= -1e-9
    assert left.at_least >= 0.7 - 1e-12


def test_threads_share_the_room_of_a_floor(shop, monkeypatch):
    model = shop.model("shop")
    room = with_room(shop).floor.report().room
    decide = Launch.decide

    def slowly(*given, **more):
        found = decide(*given, **more)
        time.sleep(0.001)
        return found

    monkeypatch.setattr(Launch, "decide", slowly)

    def ask():
        for _ in range(20):
            shop.recommend("shop")

    threads = [threading.Thread(target=ask) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert model.open.excess <= room + 1e-9


def shares_out(service, pages):
    """The shares of some slates that stay out."""
    found = []
    for _ in range(pages):
        token = service.keys.read(service.recommend("shop").token, service.model("shop").id, days=1)
        drawn = read_drawn(token.fields)
        assert drawn is not None
        assert drawn.chosen is not None
        found.append(drawn.chosen.share)
    return found


def test_processes_share_the_room_once_they_know_of_each_other(postgresql_url):
    with ExitStack() as opened:
        one = opened.enter_context(a_shop(postgresql_url, baseline=LIST))
        others = [opened.enter_context(open_service(postgresql_url)) for _ in range(2)]
        services = [one, *others]
        baseline = with_room(one)
        until = time.monotonic() + 20
        while len({seam.model(service, "shop").seq for service in services}) > 1:
            assert time.monotonic() < until
            time.sleep(0.02)
        room = baseline.floor.report().room
        # Nobody has told of slates yet: each believes to be alone, and may spend all of the room. That is the
        # largest overshoot: n - 1 times the room, until the first count is in the log.
        out = [sum(max(share - 0.3, 0.0) for share in shares_out(service, 20)) for service in others]
        assert out == pytest.approx([room, room])
        # Each tells the log, and hears of the others.
        while min(one.model("shop").reports.live(time.time(), one.process) for one in services) < 3:
            assert time.monotonic() < until
            shares_out(one, 1)
            time.sleep(0.05)
        assert shares_out(others[0], 1) == [pytest.approx(0.3)], "it has spent more than its part"
        for service in others:
            # A new process of its age, with nothing out.
            service.model("shop").open = OpenSlates()
            spent = sum(max(share - 0.3, 0.0) for share in shares_out(service, 20))
            assert spent == pytest.approx(room / 3)


def test_another_list_starts_the_floor_anew_and_late_slates_of_the_old_one_do_not_count(
    shop,
):
    launch = shop.model("shop").launch
    late = shop.recommend("shop")
    for _ in range(20):
        answered(shop, 0)
    shop.set_baseline("shop", LIST, 0.2)
    assert launch.baseline is not None
    assert launch.baseline.floor.report().pages == 20, "the same list goes on"
    shop.set_baseline("shop", LIST[::-1], 0.2)
    shop.feedback("shop", late, 0)
    assert launch.baseline.floor.report().pages == 0
    answered(shop, 1)
    assert launch.baseline.floor.report().pages == 1
    shop.remove_baseline("shop")
    assert launch.facts() is None
    assert shop.recommend("shop").reasons == ("policy",) * K
    with pytest.raises(Unknown, match="baseline is missing"):
        shop.remove_baseline("shop")


def a_life(service, seed=0, pages=60):
    """Slates of all kinds, lists that change, and a rollback."""
    rng = np.random.default_rng(seed)
    for page in range(pages):
        if page == 15:
            service.set_explore("shop", 0.3)
        if page == 25:
            service.put_items("shop", [Item("new")])
            service.set_baseline("shop", ["new", *LIST], 0.4)
        if page == 35:
            service.roll_back("shop", 20)
        if page == 45:
            service.set_baseline("shop", ["i1", *LIST], 0.3)
        asked = [{}, {"k": 2}, {"exclude": ["i2"]}, {"pinned": {1: "i5"}}][page % 4]
        answered(service, None if rng.random() < 0.6 else 0, **asked)


def test_events_one_by_one_in_pieces_and_in_one_go_give_the_same_bits(shop):
    a_life(shop)
    model, one = shop.model("shop"), stored(shop)
    by_one = recover(shop.store, one._replace(head=1), use_snapshots=False)
    for head in range(2, one.head + 1):
        catch_up(shop.store, by_one, head)
        if head % 9 == 0:
            # Through a snapshot, every now and then.
            _, content = by_one.snapshot()
            before = by_one.digest()
            by_one = Model.restored(one.id, "shop", content, model.created)
            assert by_one.digest() == before
    whole = recover(shop.store, one, use_snapshots=False)
    assert model.digest() == by_one.digest() == whole.digest()
    assert audit_stored(shop.store, one).equal
    found = audit_slates(shop.store, one)
    assert (found.equal, found.told) == (60, ()), found
    chosen = Counter(drawn_of(event).chosen.choice for event in slates_of(shop))
    assert set(chosen) == {Choice.POLICY, Choice.FLOOR}


def test_a_model_with_a_list_goes_to_another_store_and_comes_back_after_a_restart(tmp_path):
    with a_shop(tmp_path / "shop.db", baseline=LIST) as service:
        a_life(service)
        seam.model(service, "shop").snapshot()
        answered(service, 0)
        digest, file = seam.model(service, "shop").digest(), b"".join(service.export("shop"))
        facts = service.model("shop").launch.facts()
        service.fork("shop", "cascade-ts", "other")
        its = service.model("other").launch
        assert its.baseline is not None
        assert its.baseline.items == ("i1", *LIST)
        assert its.baseline.floor.report().pages == 0, "slates of another model say nothing of this one"
    with a_shop(tmp_path / "shop.db") as service:
        assert seam.model(service, "shop").digest() == digest
    with a_shop(tmp_path / "other.db", baseline=LIST[::-1]) as service:
        twin = service.import_model("twin", file)
        assert twin.digest() == digest
        assert twin.launch.facts() == facts


# HTTP


def test_a_list_over_http(tmp_path):
    with a_site(tmp_path) as site:
        path = "/v1/models/shop/baseline"
        answer = site.ask("GET", path)
        assert (answer.status_code, answer.json()["error"]["message"]) == (
            404, "baseline is missing: model 'shop' has none; PUT one to /v1/models/shop/baseline",
        )  # fmt: skip
        assert site.ask("DELETE", path).status_code == 404
        assert site.ask("PUT", path, {"items": ["tea", 7, "cake"], "max_loss": 0.1}).json()["seq"] == 2
        slate = site.recommend()
        assert slate["reasons"] in (["floor"] * 3, ["policy"] * 3)
        assert site.ask("POST", "/v1/models/shop/feedback", {"token": slate["token"], "click": 0}).is_success
        told = site.ask("GET", path).json()
        assert (told["items"], told["shown"], told["since"], told["pages"]) == (["tea", 7, "cake"], 3, 2, 1)
        assert told["max_loss"] == 0.1
        assert "constant" in told["assumed"]
        for items, max_loss, said in (
            (["tea", 7, "nope"], 0.1, "must name items of the catalog, got 'nope'"),
            (["tea", "tea", 7], 0.1, "baseline must name an item once, got 'tea' twice"),
            (["tea", 7], 0.1, "must have at least 3 items, the length of a slate, got 2"),
            (["tea", 7, "cake"], 0, "max_loss must be a share"),
            (["tea", 7, "cake"], 2, "max_loss must be a number, at most 1, got 2"),
            ("tea", 0.1, "items must be"),
        ):
            answer = site.ask("PUT", path, {"items": items, "max_loss": max_loss})
            assert answer.status_code == 422, answer.text
            assert said in answer.json()["error"]["message"]
        assert site.ask("DELETE", path).json()["seq"] == 4
        assert site.recommend()["reasons"] == ["policy"] * 3


# `serve --baseline list.csv`

CATALOG = "id,name\n" + "".join(f"i{row},Item {row}\n" for row in range(8))


@pytest.fixture
def serving(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "catalog.csv").write_text(CATALOG)
    (tmp_path / "list.csv").write_text("id\ni3\ni1\ni5\n")
    return tmp_path


def start(given=(), **more):
    asked = {
        "name": "shop",
        "store": "shop.db", "catalog": Path("catalog.csv"), "baseline": Path("list.csv"), "k": 3,
        "policy": "cascade-ts",
    }  # fmt: skip
    return open_for(Settings(**asked | more), given=[*asked, *given])


def items_of(service):
    baseline = service.model("shop").launch.baseline
    return () if baseline is None else baseline.items


def test_a_wrong_list_leaves_no_model_behind(serving):
    (serving / "list.csv").write_text("id\ni3\nnope\ni5\n")
    with pytest.raises(FirstclickError, match="'nope'"):
        start()
    (serving / "list.csv").write_text("id\ni3\ni1\ni5\ni6\n")
    with start(k=4).service as service:
        assert service.model("shop").k == 4


def test_a_server_starts_with_a_list_and_takes_it_once(serving):
    opened = start(max_loss=0.1, given=("max_loss",))
    with opened.service as service:
        assert items_of(service) == ("i3", "i1", "i5")
        assert any("the baseline has 3 items, the first is 'i3'" in note for note in opened.notes)
        assert any("at least 90% of the baseline" in note for note in opened.notes)
        seq = seam.model(service, "shop").seq
    with start().service as service:
        assert (seam.model(service, "shop").seq, items_of(service)) == (seq, ("i3", "i1", "i5"))
        # What is changed over HTTP is newer than a file that stays as it is.
        service.set_baseline("shop", ["i2", "i0", "i7"])
    with start().service as service:
        assert items_of(service) == ("i2", "i0", "i7")
        seam.model(service, "shop").snapshot()
        service.remove_baseline("shop")
        seam.model(service, "shop").snapshot()
    with start().service as service:
        assert items_of(service) == ()
        assert (
            recover(service.store, stored(service), use_snapshots=False).digest()
            == seam.model(service, "shop").digest()
        )
    (serving / "list.csv").write_text("id\ni6\ni1\ni5\n")
    with start().service as service:
        assert items_of(service) == ("i6", "i1", "i5")
        service.set_baseline("shop", ["i6", "i1", "i5"], 0.2)
    with start(max_loss=0.3, given=("max_loss",)).service as service:
        assert service.model("shop").launch.baseline.floor.max_loss == 0.3
        assert items_of(service) == ("i6", "i1", "i5")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("id\ni3\ni1\nnope\n", "nope"),
        ("id\ni3\ni1\ni3\n", "i3"),
        ("id\ni3\n", "3"),
        ("", "list.csv"),
        (None, "list.csv"),
    ],
)
def test_a_file_that_is_no_list_stops_the_start_with_a_sentence(serving, text, said):
    (serving / "list.csv").unlink()
    if text is not None:
        (serving / "list.csv").write_text(text)
    with pytest.raises(FirstclickError, match=said):
        start()
    # Nothing is left behind that a right file could not follow.
    (serving / "list.csv").write_text("id\ni3\ni1\ni5\n")
    with start().service as service:
        assert items_of(service) == ("i3", "i1", "i5")
