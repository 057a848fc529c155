"""Slates without feedback: after their time they count as not clicked, once, and the log says so."""

import json
import logging
import time

import numpy as np
import pytest

from firstclick import InvalidInput
from firstclick.serve import Tuning, no_clicks
from firstclick.serve.config import load_settings
from firstclick.serve.dashboard.data import Views
from firstclick.serve.http.metrics import Metrics
from firstclick.serve.log.drawn import timed_out, with_time_out
from firstclick.serve.log.events import Recommended
from firstclick.serve.model.click_stats import ClickStats
from firstclick.serve.model.open_slates import OpenSlates
from firstclick.serve.model.reports import ENOUGH, HOUR, Reports
from firstclick.serve.startup import open_for
from firstclick.validation.duration import seconds_in
from firstclick.wire.errors import Unavailable
from tests.support.clock import Clock
from tests.support.shop import K

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
    # A field of a later version that happens to end with the same bytes.
    assert timed_out(bytes([99, len(end)]) + end) is None
    assert timed_out(b"\x0e\x08") is None


def test_without_a_time_slates_teach_nothing(open_shop, clock):
    shop = open_shop(clock=clock)
    shop.recommend()
    assert timed_out_after(shop, clock, 1e6) == 0
    assert facts(shop, "slates", "pending") == (0, 0)


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


# The setting


def test_settings_that_are_not_given_stay_and_outlive_a_restart(shop):
    shop.set_explore(0.5)
    shop.set_no_click_after(90)
    event = shop.events()[-1]
    assert (event["kind"], event["no_click_after"], "explore" in event) == ("settings", 90.0, False)
    shop.set_explore(0.0)
    shop.snapshot()
    shop.restart()
    assert facts(shop, "explore", "no_click_after") == (0.0, 90.0)
    assert shop.audit().equal


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
    shop.recommend()
    shop.restart()
    assert facts(shop, "recommended", "seq") == (8, seq + 1)


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


def test_reports_are_part_of_snapshots_and_digests(shop, clock):
    for n in range(4):
        shop.recommend()
        clock.move(61 * (n + 1))
        shop.run_background()
    clock.move(WAIT + 1)
    shop.run_background()
    digest, reports = shop.digest(), facts(shop, "recommended", "timed_out")
    assert reports == (4, 4)
    shop.snapshot()
    shop.restart()
    assert (shop.digest(), facts(shop, "recommended", "timed_out")) == (digest, reports)
    assert facts(shop, "restored_from") == (shop.seq,)
    shop.internals.reports.timed_out += 1
    assert shop.digest() != digest


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
