"""A click on a slate that timed out takes the place of no click: once, and exactly."""

import numpy as np
import pytest

from firstclick.errors import FirstclickError
from firstclick.serve import ClickReport, Item
from firstclick.serve.model.model import InForce
from firstclick.testing import states_differ
from tests.support import logs
from tests.support.clock import Clock
from tests.support.policies import policies
from tests.support.refusals import check_refused
from tests.support.shop import IDS, K

WAIT = 60.0
CORRECTING = policies(["cascade-ts", "cascade-ucb1", "cascade-mixed"])


@pytest.fixture
def open_shop(open_shop):
    """Shops whose slates time out, and whose log has no events but those of slates."""
    return lambda *store, **more: open_shop(
        *store, **{"no_click_after": WAIT, "clock": Clock(), "tuning": logs.QUIET} | more
    )


def show(shop, items):
    """The slate of these items."""
    slate = shop.recommend(pinned=dict(enumerate(items)))
    assert slate.items == list(items)
    return slate


def time_out(shop):
    shop.service.clock.move(WAIT + 1)
    shop.run_background()


def timed_out(shop, *slates):
    """Slates that the log has as ones without a click."""
    shown = [show(shop, items) for items in slates]
    time_out(shop)
    return shown


def play(shop, n, seed=0):
    """Random slates and clicks."""
    rng = np.random.default_rng(seed)
    for _ in range(n):
        rows, click = rng.permutation(13)[:K], int(rng.integers(0, K + 1))
        shop.feedback(show(shop, [IDS[row] for row in rows]), click if click < K else None)


def items_at(*rows):
    return [IDS[row % len(IDS)] for row in rows]


def counts(shop):
    state = shop.state()
    return state["examined"].astype(int).tolist(), state["hits"].astype(int).tolist()


def refitted(shop):
    engine = shop.internals.engine
    return engine.policy.refitted(type(engine.state)(**shop.state()), engine.arrays_to_learn())


# What it teaches


@pytest.mark.parametrize("policy", CORRECTING)
@pytest.mark.parametrize("between", [0, 30])
def test_a_late_click_teaches_what_it_would_have_taught_at_once(open_shop, tmp_path, policy, between):
    late = open_shop(tmp_path / "late.db", policy=policy)
    prompt = open_shop(tmp_path / "prompt.db", policy=policy)
    slates = [items_at(4, 9, 2), items_at(9, 1, 12), items_at(0, 4, 7)]
    for shop in (late, prompt):
        play(shop, 25)
    shown = timed_out(late, *slates)
    for shop in (late, prompt):
        play(shop, between, seed=3)
    for slate, items, click in zip(shown, slates, (0, None, 1), strict=True):
        late.feedback(slate, click)
        prompt.feedback(show(prompt, items), click)
    assert states_differ(refitted(late), refitted(prompt), 1e-9) == ""
    stats = [shop.internals.click_stats for shop in (late, prompt)]
    assert stats[0].positions == stats[1].positions
    assert [late.describe()[count] for count in ("slates", "clicks", "corrected")] == [
        *(prompt.describe()[count] for count in ("slates", "clicks")), 2,
    ]  # fmt: skip


@pytest.mark.parametrize("policy", CORRECTING)
def test_corrections_come_to_the_same_however_the_log_is_replayed(open_shop, policy):
    shop = open_shop(policy=policy)
    slates = []
    for n in range(12):
        play(shop, 5, seed=n)
        slates += timed_out(shop, items_at(n, n + 3, n + 7))
        shop.recommend()  # so that there are shortcuts to follow
        if n % 3 == 2:
            assert shop.feedback(slates[n - 2], n % K).status == "corrected"
    shop.roll_back(40)
    play(shop, 5)
    assert shop.feedback(slates[1], 2).status == "corrected"
    logs.check_replays(shop, 17)
    logs.check_recommends_as_replayed(shop, 5)


def test_an_item_of_that_slate_alone_is_unseen_again(open_shop):
    """The search of the default policy must not find it twice."""
    shop = open_shop(policy="cascade-mixed")
    for n in range(12):
        shop.feedback(show(shop, items_at(n % 5, 5 + n % 3, 8)), None)  # so that unseen items are worth a try
    (slate,) = timed_out(shop, items_at(10, 11, 12))
    shop.recommend()
    shop.feedback(slate, 0)
    assert counts(shop)[0][10:] == [1, 0, 0]
    logs.check_recommends_as_replayed(shop, 40)
    assert all(len(set(shop.recommend().items)) == K for _ in range(40))


def test_groups_of_equal_counts_follow_a_correction(open_shop):
    """Without features the default policy keeps items of equal counts together, from 32 items on."""
    ids = [f"i{row}" for row in range(40)]
    shop = open_shop(policy="cascade-mixed", items=[Item(id) for id in ids])
    for n in range(60):
        shop.feedback(show(shop, [ids[n % 9], ids[9 + n % 7], ids[16 + n % 5]]), n % K)
        shop.recommend()
        (slate,) = timed_out(shop, [ids[20 + n % 20], ids[n % 20], ids[(n + 3) % 20]])
        shop.recommend()
        shop.feedback(slate, n % K)
        if n % 10 == 9:
            logs.check_recommends_as_replayed(shop, 12)


@pytest.mark.parametrize("policy", ["cascade-ts", "cascade-mixed"])
def test_what_was_rolled_back_is_not_taken_back_again(open_shop, policy):
    shop = open_shop(policy=policy)
    for n in range(6):
        shop.feedback(show(shop, items_at(n, n + 1, n + 2)), None)
    before, (slate,) = counts(shop), timed_out(shop, items_at(0, 1, 2))
    seq = shop.seq
    shop.roll_back(seq - 1)
    assert counts(shop) == before
    assert shop.feedback(slate, 0).status == "corrected"
    examined, hits = counts(shop)
    assert sum(examined) == sum(before[0]) + 1, "the click is learned, and nothing else"
    assert hits[0] == 1
    shop.roll_back(seq)
    logs.correct_unchecked(shop, seq, slate.items, [1])
    assert sum(counts(shop)[0]) == sum(before[0]) + 2, "what is known again can be taken back"


def test_events_in_force_follow_rollbacks_of_rollbacks():
    first = InForce()
    after = first.after_rollback(50, 120)
    assert [after.has(seq) for seq in (1, 50, 51, 119, 120, 121)] == [True, True, False, False, True, True]
    again = first.after_rollback(100, 130)
    assert [again.has(seq) for seq in (51, 100, 101, 125, 130)] == [True, True, False, False, True]
    third = after.after_rollback(125, 140)
    assert [third.has(seq) for seq in (50, 60, 121, 125, 126, 141)] == [True, False, True, True, False, True]


def test_a_correction_that_fits_no_slate_is_passed_over(open_shop):
    shop = open_shop(policy="cascade-mixed")
    play(shop, 10)
    before, skipped = counts(shop), lambda: shop.internals.click_stats.skipped
    wrong = [
        (4, [0], {}), (3, [], {}), (3, [2], {"examined": 1}), (3, [0], {"features": np.zeros(12).tobytes()}),
        (3, [0], {"context": np.zeros(1).tobytes()}), (3, [0], {"rows": [0, 1, 99]}),
    ]  # fmt: skip
    for n_items, clicks, more in wrong:
        logs.correct_unchecked(shop, 5, IDS[:n_items], clicks, **more)
    logs.append_unchecked(shop, "Correction", 5, 0.0, b"nonsense")
    assert counts(shop) == before
    assert (skipped(), shop.seq) == (7, 18)


@pytest.mark.parametrize("policy", CORRECTING)
def test_counts_never_fall_below_zero(open_shop, policy):
    """A file from elsewhere may correct slates that never were; its model is served all the same."""
    shop = open_shop(policy=policy)
    for n in range(20):
        logs.correct_unchecked(shop, 1, items_at(n, n + 1, n + 2), [0])
    examined, hits = counts(shop)
    assert all(0 <= clicked <= seen for seen, clicked in zip(examined, hits, strict=True))
    shop.snapshot()
    digest = shop.digest()
    shop.restart()
    assert shop.digest() == digest


# What the service answers


def test_a_late_click_is_corrected_once(open_shop):
    shop = open_shop()
    (slate,) = timed_out(shop, items_at(4, 5, 6))
    before = shop.describe()
    corrected = shop.feedback(slate, 1)
    assert (corrected.status, corrected.seq) == ("corrected", 3)
    after = shop.describe()
    facts = ("slates", "clicks", "corrected")
    assert [[described[fact] for fact in facts] for described in (before, after)] == [[1, 0, 0], [1, 1, 1]]
    examined, hits = counts(shop)
    assert (examined[4:7], hits[4:7]) == ([1, 1, 0], [0, 1, 0])
    assert shop.feedback(slate, 1) == corrected._replace(status="duplicate")
    check_refused(lambda: shop.feedback(slate, 0), "token", "conflict")
    assert shop.feedback(slate, None).status == "duplicate"
    assert shop.seq == 3
    assert shop.service.outcomes["shop"] == {"corrected": 1, "duplicate": 2, "conflict": 1}
    # The learning curve counts the click where it counted the slate.
    stats = shop.internals.click_stats
    assert [list(tier.values()) for tier in stats.tiers] == [[[1, 1]]] * 3
    assert (stats.first_clicks, stats.day_clicks, stats.positions) == (1, 1, [0, 1])
    _, no_click, click = shop.events()
    assert (no_click["kind"], no_click["click"]) == ("feedback", None)
    assert (click["kind"], click["corrects"], click["click"]) == ("correction", 2, 1)
    assert click["items"] == no_click["items"] == slate.items
    assert "timed_out" not in click
    assert shop.audit().equal


def test_late_clicks_of_one_batch_are_corrected(open_shop):
    shop = open_shop()
    slates = timed_out(shop, items_at(0, 1, 2), items_at(3, 4, 5), items_at(6, 7, 8))
    prompt = shop.recommend()
    outcomes = shop.feedback_batch(
        [
            (slates[0], 0), (prompt, 2), ("nonsense", 1), (slates[1], None),
            ClickReport(slates[2], clicks=[2, 0], examined=3), (slates[0], 1), (slates[0], 0),
        ]
    )  # fmt: skip
    assert [outcome.status for outcome in outcomes] == [
        "corrected", "accepted", "unknown", "duplicate", "corrected", "conflict", "duplicate",
    ]  # fmt: skip
    assert shop.describe()["clicks"] == 3
    assert shop.audit().equal


def test_a_policy_that_cannot_take_back_rejects_late_clicks(open_shop):
    shop = open_shop(policy="cascade-lin-ts")
    (slate,) = timed_out(shop, items_at(0, 1, 2))
    check_refused(lambda: shop.feedback(slate, 1), "token", "late")
    assert shop.service.outcomes["shop"] == {"late": 1}
    assert shop.feedback(slate, None).status == "duplicate"
    assert shop.seq == 2
    # And passes over corrections of a copied log.
    digest, state = shop.digest(), shop.state()["precision"]
    logs.correct_unchecked(shop, 2, slate.items, [1])
    assert (shop.state()["precision"] == state).all()
    assert (shop.describe()["clicks"], shop.digest() == digest) == (0, False)


def test_a_slate_with_features_of_its_own_is_not_corrected(open_shop):
    shop = open_shop(policy="cascade-mixed")
    slate = shop.recommend(candidates=IDS[:4], features=[[0.1, 0.2, 0.3, 0.4]] * 4)
    time_out(shop)
    check_refused(lambda: shop.feedback(slate, 0), "token", "late")


def test_replicas_correct_once_and_only_the_slate_that_timed_out(open_shop, postgresql_url):
    one, two = (open_shop(postgresql_url, policy="cascade-mixed") for _ in range(2))
    slates = [show(one, items_at(0, 1, 2)), show(one, items_at(3, 4, 5)), one.recommend(request_id="page")]
    # The other answers the same request with another slate.
    twin = two.recommend(request_id="page", candidates=["i1", "i2", "i4"])
    assert twin.items != slates[2].items
    time_out(one)
    assert two.feedback(slates[0], 0).status == "corrected"
    assert one.feedback(slates[0], 0).status == "duplicate"
    assert one.feedback(slates[1], 2).status == "corrected"
    for slate in (slates[1], twin):
        check_refused(lambda slate=slate: two.feedback(slate, 0), "token", "conflict")
    assert two.feedback(slates[2], 0).status == "corrected"
    for shop in (one, two):
        shop.run_background()
    assert one.digest() == two.digest() == one.audit().digest
    assert one.describe()["clicks"] == 3


def test_a_late_click_with_an_expired_token_is_rejected(open_shop):
    shop = open_shop(token_days=1)
    (slate,) = timed_out(shop, items_at(0, 1, 2))
    shop.service.clock.move(86_400)
    check_refused(lambda: shop.feedback(slate, 0), "token", "expired")


def test_a_store_that_fails_between_the_two_writes_loses_nothing(open_shop, monkeypatch):
    shop = open_shop()
    (slate,) = timed_out(shop, items_at(0, 1, 2))
    append, calls = shop.service.store.append, []

    def fail_at_second(*batch):
        calls.append(batch)
        if len(calls) == 2:
            raise OSError("the disk is full")
        return append(*batch)

    monkeypatch.setattr(shop.service.store, "append", fail_at_second)
    with pytest.raises(FirstclickError):
        shop.feedback(slate, 1)
    monkeypatch.undo()
    assert shop.seq == 2
    assert shop.feedback(slate, 1).status == "corrected", "sent again"


# The log


def test_corrections_survive_export_and_are_reproduced(open_shop):
    shop = open_shop(policy="cascade-mixed")
    for n in range(6):
        shop.feedback(shop.recommend(), n % K)
        first, _ = timed_out(shop, items_at(n, n + 1, n + 2), items_at(n + 3, n + 4, n + 5))
        shop.feedback(first, n % K)
    shop.snapshot()
    before, content = shop.describe(), b"".join(shop.export())
    assert (before["clicks"], before["corrected"]) == (12, 6)
    shop.service.import_model("copy", content)
    copy = shop.model("copy").describe()
    assert [copy[fact] for fact in ("digest", "clicks", "corrected")] == [before["digest"], 12, 6]
    assert b"".join(shop.export()) == content
    audit = logs.audit_of_store(shop)
    assert (audit.digest, audit.differing, audit.compared > 0) == (before["digest"], (), True)
    assert (logs.reproduce(shop).equal, logs.reproduce(shop).differing) == (18, 0)


def test_archived_slates_are_not_corrected(open_shop, tmp_path):
    shop = open_shop()
    old = timed_out(shop, items_at(0, 1, 2), items_at(3, 4, 5), items_at(6, 7, 8))
    assert shop.feedback(old[0], 0).status == "corrected"
    young = timed_out(shop, items_at(0, 1, 2), items_at(3, 4, 5))
    # Events 2 to 4 are the old slates, 5 corrects the first of them.
    logs.move_to_archive(shop, 6, tmp_path / "old")
    assert logs.audit_of_store(shop, tmp_path / "old").differing == ()
    # The store rejects what a process that has not followed yet accepts.
    issued = int(shop.events(1)[0]["issued"] * 1000)
    with pytest.raises(FirstclickError, match="archived a moment ago"):
        logs.correct_unchecked(shop, 3, old[1].items, [0], issued=issued)
    shop.restart()
    check_refused(lambda: shop.feedback(old[1], 0), "token", "expired")
    assert shop.feedback(young[0], 0).status == "corrected"
    assert shop.audit().equal
