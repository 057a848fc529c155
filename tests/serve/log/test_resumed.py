"""Stopped and started again at any time, a service goes on as if nothing had been, whatever is asked."""

import numpy as np
import pytest

from firstclick.serve.model.catalog_state import CatalogState
from firstclick.serve.model.model import Model
from tests.support.clock import Clock
from tests.support.policies import OTHERS
from tests.support.shop import IDS, K, items, new_items

STEPS = 120


def play(shop, step, *, features=True):
    """Do what this step's number alone decides; return the slate that was shown."""
    slate = shop.recommend(request_id=f"step {step}")
    click = (step * 7) % (K + 2)
    shop.feedback(slate, click if click < len(slate.items) else None)
    if step % 11 == 5:
        shop.put_items(new_items(1, first=100 + step, features=features))
    elif step % 11 == 8:
        (other,) = new_items(1, first=step, features=features)
        shop.put_items([items(features)[step % len(IDS)]._replace(features=other.features)])
    elif step % 17 == 3:
        shop.withdraw_items([IDS[step % len(IDS)]])
    elif step % 53 == 50:
        shop.roll_back(step // 2)
    return slate.items


@pytest.mark.parametrize(
    ("policy", "features"),
    [
        ("cascade-mixed", True), ("cascade-mixed", False), ("cascade-lin-ts", True), ("cascade-ts", False),
        pytest.param("ranked-lin-ts", True, marks=OTHERS),
    ],
)  # fmt: skip
def test_resumed_is_uninterrupted(open_shop, policy, features, tmp_path):
    stops = set(np.random.default_rng(len(policy)).choice(STEPS, 6, replace=False).tolist())
    clocks = Clock(), Clock()
    whole, stopped = (
        open_shop(tmp_path / f"{n}.db", policy=policy, features=features, clock=clock)
        for n, clock in enumerate(clocks)
    )
    for step in range(STEPS):
        slates = [play(shop, step, features=features) for shop in (whole, stopped)]
        assert slates[0] == slates[1], step
        for clock in clocks:
            clock.move(1)
        if step in stops:
            if step % 2:
                stopped.snapshot()
            stopped.restart()
    assert stopped.digest() == whole.digest()


def test_rollbacks_of_rollbacks_are_replayed_once(open_shop, monkeypatch):
    """Were the log replayed for each of a dozen, its events would be replayed thousands of times."""
    shop = open_shop(policy="cascade-lin-ts")
    for step in range(12):
        play(shop, 2 * step)
        shop.roll_back(shop.seq - step % 2)
    shop.snapshot()
    digest, changes = shop.digest(), []
    for kind, change in ((Model, Model._change), (CatalogState, CatalogState.apply)):

        def counted(self, event, *more, change=change):
            changes.append(event.seq)
            change(self, event, *more)

        monkeypatch.setattr(kind, change.__name__, counted)
    assert shop.audit().equal
    assert shop.service.import_model("again", b"".join(shop.export())).seq == shop.seq
    shop.restart()
    assert shop.digest() == digest
    assert 2 * shop.seq < len(changes) < 20 * shop.seq
