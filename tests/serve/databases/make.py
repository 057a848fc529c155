"""Write what this version stores, for later versions to open: stores, an export and saved rankers.

    python tests/serve/databases/make.py NAME

makes a folder NAME beside this file with

    sqlite.sql, postgresql.sql    a store of each kind, with the same six models
    linear.export                 one of them, exported
    <policy>.npz                  saved rankers, with slates that wait for their feedback
    expected.json                 the digests and the next slates of all of them
    every-policy.json             what a short log comes to, for every policy there is

A folder is never made again: it is what that version wrote. `ea10ab1` was made at that commit,
before there was cascade-mixed. `schema-1.sql` is older: the first store there was, with one model.
"""

import hashlib
import json
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from every_policy import digests  # noqa: E402
from made_log import K, made_items  # noqa: E402
from stores import Server  # noqa: E402

from firstclick import Catalog, Ranker  # noqa: E402
from firstclick.serve import open_service  # noqa: E402
from firstclick.serve.model.replay import recover  # noqa: E402
from firstclick.serve.service import Service  # noqa: E402
from firstclick.serve.store import open_store  # noqa: E402
from firstclick.serve.store.store import Store  # noqa: E402

# One of each shape of a state. Settings other than the defaults are part of the key.
MODELS = {
    "linear": "cascade-lin-ts:sigma=0.5",
    "counts": "cascade-ts",
    "positions": "pbm-ucb:eps=0.1",
    "segments": "segment-lin-ts:segments=3",
    "window": "cascade-swucb:window=20",
    "mixed": "cascade-mixed",
}
RANKERS = ("cascade-lin-ts:sigma=0.5", "cascade-ts", "cascade-swucb:window=20", "cascade-mixed")
NUMBERS = range(10)


def slates_of(model: Any) -> list[list[str]]:
    """What the model shows for ten numbers of a request, and what it thinks of the items."""
    contexts = [None] if not model.wants_context else [[0.0], [2.0]]
    return [model.recommend(number, context=context).items for number in NUMBERS for context in contexts]


def digest_of(ranker: Ranker) -> str:
    """All that the ranker has learned."""
    digest = hashlib.sha256()
    newer = getattr(ranker.policy, "newer_arrays", ())  # than what was expected then
    for name, array in ranker.state._asdict().items():
        if name in newer and not array.size:
            continue
        digest.update(f"{name}{array.dtype.str}{array.shape}".encode() + array.tobytes())
    return digest.hexdigest()


def next_of(ranker: Ranker) -> dict[str, Any]:
    """What the ranker knows, the slates that wait, the next ten, and what it knows after their clicks."""
    known, waiting = digest_of(ranker), list(ranker.pending)
    for number, slate in enumerate(waiting):
        ranker.learn(slate, click=number % K)
    slates = [ranker.recommend() for _ in NUMBERS]
    for number, shown in enumerate(slates):
        ranker.learn(shown, click=None if number % 4 == 3 else number % 3)
    return {
        "known": known,
        "waiting": waiting,
        "slates": [list(shown.items) for shown in slates],
        "known later": digest_of(ranker),
    }


def expected_of(store: Store, names: Collection[str] = tuple(MODELS)) -> dict[str, Any]:
    """The digest of these models, folded from their first events, and their slates."""
    found = {}
    for stored in [stored for stored in store.models() if stored.name in names]:
        model = recover(store, stored, use_snapshots=False)
        found[stored.name] = {"seq": model.seq, "digest": model.digest(), "slates": slates_of(model)}
    return found


def _clicks(seed: int) -> Iterator[dict[str, Any]]:
    draw = np.random.default_rng(seed)
    while True:
        first = int(draw.integers(0, K + 1))
        if draw.random() < 0.3:
            yield {"clicks": sorted(draw.permutation(K)[:2].tolist()), "examined": K}
        else:
            yield {"click": first if first < K else None}


def _fill(service: Service) -> None:
    for number, (name, policy) in enumerate(MODELS.items()):
        service.create(name, policy=policy, k=K, items=made_items(), seed=50 + number)
        clicks = _clicks(number)

        def play(steps: int, name: str = name, clicks: Iterator[dict[str, Any]] = clicks) -> None:
            for step in range(steps):
                context = [step % 3] if service.model(name).wants_context else None
                shown = service.recommend(name, request_id=f"{name} {step} of {steps}", context=context)
                service.feedback(name, shown, **next(clicks))

        play(40)
        service.put_items(name, [*made_items(2, first=50), made_items()[3]._replace(name="renamed")])
        play(25)
        service.withdraw_items(name, ["i2", "i50"])
        play(20)
        service.roll_back(name, 55)
        play(15)
        service.put_items(name, [made_items(seed=9)[4], made_items()[2]])  # other features, and shown again
        play(30)


def _ranker(policy: str, folder: Path) -> Path:
    items = made_items()
    catalog = Catalog(
        [item.id for item in items],
        [item.features for item in items],
        groups=[item.group for item in items],
    )
    ranker = Ranker(catalog, k=K, policy=policy, seed=77)
    clicks = _clicks(7)
    for _ in range(60):
        ranker.learn(ranker.recommend(), **next(clicks))
    ranker.add_items(["new", "cold"], [[1.0, 0.2, -0.3, 0.1], None], groups=["odd", None])
    ranker.withdraw_items(["i5"])
    for _ in range(25):
        ranker.learn(ranker.recommend(exclude=["i1"], at_most={"odd": 2}), **next(clicks))
    for _ in range(4):
        ranker.recommend()
    path = folder / f"{policy.partition(':')[0]}.npz"
    ranker.save(path)
    return path


def _dumped(server: Server, url: str) -> str:
    """The tables at this address as statements that make them again, in whatever schema comes first."""
    from pgserver._commands import POSTGRES_BIN_PATH

    address, _, schema = url.partition("&options=-csearch_path%3D")
    done = subprocess.run(
        [POSTGRES_BIN_PATH / "pg_dump", "--schema", schema, "--inserts", "--no-owner", "--dbname", address],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    unwanted = ("--", "\\", "SET ", "SELECT pg_catalog.set_config", "CREATE SCHEMA")
    lines = [line for line in done.stdout.splitlines() if line and not line.startswith(unwanted)]
    return "\n".join(lines).replace(f"{schema}.", "") + "\n"


def main(name: str) -> None:
    """Make the folder."""
    folder = HERE / name
    if folder.exists():
        raise SystemExit(f"{folder.name} was released and stays as it is; give another name")
    folder.mkdir()
    expected: dict[str, Any] = {"rankers": {}}
    with tempfile.TemporaryDirectory() as temporary:
        path = Path(temporary) / "shop.db"
        with open_service(str(path)) as service:
            _fill(service)
            exports = {model: b"".join(service.export(model)) for model in MODELS}
        with open_store(path) as store:
            expected["models"] = expected_of(store)
        connection = sqlite3.connect(path)
        # Snapshots are a cache, and larger than all the rest.
        lines = [line for line in connection.iterdump() if not line.startswith('INSERT INTO "snapshot"')]
        connection.close()
    (folder / "sqlite.sql").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "linear.export").write_bytes(exports["linear"])

    server = Server()
    try:
        url = server.new_database()
        with open_service(url) as service:
            for model, content in exports.items():
                service.import_model(model, content)
        with open_store(url) as store:
            assert expected_of(store) == expected["models"]
        (folder / "postgresql.sql").write_text(_dumped(server, url), encoding="utf-8")
    finally:
        server.close()

    for policy in RANKERS:
        path = _ranker(policy, folder)
        expected["rankers"][path.name] = next_of(Ranker.load(path))
    (folder / "expected.json").write_text(json.dumps(expected, indent=1) + "\n", encoding="utf-8")
    (folder / "every-policy.json").write_text(json.dumps(digests(), indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
