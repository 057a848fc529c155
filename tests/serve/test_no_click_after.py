"""Slates that nobody reports: after their time they count as no click, once, and the log says so."""

import json
import logging
import time

import numpy as np
import pytest

from firstclick.errors import InvalidInput
from firstclick.serve import Tuning, no_clicks
from firstclick.serve.config import load_settings
from firstclick.serve.dashboard.data import Views
from firstclick.serve.http.metrics import Metrics
from firstclick.serve.log.drawn import timed_out, with_time_out
from firstclick.serve.log.events import Kind, Recommended, Words, as_json
from firstclick.serve.model.click_stats import ClickStats
from firstclick.serve.model.model import Model
from firstclick.serve.model.open_slates import OpenSlates
from firstclick.serve.model.reports import ENOUGH, HOUR, Reports
from firstclick.serve.startup import open_for
from firstclick.validation.duration import seconds_in
from firstclick.wire.errors import Malformed, Unavailable
from tests.support import seam
from tests.support.clock import Clock
from tests.support.made_log import K, made_items
from tests.support.stores import log_of

HALF_AN_HOUR = 1800.0


@pytest.fixture
def place(tmp_path):
    return str(tmp_path / "shop.db")


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture
def service(place, clock):
    with shop(place, clock) as service:
        yield service


def shop(place, clock, wait=HALF_AN_HOUR, policy="cascade-ts", tuning=seam.BY_HAND):
    service = seam.open_by_hand(place, clock, tuning=tuning)
    if "shop" not in service.names():
        service.create("shop", policy=policy, k=K, items=made_items(), seed=5, no_click_after=wait)
    return service


def timed_out_after(service, clock, seconds):
    """Let time pass; return how many slates timed out."""
    before = service.describe("shop")["timed_out"]
    clock.move(seconds)
    service.run_background()
    return service.describe("shop")["timed_out"] - before


# Giving up


def test_a_slate_that_nobody_reports_counts_as_no_click_after_its_time(service, clock):
    model = service.model("shop")
    slates = [service.recommend("shop") for _ in range(5)]
    service.feedback("shop", slates[1], 2)
    assert len(model.open) == 4
    assert timed_out_after(service, clock, HALF_AN_HOUR - 60) == 0
    assert timed_out_after(service, clock, HALF_AN_HOUR + 1) == 4
    assert len(model.open) == 0
    assert (model.click_stats.slates, model.click_stats.clicks, model.reports.timed_out) == (5, 1, 4)
    assert model.engine.state.examined.sum() == 5 * K, "all of a page without a click was examined"
    assert timed_out_after(service, clock, 2 * HALF_AN_HOUR) == 0, "once"


def test_the_event_is_that_of_the_slate_and_tells_when_it_was_given_up(service, clock):
    slate = service.recommend("shop", exclude=["i3"])
    token = service.keys.read(slate.token, 1, days=7)
    clock.move(HALF_AN_HOUR + 1)
    service.run_background()
    event = next(event for event in log_of(service.store, 1) if event.kind == Kind.FEEDBACK)
    assert event.nonce == token.nonce
    told = as_json(event, Words(service.model("shop").catalog.items))
    assert (told["items"], told["click"], told["exclude"]) == (slate.items, None, ["i3"])
    assert told["timed_out"] == clock.time()
    assert told["received"] == told["timed_out"]


def test_no_time_was_given_up_where_a_field_only_looks_so():
    assert timed_out(with_time_out(b"", 1234)) == 1234
    # A field of a later version that happens to end with the same bytes.
    end = with_time_out(b"", 1234)
    assert timed_out(bytes([99, len(end)]) + end) is None
    assert timed_out(b"\x0e\x08") is None


def test_without_a_time_slates_teach_nothing(place, clock):
    with shop(place, clock, wait=0) as service:
        service.recommend("shop")
        assert timed_out_after(service, clock, 1e6) == 0
        assert service.model("shop").click_stats.slates == 0
        assert len(service.model("shop").open) == 0


def test_a_slate_that_is_reported_as_no_click_later_is_a_duplicate(service, clock):
    slate = service.recommend("shop")
    clock.move(HALF_AN_HOUR + 1)
    service.run_background()
    seq = seam.model(service, "shop").seq
    assert service.feedback("shop", slate, None).status == "duplicate"
    assert service.feedback("shop", slate, None, examined=1).status == "duplicate"
    assert seam.model(service, "shop").seq == seq


def test_what_a_crash_loses_teaches_nothing(place, clock):
    with shop(place, clock) as first:
        slate = first.recommend("shop")
    with shop(place, clock) as second:
        assert timed_out_after(second, clock, HALF_AN_HOUR + 1) == 0
        assert second.feedback("shop", slate, 1).status == "accepted"


def test_a_request_that_is_asked_again_is_one_slate(service, clock):
    for _ in range(3):
        service.recommend("shop", request_id="page 1")
    assert len(service.model("shop").open) == 1
    assert timed_out_after(service, clock, HALF_AN_HOUR + 1) == 1


def test_feedback_comes_first(service, monkeypatch, clock):
    service.recommend("shop")
    monkeypatch.setattr(service.writer, "_n_waiting", no_clicks.BUSY)
    assert timed_out_after(service, clock, HALF_AN_HOUR + 1) == 0, "while much is waiting to be written"
    monkeypatch.setattr(service.writer, "_n_waiting", 0)
    assert timed_out_after(service, clock, HALF_AN_HOUR + 1) == 1


def test_batches_are_small(place, monkeypatch, clock):
    service = shop(place, clock, tuning=Tuning(background_threads=False, timeouts_at_once=4))
    sizes = []
    submit = service.writer.submit
    monkeypatch.setattr(
        service.writer, "submit", lambda events, done: (sizes.append(len(events)), submit(events, done))
    )
    for _ in range(10):
        service.recommend("shop")
    assert timed_out_after(service, clock, HALF_AN_HOUR + 1) == 10
    assert [size for size in sizes if size > 1] == [4, 4, 2]
    service.close()


def test_slates_wait_while_the_store_is_away(service, monkeypatch, clock):
    service.recommend("shop")

    def away(*sent):
        raise Unavailable("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(service.store, "append", away)
        clock.move(HALF_AN_HOUR + 1)
        with pytest.raises(Unavailable):
            service.run_background()
    assert timed_out_after(service, clock, 0) == 1


def test_a_slate_of_rows_that_the_log_has_lost_is_dropped(service, clock):
    model = service.model("shop")
    model.open.add(b"n" * 16, 1000, np.array([999], "<u4").tobytes())
    assert timed_out_after(service, clock, 0) == 0
    assert (len(model.open), model.click_stats.skipped) == (0, 0)


def test_the_thread_does_it_by_itself(place):
    with shop(place, time, wait=1, tuning=Tuning(timeout_pause=0.02)) as service:
        service.recommend("shop")
        until = time.monotonic() + 20
        while service.model("shop").click_stats.slates == 0 and time.monotonic() < until:
            time.sleep(0.02)
        assert service.model("shop").reports.timed_out == 1
        assert service.audit("shop").equal


def test_replicas_give_up_a_slate_once_and_not_if_another_heard_of_it(postgresql_url, clock):
    with shop(postgresql_url, clock) as one, seam.open_by_hand(postgresql_url, clock) as two:
        clicked, silent = one.recommend("shop"), one.recommend("shop")
        same = one.recommend("shop", request_id="page"), two.recommend("shop", request_id="page")
        assert two.feedback("shop", clicked, 1).status == "accepted"
        # Before this process hears of it the store says so.
        clock.move(HALF_AN_HOUR + 1)
        assert one.no_clicks.look() == 2
        assert two.no_clicks.look() == 0, "the same page, given up by the other"
        one.run_background()
        two.run_background()
        models = one.model("shop"), two.model("shop")
        assert {model.digest() for model in models} == {one.audit("shop").digest}
        assert (models[0].click_stats.slates, models[0].click_stats.clicks) == (3, 1)
        assert two.feedback("shop", silent, None).status == "duplicate"
        assert {two.feedback("shop", slate, None).status for slate in same} == {"duplicate"}


# The setting


def test_the_time_is_in_the_log_and_can_be_changed(place, clock):
    with shop(place, clock, wait=0) as service:
        service.set_explore("shop", 0.5)
        service.set_no_click_after("shop", 90)
        model = service.model("shop")
        assert (model.explorer.share, model.no_click_after) == (0.5, 90.0)
        told = as_json(log_of(service.store, 1)[-1], Words([]))
        assert (told["kind"], told["no_click_after"]) == ("settings", 90.0)
        assert "explore" not in told
        service.set_explore("shop", 0.0)
        assert model.no_click_after == 90.0, "what is not said stays"
        digest = service.audit("shop").digest
        service.maintenance.snapshot(model)
        service.recommend("shop")
        service.set_no_click_after("shop", 0)
        assert timed_out_after(service, clock, 1e6) == 0
        service.set_no_click_after("shop", 90)
        assert digest != service.audit("shop").digest
    with seam.open_by_hand(place, clock) as again:
        assert again.model("shop").no_click_after == 90.0
        assert again.audit("shop").equal


def test_the_flag_sets_it_at_the_first_start_and_changes_it_later(tmp_path):
    (tmp_path / "items.csv").write_text("id\na\nb\nc\n")
    given = {"catalog": str(tmp_path / "items.csv"), "store": str(tmp_path / "a.db"), "policy": "cascade-ts"}

    def served(**more):
        settings, origins = load_settings({**given, **more}, {})
        opened = open_for(settings, given=[name for name, origin in origins.items() if origin == "flag"])
        with opened.service as service:
            return service.model("default").no_click_after, opened.notes

    assert served(no_click_after="30m") == (1800.0, [])
    assert served() == (1800.0, [])
    wait, notes = served(no_click_after="90s")
    assert wait == 90.0
    assert notes == ["slates of model 'default' that nobody reports within 90 s have no click from now on"]
    assert served(no_click_after="0")[1] == [
        "slates of model 'default' that nobody reports teach nothing from now on"
    ]


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("30m", 1800), ("2h", 7200), ("1h30m", 5400), ("1.5 h", 5400), ("1d", 86400), (" 45 ", 45)],
)
def test_durations_are_read(text, seconds):
    assert seconds_in(text, "older_than") == seconds


@pytest.mark.parametrize("text", ["", "soon", "30 min", "m30", "-5m", "5m!", "1e3", "nan", True, None, [1]])
def test_what_is_no_duration_is_refused(text):
    with pytest.raises(
        InvalidInput, match="older_than must be a number of seconds, or a duration such as 90s"
    ):
        seconds_in(text, "older_than")


@pytest.mark.parametrize("wait", [0.5, -1, "31d", float("inf")])
def test_a_time_that_makes_no_sense_is_refused(service, wait):
    with pytest.raises(Malformed, match="no_click_after must be"):
        service.set_no_click_after("shop", wait)
    with pytest.raises(InvalidInput, match=r"serve: --no-click-after must be"):
        load_settings({"no_click_after": str(wait)}, {})


def test_nothing_to_set_is_refused(service):
    with pytest.raises(Malformed, match="explore must be given, or no_click_after"):
        service.change_settings("shop")


# Memory


def test_open_slates_are_bounded_and_the_oldest_go_first():
    slates = OpenSlates(most=3)
    for n in range(5):
        slates.add(bytes([n]), n, b"", excess=0.5)
    assert (len(slates), slates.lost, slates.excess) == (3, 2, 1.5)
    assert [slate.nonce for slate in slates.due(3, most=9)] == [b"\x02", b"\x03"]
    slates.answered(b"\x03", b"\x00")
    slates.add(b"\x04", 9, b"again", excess=0.25)
    assert (len(slates), slates.excess) == (2, 0.75)
    slates.answered(b"\x02", b"\x04")
    assert (len(slates), slates.excess) == (0, 0.0)


def test_long_slates_count_by_their_bytes():
    slates = OpenSlates(most_bytes=10_000)
    for n in range(10):
        slates.add(bytes([n]), n, b"", features=bytes(3000))
    assert (len(slates), slates.lost) == (3, 7)


def test_sums_of_many_excesses_end_at_zero():
    slates, draw = OpenSlates(), np.random.default_rng(1)
    for n, excess in enumerate(draw.random(1000).tolist()):
        slates.add(n.to_bytes(2, "big"), n, b"", excess=excess)
    slates.answered(*(n.to_bytes(2, "big") for n in range(1000)))
    assert slates.excess == 0.0


# How many were recommended


def test_the_log_is_told_how_many_slates_were_recommended_once_a_minute(service, clock):
    model = service.model("shop")
    for _ in range(7):
        service.recommend("shop")
    service.run_background()
    assert model.reports.recommended == 0, "not before a minute has passed"
    clock.move(61)
    service.run_background()
    assert model.reports.by_arm == {0: 7}
    seq = model.seq
    clock.move(200)
    service.run_background()
    assert model.seq == seq, "none since"
    service.recommend("shop")
    clock.move(61)
    service.run_background()
    assert (model.reports.recommended, model.seq) == (8, seq + 1)
    told = as_json(log_of(service.store, 1)[-1], Words([]))
    assert (told["kind"], told["process"], told["slates"]) == ("recommended", service.process, {0: 1})
    assert json.loads(json.dumps(told))
    assert model.describe()["recommended"] == 8


def test_what_was_recommended_last_is_told_at_the_end(place, clock):
    with shop(place, clock) as service:
        service.recommend("shop")
        clock.move(61)
        service.run_background()
        service.recommend("shop")
    with seam.open_by_hand(place, clock) as again:
        assert again.model("shop").reports.recommended == 2


def test_counts_survive_a_store_that_is_away(service, monkeypatch, clock):
    service.recommend("shop")

    def away(*sent):
        raise Unavailable("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr(service.store, "append", away)
        clock.move(61)
        with pytest.raises(Unavailable):
            service.run_background()
    service.recommend("shop")
    clock.move(61)
    service.run_background()
    assert service.model("shop").reports.by_arm == {0: 2}


def test_the_log_knows_how_many_processes_recommend(postgresql_url, clock):
    with shop(postgresql_url, clock) as one, seam.open_by_hand(postgresql_url, clock) as two:
        now = clock.time()
        assert one.model("shop").live_replicas(now, one.process) == 1
        for service in (one, two):
            service.recommend("shop")
        clock.move(61)
        for service in (one, two, one):
            service.run_background()
        model = one.model("shop")
        assert model.live_replicas(now + 61, one.process) == 2
        assert model.live_replicas(now + 61, "a third one") == 3, "which the log does not know yet"
        assert model.live_replicas(now + 61 + 151, one.process) == 1, "nothing was heard of the other"


def test_a_process_that_spends_from_the_floor_is_told_at_once(service, clock):
    model = service.model("shop")
    model.open.add(b"n" * 16, int(clock.time() * 1000), bytes(4), excess=0.5)
    service.recommend("shop")
    service.run_background()
    assert list(model.reports.seen) == [service.process]
    service.recommend("shop")
    clock.move(30)
    service.run_background()
    assert model.reports.recommended == 1, "and then once a minute"


def test_reports_are_part_of_snapshots_and_digests(service, clock):
    for n in range(4):
        service.recommend("shop")
        clock.move(61 * (n + 1))
        service.run_background()
    clock.move(HALF_AN_HOUR + 1)
    service.run_background()
    model = service.model("shop")
    again = Model.restored(1, "shop", model.snapshot()[1], model.created)
    assert again.reports.as_json() == model.reports.as_json()
    assert again.digest() == model.digest() == service.audit("shop").digest
    again.reports.timed_out += 1
    assert again.digest() != model.digest()


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


def test_the_share_of_slates_that_nobody_reports_is_known_after_some_hours():
    reports, begin = Reports(), 500_000 * HOUR
    stats = stats_of([-1] * 300 + [0] * 100, begin + 1.5 * HOUR)
    for hours in (0.5, 1.5, 2.5):
        reports.add(begin + hours * HOUR, Recommended("p", 0.0, {0: 300, 1: 200}))
    assert reports.unreported(stats, begin + 2.5 * HOUR) is None, "the second hour may still be reported"
    assert reports.unreported(stats, begin + 3.5 * HOUR) == pytest.approx(0.2)
    assert reports.warnings(stats, begin + 3.5 * HOUR) == []
    assert reports.unreported(stats, begin + 60 * HOUR) is None, "long ago"


def test_a_model_that_hears_of_clicks_alone_is_warned_of():
    reports, begin = Reports(), 500_000 * HOUR
    few = stats_of([0] * 100, begin + 1.5 * HOUR)
    for hours in (0.5, 1.5):
        reports.add(begin + hours * HOUR, Recommended("p", 0.0, {0: 1000}))
    (warning,) = reports.warnings(few, begin + 3.5 * HOUR)
    assert warning.startswith(
        "of 1,000 slates recommended lately, 100 were reported. Learning from clicks alone"
    )
    assert "no_click_after" in warning
    (early,) = Reports().warnings(stats_of([0] * ENOUGH, begin), begin)
    assert early.startswith("100% of the slates reported lately had a click.")
    assert Reports().warnings(stats_of([0] * (ENOUGH - 1), begin), begin) == [], "too few to tell"
    assert Reports().warnings(stats_of([0] * 180 + [-1] * 20, begin), begin) == []


def test_the_warning_is_told_everywhere_and_logged_once(service, caplog):
    tokens = [service.recommend("shop").token for _ in range(ENOUGH)]
    service.feedback_batch("shop", [(token, 0) for token in tokens])
    with caplog.at_level(logging.WARNING, "firstclick.serve"):
        service.run_background()
        service.run_background()
    assert [record.message[:40] for record in caplog.records] == ["shop: 100% of the slates reported lately"]
    view = Views(service, "full").of("shop")
    assert view.outcomes.warnings == service.model("shop").describe()["notes"]
    assert view.outcomes.warnings[0].startswith("100% of the slates")


def test_metrics_tell_what_is_open_and_what_was_given_up(service, clock):
    for _ in range(3):
        service.recommend("shop")
    clock.move(61)
    service.run_background()
    clock.move(HALF_AN_HOUR + 1)
    service.run_background()
    service.recommend("shop")
    told = dict(
        line.rsplit(" ", 1) for line in Metrics(service).text().decode().splitlines() if line[0] != "#"
    )
    found = {
        name: float(told[f'firstclick_{name}{{model="shop"}}'])
        for name in (
            "recommended_in_log_total", "reported_total", "timed_out_total", "open_slates",
            "open_slates_lost_total",
        )
    }  # fmt: skip
    assert found == {
        "recommended_in_log_total": 3, "reported_total": 3, "timed_out_total": 3, "open_slates": 1,
        "open_slates_lost_total": 0,
    }  # fmt: skip
