"""The one catalog of the tests: 13 items with gaps in their ids, 4 features, two groups, slates of 3."""

from contextlib import ExitStack

import numpy as np
import pytest

from firstclick.serve import Item, open_service

K, N_FEATURES = 3, 4
IDS = ["i0", "i1", "i2", 7, "i4", "i5", "i6", "i7", "i8", "i9", "i10", "i11", "Grüße"]
GROUPS = ["odd" if row % 2 else "even" for row in range(len(IDS))]
FEATURES = np.random.default_rng(1).normal(size=(len(IDS), N_FEATURES)) / 3
# The list that is shown today.
LIST = ["i7", "i2", "i9", "i4"]


def table_of(features):
    """The features of all items: True is those of the shop, False and None are none."""
    return (FEATURES if features else None) if features is None or isinstance(features, bool) else features


def items(features=True):
    table = table_of(features)
    rows = [None] * len(IDS) if table is None else table
    return [Item(id, group=group, features=row) for id, group, row in zip(IDS, GROUPS, rows, strict=True)]


def new_item(id="new", **facts):
    return Item(id, **{"features": [0.1, 0.2, 0.3, 0.4], **facts})


@pytest.fixture
def open_shop(tmp_path):
    """`open_shop(store, policy=..., baseline=LIST)`: a service with the model `shop`; closed at the end."""
    with ExitStack() as opened:

        def opener(
            store=tmp_path / "shop.db", *, policy="cascade-ts", features=True, settings=None, **created
        ):
            service = opened.enter_context(open_service(str(store), **(settings or {})))
            if "shop" not in service.names():
                service.create(
                    "shop", **{"policy": policy, "k": K, "items": items(features), "seed": 5} | created
                )
            return service

        yield opener
