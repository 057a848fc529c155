"""Stopped and started again at any time, a service goes on as if nothing had been, whatever is asked."""

import shutil
import tempfile
from pathlib import Path
from typing import Any

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from firstclick.catalog.item import Item
from firstclick.registry import DEFAULT_POLICY, policy_class
from firstclick.serve.model.audit import audit_served, audit_stored
from firstclick.serve.model.catalog_state import CatalogState
from firstclick.serve.model.export import export_model
from firstclick.serve.model.model import Model
from firstclick.serve.service import open_service
from firstclick.wire.errors import Conflict, Malformed, Unknown
from tests.support import seam
from tests.support.clock import Clock
from tests.support.made_log import N_ITEMS, K, bare, made_items, takes_features
from tests.support.policies import OTHERS

STEPS = 120


def play(service, step):
    """What happens in this step, decided by its number alone; the slate that was shown."""
    shown = service.recommend("shop", request_id=f"step {step}")
    click = (step * 7) % (K + 2)
    service.feedback("shop", shown.token, click if click < len(shown.items) else None)
    items = made_items(1, first=100 + step) if step % 11 == 5 else made_items(seed=step)[step % N_ITEMS :][:1]
    if step % 11 in (5, 8):
        service.put_items("shop", items if service.model("shop").created.n_features else bare(items))
    elif step % 17 == 3 and service.model("shop").items.is_shown(f"i{step % N_ITEMS}"):
        service.withdraw_items("shop", [f"i{step % N_ITEMS}"])
    elif step % 53 == 50:
        service.roll_back("shop", step // 2)
    return shown.items


def create(service, policy, *, features=True):
    items = made_items() if features and takes_features(policy) else bare(made_items())
    service.create("shop", policy=policy, k=K, items=items, seed=5)


@pytest.mark.parametrize(
    ("policy", "features"),
    [
        (DEFAULT_POLICY, True), (DEFAULT_POLICY, False), ("cascade-lin-ts", True), ("cascade-ts", False),
        pytest.param("ranked-lin-ts", True, marks=OTHERS),
    ],
)  # fmt: skip
def test_resumed_is_uninterrupted(policy, features, tmp_path):
    draw = np.random.default_rng(len(policy))
    stops = set(draw.choice(STEPS, 6, replace=False).tolist())
    clock = Clock()
    interrupted, uninterrupted = str(tmp_path / "a.db"), str(tmp_path / "b.db")
    slates = []
    with seam.open_by_hand(uninterrupted, clock) as service:
        create(service, policy, features=features)
        for step in range(STEPS):
            clock.set(clock.start + step)
            slates.append(play(service, step))
        wanted = seam.model(service, "shop").digest()
    clock.set(clock.start)
    service = seam.open_by_hand(interrupted, clock)
    create(service, policy, features=features)
    for step in range(STEPS):
        clock.set(clock.start + step)
        assert play(service, step) == slates[step], step
        if step in stops:
            if step % 2:
                seam.model(service, "shop").snapshot()
            service.close()
            service = seam.open_by_hand(interrupted, clock)
    assert seam.model(service, "shop").digest() == wanted
    service.close()


def test_rollbacks_of_rollbacks_are_folded_once(tmp_path, monkeypatch):
    """Were the log folded anew for each, a dozen would be folded thousands of times."""
    place = str(tmp_path / "shop.db")
    n = 12
    with open_service(place) as service:
        create(service, "cascade-lin-ts")
        for step in range(n):
            play(service, 2 * step)
            service.roll_back("shop", seam.model(service, "shop").seq - step % 2)
        seam.model(service, "shop").snapshot()
        wanted = seam.model(service, "shop").digest()
        changes = []
        for one in (Model, CatalogState):
            change = one._change if one is Model else one.apply

            def counted(self, event, *more, change=change):
                changes.append(event.seq)
                change(self, event, *more)

            monkeypatch.setattr(one, change.__name__, counted)
        assert audit_served(service.store, service.model("shop")).equal
        (stored,) = service.store.models()
        assert audit_stored(service.store, stored).equal
        content = b"".join(export_model(service.store, stored))
        assert service.import_model("again", content).seq == stored.head
    with open_service(place) as service:
        assert seam.model(service, "shop").digest() == wanted
    assert len(changes) < 20 * stored.head


class Anything(RuleBasedStateMachine):
    """A service, and beside it the little that must be true of it."""

    tokens: dict[str, tuple[int, list[Any]]]

    @initialize(
        policy=st.sampled_from([DEFAULT_POLICY, "cascade-lin-ts", "cascade-ts"]), features=st.booleans()
    )
    def begin(self, policy, features):
        self.folder = Path(tempfile.mkdtemp(prefix="firstclick-"))
        self.service = open_service(str(self.folder / "shop.db"))
        create(self.service, policy, features=features or policy_class(policy).needs_features)
        self.with_features = self.service.model("shop").created.n_features > 0
        self.seq = 1
        self.slates = self.clicks = 0
        self.outstanding = []
        self.said = {}
        self.shown = {f"i{row}" for row in range(N_ITEMS)}
        self.ever = set(self.shown)
        self.shown_after = {1: set(self.shown)}

    def teardown(self):
        if hasattr(self, "service"):
            assert audit_served(self.service.store, self.service.model("shop")).equal
            self.service.close()
            shutil.rmtree(self.folder)

    def happened(self, seq):
        """One event more; what is shown after it."""
        self.seq += 1
        assert seq == self.seq
        self.shown_after[seq] = set(self.shown)

    @rule(k=st.integers(1, K))
    def recommend(self, k):
        slate = self.service.recommend("shop", k=k)
        assert len(slate.items) == min(k, len(self.shown)) == len(set(slate.items))
        assert set(slate.items) <= self.shown
        assert slate.seq == self.seq
        self.outstanding.append((slate.token, slate.items))

    @precondition(lambda self: self.outstanding)
    @rule(data=st.data(), click=st.none() | st.integers(-1, K))
    def answer(self, data, click):
        token, items = data.draw(st.sampled_from(self.outstanding))
        if click is not None and not 0 <= click < len(items):
            with pytest.raises(Malformed):
                self.service.feedback("shop", token, click)
        elif token not in self.said:
            receipt = self.service.feedback("shop", token, click)
            assert receipt.status == "accepted"
            self.said[token] = click, receipt.seq
            self.slates += 1
            self.clicks += click is not None
            self.happened(receipt.seq)
        elif self.said[token][0] == click:
            assert self.service.feedback("shop", token, click) == ("duplicate", self.said[token][1])
        else:
            with pytest.raises(Conflict, match=f"as event {self.said[token][1]},"):
                self.service.feedback("shop", token, click)

    @precondition(lambda self: self.outstanding)
    @rule(data=st.data(), place=st.integers(0, 200))
    def forge(self, data, place):
        token, _ = data.draw(st.sampled_from(self.outstanding))
        place %= len(token)
        other = token[:place] + ("A" if token[place] != "A" else "B") + token[place + 1 :]
        with pytest.raises(Unknown):
            self.service.feedback("shop", other, None)

    @rule(number=st.integers(0, N_ITEMS + 5), seed=st.integers(0, 2))
    def put(self, number, seed):
        (item,) = made_items(1, first=number, seed=seed)
        (given,) = [item] if self.with_features else bare([item])
        self.shown.add(item.id)
        self.ever.add(item.id)
        self.happened(self.service.put_items("shop", [given]))

    @rule(number=st.integers(0, N_ITEMS + 5))
    def withdraw(self, number):
        item = f"i{number}"
        if item in self.ever:
            self.shown.discard(item)  # One that is gone already is withdrawn again without harm.
            self.happened(self.service.withdraw_items("shop", [item]))
        else:
            with pytest.raises(Unknown):
                self.service.withdraw_items("shop", [item])

    @rule()
    def put_what_does_not_fit(self):
        features = np.ones(9) if self.with_features else np.array([1.0, 2.0])
        with pytest.raises(Malformed):
            self.service.put_items("shop", [Item("i1", features=features)])

    @rule(data=st.data())
    def roll_back(self, data):
        to = data.draw(st.integers(1, self.seq))
        self.shown = set(self.shown_after[to])
        self.happened(self.service.roll_back("shop", to))

    @rule()
    def snapshot(self):
        seam.model(self.service, "shop").snapshot()

    @rule()
    def restart(self):
        digest = seam.model(self.service, "shop").digest()
        self.service.close()
        self.service = open_service(str(self.folder / "shop.db"))
        assert seam.model(self.service, "shop").digest() == digest

    @invariant()
    def is_as_it_should_be(self):
        if not hasattr(self, "service"):
            return
        told = self.service.model("shop").describe()
        assert (told["seq"], told["slates"], told["clicks"], told["items"]) == (
            self.seq,
            self.slates,
            self.clicks,
            len(self.shown),
        )


TestAnything = Anything.TestCase
TestAnything.settings = settings(
    max_examples=15, stateful_step_count=25, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
