"""One engine behind two doors: a model of the service and a `Ranker` show and learn the same, bit for bit."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from firstclick import Catalog, Ranker
from firstclick.catalog.item import Item
from firstclick.kernels.mixed import BETAS, STAGE
from firstclick.registry import DEFAULT_POLICY
from firstclick.serve.log.token import nonce_of_request, number_in
from firstclick.serve.service import open_service
from firstclick.streams import stream
from tests.support.policies import policies

N_ITEMS, K = 12, 3
IDS = [f"i{row}" for row in range(N_ITEMS)]
GROUPS = ["odd" if row % 2 else "even" for row in range(N_ITEMS)]
# Prices, shares and counts: of different units, and far from norm 1.
FEATURES = stream(3, "features").random((N_ITEMS, 3)) * [90.0, 1.0, 7.0]


def requests(policy: str, step: int, *, features: bool = True) -> dict[str, Any]:
    """What the request of this step asks for."""
    asked: dict[str, Any] = {}
    if ":context=" in policy:
        asked["context"] = stream(step, "context").normal(size=int(policy.partition(":context=")[2][0]))
    if step % 5 == 1:
        asked |= {"candidates": IDS[:8], "exclude": ["i1"]}
        if features and ("lin" in policy or policy == DEFAULT_POLICY):
            asked["features"] = stream(step, "own").random((8, 3)) * [45.0, 0.5, 3.5]
    if step % 5 == 2:
        asked |= {"pinned": {1: "i6"}, "k": 2}
    if step % 5 == 3:
        asked |= {"at_most": {"odd": 1}}
    if step % 5 == 4:  # i2 is withdrawn later.
        asked |= {"pinned": {0: "i2", 1: "i3", 2: "i4"}, "exclude": ["i3"], "at_most": {"odd": 1}}
    return asked


@pytest.mark.parametrize(
    "policy",
    policies([
        DEFAULT_POLICY, "cascade-lin-ts", "cascade-lin-ucb:c=theory,horizon=900",
        "context-lin-ts:context=2,rank=2", "context-lin-ts:context=3,combine=product", "cascade-ts",
        "cascade-lsb", "dcm-lin-ts",
    ]),
)  # fmt: skip
def test_a_model_and_a_ranker_show_the_same_slates_and_learn_the_same(tmp_path: Path, policy: str) -> None:
    shares = policy == "cascade-lsb"  # It takes features between 0 and 1, as they are.
    play_both(tmp_path, policy, FEATURES / FEATURES.max(axis=0) if shares else FEATURES)


def test_a_model_and_a_ranker_of_the_default_do_so_without_features(tmp_path: Path) -> None:
    play_both(tmp_path, DEFAULT_POLICY, None)


def play_both(folder: Path, policy: str, table: NDArray[np.float64] | None) -> None:
    """Items that come, go and are capped or pinned, clicks of all sorts, and the ranker saved and loaded."""
    rows = [None] * N_ITEMS if table is None else table
    with open_service(str(folder / "shop.db")) as service:
        items = [
            Item(item, group=group, features=row) for item, group, row in zip(IDS, GROUPS, rows, strict=True)
        ]
        model = service.create("m", policy=policy, k=K, items=items, seed=5)
        ranker = Ranker(Catalog(IDS, table, groups=GROUPS), k=K, policy=policy, seed=5)
        ranker._key = model._key
        saved = False
        for step in range(80 if policy == DEFAULT_POLICY else 40):
            asked, name = requests(policy, step, features=table is not None), f"request {step}"
            slate = service.recommend("m", request_id=name, **asked)
            ranker.requests = number_in(nonce_of_request(name))
            same = ranker.recommend(**asked)
            assert list(same.items) == slate.items, step
            assert same.skipped_pins == slate.skipped_pins, step
            if step % 5 == 4:
                assert same.skipped_pins == (("i2", "i3") if saved else ("i3",))
                assert same.items[2] == "i4"
            said: dict[str, Any] = (
                {"clicks": [0, len(slate.items) - 1], "examined": len(slate.items)}
                if step % 4 == 3
                else {"click": (None, 0, 1)[step % 3]}
            )
            service.feedback("m", slate, **said)
            ranker.learn(same, **said)
            if step == 12:
                new = None if table is None else table[:2] * 0.9
                put = [Item(f"n{i}", group="odd", features=None if new is None else new[i]) for i in range(2)]
                service.put_items("m", put)
                ranker.add_items(["n0", "n1"], new, groups=["odd", "odd"])
            if step == 16:
                service.set_available("m", off=["i5", "n1"])
                ranker.set_available(["i5", "n1"], False)
                if table is None:
                    service.put_items("m", [Item("i6", group="even")])
                    ranker.change_items(["i6"], groups=["even"])
                else:
                    other = table[[3, 1]] * 0.8
                    service.put_items("m", [Item(f"i{i}", features=other[i - 6]) for i in (6, 7)])
                    ranker.change_items(["i6", "i7"], other)
            if step > 16:
                assert not {"i5", "n1"} & set(slate.items)
            # That of the default in the middle of a refit, which has most of its work before it.
            if (
                step >= 20
                and not saved
                and (policy != DEFAULT_POLICY or 0 < ranker.state.refit[STAGE] < BETAS)
            ):
                saved = True
                service.withdraw_items("m", ["i2"])
                ranker.withdraw_items(["i2"])
                ranker.requests = step
                ranker.save(folder / "r.npz")
                ranker = Ranker.load(folder / "r.npz")
        assert saved
        for mine, its in zip(ranker.state, model.engine.state, strict=True):
            assert mine.tobytes() == its.tobytes()
        # A policy without features does not look at them.
        if ranker.policy.needs_features or policy == DEFAULT_POLICY:
            assert ranker._engine.scale == model.engine.scale
            np.testing.assert_array_equal(ranker._engine.features, model.engine.features)
        if table is not None:
            given = model.catalog.features_as_given(np.arange(N_ITEMS + 2))
            np.testing.assert_allclose(given, ranker.catalog.features, rtol=1e-14)
