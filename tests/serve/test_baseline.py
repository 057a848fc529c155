"""The baseline in the service: set, changed, kept, counted; the click rate never falls far below it."""

import threading
import time
from pathlib import Path

import numpy as np
import pytest

from firstclick.errors import FirstclickError
from firstclick.online.floor import Floor
from firstclick.serve import Item
from firstclick.serve.config import Settings
from firstclick.serve.startup import open_for
from tests.support.clock import Clock
from tests.support.logs import answer, check_replays, feedback_of, replay, reproduce, share_of_policy
from tests.support.seam import model as model_of
from tests.support.shop import LIST, K


@pytest.fixture
def shop(open_shop):
    return open_shop(features=False, baseline=LIST, clock=Clock())


def facts(shop):
    """Return what `GET /v1/models/shop/baseline` does; None without a baseline."""
    return shop.internals.launch.facts()


def test_a_baseline_leaves_out_what_a_request_does_not_allow(shop):
    shop.set_baseline(LIST, 0.0001)
    slate = shop.recommend(candidates=["i4", "i9", "i1"])
    assert (slate.items, slate.reasons) == (["i9", "i4", "i1"], ("floor", "floor", "policy"))
    slate = shop.recommend(pinned={0: "i2"}, exclude=["i7"])
    assert (slate.items, slate.reasons) == (["i2", "i9", "i4"], ("pinned", "floor", "floor"))
    shop.withdraw_items(["i7"])
    shop.set_available(off=["i9"])
    slate = shop.recommend()
    assert (slate.items[:2], slate.reasons) == (["i2", "i4"], ("floor", "floor", "policy"))
    assert (facts(shop)["shown"], len(facts(shop)["items"])) == (2, 4)


def test_the_guardrail_counts_what_the_log_has(shop):
    """Beside one that is given each page as `firstclick log` prints it."""
    guardrail, rng = Floor(0.4), np.random.default_rng(3)
    shop.set_baseline(LIST, 0.4)
    shop.set_explore(0.2)
    for page in range(200):
        slate = shop.recommend()
        click = None if rng.random() < 0.5 else int(rng.integers(K))
        if page % 3:
            share, by_policy = share_of_policy(shop, slate), slate.reasons[0] in ("policy", "explored")
            shop.feedback(slate, click)
            guardrail.observe(share, by_policy=by_policy, clicked=click is not None)
    assert facts(shop) | guardrail.report()._asdict() == facts(shop)
    reasons = {shop.recommend().reasons[0] for _ in range(300)}
    assert reasons == {"policy", "explored", "floor"}


def make_room(shop):
    """Click on slates of the policy until some more may be lost; return how many."""
    shop.set_baseline(LIST, 0.3)
    while not facts(shop)["room"] > 3:
        slate = shop.recommend()
        shop.feedback(slate, 0 if slate.reasons[0] == "policy" else None)
    return facts(shop)["room"]


def excess(shop):
    return shop.internals.open.excess


def test_slates_without_feedback_count_as_no_click(shop):
    """By hand: what is left of the room, as each slate takes its part of it and as they come back."""
    room, out, slates, shares = make_room(shop), 0.0, [], []
    for _ in range(40):
        slates.append(shop.recommend())
        shares.append(share_of_policy(shop, slates[-1]))
        assert shares[-1] == pytest.approx(min(0.3 + max(room - out, 0.0), 1.0))
        out += max(shares[-1] - 0.3, 0.0)
    assert (shares[0], shares[-1]) == (1.0, pytest.approx(0.3))
    assert excess(shop) == pytest.approx(out)
    assert out <= room + 1e-9
    for slate in slates:
        shop.feedback(slate, None)
    assert excess(shop) == 0.0
    # None was clicked. What shares of 0.3 and below take is what the promise allows: nothing of the room.
    assert facts(shop)["room"] >= -1e-9
    assert facts(shop)["at_least"] >= 0.7 - 1e-12


def test_threads_share_the_room_of_a_guardrail(shop, monkeypatch):
    room, launch = make_room(shop), type(shop.internals.launch)
    decide = launch.decide

    def slowly(*given, **more):
        decision = decide(*given, **more)
        time.sleep(0.001)
        return decision

    monkeypatch.setattr(launch, "decide", slowly)
    threads = [threading.Thread(target=lambda: [shop.recommend() for _ in range(20)]) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert excess(shop) <= room + 1e-9


def test_replicas_share_the_room_once_they_know_of_each_other(open_shop, postgresql_url):
    options = {"features": False, "baseline": LIST, "clock": Clock()}
    shops = one, *others = [open_shop(postgresql_url, **options) for _ in range(3)]
    room = make_room(one)

    def spent(shop, slates=20):
        return sum(max(share_of_policy(shop, shop.recommend()) - 0.3, 0.0) for _ in range(slates))

    for shop in others:
        shop.run_background()
    # Each believes to be the only one, and may spend all of the room: the largest overshoot is n - 1 times
    # the room, until the first count is in the log.
    assert [spent(shop) for shop in others] == pytest.approx([room, room])
    # Each writes its count, and follows the others.
    spent(one, 1)
    for shop in shops * 2:
        shop.run_background()
    assert spent(others[0]) == 0, "it has spent more than its part"
    for shop in others:
        # As a new process of its age, with nothing out.
        model = shop.internals
        model.open = type(model.open)()
        assert spent(shop) == pytest.approx(room / 3)


def test_another_baseline_starts_its_counts_again(shop):
    late = shop.recommend()
    for _ in range(20):
        answer(shop, 0)
    shop.set_baseline(LIST, 0.2)
    assert facts(shop)["pages"] == 20, "the same list goes on"
    shop.set_baseline(LIST[::-1], 0.2)
    shop.feedback(late, 0)
    assert facts(shop)["pages"] == 0, "a late slate of the old list does not count"
    answer(shop, 1)
    assert facts(shop)["pages"] == 1
    shop.remove_baseline()
    assert facts(shop) is None
    assert shop.recommend().reasons == ("policy",) * K


def test_a_baseline_survives_replays_restart_import_and_a_fork(shop, open_shop, tmp_path):
    rng = np.random.default_rng(0)
    for page in range(60):
        if page == 15:
            shop.set_explore(0.3)
        if page == 25:
            shop.put_items([Item("new")])
            shop.set_baseline(["new", *LIST], 0.4)
        if page == 35:
            shop.roll_back(20)
        if page == 45:
            shop.set_baseline(["i1", *LIST], 0.3)
        request = [{}, {"k": 2}, {"exclude": ["i2"]}, {"pinned": {1: "i5"}}][page % 4]
        answer(shop, None if rng.random() < 0.6 else 0, **request)
    check_replays(shop, 9)
    assert reproduce(shop).equal == 60
    assert {event["choice"] for event in feedback_of(shop)} == {"policy", "floor"}
    shop.snapshot()
    answer(shop, 0)
    before, content = (facts(shop), shop.digest()), b"".join(shop.export())
    fork = shop.fork("cascade-ts", "other")
    assert (facts(fork)["items"], facts(fork)["pages"]) == (["i1", *LIST], 0)
    shop.restart()
    other = open_shop(tmp_path / "other.db", features=False, baseline=LIST[::-1])
    other.service.import_model("twin", content)
    for model in (shop, other.model("twin")):
        assert (facts(model), model.digest()) == before


# `serve --baseline list.csv`


@pytest.fixture
def serving(tmp_path, monkeypatch):
    """A folder with a catalog; the function writes the list."""
    monkeypatch.chdir(tmp_path)
    Path("catalog.csv").write_text("id,name\n" + "".join(f"i{row},Item {row}\n" for row in range(8)))
    return write_list


def write_list(*ids):
    Path("list.csv").write_text("".join(f"{line}\n" for line in ("id", *ids)))


def start(given=(), **more):
    settings = {
        "name": "shop", "store": "shop.db", "catalog": Path("catalog.csv"), "baseline": Path("list.csv"),
        "k": 3, "policy": "cascade-ts",
    }  # fmt: skip
    return open_for(Settings(**settings | more), given=[*settings, *given])


def check_baseline(service, *ids):
    assert (facts(model_of(service)) or {"items": []})["items"] == [*ids]


def test_a_server_reads_a_list_once(serving):
    serving("i3", "i1", "i5")
    opened = start(max_loss=0.1, given=("max_loss",))
    with opened.service as service:
        check_baseline(service, "i3", "i1", "i5")
        assert any("3 items" in note and "'i3'" in note for note in opened.notes)
        assert any("at least 90% of the baseline" in note for note in opened.notes)
        seq = model_of(service).seq
    with start().service as service:
        assert model_of(service).seq == seq
        # What is changed over HTTP is newer than a file that stays as it is.
        model_of(service).set_baseline(["i2", "i0", "i7"])
    with start().service as service:
        check_baseline(service, "i2", "i0", "i7")
        model_of(service).snapshot()
        model_of(service).remove_baseline()
        model_of(service).snapshot()
    with start().service as service:
        check_baseline(service)
        assert replay(model_of(service)) == model_of(service).digest()
    serving("i6", "i1", "i5")
    with start().service as service:
        check_baseline(service, "i6", "i1", "i5")
        model_of(service).set_baseline(["i6", "i1", "i5"], 0.2)
    with start(max_loss=0.3, given=("max_loss",)).service as service:
        assert facts(model_of(service))["max_loss"] == 0.3
        check_baseline(service, "i6", "i1", "i5")


@pytest.mark.parametrize(
    ("ids", "word"),
    [(["i3", "i1", "nope"], "nope"), (["i3", "i1", "i3"], "i3"), (["i3"], "3"), (None, "list.csv")],
)
def test_a_wrong_list_stops_the_start_and_leaves_no_model(serving, ids, word):
    if ids is not None:
        serving(*ids)
    with pytest.raises(FirstclickError, match=word):
        start()
    # A right file can follow, for a model of another length.
    serving("i3", "i1", "i5", "i6")
    with start(k=4).service as service:
        check_baseline(service, "i3", "i1", "i5", "i6")
        assert model_of(service).describe()["k"] == 4
