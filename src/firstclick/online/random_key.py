"""The random key of a stored model or ranker: what decides, with the number of a request, what is explored.

It is made once and stored. It must never be made again from what may change, such as a label, which depends
on the defaults of the day.
"""

from typing import Any

import numpy as np

from firstclick.parameters import Declared
from firstclick.streams import stream_key

# What was stored before keys were has the key of its label, made with the defaults of those days. These are
# no settings: a new default changes nothing here.
_DEFAULTS_THEN: dict[str, dict[str, Any]] = {
    "batch-rank": {"horizon": 100_000},
    "bubble-rank": {"horizon": 100_000, "turn": 1},
    "c3-ucb": {
        "sigma": 1.0, "context": None, "combine": "bilinear", "rank": None, "c": 1.0, "discount": 0.9,
        "delta": 0.05,
    },
    "cascade-ducb": {"radius": 2.0, "discount": 0.9992, "horizon": None},
    "cascade-glr-ucb": {"delta": 1e-5, "explore": 0.05, "forget": "all"},
    "cascade-hybrid": {"sigma": 1.0, "c": 1.0, "topics": None},
    "cascade-kl-ucb": {"start": "sample"},
    "cascade-lin-ts": {"sigma": 1.0},
    "cascade-lin-ucb": {"sigma": 1.0, "c": 1.0, "horizon": None, "theta_norm": 1.0},
    "cascade-lsb": {"sigma": 1.0, "c": 1.0},
    "cascade-swucb": {"radius": 0.5, "window": 2146, "horizon": None},
    "cascade-ts": {"a": 1.0, "b": 1.0},
    "cascade-ucb-v": {"start": "sample", "radius": 1.2},
    "cascade-ucb1": {"start": "sample", "radius": 1.5},
    "context-lin-ts": {"sigma": 1.0, "context": None, "combine": "bilinear", "rank": None},
    "dcm-kl-ucb": {"start": "sample", "stop": ()},
    "dcm-lin-ts": {"sigma": 1.0, "stop": None},
    "dcm-lin-ucb": {"sigma": 1.0, "c": 1.0, "horizon": None, "theta_norm": 1.0, "stop": None},
    "discounted-lin-ts": {"sigma": 1.0, "discount": 0.999, "detector": None},
    "discounted-lin-ucb": {
        "sigma": 1.0, "c": 1.0, "horizon": None, "theta_norm": 1.0, "discount": 0.999, "detector": None,
    },
    "lin-ts-cascade": {"sigma": 1.0, "boldness": 0.01, "noise": 0.5, "spread": None},
    "logistic-ts": {"prior": 1.0},
    "pbm-pie": {"examination": (1.0, 0.7, 0.5, 0.4, 0.3, 0.25, 0.2), "eps": 0.01},
    "pbm-ucb": {"examination": (1.0, 0.7, 0.5, 0.4, 0.3, 0.25, 0.2), "eps": 0.01},
    "random": {},
    "ranked-lin-ts": {"sigma": 1.0},
    "recur-rank": {"horizon": 100_000},
    "segment-lin-ts": {"sigma": 1.0, "segments": None, "share": 0.5},
    "top-rank": {"horizon": 100_000, "pairs": "block"},
    "ts-cascade": {},
    "vac2-ucb": {
        "sigma": 1.0, "c": 2.0, "horizon": None, "theta_norm": 1.0, "variance": None, "floor": 0.02,
    },
}  # fmt: skip


def new_key(kind: str, seed: int, policy: Declared, k: int) -> np.uint64:
    """The key of a new "model" or "ranker", to be stored with it."""
    return stream_key(seed, kind, policy.name, k)


def key_of_old(kind: str, seed: int, policy: Declared, k: int) -> np.uint64:
    """The key of one that was stored without a key."""
    label = policy.label_beside(_DEFAULTS_THEN.get(policy.name, policy.defaults()))
    return stream_key(seed, kind, label, k)
