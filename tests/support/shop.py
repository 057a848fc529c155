"""The one shop of the tests: 13 items with gaps in their ids, 4 features, two groups, slates of 3.

def test_it(open_shop):
    shop = open_shop(policy="cascade-ts", baseline=LIST, clock=Clock())
    slate = shop.recommend()
    assert shop.feedback(slate, click=0).status == "accepted"
"""

import inspect
from contextlib import ExitStack

import numpy as np
import pytest

from firstclick.serve import Item, Service, open_service
from tests.support.seam import BY_HAND, Model

K, N_FEATURES = 3, 4
IDS = ["i0", "i1", "i2", 7, "i4", "i5", "i6", "i7", "i8", "i9", "i10", "i11", "Grüße"]
GROUPS = ["odd" if row % 2 else "even" for row in range(len(IDS))]
FEATURES = np.random.default_rng(1).normal(size=(len(IDS), N_FEATURES)) / 3
# The list that is shown today.
LIST = ["i7", "i2", "i9", "i4"]

SETTINGS = {"relaxed", *inspect.signature(Service).parameters} - {"store"}


def table_of(features):
    """The features of all items: True is those of the shop, False and None are none."""
    return (FEATURES if features else None) if features is None or isinstance(features, bool) else features


def items(features=True):
    table = table_of(features)
    rows = [None] * len(IDS) if table is None else table
    return [Item(id, group=group, features=row) for id, group, row in zip(IDS, GROUPS, rows, strict=True)]


def new_item(id="new", **facts):
    return Item(id, **{"features": [0.1, 0.2, 0.3, 0.4], **facts})


def new_items(n, *, first=100, features=True):
    """`n` more items, `i100` and so on; the same number is always the same item."""
    return [
        Item(
            f"i{number}",
            group="odd" if number % 2 else "even",
            features=np.random.default_rng(number).normal(size=N_FEATURES) / 3 if features else None,
        )
        for number in range(first, first + n)
    ]


def shop_at(store, *, name="shop", policy="cascade-ts", features=True, **more):
    """Open a store and return its model of this name, which is created if it is not there.

    Args:
        store: A path or an address.
        name: The model.
        policy: Its policy.
        features: True: the features of the shop; False: none; or a table.
        **more: Settings of the service, such as `clock`, `tuning` and `token_days`; all others are those of
            `Service.create`, such as `items`, `baseline` and `no_click_after`. With a clock nothing runs in
            the background, unless `tuning` says otherwise.
    """
    settings = {setting: more.pop(setting) for setting in SETTINGS & more.keys()}
    if "clock" in settings:
        settings.setdefault("tuning", BY_HAND)
    service = open_service(str(store), **settings)
    try:
        if name not in service.names():
            created = {"policy": policy, "k": K, "items": items(features), "seed": 5} | more
            service.create(name, **created)
    except BaseException:
        service.close()
        raise
    return Model(service, name, lambda: shop_at(store, name=name, **settings))


@pytest.fixture
def open_shop(tmp_path):
    """`open_shop(store, policy=..., baseline=LIST)`: see `shop_at`; closed at the end."""
    with ExitStack() as opened:

        def opener(store=tmp_path / "shop.db", **more):
            return opened.enter_context(shop_at(store, **more))

        yield opener


@pytest.fixture
def shop(open_shop):
    """The shop with a policy that counts: the score of an item is (clicks + 1) / (examined + 2)."""
    return open_shop()
