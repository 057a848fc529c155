"""One engine behind two doors: a ranker and a model of the service show and learn the same, bit for bit."""

import numpy as np
import pytest

from firstclick import Ranker
from firstclick.serve import Item
from tests.support.doors import refit_has_begun
from tests.support.policies import policies
from tests.support.shop import FEATURES, IDS

DEFAULT_POLICY = "cascade-mixed"
# Prices, shares and counts: of different units, and far from norm 1.
PRICES = np.abs(FEATURES) * [90.0, 1.0, 7.0, 0.1]


def request_of(policy, step, *, features):
    """Return the request of this step."""
    request = {}
    if ":context=" in policy:
        request["context"] = np.random.default_rng(step).normal(size=int(policy.partition(":context=")[2][0]))
    if step % 5 == 1:
        request |= {"candidates": IDS[:8], "exclude": ["i1"]}
        if features and ("lin" in policy or policy == DEFAULT_POLICY):
            request["features"] = np.random.default_rng(step).random((8, 4)) * [45.0, 0.5, 3.5, 0.05]
    if step % 5 == 2:
        request |= {"pinned": {1: "i6"}, "k": 2}
    if step % 5 == 3:
        request |= {"at_most": {"odd": 1}}
    if step % 5 == 4:  # i2 is withdrawn later.
        request |= {"pinned": {0: "i2", 1: 7, 2: "i4"}, "exclude": [7], "at_most": {"odd": 1}}
    return request


@pytest.mark.parametrize(
    "policy",
    policies([
        DEFAULT_POLICY, "cascade-lin-ts", "cascade-lin-ucb:c=theory,horizon=900",
        "context-lin-ts:context=2,rank=2", "context-lin-ts:context=4,combine=product", "cascade-ts",
        "cascade-lsb", "dcm-lin-ts",
    ]),
)  # fmt: skip
def test_a_ranker_and_a_model_show_and_learn_the_same(open_at, tmp_path, policy):
    shares = policy == "cascade-lsb"  # It takes features between 0 and 1, as they are.
    both(open_at, tmp_path, policy, PRICES / PRICES.max(axis=0) if shares else PRICES)


def test_the_default_does_so_without_features(open_at, tmp_path):
    both(open_at, tmp_path, DEFAULT_POLICY, None)


def both(open_at, folder, policy, table):
    """Items that come, go and are capped or pinned, clicks of all sorts, and the ranker saved and loaded."""
    ranker, service = (open_at(name, policy=policy, features=table) for name in ("ranker", "service"))
    model = service.service.model(service.model)
    ranker.draw_as(service)
    saved = False
    for step in range(80 if policy == DEFAULT_POLICY else 40):
        request = request_of(policy, step, features=table is not None)
        slate, same = (door.recommend(draw=step, **request) for door in (service, ranker))
        assert (slate.items, slate.skipped_pins, slate.reasons) == (
            same.items,
            same.skipped_pins,
            same.reasons,
        ), step
        if step % 5 == 4:
            assert same.skipped_pins == (("i2", 7) if saved else (7,))
            assert same.items[2] == "i4"
        n = len(slate.items)
        report = {"clicks": [0, n - 1], "examined": n} if step % 4 == 3 else {"click": (None, 0, 1)[step % 3]}
        for door, shown in ((service, slate), (ranker, same)):
            assert door.feedback(shown.handle, **report) == "accepted"
            if step == 12:
                rows = [None] * 2 if table is None else table[:2] * 0.9
                door.put([Item(f"n{i}", group="odd", features=rows[i]) for i in range(2)])
            if step == 16:
                door.set_available(off=["i5", "n1"])
                changed = [Item("i6", group="even")]
                if table is not None:
                    changed = [Item(f"i{i}", features=table[at] * 0.8) for i, at in ((6, 3), (7, 1))]
                door.put(changed)
        assert step <= 16 or not {"i5", "n1"} & set(slate.items)
        # That of the default in the middle of a refit, which has most of its work before it.
        if step >= 20 and not saved and (policy != DEFAULT_POLICY or refit_has_begun(ranker)):
            saved = True
            for door in (service, ranker):
                door.withdraw(["i2"])
            ranker.ranker.requests = step
            ranker.ranker.save(folder / "r.npz")
            ranker.ranker = Ranker.load(folder / "r.npz")
    assert saved
    for name, array in ranker.state().items():
        assert array.tobytes() == service.state()[name].tobytes(), name
    # A policy without features does not look at them.
    if ranker.ranker.policy.needs_features or policy == DEFAULT_POLICY:
        assert ranker.ranker._engine.scale == model.engine.scale
        np.testing.assert_array_equal(ranker.ranker._engine.features, model.engine.features)
    if table is not None:
        given = model.catalog.features_as_given(np.arange(len(IDS) + 2))
        np.testing.assert_allclose(given, ranker.ranker.catalog.features, rtol=1e-14)
