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
