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


def mixed_steps(ranker, first, last):
    """Recommend, learn, add and withdraw, decided by the step only; the slates."""
    slates = []
    for step in range(first, last):
        draw = np.random.default_rng([77, step])
        kind = draw.integers(10)
        if kind == 0:
            features = None if ranker.catalog.n_features is None else draw.random((1, N_FEATURES)) / 3
            ranker.add_items([f"added {step}"], features)
        elif kind == 1 and len(ranker.catalog) > 2 * K:
            shown = [
                item
                for item, hidden in zip(ranker.catalog.items, ranker.catalog.hidden, strict=True)
                if not hidden
            ]
            ranker.withdraw_items([shown[int(draw.integers(len(shown)))]])
        elif kind in (2, 3):
            slates.append(ranker.recommend(exclude=ITEMS[step % 5 : step % 5 + 3]).items)
        else:
            slates.append(ranker.recommend(candidates=ITEMS[::2] if kind == 4 else None).items)
        while len(ranker.pending) > 4:
            waiting = list(ranker.pending)
            slate = waiting[int(draw.integers(len(waiting)))]
            size = len(ranker.pending[slate].rows)
            ranker.learn(slate, click=int(draw.integers(size)) if size and draw.random() < 0.4 else None)
    return slates
