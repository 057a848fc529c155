"""Slates without feedback count as not clicked after their time; a late click takes its place, once."""

import json
import logging
import time

import numpy as np
import pytest

from firstclick import InvalidInput
from firstclick.errors import FirstclickError
from firstclick.serve import ClickReport, Item, Tuning, no_clicks
from firstclick.serve.config import load_settings
from firstclick.serve.dashboard.data import Views
from firstclick.serve.http.metrics import Metrics
from firstclick.serve.log.drawn import timed_out, with_time_out
from firstclick.serve.log.events import Recommended
from firstclick.serve.model.click_stats import ClickStats
from firstclick.serve.model.model import InForce
from firstclick.serve.model.open_slates import OpenSlates
from firstclick.serve.model.reports import ENOUGH, HOUR, Reports
from firstclick.serve.startup import open_for
from firstclick.testing import states_differ
from firstclick.validation.duration import seconds_in
from firstclick.wire.errors import Unavailable
from tests.support import logs
from tests.support.clock import Clock
from tests.support.policies import policies
from tests.support.refusals import check_refused
from tests.support.shop import IDS, K

WAIT = 1800.0


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def shop(open_shop, clock):
    return open_shop(clock=clock, no_click_after=WAIT)


@pytest.fixture
def replicas(open_shop, postgresql_url, clock):
    return [open_shop(postgresql_url, clock=clock, no_click_after=WAIT) for _ in range(2)]


def facts(shop, *names):
    described = shop.describe()
    return tuple(described[name] for name in names)


def timed_out_after(shop, clock, seconds):
    """Let time pass; return how many slates timed out."""
    (before,) = facts(shop, "timed_out")
    clock.move(seconds)
    shop.run_background()
    return facts(shop, "timed_out")[0] - before


def away(*batch):
    raise Unavailable("the disk is full")


# Timeouts


def test_a_slate_without_feedback_counts_as_not_clicked_after_its_time(shop, clock):
    slates = [shop.recommend(exclude=["i4"]) for _ in range(4)]
    # Sent again, a request is one slate.
    slates += [shop.recommend(request_id="page", exclude=["i4"]) for _ in range(3)][:1]
    shop.feedback(slates[1], 2)
    assert facts(shop, "pending") == (4,)
    assert timed_out_after(shop, clock, WAIT - 60) == 0
    assert timed_out_after(shop, clock, WAIT + 1) == 4
    assert facts(shop, "pending", "slates", "clicks", "timed_out") == (0, 5, 1, 4)
    assert shop.state()["examined"].sum() == 5 * K
    event = [event for event in shop.events() if event["kind"] == "feedback"][-1]
    assert (event["items"], event["click"], event["exclude"]) == (slates[4].items, None, ["i4"])
    assert event["timed_out"] == event["received"] == clock.time()
    assert timed_out_after(shop, clock, 2 * WAIT) == 0, "once"
    seq = shop.seq
    assert shop.feedback(slates[0], None).status == "duplicate"
    assert shop.feedback(slates[0], None, examined=1).status == "duplicate"
    assert shop.seq == seq


def test_a_field_that_resembles_a_timeout_is_none():
    end = with_time_out(b"", 1234)
    assert timed_out(end) == 1234
    # A longer field that happens to end with the same bytes.
    assert timed_out(bytes([99, len(end)]) + end) is None
    assert timed_out(b"\x0e\x08") is None


def test_timeouts_wait_while_feedback_waits_or_the_store_is_away(shop, monkeypatch, clock):
    shop.recommend()
    writer = shop.service.writer
    with monkeypatch.context() as patch:
        patch.setattr(writer, "_n_waiting", no_clicks.BUSY)
        assert timed_out_after(shop, clock, WAIT + 1) == 0
    with monkeypatch.context() as patch:
        patch.setattr(shop.service.store, "append", away)
        with pytest.raises(Unavailable):
            shop.run_background()
    assert timed_out_after(shop, clock, 0) == 1


def test_timeouts_are_written_in_small_batches(open_shop, monkeypatch, clock):
    tuning = Tuning(background_threads=False, timeouts_at_once=4)
    shop = open_shop(clock=clock, tuning=tuning, no_click_after=WAIT)
    writer, sizes = shop.service.writer, []
    submit = writer.submit
    monkeypatch.setattr(
        writer, "submit", lambda events, done: (sizes.append(len(events)), submit(events, done))
    )
    for _ in range(10):
        shop.recommend()
    assert timed_out_after(shop, clock, WAIT + 1) == 10
    assert [size for size in sizes if size > 1] == [4, 4, 2]


def test_a_slate_of_rows_that_the_log_has_lost_is_dropped(shop, clock):
    shop.internals.open.add(b"n" * 16, 1000, np.array([999], "<u4").tobytes())
    assert timed_out_after(shop, clock, 0) == 0
    assert facts(shop, "pending", "slates") == (0, 0)
    assert shop.audit().equal


def test_a_thread_does_it_by_itself(open_shop):
    shop = open_shop(no_click_after=1, tuning=Tuning(timeout_pause=0.02))
    shop.recommend()
    until = time.monotonic() + 20
    while facts(shop, "slates") == (0,) and time.monotonic() < until:
        time.sleep(0.02)
    assert facts(shop, "timed_out") == (1,)
    assert shop.audit().equal


def test_replicas_time_out_a_slate_once_and_not_if_one_has_its_feedback(replicas, clock):
    one, two = replicas
    clicked, silent = one.recommend(), one.recommend()
    same = one.recommend(request_id="page"), two.recommend(request_id="page")
    assert two.feedback(clicked, 1).status == "accepted"
    # The store knows before this process does.
    clock.move(WAIT + 1)
    assert one.service.no_clicks.look() == 2
    assert two.service.no_clicks.look() == 0, "the same page, timed out in the other"
    for shop in (one, two, one):
        shop.run_background()
    assert one.digest() == two.digest() == one.audit().digest
    assert facts(one, "slates", "clicks", "timed_out") == (3, 1, 2)
    for slate in (silent, *same):
        assert two.feedback(slate, None).status == "duplicate"


def test_a_flag_sets_it_at_the_first_start_and_changes_it_later(tmp_path):
    (tmp_path / "items.csv").write_text("id\na\nb\nc\n")
    given = {"catalog": str(tmp_path / "items.csv"), "store": str(tmp_path / "a.db"), "policy": "cascade-ts"}

    def start(**more):
        settings, origins = load_settings({**given, **more}, {})
        opened = open_for(settings, given=[name for name, origin in origins.items() if origin == "flag"])
        with opened.service as service:
            return service.describe("default")["no_click_after"], len(opened.notes)

    assert [start(no_click_after="30m"), start()] == [(1800.0, 0)] * 2
    assert [start(no_click_after="90s"), start(no_click_after="0")] == [(90.0, 1), (0.0, 1)]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90), ("30m", 1800), ("2h", 7200), ("1h30m", 5400), ("1.5 h", 5400), ("1d", 86400),
        (" 45 ", 45),
        *[(text, None) for text in ("", "soon", "30 min", "m30", "-5m", "5m!", "1e3", "nan", True, [1])],
    ],
)  # fmt: skip
def test_durations_are_read_or_refused(text, seconds):
    if seconds is not None:
        assert seconds_in(text, "older_than") == seconds
    else:
        with pytest.raises(InvalidInput, match="older_than must be"):
            seconds_in(text, "older_than")


# Memory


def test_pending_slates_are_bounded_and_the_oldest_go_first():
    slates = OpenSlates(most=3)
    for n in range(5):
        slates.add(bytes([n]), n, b"", excess=0.5)
    assert (len(slates), slates.lost, slates.excess) == (3, 2, 1.5)
    assert [slate.nonce for slate in slates.due(3, most=9)] == [b"\x02", b"\x03"]
    slates.answered(b"\x03", b"\x00")
    slates.add(b"\x04", 9, b"again", excess=0.25)
    assert (len(slates), slates.excess) == (2, 0.75)
    long = OpenSlates(most_bytes=10_000)
    for n in range(10):
        long.add(bytes([n]), n, b"", features=bytes(3000))
    assert (len(long), long.lost) == (3, 7)


def test_sums_of_many_excesses_end_at_zero():
    slates, draw = OpenSlates(), np.random.default_rng(1)
    for n, excess in enumerate(draw.random(1000).tolist()):
        slates.add(n.to_bytes(2, "big"), n, b"", excess=excess)
    slates.answered(*(n.to_bytes(2, "big") for n in range(1000)))
    assert slates.excess == 0.0


# How many were recommended


def test_recommended_slates_are_counted_in_the_log_once_a_minute(shop, clock, monkeypatch):
    for _ in range(6):
        shop.recommend()
    shop.run_background()
    assert facts(shop, "recommended") == (0,)
    clock.move(61)
    with monkeypatch.context() as patch:
        patch.setattr(shop.service.store, "append", away)
        with pytest.raises(Unavailable):
            shop.run_background()
    shop.recommend()
    clock.move(61)
    shop.run_background()
    event, seq = shop.events()[-1], shop.seq
    assert (event["kind"], event["process"], event["slates"]) == (
        "recommended",
        shop.service.process,
        {0: 7},
    )
    assert json.loads(json.dumps(event))
    clock.move(200)
    shop.run_background()
    assert shop.seq == seq, "none since"
    digest = shop.digest()
    shop.snapshot()
    shop.internals.reports.timed_out += 1
    assert shop.digest() != digest, "reports are part of the digest"
    shop.recommend()
    shop.restart()
    assert facts(shop, "recommended", "seq", "restored_from") == (8, seq + 1, seq)


def test_the_log_knows_how_many_processes_recommend(replicas, clock):
    one, two = replicas
    model, now = one.internals, clock.time()
    assert model.live_replicas(now, one.service.process) == 1
    for shop in replicas:
        shop.recommend()
    clock.move(61)
    for shop in (one, two, one):
        shop.run_background()
    assert model.live_replicas(now + 61, one.service.process) == 2
    assert model.live_replicas(now + 61, "a third") == 3, "which the log does not know yet"
    assert model.live_replicas(now + 61 + 151, one.service.process) == 1, "nothing of the other since"


def test_a_process_that_spends_from_the_guardrail_is_in_the_log_at_once(shop, clock):
    model = shop.internals
    model.open.add(b"n" * 16, int(clock.time() * 1000), bytes(4), excess=0.5)
    for seconds in (0, 30):
        shop.recommend()
        clock.move(seconds)
        shop.run_background()
        assert list(model.reports.seen) == [shop.service.process]
        assert facts(shop, "recommended") == (1,), "and then once a minute"


def test_processes_that_are_gone_are_forgotten():
    reports = Reports()
    for n in range(100):
        reports.add(1e9 + 60 * n, Recommended(f"p{n}", 0.0, {0: 1}))
    assert (len(reports.seen), reports.recommended, len(reports.by_hour)) == (60, 100, 3)
    for n in range(100):
        reports.add(1e9 + HOUR * n, Recommended("p", 0.0, {0: 1}))
    assert len(reports.by_hour) == 48


# Warnings


def stats_of(clicks, at):
    stats = ClickStats()
    stats.add(np.full(len(clicks), at), np.array(clicks))
    return stats


def test_the_share_of_slates_without_feedback_is_known_after_some_hours():
    reports, begin = Reports(), 500_000 * HOUR
    stats = stats_of([-1] * 300 + [0] * 100, begin + 1.5 * HOUR)
    for hours in (0.5, 1.5, 2.5):
        reports.add(begin + hours * HOUR, Recommended("p", 0.0, {0: 300, 1: 200}))
    assert reports.unreported(stats, begin + 2.5 * HOUR) is None, "the second hour may still be reported"
    assert reports.unreported(stats, begin + 3.5 * HOUR) == pytest.approx(0.2)
    assert reports.warnings(stats, begin + 3.5 * HOUR) == []
    assert reports.unreported(stats, begin + 60 * HOUR) is None, "long ago"


def test_a_model_that_gets_feedback_of_clicks_alone_has_a_warning():
    reports, begin = Reports(), 500_000 * HOUR
    few = stats_of([0] * 100, begin + 1.5 * HOUR)
    for hours in (0.5, 1.5):
        reports.add(begin + hours * HOUR, Recommended("p", 0.0, {0: 1000}))
    (warning,) = reports.warnings(few, begin + 3.5 * HOUR)
    assert "of 1,000 slates" in warning
    assert "no_click_after" in warning
    (early,) = Reports().warnings(stats_of([0] * ENOUGH, begin), begin)
    assert early.startswith("100% of the slates")
    assert Reports().warnings(stats_of([0] * (ENOUGH - 1), begin), begin) == [], "too few slates"
    assert Reports().warnings(stats_of([0] * 180 + [-1] * 20, begin), begin) == []


def test_the_warning_is_shown_everywhere_and_logged_once(shop, caplog):
    slates = [shop.recommend() for _ in range(ENOUGH)]
    shop.feedback_batch([(slate, 0) for slate in slates])
    with caplog.at_level(logging.WARNING, "firstclick.serve"):
        shop.run_background()
        shop.run_background()
    assert [record.message[:25] for record in caplog.records] == ["shop: 100% of the slates "]
    notes = shop.describe()["notes"]
    assert Views(shop.service, "full").of("shop").outcomes.warnings == notes
    assert notes[0].startswith("100% of the slates")


def test_metrics_count_pending_slates_and_timeouts(shop, clock):
    for _ in range(3):
        shop.recommend()
    clock.move(61)
    shop.run_background()
    clock.move(WAIT + 1)
    shop.run_background()
    shop.recommend()
    lines = Metrics(shop.service).text().decode().splitlines()
    metrics = dict(line.rsplit(" ", 1) for line in lines if line[0] != "#")
    for name, n in {
        "recommended_in_log_total": 3, "reported_total": 3, "timed_out_total": 3, "open_slates": 1,
        "open_slates_lost_total": 0,
    }.items():  # fmt: skip
        assert float(metrics[f'firstclick_{name}{{model="shop"}}']) == n


CORRECTING = policies(["cascade-ts", "cascade-ucb1", "cascade-mixed"])


@pytest.fixture
def open_correcting(open_shop):
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


def timed_out_slates(shop, *slates):
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
def test_a_late_click_teaches_what_it_would_have_taught_at_once(open_correcting, tmp_path, policy, between):
    late = open_correcting(tmp_path / "late.db", policy=policy)
    prompt = open_correcting(tmp_path / "prompt.db", policy=policy)
    slates = [items_at(4, 9, 2), items_at(9, 1, 12), items_at(0, 4, 7)]
    for shop in (late, prompt):
        play(shop, 25)
    shown = timed_out_slates(late, *slates)
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
def test_corrections_come_to_the_same_however_the_log_is_replayed(open_correcting, policy):
    shop = open_correcting(policy=policy)
    slates = []
    for n in range(12):
        play(shop, 5, seed=n)
        slates += timed_out_slates(shop, items_at(n, n + 3, n + 7))
        shop.recommend()  # so that there are shortcuts to follow
        if n % 3 == 2:
            assert shop.feedback(slates[n - 2], n % K).status == "corrected"
    shop.roll_back(40)
    play(shop, 5)
    assert shop.feedback(slates[1], 2).status == "corrected"
    logs.check_replays(shop, 17)
    logs.check_recommends_as_replayed(shop, 5)


def test_an_item_of_that_slate_alone_is_unseen_again(open_correcting):
    """The search of the default policy must not find it twice."""
    shop = open_correcting(policy="cascade-mixed")
    for n in range(12):
        shop.feedback(show(shop, items_at(n % 5, 5 + n % 3, 8)), None)  # so that unseen items are worth a try
    (slate,) = timed_out_slates(shop, items_at(10, 11, 12))
    shop.recommend()
    shop.feedback(slate, 0)
    assert counts(shop)[0][10:] == [1, 0, 0]
    logs.check_recommends_as_replayed(shop, 40)
    assert all(len(set(shop.recommend().items)) == K for _ in range(40))


def test_groups_of_equal_counts_follow_a_correction(open_correcting):
    """Without features the default policy keeps items of equal counts together, from 32 items on."""
    ids = [f"i{row}" for row in range(40)]
    shop = open_correcting(policy="cascade-mixed", items=[Item(id) for id in ids])
    for n in range(60):
        shop.feedback(show(shop, [ids[n % 9], ids[9 + n % 7], ids[16 + n % 5]]), n % K)
        shop.recommend()
        (slate,) = timed_out_slates(shop, [ids[20 + n % 20], ids[n % 20], ids[(n + 3) % 20]])
        shop.recommend()
        shop.feedback(slate, n % K)
        if n % 10 == 9:
            logs.check_recommends_as_replayed(shop, 12)


@pytest.mark.parametrize("policy", ["cascade-ts", "cascade-mixed"])
def test_what_was_rolled_back_is_not_taken_back_again(open_correcting, policy):
    shop = open_correcting(policy=policy)
    for n in range(6):
        shop.feedback(show(shop, items_at(n, n + 1, n + 2)), None)
    before, (slate,) = counts(shop), timed_out_slates(shop, items_at(0, 1, 2))
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


def test_a_correction_that_fits_no_slate_is_passed_over(open_correcting):
    shop = open_correcting(policy="cascade-mixed")
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
def test_counts_never_fall_below_zero(open_correcting, policy):
    """A file from elsewhere may correct slates that never were; its model is served all the same."""
    shop = open_correcting(policy=policy)
    for n in range(20):
        logs.correct_unchecked(shop, 1, items_at(n, n + 1, n + 2), [0])
    examined, hits = counts(shop)
    assert all(0 <= clicked <= seen for seen, clicked in zip(examined, hits, strict=True))
    shop.snapshot()
    digest = shop.digest()
    shop.restart()
    assert shop.digest() == digest


# What the service answers


def test_a_late_click_is_corrected_once(open_correcting):
    shop = open_correcting()
    (slate,) = timed_out_slates(shop, items_at(4, 5, 6))
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


def test_late_clicks_of_one_batch_are_corrected(open_correcting):
    shop = open_correcting()
    slates = timed_out_slates(shop, items_at(0, 1, 2), items_at(3, 4, 5), items_at(6, 7, 8))
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


def test_a_policy_that_cannot_take_back_rejects_late_clicks(open_correcting):
    shop = open_correcting(policy="cascade-lin-ts")
    (slate,) = timed_out_slates(shop, items_at(0, 1, 2))
    check_refused(lambda: shop.feedback(slate, 1), "token", "late")
    assert shop.service.outcomes["shop"] == {"late": 1}
    assert shop.feedback(slate, None).status == "duplicate"
    assert shop.seq == 2
    # And passes over corrections of a copied log.
    digest, state = shop.digest(), shop.state()["precision"]
    logs.correct_unchecked(shop, 2, slate.items, [1])
    assert (shop.state()["precision"] == state).all()
    assert (shop.describe()["clicks"], shop.digest() == digest) == (0, False)


def test_a_slate_with_features_of_its_own_is_not_corrected(open_correcting):
    shop = open_correcting(policy="cascade-mixed")
    slate = shop.recommend(candidates=IDS[:4], features=[[0.1, 0.2, 0.3, 0.4]] * 4)
    time_out(shop)
    check_refused(lambda: shop.feedback(slate, 0), "token", "late")


def test_replicas_correct_once_and_only_the_slate_that_timed_out(open_correcting, postgresql_url):
    one, two = (open_correcting(postgresql_url, policy="cascade-mixed") for _ in range(2))
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


def test_a_store_that_fails_between_the_two_writes_loses_nothing(open_correcting, monkeypatch):
    shop = open_correcting()
    (slate,) = timed_out_slates(shop, items_at(0, 1, 2))
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


def test_archived_slates_are_not_corrected(open_correcting, tmp_path):
    shop = open_correcting()
    old = timed_out_slates(shop, items_at(0, 1, 2), items_at(3, 4, 5), items_at(6, 7, 8))
    assert shop.feedback(old[0], 0).status == "corrected"
    young = timed_out_slates(shop, items_at(0, 1, 2), items_at(3, 4, 5))
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
