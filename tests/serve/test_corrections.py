"""A click on a slate that timed out takes the place of no click: once, and exactly."""

import time
from io import BytesIO

import numpy as np
import pytest

from firstclick.serve.log.drawn import with_time_out
from firstclick.serve.log.events import Correction, Kind, NewEvent, Words, as_json, full_payload, packed
from firstclick.serve.log.token import nonce_of_correction
from firstclick.serve.model.archive import ArchivedLog, archive, opened_archives
from firstclick.serve.model.audit import audit_stored
from firstclick.serve.model.export import export_model
from firstclick.serve.model.model import InForce, Model
from firstclick.serve.model.slates import audit_slates
from firstclick.serve.service import open_service
from firstclick.serve.store import open_store
from firstclick.testing import states_differ
from firstclick.wire.errors import Conflict, Expired, Late, Refused, Unavailable
from firstclick.wire.feedback import ClickReport
from tests.support import seam
from tests.support.made_log import K, Log, bare, made_items
from tests.support.policies import policies
from tests.support.stores import log_of

WAIT = 60.0
CORRECTING = policies(["cascade-ts", "cascade-ucb1", "cascade-mixed"])


@pytest.fixture
def place(tmp_path):
    return str(tmp_path / "shop.db")


@pytest.fixture
def service(place):
    with shop(place) as service:
        yield service


def shop(place, policy="cascade-ts"):
    service = open_service(place)
    if "shop" not in service.names():
        service.create("shop", policy=policy, k=K, items=made_items(), seed=5, no_click_after=WAIT)
    return service


def timed_out(service, n=1, **asked):
    """Slates that nobody reported, and that the log has as ones without a click."""
    slates = [service.recommend("shop", **asked) for _ in range(n)]
    assert service.no_clicks._give_up(service.model("shop"), time.time() + WAIT + 1) == n
    return slates


def counts(model):
    state = model.engine.state
    return state.examined.astype(int).tolist(), state.hits.astype(int).tolist()


# What it teaches


class Corrected(Log):
    """A log of slates that time out, and of late clicks."""

    def time_out(self, rows):
        given_up = with_time_out(b"", 999_000)
        payload = full_payload((), 999, np.array(rows, "<u4").tobytes(), fields=given_up)
        self._apply(self._add(Kind.FEEDBACK, payload))
        return len(self.events)

    def correct(self, seq, rows, clicks, **said):
        payload = full_payload(clicks, 999, np.array(rows, "<u4").tobytes(), **said)
        self.change(Correction(seq, 999.0, payload))


@pytest.mark.parametrize("policy", CORRECTING)
@pytest.mark.parametrize("between", [0, 30])
def test_a_late_click_teaches_what_it_would_have_taught_at_once(policy, between):
    late, prompt = Corrected(policy), Corrected(policy)
    slates = [[4, 9, 2], [9, 1, 12], [0, 4, 7]]
    for log in (late, prompt):
        log.play(25)
    given_up = [late.time_out(rows) for rows in slates]
    draw = np.random.default_rng(3)
    for _ in range(between):
        rows, click = draw.permutation(13)[:K].tolist(), int(draw.integers(0, K))
        for log in (late, prompt):
            log.feedback(rows, click)
    late.correct(given_up[0], slates[0], [0])
    late.correct(given_up[2], slates[2], [1])
    prompt.feedback(slates[0], 0)
    prompt.feedback(slates[1], None)
    prompt.feedback(slates[2], 1)
    found, wanted = (
        log.model.engine.policy.refitted(
            type(log.model.engine.state)(*(array.copy() for array in log.model.engine.state)),
            log.model.engine.arrays_to_learn(),
        )
        for log in (late, prompt)
    )
    assert states_differ(found, wanted, 1e-9) == ""
    stats = late.model.click_stats, prompt.model.click_stats
    assert next((one.slates, one.clicks, one.positions) for one in stats) == (
        stats[1].slates, stats[1].clicks, stats[1].positions,
    )  # fmt: skip


@pytest.mark.parametrize("policy", CORRECTING)
def test_however_it_is_folded_it_is_the_same(policy):
    log = Corrected(policy)
    seqs = []
    for n in range(12):
        log.play(5, seed=n)
        seqs.append(log.time_out([n, (n + 3) % 13, (n + 7) % 13]))
        log.model.recommend(n)  # so that there are shortcuts to follow
        if n % 3 == 2:
            m = n - 2
            log.correct(seqs[m], [m, (m + 3) % 13, (m + 7) % 13], [m % K])
    log.roll_back(40)
    log.play(5)
    log.correct(seqs[1], [1, 4, 8], [2])
    digest = log.model.digest()
    assert log.model_at(len(log.events)).digest() == digest
    for cut in (seqs[2], seqs[2] + 1, len(log.events) - 1):
        model = log.model_at(cut)
        again = Model.restored(1, "made", model.snapshot()[1], log.created)
        again.apply(log.events[cut:], log.known_at)
        assert again.digest() == digest, cut
        assert [again.recommend(n).items for n in range(5)] == [
            log.model.recommend(n).items for n in range(5)
        ]


def test_an_item_that_was_seen_on_that_page_alone_is_unseen_again():
    """The search of the default policy must not find it twice."""
    log = Corrected("cascade-mixed")
    for n in range(12):
        log.feedback([n % 5, 5 + n % 3, 8], None)  # so that unseen items are worth a try
    seq = log.time_out([10, 11, 12])
    log.model.recommend(1)
    log.correct(seq, [10, 11, 12], [0])
    assert log.model.engine.state.examined[[10, 11, 12]].tolist() == [1, 0, 0]
    fresh = log.model_at(len(log.events))
    for number in range(40):
        items = log.model.recommend(number).items
        assert len(set(items)) == K
        assert items == fresh.recommend(number).items


def test_groups_of_equal_counts_follow_a_correction():
    """Without features the default policy keeps items of equal counts together, from 32 items on."""
    log = Corrected("cascade-mixed", bare(made_items(40)))
    for n in range(60):
        log.feedback([n % 9, 9 + n % 7, 16 + n % 5], n % K)
        log.model.recommend(n)
        rows = [20 + n % 20, n % 20, (n + 3) % 20]
        seq = log.time_out(rows)
        log.model.recommend(n)
        log.correct(seq, rows, [n % K])
        fresh = log.model_at(len(log.events)) if n % 10 == 9 else None
        for number in range(12 if fresh else 0):
            assert fresh is not None
            assert log.model.recommend(number).items == fresh.recommend(number).items, (n, number)


@pytest.mark.parametrize("policy", ["cascade-ts", "cascade-mixed"])
def test_what_was_rolled_back_is_not_taken_back_again(policy):
    log = Corrected(policy)
    for n in range(6):
        log.feedback([n, n + 1, n + 2], None)
    before = counts(log.model)
    seq = log.time_out([0, 1, 2])
    log.roll_back(seq - 1)
    assert counts(log.model) == before
    log.correct(seq, [0, 1, 2], [0])
    examined, hits = counts(log.model)
    assert sum(examined) == sum(before[0]) + 1, "the click is learned, and nothing else"
    assert hits[0] == 1
    log.roll_back(seq)
    log.correct(seq, [0, 1, 2], [1])  # no service would write it: its nonce is there
    assert sum(counts(log.model)[0]) == sum(before[0]) + 2, "what is known again can be taken back"


def test_events_in_force_follow_rollbacks_of_rollbacks():
    first = InForce()
    at_50, at_100 = first, first
    after = at_50.after_rollback(50, 120)
    assert [after.has(seq) for seq in (1, 50, 51, 119, 120, 121)] == [True, True, False, False, True, True]
    again = at_100.after_rollback(100, 130)
    assert [again.has(seq) for seq in (51, 100, 101, 125, 130)] == [True, True, False, False, True]
    third = after.after_rollback(125, 140)
    assert [third.has(seq) for seq in (50, 60, 121, 125, 126, 141)] == [True, False, True, True, False, True]


@pytest.mark.parametrize(
    ("rows", "clicks", "said"),
    [
        ([0, 1, 99], [0], {}),
        ([0, 1, 2, 3], [0], {}),
        ([0, 1, 2], [], {}),
        ([0, 1, 2], [2], {"examined": 1}),
        ([0, 1, 2], [0], {"features": np.zeros(12).tobytes()}),
        ([0, 1, 2], [0], {"context": np.zeros(1).tobytes()}),
    ],
)
def test_a_correction_that_fits_no_slate_is_passed_over(rows, clicks, said):
    log = Corrected("cascade-mixed")
    log.play(10)
    before = counts(log.model)
    log.correct(5, rows, clicks, **said)
    assert counts(log.model) == before
    assert log.model.click_stats.skipped == 1
    log.change(Correction(5, 0.0, b"nonsense"))
    assert (log.model.click_stats.skipped, log.model.seq) == (2, 13)


@pytest.mark.parametrize("policy", CORRECTING)
def test_counts_never_fall_below_nothing(policy):
    """A file from elsewhere may correct what never was; its model is served all the same."""
    log = Corrected(policy)
    for n in range(20):
        log.correct(1, [n % 13, (n + 1) % 13, (n + 2) % 13], [0])
    state = log.model.engine.state
    assert (state.examined >= state.hits).all()
    assert (state.hits >= 0).all()
    Model.restored(1, "made", log.model.snapshot()[1], log.created)


def test_a_policy_that_cannot_take_back_passes_over_corrections_of_a_copied_log():
    log = Corrected("cascade-lin-ts")
    log.play(5)
    seq = log.time_out([0, 1, 2])
    before = log.model.engine.state.precision.copy()
    log.correct(seq, [0, 1, 2], [1])
    assert (log.model.engine.state.precision == before).all()
    assert log.model.click_stats.clicks == sum(
        as_json(event, Words(log.model.catalog.items)).get("click") is not None for event in log.events[:seq]
    )


# What the service answers


def test_a_late_click_is_corrected_once(service):
    (slate,) = timed_out(service)
    model = service.model("shop")
    assert (model.click_stats.slates, model.click_stats.clicks) == (1, 0)
    told = service.feedback("shop", slate, 1)
    assert (told.status, told.seq) == ("corrected", 3)
    assert (model.click_stats.slates, model.click_stats.clicks, model.reports.corrected) == (1, 1, 1)
    rows = service.keys.read(slate.token, 1, days=7).row_numbers()
    examined, hits = counts(model)
    assert [examined[row] for row in rows] == [1, 1, 0]
    assert [hits[row] for row in rows] == [0, 1, 0]
    assert service.feedback("shop", slate, 1) == told._replace(status="duplicate")
    with pytest.raises(Conflict, match="came before, as event 3"):
        service.feedback("shop", slate, 0)
    assert service.feedback("shop", slate, None).status == "duplicate"
    assert model.seq == 3
    assert service.outcomes["shop"] == {"corrected": 1, "duplicate": 2, "conflict": 1}
    assert service.audit("shop").equal


def test_the_curve_counts_the_click_where_it_counted_the_slate(service):
    (slate,) = timed_out(service)
    service.feedback("shop", slate, 0)
    stats = service.model("shop").click_stats
    assert [list(tier.values()) for tier in stats.tiers] == [[[1, 1]]] * 3
    assert (stats.first_clicks, stats.day_clicks, stats.positions) == (1, 1, [1])


def test_several_late_clicks_in_one_batch(service):
    slates = timed_out(service, 3)
    prompt = service.recommend("shop")
    told = service.feedback_batch(
        "shop",
        [
            (slates[0], 0), (prompt, 2), ("nonsense", 1), (slates[1], None),
            ClickReport(slates[2], clicks=[2, 0], examined=3), (slates[0], 1), (slates[0], 0),
        ],
    )  # fmt: skip
    assert [one.status for one in told] == [
        "corrected", "accepted", "unknown", "duplicate", "corrected", "conflict", "duplicate",
    ]  # fmt: skip
    assert service.model("shop").click_stats.clicks == 3
    assert service.audit("shop").equal


def test_a_policy_that_cannot_take_back_refuses_late_clicks(place):
    with shop(place, "cascade-lin-ts") as service:
        (slate,) = timed_out(service)
        with pytest.raises(Late, match=r"counts as not clicked, as event 2.*cannot take that back"):
            service.feedback("shop", slate, 1)
        assert service.outcomes["shop"] == {"late": 1}
        assert service.feedback("shop", slate, None).status == "duplicate"
        assert seam.model(service, "shop").seq == 2


def test_a_slate_with_features_of_its_own_is_not_corrected(place):
    with shop(place, "cascade-mixed") as service:
        few = ["i1", "i2", "i3", "i4"]
        asked = {"candidates": few, "features": [[0.1, 0.2, 0.3, 0.4]] * 4}
        (slate,) = timed_out(service, **asked)
        with pytest.raises(Late, match="where the request brought features of its own"):
            service.feedback("shop", slate, 0)


def test_a_page_that_was_answered_twice_is_corrected_only_for_the_slate_that_timed_out(
    postgresql_url,
):
    with shop(postgresql_url) as one, open_service(postgresql_url) as two:
        first = one.recommend("shop", request_id="page")
        one.feedback("shop", one.recommend("shop"), 0)
        second = two.recommend("shop", request_id="page", candidates=["i1", "i2", "i3"])
        assert first.items != second.items
        assert one.no_clicks._give_up(one.model("shop"), time.time() + WAIT + 1) == 1
        with pytest.raises(Conflict):
            two.feedback("shop", second, 0)
        assert two.feedback("shop", first, 0).status == "corrected"


def test_replicas_correct_once(postgresql_url):
    with shop(postgresql_url, "cascade-mixed") as one, open_service(postgresql_url) as two:
        slates = timed_out(one, 4)
        assert two.feedback("shop", slates[0], 0).status == "corrected"
        assert one.feedback("shop", slates[0], 0).status == "duplicate"
        assert one.feedback("shop", slates[1], 2).status == "corrected"
        with pytest.raises(Conflict):
            two.feedback("shop", slates[1], 0)
        one.run_background()
        two.run_background()
        assert (
            seam.model(one, "shop").digest() == seam.model(two, "shop").digest() == one.audit("shop").digest
        )
        assert one.model("shop").click_stats.clicks == 2


def test_a_correction_of_an_expired_token_is_refused(service, monkeypatch):
    (slate,) = timed_out(service)
    monkeypatch.setattr(service, "token_days", 1e-9)
    with pytest.raises(Expired):
        service.feedback("shop", slate, 0)


def test_a_store_that_fails_between_the_two_writes_loses_nothing(service, monkeypatch):
    (slate,) = timed_out(service)
    append = service.store.append

    def fails(batch, folded):
        if any(event.kind == Kind.CORRECTION for _, event in batch):
            raise Unavailable("the disk is full")
        return append(batch, folded)

    with monkeypatch.context() as patch:
        patch.setattr(service.store, "append", fails)
        with pytest.raises(Unavailable):
            service.feedback("shop", slate, 1)
    assert seam.model(service, "shop").seq == 2
    assert service.feedback("shop", slate, 1).status == "corrected", "sent again"


# The log


def test_the_log_tells_what_was_corrected(service):
    (slate,) = timed_out(service)
    service.feedback("shop", slate, 2)
    words = Words(service.model("shop").catalog.items)
    no_click, click = (as_json(event, words) for event in log_of(service.store, 1)[1:])
    assert no_click["kind"] == "feedback"
    assert no_click["click"] is None
    assert (click["kind"], click["corrects"], click["click"]) == ("correction", 2, 2)
    assert click["items"] == no_click["items"] == slate.items
    assert "timed_out" not in click


def test_restart_export_and_slates_drawn_again(place, tmp_path):
    with shop(place, "cascade-mixed") as service:
        for n in range(6):
            service.feedback("shop", service.recommend("shop"), n % K)
            slates = timed_out(service, 2)
            service.feedback("shop", slates[0], n % K)
        seam.model(service, "shop").snapshot()
        digest = service.audit("shop").digest
        content = b"".join(service.export("shop"))
        imported = service.import_model("copy", BytesIO(content))
        assert imported.reports.corrected == 6
        assert imported.click_stats.clicks == 12
    with open_store(place) as store:
        stored = store.models()[0]
        audit = audit_stored(store, stored)
        assert (audit.digest, audit.differing, audit.compared) == (digest, (), 1)
        found = audit_slates(store, stored)
        assert (found.equal, found.differing) == (18, 0)
        assert b"".join(export_model(store, stored)) == content


def test_archived_slates_are_not_corrected(place, tmp_path, monkeypatch):
    with shop(place) as service:
        old = timed_out(service, 3)
        assert service.feedback("shop", old[0], 0).status == "corrected"
        young = timed_out(service, 2)
    with open_store(place) as store:
        stored = store.models()[0]
        # Events 2 to 4 are the old slates, 5 corrects the first of them.
        archive(store, stored, 6, tmp_path / "old", token_days=1e-9)
        with opened_archives([tmp_path / "old"]) as files:
            whole = ArchivedLog(store, stored, files)
            assert audit_stored(store, stored, log=whole).differing == ()
    with open_service(place) as service:
        with pytest.raises(Expired, match="archived"):
            service.feedback("shop", old[1], 0)
        assert service.feedback("shop", young[0], 0).status == "corrected"
        # Whoever has not heard of the archive is told by the store.
        token = service.keys.read(old[1].token, 1, days=7)
        body = Correction(3, 0.0, full_payload([0], token.issued_ms, token.rows))
        late = NewEvent(Kind.CORRECTION, nonce_of_correction(token.nonce), packed(body), 0.0)
        with pytest.raises(Refused, match="archived a moment ago"):
            service.append(service.model("shop"), late)
        assert service.audit("shop").equal
