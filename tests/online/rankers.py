"""Rankers of 11 items with 4 features, users who teach them, and files of rankers changed by hand."""

import json

import numpy as np
import pytest

from firstclick import Catalog, InvalidInput, Ranker

N_ITEMS, N_FEATURES, K = 11, 4, 3
ITEMS = ["p3", 30, "", "p9", 9, "Grüße", "nan", 1000, "p40", -7, "z" * 500]
FEATURES = np.abs(np.random.default_rng(8).normal(size=(N_ITEMS, N_FEATURES))) / 3


def new_ranker(policy="cascade-lin-ts", *, features=FEATURES, groups=None, **settings):
    return Ranker(Catalog(ITEMS, features, groups=groups), policy=policy, **{"k": K, "seed": 5} | settings)


def teach(ranker, steps, seed=1):
    """Some users, who like items of even rows."""
    draw = np.random.default_rng(seed)
    for _ in range(steps):
        slate = ranker.recommend()
        liked = [i for i, item in enumerate(slate.items) if ranker.catalog.row_of(item) % 2 == 0]
        ranker.learn(slate, click=liked[0] if liked and draw.random() < 0.6 else None)
    return ranker


def state_of(ranker):
    return [array.tobytes() for array in ranker.state]


def refusal(call, *arguments, error=InvalidInput, **more):
    """The error of a call that is refused."""
    with pytest.raises(error) as caught:
        call(*arguments, **more)
    return caught.value


def rewritten(path, change):
    """The file with its page and arrays changed by hand, and its checksums in order."""
    with np.load(path) as file:
        arrays = dict(file)
    page = json.loads(arrays.pop("page").tobytes())
    change(page, arrays)
    np.savez(path, page=np.frombuffer(json.dumps(page).encode(), np.uint8), **arrays)
    return path
