"""A ranker as one file: a page of JSON and plain arrays."""

from collections.abc import Mapping, Sequence
from math import inf, isclose, isfinite
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from firstclick.catalog.catalog import Catalog
from firstclick.catalog.encoder import Encoder
from firstclick.catalog.feature_scale import FeatureScale
from firstclick.catalog.features import check_features
from firstclick.catalog.ids import item_id
from firstclick.errors import WorkFailed
from firstclick.online.baseline import Baseline, Choice, Chosen
from firstclick.online.engine import PolicyEngine
from firstclick.online.explore import check_share
from firstclick.online.floor import Floor
from firstclick.online.slate_record import SlateRecord
from firstclick.policies.base import PlainParameters, Policy
from firstclick.registry import policy_class
from firstclick.streams import LARGEST_KEY
from firstclick.validation.whole_number import seed_number, whole_number

FORMAT = "firstclick ranker 1"
MOST_REQUESTS = 2**62  # Kernels count them in 64 bits.


class PendingSlate(NamedTuple):
    """A slate that waits for its feedback: what has to be known of it to learn from it later."""

    rows: NDArray[np.int64]
    context: NDArray[np.float64]
    features: NDArray[np.float64]  # one row a position; none where they are those of the catalog
    made: float  # when, in seconds since the epoch
    chosen: Chosen | None = None  # of a ranker with a baseline


class Saved(NamedTuple):
    """All that a ranker is, between two calls."""

    engine: PolicyEngine
    seed: int
    key: np.uint64  # decides, with the number of a request, what is explored
    origins: frozenset[int]  # the keys of all rankers whose clicks it knows, its own included
    max_pending: int
    pending: dict[str, PendingSlate]
    records: Mapping[int, SlateRecord]  # by key: what became of the slates of these rankers
    warm_starts: int = 0
    requests: int = 0
    explore: float = 0.0  # the share of slates that are drawn uniformly
    baseline: Baseline | None = None
    out: float = 0.0  # what slates that wait may have used of the floor's room
    # Slates that were learned as no click, because they had waited too long: a click may still come.
    expired: Mapping[str, NDArray[np.int64]] = MappingProxyType({})


def to_file(saved: Saved) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
    """The page and the arrays of a file, slates that wait included."""
    engine = saved.engine
    policy, catalog = engine.policy, engine.catalog
    slates = saved.pending
    contexts = [slate.context for slate in slates.values()]
    given = [slate.features for slate in slates.values() if len(slate.features)]
    page = {
        "format": FORMAT,
        "policy": {"name": policy.name, "settings": policy.settings, "version": policy.version},
        "numbers": list(engine.numbers),
        "k": engine.k,
        "scale": engine.scale and engine.scale.as_json(),
        "seed": saved.seed,
        "key": int(saved.key),
        "origins": sorted(saved.origins),
        "records": [
            [key, record.runs, record.first, len(record.forgotten)] for key, record in saved.records.items()
        ],
        "warm_starts": saved.warm_starts,
        "max_pending": saved.max_pending,
        "requests": saved.requests,
        "explore": saved.explore,
        "items": catalog.items,
        "groups": catalog.groups,
        "cold": catalog.cold_rows,
        "has_features": catalog.n_features is not None,
        "unavailable": sorted(catalog.unavailable, key=str),
        "encoder": catalog.encoder and catalog.encoder.as_json(),
        "values": list(catalog.values.items()),
        "pending": [[id, slate.rows.tolist(), bool(len(slate.features))] for id, slate in slates.items()],
        "chosen": [slate.chosen for slate in slates.values()],
        "made": [slate.made for slate in slates.values()],
        "expired": [[id, rows.tolist()] for id, rows in saved.expired.items()],
        "baseline": None,
    }
    floor = {}
    if saved.baseline is not None:
        page["baseline"] = [saved.baseline.items, saved.baseline.floor.max_loss, saved.out]
        floor = {"floor": saved.baseline.floor.array}
    return page, {
        **floor,
        "features": catalog.table,
        "withdrawn": catalog.withdrawn,
        **{f"state.{name}": array for name, array in engine.state._asdict().items()},
        "pending.contexts": np.array(contexts).reshape(len(slates), policy.n_context),
        "pending.features": np.concatenate(given) if given else np.empty((0, engine.features.shape[1])),
        "forgotten": np.frombuffer(b"".join(one.forgotten for one in saved.records.values()), np.uint8),
    }


def from_file(page: dict[str, Any], arrays: dict[str, NDArray[Any]]) -> Saved:
    """What a page and its arrays say; any error when they do not fit together."""
    known = policy_class(page["policy"]["name"])
    version = whole_number("version", page["policy"]["version"], at_least=1)
    if version != known.version:
        raise WorkFailed(
            f"the ranker was saved by version {version} of {known.name}, and this "
            f"firstclick has version {known.version}, which learns differently; load it with the firstclick "
            "that saved it, or start a new Ranker and give the slates you have logged to warm_start"
        )
    policy = known(**page["policy"]["settings"])
    n_rows = len(page["items"])
    features, withdrawn = arrays["features"], arrays["withdrawn"]
    for array, shape, dtype in (
        (features, (n_rows, features.shape[-1]), np.float64),
        (withdrawn, (n_rows,), np.uint8),
    ):
        if array.shape != shape or array.dtype != dtype or not array.flags.c_contiguous:
            raise ValueError
    if page["has_features"]:
        check_features(features, n_rows)
    encoder = None if page["encoder"] is None else Encoder.from_json(page["encoder"])
    values = {item_id(item): list(line) for item, line in page["values"]}
    if encoder is not None and (
        encoder.n_features != features.shape[1]
        or values.keys() != set(page["items"])
        or any(len(line) != len(encoder.inputs) for line in values.values())
    ):
        raise ValueError("encoder")
    catalog = Catalog.restored(
        page["items"],
        features if page["has_features"] else None,
        withdrawn,
        cold_rows=[whole_number("a row", row, at_least=0, at_most=n_rows - 1) for row in page["cold"]],
        groups=page["groups"],
        unavailable=map(item_id, page["unavailable"]),
        encoder=encoder,
        values=values if encoder is not None else None,
    )
    k = whole_number("k", page["k"], at_least=1, at_most=n_rows)
    scale = None if page["scale"] is None else _scale(page["scale"], catalog.n_features)
    scaled = catalog.kernel_rows(scale)
    engine = PolicyEngine(
        policy,
        catalog,
        k=k,
        scale=scale,
        numbers=_numbers(policy, page["numbers"], k, scaled.arrays.features),
        state={name.removeprefix("state."): array for name, array in arrays.items()},
    )
    key = np.uint64(_key(page["key"]))
    baseline, out = None, 0.0
    if page["baseline"] is not None:
        listed, max_loss, out = page["baseline"]
        ids = [item_id(item) for item in listed]
        floor = Floor(max_loss, array=_floor(arrays["floor"]))
        baseline = Baseline(key, ids, catalog.rows_of(ids), floor)
    records = _records(page["records"], arrays["forgotten"])
    origins = frozenset(map(_key, page["origins"]))
    if key not in origins or records.keys() != origins:
        raise ValueError("records")
    return Saved(
        engine,
        seed=seed_number(page["seed"]),
        key=key,
        origins=origins,
        max_pending=whole_number("max_pending", page["max_pending"], at_least=1),
        pending=_pending(engine, page, arrays["pending.contexts"], arrays["pending.features"]),
        records=records,
        warm_starts=whole_number("warm_starts", page["warm_starts"], at_least=0),
        requests=whole_number("requests", page["requests"], at_least=0, at_most=MOST_REQUESTS),
        explore=check_share(page["explore"], policy),
        baseline=baseline,
        out=float(out),
        expired={str(id): _rows(engine, shown) for id, shown in page["expired"]},
    )


def _records(entries: Sequence[Any], forgotten: NDArray[np.uint8]) -> dict[int, SlateRecord]:
    """What became of the slates of each ranker; ValueError when the parts do not fit."""
    if forgotten.ndim != 1 or forgotten.dtype != np.uint8:
        raise ValueError("forgotten")
    records, start = {}, 0
    for key, runs, first, size in entries:
        stop = start + whole_number("a size", size, at_least=0, at_most=len(forgotten) - start)
        first = whole_number("a number", first, at_least=0, at_most=MOST_REQUESTS)
        counted = {
            str(run): whole_number("a request", last, at_least=0, at_most=MOST_REQUESTS)
            for run, last in runs.items()
        }
        records[_key(key)] = SlateRecord(counted, first, forgotten[start:stop].tobytes())
        start = stop
    if start != len(forgotten):
        raise ValueError("forgotten")
    return records


def _pending(
    engine: PolicyEngine,
    page: Mapping[str, Any],
    contexts: NDArray[np.float64],
    features: NDArray[np.float64],
) -> dict[str, PendingSlate]:
    """The slates that wait; ValueError when the parts do not fit, because kernels do not look whether a row
    exists."""
    policy, entries = engine.policy, page["pending"]
    if contexts.shape != (len(entries), policy.n_context) or features.shape[1:] != engine.features.shape[1:]:
        raise ValueError("pending")
    if not (np.isfinite(contexts).all() and np.isfinite(features).all()):
        raise ValueError("pending")
    pending = {}
    start = 0
    for (slate, shown, has_features), context, chosen, made in zip(
        entries, contexts, page["chosen"], page["made"], strict=True
    ):
        rows = _rows(engine, shown)
        size = len(rows) if has_features else 0
        if start + size > len(features):
            raise ValueError("pending")
        own = check_features(features[start : start + size], size) if size else np.empty((0, 0))
        if size:
            policy.admit(engine.numbers, own)
        if policy.n_context:
            policy.check_context(context)
        decision = None if chosen is None else Chosen(Choice(chosen[0]), *chosen[1:])
        pending[str(slate)] = PendingSlate(rows, context.astype(np.float64), own, float(made), decision)
        start += size
    if start != len(features):
        raise ValueError("pending")
    return pending


def _rows(engine: PolicyEngine, shown: Sequence[Any]) -> NDArray[np.int64]:
    """The rows of a slate, or ValueError."""
    rows = np.array(shown, np.int64)
    n_rows = len(engine.catalog.items)
    if rows.ndim != 1 or len(rows) > engine.k or not ((rows >= 0) & (rows < n_rows)).all():
        raise ValueError("pending")
    return rows


def _numbers(policy: Policy, stored: list[Any], k: int, features: NDArray[np.float64]) -> PlainParameters:
    """The numbers of the policy for kernels; ValueError if they are not those of its parameters.

    One that follows from the features is that of the features at the start. Whether a plug-in's does, it does
    not say; our own have whole numbers that are places in arrays.
    """
    expected = policy.numbers(k, features)
    ours = type(policy).__module__.startswith("firstclick.")
    numbers = policy.numbers_type(*(tuple(value) if isinstance(value, list) else value for value in stored))
    for name, value, wanted in zip(expected._fields, numbers, expected, strict=True):
        known = wanted.item() if isinstance(wanted, np.generic) else wanted
        if type(value) is not type(known):
            raise ValueError(name)
        if isinstance(value, float):
            # Another machine's logarithm may differ in the last digit.
            fits = isclose(value, known, rel_tol=1e-12) or name in policy.derived or not ours
            fits = fits and isfinite(value)
        else:
            fits = value == known or not ours
        if not fits:
            raise ValueError(name)
    return numbers


def _scale(page: Mapping[str, Any], n_features: int | None) -> FeatureScale:
    scale = FeatureScale.from_json(page)
    if len(scale.names) != n_features or not (0 < scale.divisor < inf and abs(scale.intercept) < inf):
        raise ValueError("scale")
    return scale


def _floor(array: NDArray[Any]) -> NDArray[np.float64]:
    """The numbers of a floor; ValueError if these are none."""
    like = Floor(1.0).array
    if (
        array.shape != like.shape
        or array.dtype != like.dtype
        or not (np.isfinite(array) & (array >= 0)).all()
    ):
        raise ValueError("floor")
    return array


def _key(key: int) -> int:
    return whole_number("a key", key, at_least=0, at_most=LARGEST_KEY)
