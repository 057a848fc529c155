"""One engine behind two doors: a model of the service and a `Ranker` show and learn the same, bit for bit."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from firstclick import Catalog, Ranker
from firstclick.catalog.item import Item
from firstclick.serve.log.token import nonce_of_request, number_in
from firstclick.serve.service import open_service
from firstclick.streams import stream

pytestmark = pytest.mark.plain

N_ITEMS, K = 12, 3
IDS = [f"i{row}" for row in range(N_ITEMS)]
GROUPS = ["odd" if row % 2 else "even" for row in range(N_ITEMS)]
# Prices, shares and counts: of different units, and far from norm 1.
FEATURES = stream(3, "features").random((N_ITEMS, 3)) * [90.0, 1.0, 7.0]


def requests(policy: str, step: int) -> dict[str, Any]:
    """What the request of this step asks for."""
    asked: dict[str, Any] = {}
    if ":context=" in policy:
        asked["context"] = stream(step, "context").normal(size=int(policy.partition(":context=")[2][0]))
    if step % 5 == 1:
        asked |= {"candidates": IDS[:8], "exclude": ["i1"]}
        if "lin" in policy:
            asked["features"] = stream(step, "own").random((8, 3)) * [45.0, 0.5, 3.5]
    if step % 5 == 2:
        asked |= {"pinned": {1: "i6"}, "k": 2}
    if step % 5 == 3:
        asked |= {"at_most": {"odd": 1}}
    return asked


@pytest.mark.parametrize(
    "policy",
    [
        "cascade-lin-ts", "cascade-lin-ucb:c=theory,horizon=900", "context-lin-ts:context=2,rank=2",
        "context-lin-ts:context=3,combine=product", "cascade-ts", "cascade-lsb", "dcm-lin-ts",
    ],
)  # fmt: skip
def test_a_model_and_a_ranker_show_the_same_slates_and_learn_the_same(tmp_path: Path, policy: str) -> None:
    shares = policy == "cascade-lsb"  # It takes features between 0 and 1, as they are.
    table = FEATURES / FEATURES.max(axis=0) if shares else FEATURES
    with open_service(str(tmp_path / "shop.db")) as service:
        items = [
            Item(item, group=group, features=row) for item, group, row in zip(IDS, GROUPS, table, strict=True)
        ]
        model = service.create("m", policy=policy, k=K, items=items, seed=5)
        ranker = Ranker(Catalog(IDS, table, groups=GROUPS), k=K, policy=policy, seed=5)
        ranker._key = model._key
        for step in range(40):
            asked, name = requests(policy, step), f"request {step}"
            slate = service.recommend("m", request_id=name, **asked)
            ranker.requests = number_in(nonce_of_request(name))
            same = ranker.recommend(**asked)
            assert list(same.items) == slate.items, step
            said: dict[str, Any] = (
                {"clicks": [0, len(slate.items) - 1], "examined": len(slate.items)}
                if step % 4 == 3
                else {"click": (None, 0, 1)[step % 3]}
            )
            service.feedback("m", slate, **said)
            ranker.learn(same, **said)
            if step == 12:
                new = table[:2] * 0.9
                service.put_items("m", [Item(f"n{i}", group="odd", features=new[i]) for i in range(2)])
                ranker.add_items(["n0", "n1"], new, groups=["odd", "odd"])
            if step == 20:
                service.withdraw_items("m", ["i2"])
                ranker.withdraw_items(["i2"])
                ranker.requests = step
                ranker.save(tmp_path / "r.npz")
                ranker = Ranker.load(tmp_path / "r.npz")
        for mine, its in zip(ranker.state, model.engine.state, strict=True):
            assert mine.tobytes() == its.tobytes()
        # A policy without features does not look at them.
        if ranker.policy.needs_features:
            assert ranker._engine.scale == model.engine.scale
            np.testing.assert_array_equal(ranker._engine.features, model.engine.features)
        given = model.catalog.features_as_given(np.arange(N_ITEMS + 2))
        np.testing.assert_allclose(given, ranker.catalog.features, rtol=1e-14)
