"""Time the peers on catalogs of growing size, each as long as it keeps within its limits."""

import json
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from benchmarks.bench.machine import machine, versions
from benchmarks.bench.peers.peer import installed
from benchmarks.bench.peers.process import NOT_INSTALLED, PEERS, play_peer
from benchmarks.bench.results import Kept, PeerMeasured
from benchmarks.bench.run import now
from firstclick.source_code import code_hash

Report = Callable[[int, int], Any]


def measure_peers(
    items: Sequence[int], n_features: int, k: int, kept: Kept, *, seconds: float, memory: int, report: Report
) -> list[PeerMeasured]:
    """Every peer with every number of items; those in `kept` are not played again.

    What ran out of time or memory, or failed, is not tried with more items. `report(done, all)` is called
    meanwhile, and may raise to stop.
    """
    found: list[PeerMeasured] = []
    total = len(PEERS) * len(items)
    for name, peer in PEERS.items():
        version = installed(peer) or ""
        code = code_hash("benchmarks.bench.peers.__main__")
        context = json.dumps([machine(), versions(), version, code, seconds, memory])
        before = {one.key: one for one in (PeerMeasured(**plain) for plain in kept.load("peer", context))}
        failed = ""
        for n_items in sorted(items):
            report(len(found), total)
            one = before.get((name, n_items, n_features, k))
            if one is None:
                said: dict[str, Any] = {"failure": failed}
                if not failed:
                    said = play_peer(
                        name, n_items, n_features, k, seconds=seconds, memory=memory,
                        report=partial(report, len(found), total),
                    )  # fmt: skip
                one = PeerMeasured(
                    peer=name, version=version, n_items=n_items, n_features=n_features, k=k,
                    seconds=said.get("seconds"), steps=said.get("steps", 0), memory=said.get("memory", 0),
                    failure=said.get("failure", ""), date=now(),
                )  # fmt: skip
                if version:
                    kept.add("peer", context, one)
            if one.failure and not failed:
                again = one.failure == NOT_INSTALLED
                failed = one.failure if again else f"not tried: {one.failure} with {n_items:,} items"
            found.append(one)
    report(total, total)
    return found
